//! Controls of a made-up node.

use std::io::ErrorKind;

use super::*;

const ALL: Controlled = Controlled { clock: true, package_limit: true, gpu_limit: false };

/// Two processors of 800 to 2650 MHz, one package of 205 W with a short-term limit of 246 W.
fn tree(root: &Path) {
    for cpu in ["cpu0", "cpu1"] {
        let folder = root.join("sys/devices/system/cpu").join(cpu).join("cpufreq");
        fs::create_dir_all(&folder).unwrap();
        for (name, khz) in
            [("cpuinfo_min_freq", 800_000), ("scaling_min_freq", 800_000), ("scaling_max_freq", 2_650_000)]
        {
            fs::write(folder.join(name), format!("{khz}\n")).unwrap();
        }
    }
    fs::create_dir_all(root.join("sys/devices/system/cpu/cpufreq")).unwrap();
    let zone = root.join("sys/class/powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    for (name, text) in [
        ("name", "package-0"),
        ("enabled", "1"),
        ("constraint_0_name", "long_term"),
        ("constraint_0_power_limit_uw", "205000000"),
        ("constraint_0_max_power_uw", "205000000"),
        ("constraint_1_name", "short_term"),
        ("constraint_1_power_limit_uw", "246000000"),
        ("constraint_2_name", "peak_power"),
        ("constraint_2_power_limit_uw", "400000000"),
    ] {
        fs::write(zone.join(name), format!("{text}\n")).unwrap();
    }
}

fn read(root: &Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap().trim().to_owned()
}

const MAX: &str = "sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq";
const SHORT: &str = "sys/class/powercap/intel-rapl:0/constraint_1_power_limit_uw";

#[test]
fn settings_are_made_and_put_back() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let controls = NodeControls::find(root.path(), ALL).unwrap();
    let levels = controls.levels();
    assert_eq!(levels.max_clock_mhz, [1500, 1700, 1900, 2100, 2300, 2500, 2650], "{levels:?}");
    assert_eq!(levels.package_limit_w, [103, 123, 144, 164, 185, 205]);
    assert_eq!(controls.all().count(), 4);
    controls.set(&NodeSettings { max_clock_mhz: Some(2100), package_limit_w: Some(144), gpu_limit_w: None }).unwrap();
    assert_eq!((read(root.path(), MAX), read(root.path(), SHORT)), ("2100000".into(), "144000000".into()));
    // At what was found every limit is its own.
    controls.set(&levels.as_found()).unwrap();
    assert_eq!((read(root.path(), MAX), read(root.path(), SHORT)), ("2650000".into(), "246000000".into()));
    controls.set(&NodeSettings { max_clock_mhz: Some(1500), ..NodeSettings::default() }).unwrap();
    controls.set(&NodeSettings::default()).unwrap();
    assert_eq!(read(root.path(), MAX), "2650000");
}

#[test]
fn what_cannot_be_set_is_named_with_the_way_out() {
    let root = tempfile::tempdir().unwrap();
    let said = |wanted| NodeControls::find(root.path(), wanted).unwrap_err().to_string();
    assert!(said(ALL).contains("cpu*/cpufreq/scaling_max_freq") && said(ALL).contains("virtual machine"));
    let limit = Controlled { package_limit: true, ..Controlled::default() };
    assert!(said(limit).contains("constraint_0_power_limit_uw") && said(limit).contains("intel_rapl_msr"));
    tree(root.path());
    fs::write(root.path().join("sys/class/powercap/intel-rapl:0/enabled"), "0").unwrap();
    assert!(said(limit).contains("echo 1 > "), "{}", said(limit));
    let file = root.path().join(MAX);
    fs::write(&file, "unknown").unwrap();
    assert!(said(ALL).contains("it has no number but 'unknown'"), "{}", said(ALL));
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(said(ALL).contains("cpu1/cpufreq/scaling_max_freq: "), "{}", said(ALL));
    let denied = ControlError::closed(&file, "cpufreq", &ErrorKind::PermissionDenied.into()).to_string();
    assert!(denied.contains("may not write it") && denied.contains("sudo chmod a+w"), "{denied}");
}

#[test]
fn only_controls_are_put_back() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let file = root.path().join(MAX);
    fs::write(&file, "1500000").unwrap();
    put_back(root.path(), &file, "2650000").unwrap();
    assert_eq!(read(root.path(), MAX), "2650000");
    let other = root.path().join("sys/class/powercap/intel-rapl:0/enabled");
    let elsewhere = tempfile::tempdir().unwrap();
    fs::write(elsewhere.path().join("scaling_max_freq"), "7").unwrap();
    for (path, found) in
        [(&other, "1"), (&elsewhere.path().join("scaling_max_freq"), "1"), (&file, "1; rm"), (&file, "")]
    {
        assert!(put_back(root.path(), path, found).unwrap_err().contains("is no control"));
    }
    assert_eq!(fs::read_to_string(elsewhere.path().join("scaling_max_freq")).unwrap(), "7");
}

#[test]
fn a_failing_write_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    tree(root.path());
    let controls = NodeControls::find(root.path(), ALL).unwrap();
    let file = root.path().join(MAX);
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let said = controls.set(&NodeSettings { max_clock_mhz: Some(2100), ..Default::default() }).unwrap_err();
    assert!(said.to_string().contains("cpu1/cpufreq/scaling_max_freq"), "{said}");
}
