//! The power of runs: on a tree of files in the place of the system's, by a meter's file, and on a simulated cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tuner::power::PowerRecord;
use tuner::record::Row;
use tuner::report::Summary;

use crate::docs::pages::root;
use crate::program::{err, hpl_tune, out, tune};
use crate::tune::rows;

/// Watts of the package and of the memory of the tree.
const PACKAGE_W: f64 = 150.0;
const MEMORY_W: f64 = 25.0;
/// Range of its counters in microjoules: that of the package begins anew each 20 s.
const RANGE_UJ: f64 = 3e9;

/// Ends a thread that writes, also where what it writes for panics: it would be waited for without end.
struct WritesUntilDropped<'a>(&'a AtomicBool);

impl Drop for WritesUntilDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A processor whose counters go on while `work` runs.
fn with_counters<T>(root: &Path, work: impl FnOnce() -> T) -> T {
    let zones = [("intel-rapl:0", "package-0", PACKAGE_W), ("intel-rapl:0:0", "dram", MEMORY_W)];
    let zones = zones.map(|(zone, name, watts)| {
        let folder = root.join("sys/class/powercap").join(zone);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("name"), name).unwrap();
        fs::write(folder.join("max_energy_range_uj"), RANGE_UJ.to_string()).unwrap();
        (folder, watts)
    });
    let (begun, ended) = (Instant::now(), AtomicBool::new(false));
    // A reader sees the old text or the new one.
    let write = |folder: &PathBuf, watts: f64| {
        let energy = (begun.elapsed().as_secs_f64() * watts * 1e6) % RANGE_UJ;
        fs::write(folder.join("next"), format!("{energy:.0}\n")).unwrap();
        fs::rename(folder.join("next"), folder.join("energy_uj")).unwrap();
    };
    zones.iter().for_each(|(folder, watts)| write(folder, *watts));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                zones.iter().for_each(|(folder, watts)| write(folder, *watts));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let _writes = WritesUntilDropped(&ended);
        work()
    })
}

struct Measured {
    _home: tempfile::TempDir,
    folder: PathBuf,
    stdout: String,
    stderr: String,
}

/// A session on that tree, with runs of several seconds also on a fast machine: counters are read five times a second, and
/// an efficiency is told where the readings cover 80 % of a core phase.
fn measured() -> &'static Measured {
    static DONE: OnceLock<Measured> = OnceLock::new();
    DONE.get_or_init(|| {
        let home = tempfile::tempdir().unwrap();
        let (tree, folder) = (home.path().join("tree"), home.path().join("run"));
        let words = ["--budget", "60s", "--n", "11000", "--blas", "builtin", "--threads", "1"].map(str::to_owned);
        let places = ["--power-root", tree.to_str().unwrap(), "--out", folder.to_str().unwrap()].map(str::to_owned);
        let output = with_counters(&tree, || tune(words.iter().chain(&places)));
        assert!([Some(0), Some(6)].contains(&output.status.code()), "{}", err(&output));
        let (stdout, stderr) = (out(&output), err(&output));
        Measured { folder, stdout, stderr, _home: home }
    })
}

#[test]
fn every_run_has_the_power_of_its_core_phase() {
    let Measured { folder, stdout, stderr, .. } = measured();
    assert!(stderr.contains("power: of each run, by powercap package-0 dram-0; not Green500 grade"), "{stderr}");
    let rows = rows(folder);
    let read: Vec<&Row> = rows.iter().filter(|row| row.power_w.is_some()).collect();
    assert!(!read.is_empty(), "{stderr}");
    for row in &read {
        let watts = row.power_w.unwrap();
        assert!((watts / (PACKAGE_W + MEMORY_W) - 1.0).abs() < 0.15, "trial {}: {watts} W", row.trial);
        let coverage = row.power_coverage.unwrap();
        assert!(coverage > 0.0 && coverage <= 1.0, "{coverage}");
        let joules = row.energy_j.unwrap();
        assert!((joules / (watts * coverage * row.time_s.unwrap()) - 1.0).abs() < 1e-6, "{joules} J");
        let expected = row.rate_gflops.filter(|_| coverage >= 0.8).map(|rate| rate / watts);
        assert_eq!(row.gflops_per_w, expected);
        // Equal where no reading lies wholly before or after the core phase.
        assert!(row.run_energy_j.unwrap() >= joules * (1.0 - 1e-9), "the whole run takes no less than its core phase");
        assert_eq!(row.power_source.as_deref(), Some("powercap package-0 dram-0; not Green500 grade"));
        let path = folder.join("trials").join(row.trial.to_string()).join(PowerRecord::NAME);
        let record: PowerRecord = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        assert_eq!(record.sensors.len(), 2);
        assert!(record.sampler_cpu_s <= 1e-3 * record.sampled_s + 2e-3, "{record:?}");
    }
    assert!(read.iter().any(|row| row.gflops_per_w.is_some()), "no core phase is covered by 80 %");
    let summary = stdout.lines().find(|line| line.starts_with("Power")).unwrap_or_else(|| panic!("{stdout}"));
    assert!(summary.contains("software reading: powercap package-0 dram-0; not Green500 grade"), "{summary}");
    // Where whole runs take too much of the budget, as on a slow or loaded machine, the best is estimated by windows.
    let best = stdout.lines().find(|line| line.starts_with("Best")).unwrap_or_else(|| panic!("{stdout}"));
    assert!(best.contains(" W") || best.contains("estimated"), "{stdout}");
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    assert!(page.contains("not Green500 grade"));
}

#[test]
fn a_file_that_is_no_meters_is_refused_before_anything_runs() {
    let home = tempfile::tempdir().unwrap();
    let (log, folder) = (home.path().join("meter.csv"), home.path().join("run"));
    fs::write(&log, "when,volts\n").unwrap();
    let words = ["--budget", "30s", "--power-log", log.to_str().unwrap(), "--out", folder.to_str().unwrap()];
    let output = tune(words);
    assert_eq!(output.status.code(), Some(2));
    assert!(err(&output).contains("meter.csv: line 1: no column time"), "{}", err(&output));
    assert!(!folder.exists());
}

/// A meter that writes ten readings a second of a clock that is an hour late.
#[test]
fn a_meter_takes_the_place_of_the_sensors() {
    let home = tempfile::tempdir().unwrap();
    let (log, folder) = (home.path().join("meter.csv"), home.path().join("run"));
    fs::write(&log, "time,watts\n").unwrap();
    let ended = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = fs::OpenOptions::new().append(true).open(&log).unwrap();
            while !ended.load(Ordering::Relaxed) {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
                std::io::Write::write_all(&mut file, format!("{:.6},420\n", now - 3600.0).as_bytes()).unwrap();
                std::thread::sleep(Duration::from_millis(100));
            }
        });
        let words = ["--budget", "30s", "--n", "4000", "--blas", "builtin", "--power-log", log.to_str().unwrap()];
        let _writes = WritesUntilDropped(&ended);
        tune(words.into_iter().chain(["--power-offset", "3600", "--out", folder.to_str().unwrap()]))
    });
    assert!([Some(0), Some(6)].contains(&output.status.code()), "{}", err(&output));
    let rows = rows(&folder);
    // On a slow machine trials are windows, which have no core phase.
    let read: Vec<&Row> = rows.iter().filter(|row| row.run_power_w.is_some()).collect();
    assert!(!read.is_empty(), "{rows:?}");
    let all = read.iter().flat_map(|row| [row.run_power_w, row.power_w]).flatten();
    assert!(all.into_iter().all(|watts| (watts - 420.0).abs() < 1e-6));
    assert!(read.iter().all(|row| row.power_source.as_ref().unwrap().starts_with("meter ")));
    let session = fs::read_to_string(folder.join("session.toml")).unwrap();
    assert!(session.contains("[power_log]") && session.contains("offset_s = 3600"), "{session}");
}

#[test]
fn the_doctor_names_the_sensors_and_the_way_to_others() {
    let home = tempfile::tempdir().unwrap();
    let doctor = || {
        let output = tune(["doctor", "--json", "--power-root", home.path().to_str().unwrap()]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let checks = report["checks"].as_array().unwrap().clone();
        checks.into_iter().find(|check| check["topic"] == "power").unwrap()
    };
    let read = with_counters(home.path(), doctor);
    assert_eq!(read["found"], "powercap package-0 dram-0; not Green500 grade");
    let counter = home.path().join("sys/class/powercap/intel-rapl:0/energy_uj");
    fs::remove_file(&counter).unwrap();
    fs::create_dir(&counter).unwrap();
    let closed = doctor();
    assert!(closed["found"].as_str().unwrap().contains("not read: powercap package-0"), "{closed}");
    assert!(closed["change"].as_str().unwrap().contains("sudo chmod a+r"), "{closed}");
}

/// The process that a session starts on each node of its runs: it prints what it reads, and ends by itself when nobody renews its lease.
#[test]
fn a_process_on_a_node_ends_without_a_living_session() {
    let home = tempfile::tempdir().unwrap();
    let lease = home.path().join("power-nodes-1.lease");
    let started = || {
        fs::write(&lease, "1\n").unwrap();
        let mut command = hpl_tune();
        command.arg("__node-agent").arg(home.path()).arg(&lease).arg("0.1").stdout(Stdio::piped());
        command.spawn().unwrap()
    };
    with_counters(home.path(), || {
        let killed = started();
        std::thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        // That of a session that was killed stays as it is.
        let said = out(&killed.wait_with_output().unwrap());
        assert!((5.0..20.0).contains(&begun.elapsed().as_secs_f64()), "{:?}", begun.elapsed());
        let lines: Vec<serde_json::Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines[0]["found"]["sensors"][0]["name"], "package-0");
        let joules = |line: &serde_json::Value| line["sample"]["values"][0]["joules"].as_f64().unwrap();
        let seconds = |line: &serde_json::Value| line["sample"]["at_s"].as_f64().unwrap();
        // Seconds apart: on a busy machine the counter is written late now and then.
        let is_later = |at: &usize| lines[*at]["sample"].is_object() && seconds(&lines[*at]) > seconds(&lines[1]) + 4.0;
        let later = (2..lines.len()).find(is_later).unwrap();
        let watts = (joules(&lines[later]) - joules(&lines[1])) / (seconds(&lines[later]) - seconds(&lines[1]));
        assert!((watts / PACKAGE_W - 1.0).abs() < 0.15, "{watts}");
        let mut next = started();
        std::thread::sleep(Duration::from_millis(500));
        fs::remove_file(&lease).unwrap();
        let begun = Instant::now();
        while next.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < Duration::from_secs(8), "it stays");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    // Where nothing can be read there is nothing to stay for.
    let bare = tempfile::tempdir().unwrap();
    fs::write(&lease, "1\n").unwrap();
    let output = hpl_tune().arg("__node-agent").arg(bare.path()).arg(&lease).arg("0.1").output().unwrap();
    assert!(output.status.success() && out(&output).lines().count() == 1, "{}", out(&output));
}

#[test]
fn simulated_power_is_called_so() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("night");
    let cluster = root().join("datasets/simulated/four-nodes.toml");
    let words = ["--budget", "5m", "--simulate", cluster.to_str().unwrap(), "--out", folder.to_str().unwrap()];
    let output = tune(words);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    assert!(!err(&output).contains("power: "), "nothing of this machine is read: {}", err(&output));
    let rows = rows(&folder);
    let passed: Vec<&Row> = rows.iter().filter(|row| row.score_gflops().is_some()).collect();
    assert!(!passed.is_empty());
    for row in passed {
        let watts = row.power_w.unwrap();
        // At most four nodes of 180 W, at least one of 60 W.
        assert!((60.0..=720.0).contains(&watts), "{watts}");
        assert_eq!(row.gflops_per_w, row.rate_gflops.map(|rate| rate / watts));
        assert_eq!(row.power_source.as_deref(), Some("simulated"));
    }
    let session = tuner::record::session::Session::load(&folder.join("session.toml")).unwrap();
    assert_eq!(Summary::new(&session, &session.split(rows).all).power.unwrap().source, "simulated");
    let summary = out(&output);
    let line = summary.lines().find(|line| line.starts_with("Power")).unwrap_or_else(|| panic!("{summary}"));
    assert!(line.ends_with("; simulated") && !line.contains("software reading"), "{line}");
}

#[test]
fn a_search_for_efficiency_needs_a_source() {
    let home = tempfile::tempdir().unwrap();
    let (tree, folder) = (home.path().join("tree"), home.path().join("run"));
    let words = ["--budget", "30s", "--objective", "gflops-per-watt", "--power-root", tree.to_str().unwrap()];
    let output = tune(words.into_iter().chain(["--out", folder.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(2));
    let said = err(&output);
    assert!(said.contains("--objective gflops-per-watt: power: not recorded, no sensor was found"), "{said}");
    assert!(!folder.exists(), "nothing is left");
}

/// Whole runs, as only these have a core phase.
#[test]
fn a_search_for_efficiency_finds_more_of_it() {
    let home = tempfile::tempdir().unwrap();
    let cluster = root().join("datasets/simulated/four-nodes.toml");
    let best = |objective: &str| {
        let folder = home.path().join(objective);
        let words = [
            "--budget",
            "20m",
            "--n",
            "20000",
            "--quiet",
            "--objective",
            objective,
            "--simulate",
            cluster.to_str().unwrap(),
        ];
        let output = tune(words.into_iter().chain(["--out", folder.to_str().unwrap()]));
        assert_eq!(output.status.code(), Some(0), "{}", err(&output));
        let session = tuner::record::session::Session::load(&folder.join("session.toml")).unwrap();
        let best = Summary::new(&session, &session.split(rows(&folder)).all).best.unwrap();
        (best.rate_gflops, best.run_gflops_per_w.unwrap(), out(&output))
    };
    let (fast, efficient) = (best("gflops"), best("gflops-per-watt"));
    println!(
        "by speed {:.1} GFLOP/s, {:.4} GFLOPS/W; by efficiency {:.1}, {:.4}",
        fast.0, fast.1, efficient.0, efficient.1
    );
    assert!(efficient.1 >= 0.98 * fast.1, "{} and {}", efficient.1, fast.1);
    assert!(efficient.2.contains("Objective     GFLOPS/W") && efficient.2.contains("Pareto"), "{}", efficient.2);
    assert!(!fast.2.contains("Objective"));
}
