//! The clock of the nodes by `srun --cpu-freq`: of this Slurm, whose nodes have none, and of one in whose place a script sets it in trees of files.

use std::fs;

use super::*;
use crate::slurm_clock::{FOUND, srun, tree};

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn a_job_has_its_clock_from_slurm_where_slurm_sets_it() {
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let trees = root.join("tree");
    for node in ["n1", "n2"] {
        tree(&trees.join(node));
    }
    let vary = format!("--vary clock --power-root {}/{{node}}", trees.display());

    // This Slurm binds no tasks, and knows nothing of the trees.
    let folder = root.join("refused");
    let job = cluster.submit(&format!("{} {vary}; echo ended $?", session(&folder, "30s")));
    let said = cluster.printed(&job);
    assert!(said.contains("ended 2") && !folder.exists(), "{said}");
    assert!(said.contains("where 1300 MHz was asked") && said.contains("TaskPlugin is task/none"), "{said}");
    println!("{}", said.lines().find(|line| line.contains("--vary clock")).unwrap());

    // In its place a script does what Slurm does on other nodes.
    let bin = root.join("bin");
    fs::create_dir(&bin).unwrap();
    srun(&bin, &trees, r#"/usr/bin/srun "${words[@]}""#);
    let folder = root.join("run");
    let path = format!("export PATH={}:$PATH", bin.display());
    // A search for the highest rate may never ask for a lower clock.
    let random = format!("{vary} --strategy random");
    let job = cluster.submit(&format!("{path}\n{} {random}; echo ended $?", session(&folder, "45s")));
    let said = cluster.printed(&job);
    assert!(said.contains("ended 0"), "{said}");
    assert!(
        said.contains("clock: Slurm sets it, seen on all 2 nodes by srun --cpu-freq=1000000-1300000:performance"),
        "{said}"
    );
    println!("{}", said.lines().filter(|line| line.contains("clock")).collect::<Vec<_>>().join("\n"));
    let rows = recorded(&folder);
    let clocks: std::collections::BTreeSet<Option<u32>> = rows.iter().map(|row| row.max_clock_mhz).collect();
    assert!(clocks.len() > 1 && !clocks.contains(&None), "{clocks:?}: {said}");
    for row in &rows {
        let asked = format!("--cpu-freq=1000000-{}:performance", 1000 * u64::from(row.max_clock_mhz.unwrap()));
        assert_eq!(row.command.contains(&asked), row.max_clock_mhz != Some(2500), "{}", row.command);
    }
    for node in ["n1", "n2"] {
        let file = trees.join(node).join("sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq");
        assert_eq!(fs::read_to_string(file).unwrap().trim(), FOUND);
    }
}
