//! The guard, with children of every bad sort: whatever they do, none is left and the record says how it
//! ended.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::process::{Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::Exit;
use objectives::real::{EndedBy, GuardRecord};
use tempfile::TempDir;

const FIXTURE: &str = env!("CARGO_BIN_EXE_guard-fixture");
/// Every process of a trial inherits this variable; the value is the test's folder.
const MARK: &str = "GUARD_TEST";
/// Longer than any ending takes on the busiest machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Living processes of the test in `folder`. A zombie has no environment and is none.
fn alive(folder: &Path) -> Vec<i32> {
    let mark = format!("{MARK}={}", folder.display());
    let pids = std::fs::read_dir("/proc").unwrap().flatten().filter_map(|e| e.file_name().to_str()?.parse().ok());
    let marked = |pid: &i32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    pids.filter(marked).collect()
}

/// Whether it comes true within what no machine, however busy, needs.
fn comes_true(condition: impl Fn() -> bool) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if condition() {
            return true;
        }
        sleep(Duration::from_millis(2));
    }
    condition()
}

fn guard_command(folder: &Path, limit_s: f64, command: &[OsString]) -> Command {
    let mut guard = Command::new(FIXTURE);
    guard.args(["__guard", "--parent", &std::process::id().to_string(), "--deadline-s", &limit_s.to_string()]);
    guard.arg("--folder").arg(folder).arg("--").args(command).env(MARK, folder);
    guard
}

fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script, FIXTURE].map(OsString::from).to_vec()
}

/// Runs a command to its end under a guard.
fn guarded(limit_s: f64, command: &[OsString]) -> (TempDir, Output, GuardRecord) {
    let folder = tempfile::tempdir().unwrap();
    let out = guard_command(folder.path(), limit_s, command).output().unwrap();
    assert_eq!(alive(folder.path()), [0i32; 0]);
    let record = GuardRecord::read(folder.path()).unwrap();
    (folder, out, record)
}

#[test]
fn exit_codes_and_output_are_kept() {
    let (folder, out, record) = guarded(60.0, &shell("echo good; echo bad >&2; exit 7"));
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Code(7)), EndedBy::Itself));
    assert_eq!((record.stragglers, record.oom_kills, record.output_error), (0, 0, None));
    assert_eq!(record.command[..3], ["sh", "-c", "'echo good; echo bad >&2; exit 7'"]);
    assert_eq!(std::fs::read(folder.path().join("stdout.txt")).unwrap(), b"good\n");
    assert_eq!(std::fs::read(folder.path().join("stderr.txt")).unwrap(), b"bad\n");
}

#[test]
fn costs_are_those_of_the_run() {
    let (_, _, record) = guarded(60.0, &shell("sleep 0.2; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"));
    assert!(record.wall_s >= 0.2 + 0.5 * record.user_s && record.wall_s < 30.0, "{record:?}");
    assert!(record.user_s > 0.005 && record.max_rss_bytes > 100_000, "{record:?}");
}

#[test]
fn a_crash_is_its_signal() {
    let (_, _, record) = guarded(60.0, &shell("kill -SEGV $$"));
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Signal(11)), EndedBy::Itself));
    // A real-time signal, which has no name.
    let (_, _, record) = guarded(60.0, &shell("kill -40 $$"));
    assert_eq!(record.exit, Some(Exit::Signal(40)));
}

/// A core as large as the matrix was written, wherever users have `ulimit -c unlimited`.
#[test]
fn a_crash_leaves_no_core() {
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap();
    setrlimit(Resource::RLIMIT_CORE, hard, hard).unwrap();
    let (folder, ..) = guarded(60.0, &shell("grep '^Max core file size ' /proc/self/limits"));
    let line = std::fs::read_to_string(folder.path().join("stdout.txt")).unwrap();
    // In bytes; at 0 a program that takes cores would still be given it.
    assert_eq!(line.split_whitespace().nth(4), Some(if hard == 0 { "0" } else { "1" }), "{line}");
}

#[test]
fn a_command_that_is_not_there_ends_with_127() {
    let (folder, _, record) = guarded(60.0, &["/not/here".into()]);
    assert_eq!(record.exit, Some(Exit::Code(127)));
    let said = std::fs::read_to_string(folder.path().join("stderr.txt")).unwrap();
    assert!(said.contains("cannot start /not/here: No such file"), "{said}");
    let (_, _, record) = guarded(60.0, &["/etc/passwd".into()]);
    assert_eq!(record.exit, Some(Exit::Code(126)));
}

#[test]
fn a_hang_ends_at_the_deadline() {
    let begun = Instant::now();
    let (_, _, record) = guarded(0.3, &shell("sleep 1000 & sleep 1000"));
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Signal(15)), EndedBy::Deadline));
    assert!(record.wall_s >= 0.3 && begun.elapsed() < PATIENCE, "{record:?}");
}

#[test]
fn who_ignores_sigterm_is_killed() {
    let begun = Instant::now();
    let (_, _, record) = guarded(1.0, &shell("trap '' TERM INT HUP; while :; do sleep 1000; done"));
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Signal(9)), EndedBy::Deadline));
    assert!(begun.elapsed() < PATIENCE, "{record:?}");
}

/// A launcher that says why it ends was blocked by its full pipe, killed, and had not ended its ranks.
#[test]
fn who_prints_much_when_asked_to_end_may_end_by_itself() {
    let line = "a rank on a node far away was asked to end, and has ended";
    let says = format!("i=0; while [ $i -lt 2000 ]; do echo \"$i: {line}\"; i=$((i+1)); done");
    let (folder, _, record) = guarded(1.0, &shell(&format!("trap '{says}; exit 7' TERM; while :; do sleep 0.1; done")));
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Code(7)), EndedBy::Deadline));
    let kept = std::fs::read_to_string(folder.path().join("stdout.txt")).unwrap();
    assert!(kept.ends_with(&format!("1999: {line}\n")), "{} bytes", kept.len());
}

#[test]
fn a_stopped_process_is_ended_too() {
    let (_, _, record) = guarded(1.0, &shell("kill -STOP $$"));
    assert_eq!(record.exit, Some(Exit::Signal(9)));
}

#[test]
fn daemons_do_not_outlive_their_run() {
    let (_, _, record) = guarded(60.0, &shell(r#""$0" daemon; "$0" daemon; exit 0"#));
    assert_eq!((record.exit, record.ended_by, record.stragglers), (Some(Exit::Code(0)), EndedBy::Itself, 2));
}

#[test]
fn a_process_that_forks_faster_than_it_is_ended_is_ended() {
    let script = "f() { (trap '' TERM; while :; do sleep 0.01 & sleep 0.01; done) & }; f; f; f; f; exit 0";
    let (_, _, record) = guarded(60.0, &shell(script));
    assert!(record.stragglers >= 4 && record.survivors.is_empty(), "{record:?}");
}

#[test]
fn a_flood_of_output_is_capped() {
    let (folder, _, record) = guarded(60.0, &[FIXTURE.into(), "flood".into()]);
    assert_eq!((record.exit, record.ended_by), (Some(Exit::Code(0)), EndedBy::Itself));
    let kept = std::fs::read(folder.path().join("stdout.txt")).unwrap();
    assert!(kept.len() > 1280 * 1024 && kept.len() < 1281 * 1024, "{} bytes", kept.len());
}

#[test]
fn arguments_and_folders_are_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join(OsString::from_vec(b"a b'\xff".to_vec()));
    std::fs::create_dir(&odd).unwrap();
    let mut command = shell("printf %s \"$1\"");
    command.push(OsString::from_vec(b"x \xfe$".to_vec()));
    assert!(guard_command(&odd, 60.0, &command).status().unwrap().success());
    assert_eq!(std::fs::read(odd.join("stdout.txt")).unwrap(), b"x \xfe$");
    assert_eq!(GuardRecord::read(&odd).unwrap().command[4], r"$'x \xfe$'");
}

#[test]
fn sigterm_to_the_guard_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let mut guard = guard_command(folder.path(), 60.0, &shell(r#""$0" daemon; sleep 1000"#)).spawn().unwrap();
    assert!(comes_true(|| alive(folder.path()).len() == 4), "{:?}", alive(folder.path()));
    kill(Pid::from_raw(guard.id() as i32), Signal::SIGTERM).unwrap();
    assert!(guard.wait().unwrap().success());
    assert_eq!(alive(folder.path()), [0i32; 0]);
    assert_eq!(GuardRecord::read(folder.path()).unwrap().ended_by, EndedBy::Asked);
}

#[test]
fn the_command_dies_with_a_killed_guard() {
    let folder = tempfile::tempdir().unwrap();
    let command = ["sleep", "1000"].map(OsString::from);
    let mut guard = guard_command(folder.path(), 60.0, &command).spawn().unwrap();
    assert!(comes_true(|| alive(folder.path()).len() == 2));
    guard.kill().unwrap();
    guard.wait().unwrap();
    assert!(comes_true(|| alive(folder.path()).is_empty()));
    assert!(GuardRecord::read(folder.path()).is_err());
}

#[test]
fn wrong_arguments_and_a_wrong_parent_start_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(FIXTURE).args(["__guard", "--parent", "7"]).output().unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("usage"));
    let mut wrong = Command::new(FIXTURE);
    wrong.args(["__guard", "--parent", "1", "--deadline-s", "9", "--folder"]).arg(folder.path());
    let out = wrong.args(["--", "touch"]).arg(folder.path().join("ran")).output().unwrap();
    assert_eq!(out.status.code(), Some(126));
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none());
}

/// Runs a shell script on a full disk, a small one of its own, whose path is `$1`.
fn on_full_disk(mount_options: &str, script: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let mount = format!("mount -t tmpfs -o {mount_options} none \"$1\" || exit 99; ");
    let fill = "head -c 100000 /dev/zero > \"$1/fill\" 2>&-; ";
    let mut shell = Command::new("unshare");
    shell.args(["-rm", "sh", "-c", &(mount + fill + script), FIXTURE]).arg(folder.path()).env(MARK, folder.path());
    let out = shell.output().unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}");
    assert_eq!(alive(folder.path()), [0i32; 0]);
    String::from_utf8(out.stdout).unwrap()
}

#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_a_full_disk_is_told_and_leaves_no_process() {
    let guard = "\"$0\" __guard --parent $$ --deadline-s 60 --folder \"$1\" -- sh -c";
    let run = format!("{guard} 'sleep 1000 & echo hello' 2>&1; echo code $?; ls -A \"$1\"");
    let said = on_full_disk("size=64k", &run);
    assert!(said.contains("guard.json: No space left on device"), "{said}");
    assert!(said.contains("code 1\n") && said.ends_with("fill\nstderr.txt\nstdout.txt\n"), "{said}");

    // Not even room for the name of a file.
    let said = on_full_disk("nr_inodes=2", &format!("{guard} 'touch \"$1\"' 2>&1; echo code $?"));
    assert!(said.contains("stdout.txt: No space left on device") && said.contains("code 126\n"), "{said}");
}

#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_a_tuner_on_a_full_or_read_only_disk_names_the_file() {
    let tuner = "\"$0\" tuner \"$0\" \"$1/trial\"";
    let said = on_full_disk("size=64k", tuner);
    assert!(said.contains("Err(Launch") && said.contains("trial/HPL.dat\", why: \"No space left"), "{said}");
    let said = on_full_disk("ro", tuner);
    assert!(said.contains("Err(Launch") && said.contains("trial\", why: \"Read-only file system"), "{said}");
}

/// The tuner dies by SIGKILL at any moment: nothing of its run is left two seconds later.
#[test]
fn a_killed_parent_takes_its_run_along() {
    let moments = (0..20).map(|i| (i, Duration::from_micros(u64::from(rand(i)) % 60_000)));
    std::thread::scope(|scope| {
        for (i, moment) in moments {
            scope.spawn(move || parent_killed_after(moment, i % 4 == 0));
        }
    });
}

/// A shell is the parent of the guard and is killed after `moment`.
fn parent_killed_after(moment: Duration, stubborn: bool) {
    let folder = tempfile::tempdir().unwrap();
    let trap = if stubborn { "trap '' TERM; " } else { "" };
    let script = format!(r#"{trap}"$0" daemon; sleep 1000 & "$0" daemon; sleep 1000"#);
    let line = r#""$0" __guard --parent $$ --deadline-s 60 --folder "$1" -- sh -c "$2" "$0"; true"#;
    let mut parent = Command::new("sh");
    parent.args(["-c", line, FIXTURE]).arg(folder.path()).arg(script).env(MARK, folder.path());
    let mut parent = parent.stderr(std::process::Stdio::null()).spawn().unwrap();
    sleep(moment);
    parent.kill().unwrap();
    parent.wait().unwrap();
    let killed = Instant::now();
    assert!(comes_true(|| alive(folder.path()).is_empty()), "{:?}", alive(folder.path()));
    println!("{moment:?}: all gone after {:?}", killed.elapsed());
    // Killed early, the guard had not begun; otherwise it says why it ended.
    if let Ok(record) = GuardRecord::read(folder.path()) {
        assert_eq!(record.ended_by, EndedBy::ParentGone);
    } else {
        assert!(!folder.path().join("stdout.txt").exists(), "a run was begun, but there is no record");
    }
}

/// A scrambled number: random enough for moments, and the same in every run.
fn rand(seed: u32) -> u32 {
    (seed + 1).wrapping_mul(0x9E37_79B9).rotate_left(13).wrapping_mul(0x85EB_CA6B)
}
