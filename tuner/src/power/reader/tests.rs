use hpl::measure::power::PowerSamples;

use super::super::spans::CoreSpan;
use super::*;

/// A tree with two packages that can be read.
fn tree(root: &Path) {
    for package in ["0", "1"] {
        let zone = root.join(format!("sys/class/powercap/intel-rapl:{package}"));
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), format!("package-{package}\n")).unwrap();
        fs::write(zone.join("energy_uj"), "1000000\n").unwrap();
        fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
    }
}

/// Samples each second from 1000 s on, with these watts of both packages.
fn samples(watts: &[(Option<f64>, Option<f64>)]) -> PowerSamples {
    PowerSamples {
        times_s: (0..=watts.len()).map(|second| 1000.0 + second as f64).collect(),
        watts: vec![watts.iter().map(|(first, _)| *first).collect(), watts.iter().map(|(_, second)| *second).collect()],
        cpu_s: 1e-4,
    }
}

/// A job of 100 s whose core phase is 80 s.
fn spans() -> RunSpans {
    let core = CoreSpan { inside: [1010.0, 1090.0], length_s: 80.0 };
    RunSpans { job: [1000.0, 1100.0], core: Some(core) }
}

/// 150 W each in the core phase, 50 W each before and after it.
fn busy() -> Vec<(Option<f64>, Option<f64>)> {
    let watts = |second: usize| if (10..90).contains(&second) { 150.0 } else { 50.0 };
    (0..100).map(|second| (Some(watts(second)), Some(watts(second)))).collect()
}

#[test]
fn the_core_phase_has_its_own_mean() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let reader = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    let found = reader.of_run(&samples(&busy()), &spans()).unwrap().unwrap();
    let columns = found.columns(Some(600.0));
    assert_eq!((columns.power_w, columns.energy_j, columns.gflops_per_w), (Some(300.0), Some(24_000.0), Some(2.0)));
    assert_eq!((columns.run_power_w, columns.run_energy_j), (Some(260.0), Some(26_000.0)));
    assert_eq!((columns.power_coverage, columns.run_power_coverage), (Some(1.0), Some(1.0)));
    assert_eq!(columns.power_source.as_deref(), Some("powercap package-0 package-1; not Green500 grade"));
    assert_eq!(found.sensors.len(), 2);
    assert!(found.sensors.iter().all(|sensor| sensor.counted && sensor.core.as_ref().unwrap().mean_watts == 150.0));
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<PowerRecord>(&text).unwrap(), found);
}

#[test]
fn what_vanishes_lowers_the_coverage_and_what_stands_still_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let reader = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    let vanished: Vec<_> = busy().into_iter().enumerate().map(|(i, (a, b))| (a, b.filter(|_| i < 50))).collect();
    let columns = reader.of_run(&samples(&vanished), &spans()).unwrap().unwrap().columns(Some(600.0));
    assert_eq!((columns.power_coverage, columns.power_w, columns.gflops_per_w), (Some(0.5), Some(300.0), None));
    assert_eq!(columns.energy_j, Some(12_000.0));
    let still: Vec<_> = busy().into_iter().map(|(a, _)| (a, Some(0.0))).collect();
    let found = reader.of_run(&samples(&still), &spans()).unwrap().unwrap();
    assert_eq!(found.columns(None).power_w, Some(150.0));
    assert_eq!(found.source, "powercap package-0; not Green500 grade");
    assert!(!found.sensors[1].moves && !found.sensors[1].counted);
    let all_still = samples(&vec![(Some(0.0), None); 100]);
    assert_eq!(reader.of_run(&all_still, &spans()).unwrap(), None);
    assert!(reader.still(&all_still).unwrap().contains("package-0 package-1 stood still"));
    assert_eq!(reader.still(&samples(&still)), None);
}

#[test]
fn one_package_of_two_is_no_node() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let counter = root.path().join("sys/class/powercap/intel-rapl:1/energy_uj");
    fs::remove_file(&counter).unwrap();
    fs::create_dir(&counter).unwrap();
    let reader = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    let samples = PowerSamples { watts: vec![vec![Some(150.0); 100]], ..samples(&busy()) };
    let found = reader.of_run(&samples, &spans()).unwrap().unwrap();
    assert_eq!(found.source, "powercap package-0; not Green500 grade; without package-1");
    let columns = found.columns(Some(600.0));
    assert_eq!((columns.power_w, columns.gflops_per_w), (Some(150.0), None));
    assert!(!reader.can_read() && reader.sentences()[1].contains("udev"), "{:?}", reader.sentences());
}

/// GFLOPS/W were those without it.
#[test]
fn processors_without_an_accelerator_are_no_node() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let sensor = root.path().join("sys/class/hwmon/hwmon0");
    fs::create_dir_all(sensor.join("power1_average")).unwrap();
    fs::write(sensor.join("name"), "amdgpu\n").unwrap();
    let reader = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    let found = reader.of_run(&samples(&busy()), &spans()).unwrap().unwrap();
    assert!(found.source.contains("not Green500 grade; without amdgpu-0"), "{}", found.source);
    let columns = found.columns(Some(600.0));
    assert_eq!((columns.power_w, columns.gflops_per_w), (Some(300.0), None));
    assert!(!reader.can_read());
}

#[test]
fn of_several_nodes_the_reading_is_that_of_one() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let several = RunsOn::Several { this: "n1".into(), nodes: 4 };
    let reader = PowerReader::new(root.path(), None, several.clone());
    let found = reader.of_run(&samples(&busy()), &spans()).unwrap().unwrap();
    assert!(found.source.ends_with("not Green500 grade; of n1 alone, one of 4 nodes"), "{}", found.source);
    assert_eq!(found.columns(Some(600.0)).gflops_per_w, None);
    assert!(!reader.is_of_all() && reader.sentences()[0].contains("of n1 alone"));
    let others = PowerReader::new(root.path(), None, RunsOn::Others { this: "login".into() });
    assert_eq!(others.of_run(&others.start().end(), &spans()).unwrap(), None);
    assert!(others.sentences()[0].contains("not on this node, login"), "{:?}", others.sentences());
}

#[test]
fn what_is_found_is_said_with_the_way_out() {
    let root = tempfile::tempdir().unwrap();
    let none = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    assert_eq!(none.sentences().len(), 1);
    assert!(none.sentences()[0].contains("no sensor was found") && none.sentences()[0].contains("--power-log"));
    tree(root.path());
    for package in ["0", "1"] {
        let counter = root.path().join(format!("sys/class/powercap/intel-rapl:{package}/energy_uj"));
        fs::remove_file(&counter).unwrap();
        fs::create_dir(&counter).unwrap();
    }
    let closed = PowerReader::new(root.path(), None, RunsOn::ThisNode).sentences();
    assert_eq!(closed.len(), 2, "both packages have the same way out: {closed:?}");
    assert!(closed[0].contains("no sensor can be read"), "{closed:?}");
    assert!(closed[1].contains("package-0") && closed[1].contains("package-1: ") && closed[1].contains("udev"));
}

#[test]
fn a_meter_is_read_with_its_offset_while_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meter.csv");
    let meter = MeterLog { path: path.clone(), offset_s: 7.5 };
    assert!(meter.check().unwrap_err().contains("meter.csv: cannot read it"));
    fs::write(&path, "time,watts\n").unwrap();
    assert_eq!(meter.check(), Ok(()), "its readings are to come");
    let reader = PowerReader::new(folder.path(), Some(meter.clone()), RunsOn::ThisNode);
    let empty = reader.of_run(&PowerSamples::default(), &spans()).unwrap().unwrap();
    assert_eq!((empty.core, empty.run), (None, None));
    // Half a second early, as its clock is 7.5 s late; from 1040 s to 1050 s nothing was written.
    let line = |second: usize| {
        let watts = if (11..=90).contains(&second) { 400 } else { 100 };
        format!("{},{watts}\n", 1000.0 + second as f64 - 7.5)
    };
    let kept = (0..=100).filter(|second| !(41..50).contains(second));
    fs::write(&path, "time,watts\n".to_owned() + &kept.map(line).collect::<String>() + "1093.").unwrap();
    let found = reader.of_run(&PowerSamples::default(), &spans()).unwrap().unwrap();
    let core = found.core.as_ref().unwrap();
    assert_eq!((core.mean_watts, core.covered_s, core.gaps.len()), (400.0, 71.0, 1), "{core:?}");
    let columns = found.columns(Some(800.0));
    assert_eq!((columns.power_coverage, columns.gflops_per_w), (Some(71.0 / 80.0), Some(2.0)));
    assert!(columns.power_source.unwrap().starts_with("meter "));
    fs::write(&path, "volts\n").unwrap();
    assert!(reader.of_run(&PowerSamples::default(), &spans()).unwrap_err().contains("no column time"));
}

#[test]
fn accelerators_alone_are_no_node() {
    let root = tempfile::tempdir().unwrap();
    let card = root.path().join("sys/class/hwmon/hwmon0");
    fs::create_dir_all(&card).unwrap();
    fs::write(card.join("name"), "amdgpu\n").unwrap();
    fs::write(card.join("power1_average"), "300000000\n").unwrap();
    let reader = PowerReader::new(root.path(), None, RunsOn::ThisNode);
    let watts = vec![vec![Some(300.0); 100]];
    let samples = PowerSamples { watts, ..samples(&busy()) };
    let found = reader.of_run(&samples, &spans()).unwrap().unwrap();
    assert_eq!(found.source, "hwmon amdgpu-0; not Green500 grade; accelerators alone");
    let columns = found.columns(Some(600.0));
    assert_eq!((columns.power_w, columns.gflops_per_w), (Some(300.0), None));
    assert!(!reader.can_read());
}

/// The file of a meter that has a column in °C, written in Latin-1, could not be read.
#[test]
fn a_meter_names_its_other_columns_in_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("meter.csv");
    fs::write(&path, b"time,watts,\xb0C\n1,100,20\n2,110,20\n3,120,21\n4,1").unwrap();
    let readings = MeterLog { path, offset_s: 0.0 }.readings().unwrap();
    assert_eq!(readings.iter().map(|reading| reading.watts).collect::<Vec<f64>>(), [110.0, 120.0]);
}
