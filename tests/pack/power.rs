//! A meter's file in a pack for the Green500.

use std::path::Path;

use jiff::{SignedDuration, Timestamp};

use super::{SITE, check, pack, read, run, site, verify};
use crate::program::{err, out};

/// Start of the job of the packed run, and start and end of its core phase, in seconds since 1970.
fn times() -> [f64; 4] {
    let text = read(super::intact(), "pack.json");
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let time = |span: &str, end: &str| {
        let text = value["stamps"][span][end].as_str().unwrap();
        text.parse::<Timestamp>().unwrap().as_duration().as_secs_f64()
    };
    [time("job", "start_utc"), time("core", "start_utc"), time("core", "end_utc"), time("job", "end_utc")]
}

/// The time as a meter writes it.
fn stamp(unix_s: f64) -> String {
    Timestamp::from_duration(SignedDuration::from_secs_f64(unix_s)).unwrap().to_string()
}

/// Readings whose clock is `late` seconds behind, 20 in the core phase, half of them 100 W and half 200 W, at 50 W outside.
pub(super) fn readings(folder: &Path, late: f64, gap: bool) -> String {
    let [start, core, end, job_end] = times();
    let step = (end - core) / 20.0;
    let before = ((core - start) / step).ceil() as i64 + 2;
    let after = ((job_end - end) / step).ceil() as i64 + 2;
    let mut text = String::from("time,watts\n");
    // A reading is the mean of the step before its time; those of the core phase end at its steps 1 to 20.
    for index in -before..=20 + after {
        if gap && (8..=12).contains(&index) {
            continue;
        }
        let watts = match index {
            1..=10 => 100,
            11..=20 => 200,
            _ => 50,
        };
        // A little inside of the core phase at both ends, as times are written to the nanosecond.
        let shift = if index <= 0 { 1e-5 } else { -1e-5 };
        text += &format!("{},{watts}\n", stamp(core + index as f64 * step + shift - late));
    }
    let path = folder.join("meter.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

fn power(folder: &Path) -> serde_json::Value {
    serde_json::from_str(&read(folder, "power.json")).unwrap()
}

#[test]
fn the_mean_is_that_of_the_core_phase_by_the_clock_of_the_host() {
    let home = tempfile::tempdir().unwrap();
    let site = site(home.path(), SITE);
    let log = readings(home.path(), 7.5, false);
    let folder = home.path().join("offset");
    let packed =
        pack("green500", &folder, &["--site", site.to_str().unwrap(), "--power-log", &log, "--power-offset", "7.5"]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    let found = power(&folder);
    let core = |name: &str| found["core"][name].as_f64().unwrap();
    assert!((core("mean_watts") - 150.0).abs() < 0.01 && core("values") == 20.0, "{found}");
    assert!(
        core("covered_s") / core("span_s") > 0.999 && found["core"]["gaps"].as_array().unwrap().is_empty(),
        "{found}"
    );
    assert!(found["run"]["values"].as_u64() >= Some(20) && found["peak_watts"] == 200.0, "{found}");
    let checked = check(&folder);
    assert_eq!(checked.status.code(), Some(6));
    // Its core phase is shorter than a minute, as any of a session of tests, and nothing is said of the meter.
    for words in [
        "missing: Level of the measurement (power.level): no level is reached; L1 needs a core phase of at least 60 s",
        "the accuracy of the meter: in site.toml, [power] accuracy_percent",
        "missing: Mean power of the core phase in watts, all nodes (power.core_watts): in site.toml, [power] nodes_measured",
        "missing: Power meter (power.meter)",
    ] {
        assert!(out(&checked).contains(words), "'{words}' is not in: {}", out(&checked));
    }
    let verified = verify(&folder);
    assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
    // Without the offset the readings of the core phase are others.
    let wrong = home.path().join("wrong");
    assert_eq!(pack("green500", &wrong, &["--power-log", &log]).status.code(), Some(0));
    let mean = power(&wrong)["core"]["mean_watts"].as_f64();
    assert!(mean.is_none_or(|watts| (watts - 150.0).abs() > 1.0), "{mean:?}");
}

#[test]
fn a_meter_on_all_nodes_gives_the_power_of_all_and_flops_per_watt() {
    let home = tempfile::tempdir().unwrap();
    let text = SITE.replace("nodes = 1\n", "nodes = 4\n") + "nodes_measured = 2\naccuracy_percent = 1\n";
    let site = site(home.path(), &text);
    let log = readings(home.path(), 0.0, false);
    let folder = home.path().join("part");
    let packed = pack("green500", &folder, &["--site", site.to_str().unwrap(), "--power-log", &log]);
    assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
    let sheet = read(&folder, "green500.txt");
    assert!(
        sheet.contains("Mean power of the core phase in watts, all nodes: 300.0  [the meter, times 2.0000"),
        "{sheet}"
    );
    let rmax = space::out::parse(&read(&folder, "HPL.out"))[0].rate_gflops;
    let line = sheet.lines().find(|line| line.starts_with("GFLOPS/W")).unwrap();
    let rate: f64 = line.split(": ").nth(1).unwrap().split_whitespace().next().unwrap().parse().unwrap();
    assert!((rate - rmax / 300.0).abs() < 1e-3, "{line} of {rmax}");
}

#[test]
fn gaps_are_told_and_a_changed_reading_is_found() {
    let home = tempfile::tempdir().unwrap();
    let log = readings(home.path(), 0.0, true);
    let folder = home.path().join("gap");
    assert_eq!(pack("green500", &folder, &["--power-log", &log]).status.code(), Some(0));
    let found = power(&folder);
    assert_eq!(
        (found["core"]["values"].as_u64(), found["core"]["gaps"].as_array().unwrap().len()),
        (Some(15), 1),
        "{found}"
    );
    let coverage = found["core"]["covered_s"].as_f64().unwrap() / found["core"]["span_s"].as_f64().unwrap();
    assert!((coverage - 0.75).abs() < 0.01, "{found}");
    assert!(out(&check(&folder)).contains("of the core phase"), "{}", out(&check(&folder)));
    let lower = read(&folder, "power.csv").replace(",200\n", ",150\n");
    std::fs::write(folder.join("power.csv"), lower).unwrap();
    std::fs::write(folder.join("SHA256SUMS"), tuner::pack::folder::sums(&folder).unwrap()).unwrap();
    let verified = verify(&folder);
    assert_eq!(verified.status.code(), Some(6));
    assert!(out(&verified).contains("power.json: it is not what the readings of power.csv say"), "{}", out(&verified));
    assert!(run().join("HPL.out").is_file(), "the run folder is as it was");
}

#[test]
fn the_peak_of_a_competition_counts_the_network_or_is_missing() {
    let home = tempfile::tempdir().unwrap();
    let log = readings(home.path(), 0.0, false);
    let with = |name: &str, text: String| {
        let (site, folder) = (site(home.path(), &text), home.path().join(name));
        let packed = pack("scc", &folder, &["--no-archive", "--site", site.to_str().unwrap(), "--power-log", &log]);
        assert_eq!(packed.status.code(), Some(0), "{}", err(&packed));
        let verified = verify(&folder);
        assert_eq!(verified.status.code(), Some(0), "{}", out(&verified));
        let sheet = read(&folder, "scc.txt");
        sheet.lines().find(|line| line.starts_with("Peak power in watts, network included")).unwrap().to_owned()
    };
    let silent = SITE.replace("peak_watts = 300\n", "") + "nodes_measured = 1\n";
    assert!(
        with("silent", silent.clone())
            .contains("(missing: it counts the network: in site.toml, [power] network_measured")
    );
    let without = with("without", silent.clone() + "network_measured = false\n");
    assert!(without.contains("(missing: it counts the network"), "{without}");
    let counted = with("counted", silent + "network_measured = true\n");
    assert!(counted.ends_with(": 200.0  [the meter]"), "{counted}");
    let given = with("given", SITE.to_owned() + "nodes_measured = 1\n");
    assert!(given.ends_with(": 300  [site.toml]"), "{given}");
}
