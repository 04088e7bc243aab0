//! The power of runs on several nodes: a tree of files in the place of the system's for each node.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use tuner::agents::vitals::VitalsRecord;
use tuner::power::PowerRecord;

use super::*;

/// Watts of the package of each node; the third one has no sensor.
const WATTS: [(&str, f64); 2] = [("n1", 150.0), ("n2", 250.0)];
/// Range of the counters in microjoules: they begin anew each 10 s or so.
const RANGE_UJ: f64 = 2e9;

/// Clocks of three nodes in kHz; heat holds the second one back.
const CLOCKS_KHZ: [(&str, u64); 3] = [("n1", 2_600_000), ("n2", 1_900_000), ("n3", 2_610_000)];
/// Share of the time for which it does.
const HELD_BACK: f64 = 0.3;

/// Runs `work` while the counters of the nodes below `tree` go on.
fn with_counters<T>(tree: &Path, work: impl FnOnce() -> T) -> T {
    let zones: Vec<(PathBuf, f64)> = WATTS
        .into_iter()
        .map(|(node, watts)| {
            let zone = tree.join(node).join("sys/class/powercap/intel-rapl:0");
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), "package-0").unwrap();
            fs::write(zone.join("max_energy_range_uj"), RANGE_UJ.to_string()).unwrap();
            (zone, watts)
        })
        .collect();
    for (node, khz) in CLOCKS_KHZ {
        let cpus = tree.join(node).join("sys/devices/system/cpu");
        for folder in ["cpu0/cpufreq", "cpu0/thermal_throttle"] {
            fs::create_dir_all(cpus.join(folder)).unwrap();
        }
        fs::write(cpus.join("online"), "0\n").unwrap();
        fs::write(cpus.join("cpu0/cpufreq/scaling_cur_freq"), format!("{khz}\n")).unwrap();
        fs::write(cpus.join("cpu0/thermal_throttle/package_throttle_total_time_ms"), "5\n").unwrap();
    }
    let hot = tree.join("n2/sys/devices/system/cpu/cpu0/thermal_throttle");
    let (begun, ended) = (Instant::now(), AtomicBool::new(false));
    let replace = |folder: &Path, name: &str, value: f64| {
        fs::write(folder.join("next"), format!("{value:.0}\n")).unwrap();
        fs::rename(folder.join("next"), folder.join(name)).unwrap();
    };
    let write = |(zone, watts): &(PathBuf, f64)| {
        let s = begun.elapsed().as_secs_f64();
        replace(zone, "energy_uj", (s * watts * 1e6) % RANGE_UJ);
        if zone.starts_with(tree.join("n2")) {
            replace(&hot, "package_throttle_total_time_ms", 1e3 * HELD_BACK * s);
        }
    };
    zones.iter().for_each(write);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                zones.iter().for_each(write);
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        ended.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panicked| std::panic::resume_unwind(panicked))
    })
}

/// A session in `folder` of runs of several seconds, as readings have to cover their core phases, with the sensors of `tree`.
fn measured(folder: &Path, tree: &Path, more: &str) -> String {
    let words = session(folder, "50s").replace("--n 3000", "--n 9000");
    format!("{words} --power-root {}/{{node}} {more}", tree.display())
}

/// `power.json` of each trial that has one.
fn records(folder: &Path) -> Vec<PowerRecord> {
    let read = |row: Row| fs::read(folder.join("trials").join(row.trial.to_string()).join(PowerRecord::NAME)).ok();
    let texts = recorded(folder).into_iter().filter_map(read);
    texts.map(|text| serde_json::from_slice(&text).unwrap()).collect()
}

fn none_left(folder: &Path) -> bool {
    processes(folder, &["hpl-tune", "srun", "mpirun", "xhpl"]).is_empty()
}

#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn the_power_of_all_nodes_is_that_of_a_run() {
    let cluster = Cluster::start(3);
    let root = cluster.folder.path();
    let tree = root.join("tree");
    with_counters(&tree, || {
        // A search for efficiency: all nodes have to be read.
        let folder = root.join("run");
        let said = cluster.printed(&cluster.submit(&measured(&folder, &tree, "--objective gflops-per-watt")));
        assert!(
            said.contains("power: of each run, by powercap package-0; not Green500 grade; of all 2 nodes"),
            "{said}"
        );
        let read: Vec<Row> = recorded(&folder).into_iter().filter(|row| row.run_power_w.is_some()).collect();
        assert!(read.len() >= 3, "{said}");
        let watts: f64 = WATTS.iter().map(|(_, watts)| watts).sum();
        for row in &read {
            for found in [row.power_w, row.run_power_w].into_iter().flatten() {
                assert!((found / watts - 1.0).abs() < 0.15, "trial {}: {found} W", row.trial);
            }
            let source = row.power_source.as_deref().unwrap();
            assert_eq!(source, "powercap package-0; not Green500 grade; of all 2 nodes");
        }
        // Readings are half a second apart: how much of a core phase they cover is a matter of its length and of chance.
        let covered: Vec<f64> = read.iter().filter_map(|row| row.power_coverage).collect();
        println!("shares of core phases that were read: {covered:.2?}");
        for row in &read {
            let enough = row.power_coverage.is_some_and(|share| share >= 0.8);
            let expected = row.rate_gflops.filter(|_| enough).zip(row.power_w).map(|(rate, watts)| rate / watts);
            assert_eq!(row.gflops_per_w, expected, "{row:?}");
        }
        let records = records(&folder);
        let sampler_s: f64 = records.iter().map(|record| record.sampler_cpu_s).sum();
        let sampled_s: f64 = records.iter().map(|record| record.sampled_s).sum();
        println!("{} runs, samplers of two nodes took {sampler_s:.4} s in {sampled_s:.1} s", records.len());
        println!("{}", said.lines().filter(|line| line.contains("ower")).collect::<Vec<_>>().join("\n"));
        assert!(sampler_s <= 2.0 * 1e-3 * sampled_s + 4e-3 * records.len() as f64);
        for record in records {
            let nodes: Vec<&str> = record.nodes.iter().map(|node| node.node.as_str()).collect();
            assert_eq!((nodes, record.of_all), (vec!["n1", "n2"], true));
            for ((_, watts), node) in WATTS.iter().zip(&record.nodes) {
                let found = node.run.as_ref().map_or(*watts, |run| run.mean_watts);
                assert!((found / watts - 1.0).abs() < 0.15, "{}: {found} W", node.node);
                // The nodes have the clock of this machine.
                assert!(node.clock_offset_s.unwrap().abs() < 0.5, "{node:?}");
            }
        }
        assert!(within(Duration::from_secs(20), || none_left(&folder)), "{:?}", cluster.slurm(&["squeue", "--steps"]));

        // With a node that has no sensor it is refused, and nothing is left.
        let folder = root.join("refused");
        let words = measured(&folder, &tree, "--objective gflops-per-watt");
        let said = cluster.printed(&cluster.submit_to("n1,n2,n3", &format!("{words}; echo ended $?")));
        assert!(said.contains("ended 2") && said.contains("not of n3") && !folder.exists(), "{said}");

        // A search for speed has the power of the others, and says so.
        let folder = root.join("part");
        let said = cluster.printed(&cluster.submit_to("n1,n2,n3", &measured(&folder, &tree, "")));
        assert!(said.contains("of 2 of 3 nodes, not of n3") && said.contains("no sensor was found on n3"), "{said}");
        let rows = recorded(&folder);
        let read: Vec<&Row> = rows.iter().filter(|row| row.run_power_w.is_some()).collect();
        assert!(!read.is_empty(), "{said}");
        for row in &read {
            assert!((row.run_power_w.unwrap() / watts - 1.0).abs() < 0.15 && row.gflops_per_w.is_none());
            assert!(row.run_power_coverage.unwrap() <= 2.0 / 3.0);
        }
        // All three are watched; the second one is named, in words once.
        let apart: Vec<&Row> = rows.iter().filter(|row| row.nodes_apart.is_some()).collect();
        let start = "n2: clock 1.90 GHz, of the others 2.6";
        assert_eq!(said.matches("hpl-tune nodes says what leaving a slow node out is worth").count(), 1, "{said}");
        for row in &apart {
            let words = row.nodes_apart.as_deref().unwrap();
            assert!(words.starts_with(start) && words.contains("held back by heat 3"), "{words}");
            let text = fs::read(folder.join("trials").join(row.trial.to_string()).join(VitalsRecord::NAME)).unwrap();
            let seen: VitalsRecord = serde_json::from_slice(&text).unwrap();
            let clocks: Vec<(&str, Option<f64>)> =
                seen.nodes.iter().map(|node| (node.node.as_str(), node.clock_hz)).collect();
            assert_eq!(clocks, CLOCKS_KHZ.map(|(node, khz)| (node, Some(1e3 * khz as f64))));
        }
        println!("{} of {} trials name n2: {:?}", apart.len(), rows.len(), apart.first().map(|row| &row.nodes_apart));
        assert!(apart.len() >= 3, "{said}");
    });
}

/// Another engine, whose nodes are found by processes of this program in its place: a script that takes 8 s in each of two ranks, so that readings cover most of it
/// where a sample comes each two seconds only, as the processor is slow.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn the_power_of_all_nodes_of_another_engine_is_read() {
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let tree = root.join("tree");
    let (script, profile) = (root.join("other.sh"), root.join("other.toml"));
    let stamp = "date -u '+%a %b %e %H:%M:%S %Y'";
    let body = format!(
        r#"#!/bin/bash
start=$({stamp})
sleep 8
[ "$SLURM_PROCID" = 0 ] || exit 0
echo "HPL_pdgesv() start time $start"
echo "HPL_pdgesv() end time   $({stamp})"
echo "WR11C2R4 $1 $2 1 2 8.00 $(awk "BEGIN {{ print (2 / 3 * $1 ^ 3 + 1.5 * $1 ^ 2) / 8 / 1e9 }}")"
echo "||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED"
"#
    );
    fs::write(&script, body).unwrap();
    fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let text = format!(
        r"
schema_version = 1
name = 'other'
about = 'a script'
source = 'this test'
program = '{}'
launcher = 'srun'
command = ['{{launch}}', '{{program}}', '{{n}}', '{{nb}}', '{{p}}', '{{q}}']
obeys = ['nb']
[patterns]
result = '^W[RC]\d\S*\s+(?<n>\d+)\s+\d+\s+\d+\s+\d+\s+(?<time>\S+)\s+(?<gflops>\S+)'
residual = '^\|\|Ax-b\|\|_oo/.*=\s*(?<residual>\S+) \.+ (?<verdict>PASSED|FAILED)'
",
        script.display()
    );
    fs::write(&profile, text).unwrap();
    with_counters(&tree, || {
        let folder = root.join("run");
        let words = format!(
            "{} --budget 60s --n 3000 --engine {} --machine {} --out {} --objective gflops-per-watt --power-root {}/{{node}}",
            env!("CARGO_BIN_EXE_hpl-tune"),
            profile.display(),
            machine_toml().display(),
            folder.display(),
            tree.display()
        );
        let said = cluster.printed(&cluster.submit(&words));
        let source = "powercap package-0; not Green500 grade; of all 2 nodes";
        assert!(said.contains(&format!("power: of each run, by {source}")), "{said}");
        let read: Vec<Row> = recorded(&folder).into_iter().filter(|row| row.passed).collect();
        assert!(read.len() >= 3, "{said}");
        let watts: f64 = WATTS.iter().map(|(_, watts)| watts).sum();
        for row in &read {
            let of_run =
                row.run_power_w.unwrap_or_else(|| panic!("trial {}: {:?}\n{said}", row.trial, records(&folder)));
            assert!((of_run / watts - 1.0).abs() < 0.15, "trial {}: {row:?}", row.trial);
            assert_eq!(row.power_source.as_deref(), Some(source));
        }
        println!("{}", said.lines().filter(|line| line.contains("ower")).collect::<Vec<_>>().join("\n"));
        let nodes = records(&folder).iter().all(|record| record.of_all && record.nodes.len() == 2);
        assert!(nodes, "each of both by itself");
        assert!(within(Duration::from_secs(20), || none_left(&folder)), "{:?}", cluster.slurm(&["squeue", "--steps"]));
    });
}

/// `kill -9` of the session: nothing stays on a node. Of the process on a node, or of their launcher: the session goes on and starts them again.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn processes_on_nodes_end_with_their_session_and_start_again_with_it() {
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let tree = root.join("tree");
    let is_agent =
        |pid: &i32| fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.contains("__node-agent"));
    let agents =
        |folder: &Path, name: &str| -> Vec<i32> { processes(folder, &[name]).into_iter().filter(is_agent).collect() };
    with_counters(&tree, || {
        let folder = root.join("run");
        // The job lives on when the session is killed.
        let job = cluster.submit(&format!("{}\nsleep 60", measured(&folder, &tree, "")));
        let reading = || agents(&folder, "hpl-tune").len() >= 2;
        assert!(within(Duration::from_secs(60), reading), "{}", cluster.state_of(&job));
        assert!(within(Duration::from_secs(60), || !recorded(&folder).is_empty()), "{}", cluster.state_of(&job));
        // The launcher of the processes: both of its own.
        for pid in agents(&folder, "srun") {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        let count = || records(&folder).len();
        let before = count();
        assert!(within(Duration::from_secs(60), || count() >= before + 2), "{}", cluster.state_of(&job));
        assert!(reading(), "they were not started again: {}", cluster.state_of(&job));
        let tuner: Vec<i32> = processes(&folder, &["hpl-tune"])
            .into_iter()
            .filter(|pid| {
                let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.contains("--budget")
            })
            .collect();
        assert_eq!(tuner.len(), 1);
        kill(Pid::from_raw(tuner[0]), Signal::SIGKILL).unwrap();
        let killed = Instant::now();
        assert!(within(Duration::from_secs(30), || none_left(&folder)), "{}", cluster.state_of(&job));
        println!("nothing is left {:.1} s after kill -9 of the session", killed.elapsed().as_secs_f64());
        let steps = || cluster.slurm(&["squeue", "--noheader", "--steps", "--format", "%j"]);
        assert!(
            within(Duration::from_secs(20), || !steps().contains("hpl-tune") && !steps().contains("xhpl")),
            "{}",
            steps()
        );
        cluster.slurm(&["scancel", &job]);
    });
}
