use std::fs;

use super::super::super::{PowerSampler, PowerSensors, SensorValue};
use super::*;

/// What ipmitool 1.8.19 prints, with the power left open.
const READING: &str = "
    Instantaneous power reading:                   WATTS Watts
    Minimum during sampling period:                 70 Watts
    Maximum during sampling period:                460 Watts
    Average power reading over sample period:      190 Watts
    IPMI timestamp:                           Tue Nov 24 08:00:10 2026
    Sampling period:                          00000005 Seconds.
    Power reading state is:                   activated
";

/// A controller below `root`, asked by a program that does what `script` says.
fn node(root: &Path, program: &str, script: &str) {
    fs::create_dir_all(root.join("dev")).unwrap();
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::write(root.join("dev/ipmi0"), "").unwrap();
    let path = root.join("usr/bin").join(program);
    // By another process: a program that somebody has open for writing cannot be started, and processes of other tests inherit what is open here.
    let text = format!("#!/bin/sh\n{script}\n");
    let write = r#"printf %s "$1" > "$0" && chmod 755 "$0""#;
    assert!(Command::new("sh").args(["-c", write]).arg(path).arg(text).status().unwrap().success());
}

fn prints(text: &str) -> String {
    format!("cat <<'END'\n{text}\nEND")
}

/// Waits until something happens, some seconds at most.
fn soon<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not happen");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_controller_is_the_power_of_the_node() {
    let root = tempfile::tempdir().unwrap();
    let arguments = r#"[ "$*" = "dcmi power reading" ] || exit 9"#;
    node(root.path(), "ipmitool", &format!("{arguments}\n{}", prints(&READING.replace("WATTS", "214"))));
    let sensors = PowerSensors::find(root.path());
    assert_eq!(sensors.set().words(&sensors.set().of_node(|_| true)), "dcmi node");
    assert_eq!(soon(|| sensors.read()[0]), SensorValue::Watts(214.0));
    assert_eq!(sensors.read()[0], None, "the next question waits");
    // FreeIPMI is asked where there is no ipmitool.
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "ipmi-dcmi", "echo 'Current Power                        : 164 Watts'");
    assert_eq!(
        soon(|| PowerSensors::find(root.path()).read()[0].or(Some(SensorValue::Watts(0.0)))),
        SensorValue::Watts(0.0)
    );
    assert_eq!(PowerSensors::find(root.path()).set().all()[0].apart_s, Some(20.0));
}

#[test]
fn what_the_program_says_against_it_is_told() {
    for (script, why, way) in [
        (
            "echo 'Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: Permission denied' >&2; exit 1",
            "ipmitool says: Could not open device",
            "chmod a+rw /dev/ipmi0",
        ),
        (
            "echo ' DCMI request failed because: Invalid command (c1)'; exit 1",
            "Invalid command",
            "not every controller",
        ),
        ("echo garbage; printf '\\377\\376'", "ipmitool says: garbage", "not every controller"),
        ("true", "it gives no power", "as root"),
        ("echo 'Instantaneous power reading: many Watts'", "many Watts", "as root"),
        ("echo 'Instantaneous power reading: 214 Watts'; exit 3", "214 Watts", "as root"),
    ] {
        let root = tempfile::tempdir().unwrap();
        node(root.path(), "ipmitool", script);
        let sensors = PowerSensors::find(root.path());
        let [unreadable] = sensors.unreadable() else { panic!("{script}: {sensors:?}") };
        assert!(unreadable.to_string().starts_with("dcmi node: ipmitool says: "), "{unreadable}");
        assert!(unreadable.why.contains(why) && unreadable.way_out.contains(way), "{unreadable:?}");
    }
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "other", "");
    let sensors = PowerSensors::find(root.path());
    assert!(sensors.unreadable()[0].way_out.contains("install ipmitool"), "{sensors:?}");
    fs::remove_file(root.path().join("dev/ipmi0")).unwrap();
    assert!(PowerSensors::find(root.path()).unreadable().is_empty(), "a node without a controller");
}

#[test]
fn it_is_not_asked_where_something_else_is_read() {
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "ipmitool", &format!("touch {}/asked", root.path().display()));
    let counters = root.path().join("sys/cray/pm_counters");
    fs::create_dir_all(&counters).unwrap();
    fs::write(counters.join("energy"), "5 J 6 us").unwrap();
    let sensors = PowerSensors::find(root.path());
    assert!(sensors.unreadable().is_empty() && !root.path().join("asked").exists());
}

/// As FreeIPMI's on Debian: it was to be installed.
#[test]
fn a_program_that_is_not_on_the_path_of_users_is_found() {
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "ipmi-dcmi", &prints("Current Power                        : 164 Watts"));
    fs::rename(root.path().join("usr/bin"), root.path().join("usr/sbin")).unwrap();
    let sensors = PowerSensors::find(root.path());
    assert!(sensors.unreadable().is_empty() && sensors.set().all()[0].source == "dcmi", "{sensors:?}");
}

/// A program that hangs is ended with what it has started; looking takes no time meanwhile, and the next question comes later.
#[test]
fn a_program_that_hangs_holds_up_nothing() {
    let root = tempfile::tempdir().unwrap();
    let pid = root.path().join("pid");
    node(root.path(), "ipmitool", &format!("sleep 1000 & echo $! > {}; wait", pid.display()));
    // Long enough for its start on a busy machine.
    let patience = Duration::from_secs(2);
    let dcmi = Dcmi::new(&root.path().join("usr/bin/ipmitool"), &[], patience);
    let begun = Instant::now();
    assert_eq!(dcmi.look(), None);
    assert!(begun.elapsed() < patience, "{:?}", begun.elapsed());
    let sleeper: i32 = soon(|| fs::read_to_string(&pid).ok()?.trim().parse().ok());
    let gone = |pid: i32| nix::sys::signal::kill(Pid::from_raw(pid), None).is_err() || is_dead(pid);
    soon(|| {
        assert_eq!(dcmi.look(), None);
        gone(sleeper).then_some(())
    });
    assert!(begun.elapsed() >= patience);
    let state = || dcmi.asking.lock().unwrap();
    soon(|| {
        dcmi.look();
        state().child.is_none().then_some(())
    });
    assert_eq!(state().failures, 1);
}

/// Whether a process has ended and was not waited for.
fn is_dead(pid: i32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") Z "))
}

#[test]
fn a_controller_that_fails_is_asked_less_often() {
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "ipmitool", "exit 1");
    let dcmi = Dcmi::new(&root.path().join("usr/bin/ipmitool"), &[], PATIENCE);
    for failures in 1..=FAILURES {
        dcmi.look();
        soon(|| {
            dcmi.look();
            dcmi.asking.lock().unwrap().child.is_none().then_some(())
        });
        let mut asking = dcmi.asking.lock().unwrap();
        assert_eq!(asking.failures, failures);
        asking.begun = asking.begun.and_then(|begun| begun.checked_sub(PACE));
    }
    dcmi.look();
    assert!(dcmi.asking.lock().unwrap().child.is_none(), "not before a minute");
    fs::remove_file(root.path().join("usr/bin/ipmitool")).unwrap();
    dcmi.asking.lock().unwrap().begun = None;
    assert_eq!(dcmi.look(), None, "a program that is gone");
    assert_eq!(dcmi.asking.lock().unwrap().failures, FAILURES + 1);
}

/// Between two answers the power is the mean of both; by getrusage: `cargo test --release -p hpl --lib -- --ignored --nocapture
/// half_a_minute_of_questions`.
#[test]
#[ignore = "takes half a minute"]
fn half_a_minute_of_questions_takes_little_processor_time() {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;
    let root = tempfile::tempdir().unwrap();
    node(root.path(), "ipmitool", &prints(&READING.replace("WATTS", "214")));
    let sensors = PowerSensors::find(root.path());
    let used_s = || {
        let usage = getrusage(UsageWho::RUSAGE_THREAD).unwrap();
        (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()) as f64 * 1e-6
    };
    let (before_s, begun) = (used_s(), Instant::now());
    let mut sampler = PowerSampler::start(&sensors);
    while begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(200));
        sampler.look();
    }
    let samples = sampler.end();
    let thread_s = used_s() - before_s;
    let covered_s: f64 = samples.sum(&[0]).map(|(start_s, end_s, _)| end_s - start_s).sum();
    println!(
        "{} samples, {:.6} s of processor time in 30 s, the thread {thread_s:.6} s, {covered_s:.1} s covered",
        samples.times_s.len(),
        samples.cpu_s
    );
    assert!(thread_s < 30e-3 && covered_s > 20.0);
    assert!(samples.sum(&[0]).all(|(.., watts)| watts == 214.0));
}
