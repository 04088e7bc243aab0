//! A node that stands still in the middle of a run: its connections stay open, so that nothing ends by itself.

use std::time::{Duration, Instant};

use crate::needs_slurm::{Cluster, recorded, session, within};

#[test]
#[ignore = "needs Slurm, takes four minutes; run by hand"]
fn a_session_goes_on_without_a_node_that_stands_still() {
    // Slurm itself is to notice nothing.
    let cluster = Cluster::start_with(3, "SlurmdTimeout=600");
    let folder = cluster.folder().join("run");
    let session = session(&folder, "200s");
    let job = cluster.submit_to("n1,n2,n3", &format!("#SBATCH --no-kill\n{session}\necho ended $?"));
    let said = || std::fs::read_to_string(cluster.folder().join(format!("{job}.txt"))).unwrap_or_default();
    assert!(within(Duration::from_secs(100), || recorded(&folder).len() >= 3), "{}", said());
    assert!(cluster.script(&["freeze", "n2"]).status.success());
    let frozen = Instant::now();
    assert!(within(Duration::from_secs(170), || said().contains("n2 answers no more")), "{}", said());
    println!("n2 was named {:.0} s after it stood still", frozen.elapsed().as_secs_f64());
    // Slurm waits for the node before it calls the job completed.
    assert!(within(Duration::from_secs(220), || said().contains("\nended ")), "{}", said());
    let rows = recorded(&folder);
    let lost: Vec<_> = rows.iter().filter(|row| !row.passed).collect();
    println!("{:?}", lost.iter().map(|row| (&row.failure_detail, row.wall_s)).collect::<Vec<_>>());
    assert!((1..=2).contains(&lost.len()) && said().contains("\nended 0"), "{}", said());
    let last = rows.iter().rfind(|row| row.strategy == "final" && row.passed);
    assert_eq!(last.and_then(|row| row.nodes.as_deref()), Some("n1 n3"), "{}", said());
}
