use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::super::{Covers, SensorValue};
use super::*;

/// A tree of files, the folders made.
fn tree(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// Two packages with memory beside the first, parts of a package, and the same again by mmio.
fn powercap(root: &Path) -> [PathBuf; 3] {
    let zones = [
        ("intel-rapl:0", "package-0", "1000000", "262143328850"),
        ("intel-rapl:0:0", "core", "500000", "262143328850"),
        ("intel-rapl:0:1", "dram", "2000000", "65712999613"),
        ("intel-rapl:1", "package-1", "262143000000", "262143328850"),
        ("intel-rapl-mmio:0", "package-0", "1000000", "262143328850"),
    ];
    for (zone, name, energy, range) in zones {
        let file = |file: &str| format!("sys/class/powercap/{zone}/{file}");
        let files = [(file("name"), name), (file("energy_uj"), energy), (file("max_energy_range_uj"), range)];
        tree(root, &files.each_ref().map(|(path, text)| (path.as_str(), *text)));
    }
    ["0", "0:1", "1"].map(|zone| root.join(format!("sys/class/powercap/intel-rapl:{zone}/energy_uj")))
}

fn words(sensors: &PowerSensors) -> String {
    sensors.set().words(&sensors.set().of_node(|_| true))
}

#[test]
fn packages_and_memory_stand_for_the_node() {
    let root = tempfile::tempdir().unwrap();
    let [package, memory, wrapping] = powercap(root.path());
    let sensors = PowerSensors::find(root.path());
    assert_eq!(words(&sensors), "powercap package-0 package-1 dram-0");
    let mut sampler = PowerSampler::start(&sensors);
    sampler.begun -= Duration::from_secs(2);
    // 200 J, 20 J, and 100 J over the end of the range.
    fs::write(package, "201000000").unwrap();
    fs::write(memory, "22000000").unwrap();
    fs::write(wrapping, "99671150").unwrap();
    let samples = sampler.end();
    let chosen = sensors.set().of_node(|sensor| samples.moves(sensor));
    let [(start_s, end_s, watts)] = samples.sum(&chosen).collect::<Vec<_>>()[..] else { panic!("{samples:?}") };
    // A busy machine adds to it.
    assert!((1.99..30.0).contains(&(end_s - start_s)), "{samples:?}");
    assert!((watts * (end_s - start_s) - 320.0).abs() < 1e-6, "{samples:?}");
}

#[test]
fn a_file_that_vanishes_leaves_a_gap() {
    let root = tempfile::tempdir().unwrap();
    let [package, memory, other] = powercap(root.path());
    let sensors = PowerSensors::find(root.path());
    let mut sampler = PowerSampler::start(&sensors);
    let mut step = |vanishes: bool, energy: u64| {
        sampler.begun -= Duration::from_secs(1);
        fs::write(&package, energy.to_string()).unwrap();
        fs::write(&other, (energy + 5).to_string()).unwrap();
        if vanishes {
            fs::remove_file(&memory).unwrap()
        } else {
            fs::write(&memory, energy.to_string()).unwrap()
        }
        sampler.sample();
    };
    step(false, 100_000_000);
    step(true, 200_000_000);
    step(false, 300_000_000);
    step(false, 400_000_000);
    let samples = sampler.made.into_samples();
    // Read at both ends: before the first step it was there, and from the third on again.
    let chosen = sensors.set().of_node(|sensor| samples.moves(sensor));
    assert_eq!(words(&sensors), "powercap package-0 package-1 dram-0");
    let sums: Vec<f64> = samples.sum(&chosen).map(|(start_s, ..)| start_s - samples.times_s[0]).collect();
    assert_eq!(sums.len(), 2, "{samples:?}");
    assert!(sums[0].abs() < 1e-9 && (2.99..3.9).contains(&sums[1]), "{sums:?}");
}

#[test]
fn a_counter_that_stands_still_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    let [package, ..] = powercap(root.path());
    let sensors = PowerSensors::find(root.path());
    let mut sampler = PowerSampler::start(&sensors);
    sampler.begun -= Duration::from_secs(1);
    fs::write(package, "101000000").unwrap();
    let samples = sampler.end();
    let chosen = sensors.set().of_node(|sensor| samples.moves(sensor));
    assert_eq!(sensors.set().words(&chosen), "powercap package-0");
    let still = PowerSampler::start(&sensors).end();
    assert!(sensors.set().of_node(|sensor| still.moves(sensor)).is_empty());
}

#[test]
fn what_may_not_be_read_is_named_with_the_way_out() {
    if nix::unistd::geteuid().is_root() {
        // Root may read everything: a folder in the place of the file cannot be read by anyone.
        let root = tempfile::tempdir().unwrap();
        let [package, ..] = powercap(root.path());
        fs::remove_file(&package).unwrap();
        fs::create_dir(&package).unwrap();
        let sensors = PowerSensors::find(root.path());
        let [unreadable] = sensors.unreadable() else { panic!("{sensors:?}") };
        assert!(unreadable.to_string().starts_with("powercap package-0: "), "{unreadable}");
        assert!(unreadable.way_out.contains("energy_uj") && unreadable.way_out.contains("udev"));
        return;
    }
    let root = tempfile::tempdir().unwrap();
    for file in powercap(root.path()) {
        fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let sensors = PowerSensors::find(root.path());
    assert!(sensors.set().all().is_empty());
    let said: Vec<String> = sensors.unreadable().iter().map(ToString::to_string).collect();
    assert_eq!(said[0], "powercap package-0: this user may not read it");
}

#[test]
fn a_reader_without_rights_is_told_so() {
    use super::super::found::Unreadable;
    let error = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    let said = Unreadable::of(("powercap", "package-0"), Covers::Package, &error, "sudo chmod");
    assert_eq!(said.to_string(), "powercap package-0: this user may not read it");
}

/// By Linux 6.9 to 6.11 each die of an EPYC has the counter of its package, which was added up up to twelve times.
#[test]
fn dies_that_share_the_counter_of_their_package_count_once() {
    let root = tempfile::tempdir().unwrap();
    for (zone, name) in ["package-0-die-0", "package-0-die-1", "package-1-die-0"].into_iter().enumerate() {
        let file = |file: &str| format!("sys/class/powercap/intel-rapl:{zone}/{file}");
        let files = [(file("name"), name), (file("energy_uj"), "1000000")];
        tree(root.path(), &files.each_ref().map(|(path, text)| (path.as_str(), *text)));
    }
    let of_vendor = |vendor: &str| {
        let cpuinfo = format!("processor\t: 0\nvendor_id\t: {vendor}\n");
        tree(root.path(), &[("proc/cpuinfo", cpuinfo.as_str())]);
        words(&PowerSensors::find(root.path()))
    };
    assert_eq!(of_vendor("AuthenticAMD"), "powercap package-0 package-1");
    // Dies of Intel have a counter each.
    assert_eq!(of_vendor("GenuineIntel"), "powercap package-0-die-0 package-0-die-1 package-1-die-0");
}

#[test]
fn a_node_sensor_is_alone_and_accelerators_join_packages() {
    let root = tempfile::tempdir().unwrap();
    powercap(root.path());
    tree(
        root.path(),
        &[
            ("sys/class/hwmon/hwmon0/name", "coretemp"),
            ("sys/class/hwmon/hwmon1/name", "amdgpu"),
            ("sys/class/hwmon/hwmon1/power1_average", "300000000"),
            ("sys/class/hwmon/hwmon2/name", "amd_energy"),
            ("sys/class/hwmon/hwmon2/energy1_label", "Ecore000"),
            ("sys/class/hwmon/hwmon2/energy1_input", "5"),
            ("sys/class/hwmon/hwmon2/energy2_label", "Esocket0"),
            ("sys/class/hwmon/hwmon2/energy2_input", "7000000"),
        ],
    );
    // The packages of amd_energy are those of powercap again.
    assert_eq!(words(&PowerSensors::find(root.path())), "powercap package-0 package-1 dram-0, hwmon amdgpu-0");
    tree(root.path(), &[("sys/cray/pm_counters/energy", "48291 J 1700000000000000 us\n")]);
    let sensors = PowerSensors::find(root.path());
    assert_eq!(words(&sensors), "pm_counters node");
    assert_eq!(sensors.read()[0], Some(SensorValue::Joules(48291.0)));
}

/// The driver of an APU says the power of the whole package, which was added to that of powercap.
#[test]
fn the_package_of_an_apu_counts_once() {
    let root = tempfile::tempdir().unwrap();
    tree(
        root.path(),
        &[
            ("sys/class/hwmon/hwmon0/name", "amdgpu"),
            ("sys/class/hwmon/hwmon0/power1_average", "88000000"),
            ("sys/class/hwmon/hwmon0/in1_label", "vddnb\n"),
            ("sys/class/hwmon/hwmon1/name", "amdgpu"),
            ("sys/class/hwmon/hwmon1/power1_average", "300000000"),
            ("sys/class/hwmon/hwmon1/in0_label", "vddgfx\n"),
        ],
    );
    assert_eq!(words(&PowerSensors::find(root.path())), "hwmon apu amdgpu-0");
    powercap(root.path());
    assert_eq!(words(&PowerSensors::find(root.path())), "powercap package-0 package-1 dram-0, hwmon amdgpu-0");
}

#[test]
fn sockets_of_grace_are_read_once() {
    let root = tempfile::tempdir().unwrap();
    let rails = ["Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0", "SysIO Power Socket 0"];
    for (index, rail) in rails.iter().enumerate() {
        let file = |file: &str| format!("sys/class/hwmon/hwmon{index}/{file}");
        let files = [
            (file("name"), "power_meter"),
            (file("device/power1_average"), "95500000"),
            (file("device/power1_oem_info"), rail),
        ];
        tree(root.path(), &files.each_ref().map(|(path, text)| (path.as_str(), *text)));
    }
    fs::remove_dir_all(root.path().join("sys/class/hwmon/hwmon0")).unwrap();
    let sensors = PowerSensors::find(root.path());
    assert_eq!(words(&sensors), "hwmon grace power socket 0");
    assert_eq!(sensors.read()[0], Some(SensorValue::Watts(95.5)));
}

#[test]
fn the_pace_is_that_of_the_run_and_of_the_processor_time() {
    let root = tempfile::tempdir().unwrap();
    powercap(root.path());
    let sensors = PowerSensors::find(root.path());
    let mut sampler = PowerSampler::start(&sensors);
    sampler.made.took(-sampler.made.samples().cpu_s);
    let mut count = |seconds: f64| {
        let before = sampler.made.samples().times_s.len();
        sampler.begun -= Duration::from_secs_f64(seconds);
        sampler.look();
        sampler.made.samples().times_s.len() - before
    };
    assert_eq!((count(0.1), count(0.15), count(0.15), count(99.0)), (0, 1, 0, 1));
    assert_eq!((count(0.8), count(0.3)), (0, 1));
    // What was read cost more than it may.
    sampler.made.took(1.0);
    sampler.begun -= Duration::from_secs(2);
    sampler.look();
    assert_eq!(sampler.made.samples().times_s.len(), 4);
}

#[test]
fn nothing_to_read_is_no_samples() {
    let root = tempfile::tempdir().unwrap();
    let sensors = PowerSensors::find(root.path());
    assert!(sensors.set().all().is_empty() && sensors.unreadable().is_empty());
    let samples = PowerSampler::start(&sensors).end();
    assert_eq!((samples.times_s.len(), samples.span()), (0, Duration::ZERO));
}

/// Processor seconds of this thread by getrusage.
fn used_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e-6
}

/// By getrusage, over a minute: `cargo test --release -p hpl --lib -- --ignored --nocapture a_minute_of_samples`.
#[test]
#[ignore = "takes a minute"]
fn a_minute_of_samples_takes_little_processor_time() {
    let root = tempfile::tempdir().unwrap();
    powercap(root.path());
    a_minute_of(&PowerSensors::find(root.path()));
}

/// Every kind of source that can be read at the same time, of a large node: eight packages with memory and the platform, a meter of the node, two
/// of AMD's accelerators, Cray's counters, and eight accelerators of NVIDIA's library. (perf's events and the management controller are asked
/// where these are not.)
#[test]
#[ignore = "takes a minute"]
fn a_minute_of_samples_of_all_sources_takes_little_processor_time() {
    let root = tempfile::tempdir().unwrap();
    let put = |path: String, text: &str| tree(root.path(), &[(path.as_str(), text)]);
    for (zone, name) in (0..8)
        .flat_map(|package| {
            [
                (format!("intel-rapl:{package}"), format!("package-{package}")),
                (format!("intel-rapl:{package}:0"), "dram".to_owned()),
            ]
        })
        .chain([("intel-rapl:8".to_owned(), "psys".to_owned())])
    {
        let file = |file: &str| format!("sys/class/powercap/{zone}/{file}");
        put(file("name"), &name);
        put(file("energy_uj"), "1000000");
        put(file("max_energy_range_uj"), "262143328850");
    }
    for (index, (name, file)) in
        [("power_meter", "power1_average"), ("amdgpu", "power1_average"), ("amdgpu", "power1_input")].iter().enumerate()
    {
        put(format!("sys/class/hwmon/hwmon{index}/name"), name);
        put(format!("sys/class/hwmon/hwmon{index}/{file}"), "300000000");
    }
    put("sys/cray/pm_counters/energy".to_owned(), "48291 J 1700000000000000 us\n");
    let library = "int nvmlInit_v2(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 8; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &nvmlInit_v2; return 0; }
        int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *mj) {
            static unsigned long long energy; *mj = energy += 250000; return 0;
        }";
    put("nvml.c".to_owned(), library);
    std::fs::create_dir_all(root.path().join("usr/lib")).unwrap();
    let to = root.path().join("usr/lib/libnvidia-ml.so.1");
    let mut built = std::process::Command::new("cc");
    assert!(built.args(["-shared", "-fPIC", "-o"]).arg(to).arg(root.path().join("nvml.c")).status().unwrap().success());
    let sensors = PowerSensors::find(root.path());
    assert_eq!(sensors.set().all().len(), 8 * 2 + 1 + 3 + 1 + 8, "{sensors:?}");
    a_minute_of(&sensors);
}

fn a_minute_of(sensors: &PowerSensors) {
    let before = used_s();
    let mut sampler = PowerSampler::start(sensors);
    while sampler.begun.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(200));
        sampler.look();
    }
    let samples = sampler.end();
    let thread_s = used_s() - before;
    println!(
        "{} sensors, {} samples, {:.6} s of processor time in 60 s, the thread {thread_s:.6} s: {:.3} ms per second",
        sensors.set().all().len(),
        samples.times_s.len(),
        samples.cpu_s,
        thread_s / 60.0 * 1e3
    );
    assert!(thread_s < 60.0 * MOST_CPU);
}
