//! Signals, full disks, vanished libraries, closed pipes: the session says what happened and loses nothing.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::predict::Predictor;
use objectives::real::Extent;
use space::domain::DomainSpec;
use space::machine::Machine;
use tuner::record::session::Session;
use tuner::session::engine::Engine;
use tuner::session::prepare;

use crate::kill::{nothing_is_left, trials};
use crate::program::{err, hpl_tune, machine_toml, out};
use crate::tune::rows;

/// A new session at this N, with the machine's rates given.
fn new(n: usize, folder: &Path) -> Command {
    let mut command = hpl_tune();
    command.args(["--budget", "60s", "--n", &n.to_string(), "--machine"]).arg(machine_toml());
    command.arg("--out").arg(folder);
    command
}

fn resume(folder: &Path) -> Command {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder);
    command
}

fn start(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

/// `command` with SIGHUP and SIGQUIT as whoever starts it has left them: `default`, or `ignore` as `nohup` does.
fn with_signals(how: &str, command: &Command) -> Command {
    let mut env = Command::new("env");
    env.arg(format!("--{how}-signal=HUP,QUIT")).arg(command.get_program()).args(command.get_args());
    env.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    env
}

fn send(child: &Child, signal: Signal) {
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
}

/// Longer than anything here takes on the busiest machine, and far shorter than what it would wait for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `happened`, at most three times [`PATIENCE`]: other programs have their share of a busy machine.
pub(crate) fn until(what: &str, mut happened: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !happened() {
        assert!(begun.elapsed() < 3 * PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Ends a session by `signal` and checks that it says goodbye as it should.
fn stopped(child: Child, signal: Signal, folder: &Path) -> Output {
    let begun = Instant::now();
    send(&child, signal);
    // As `timeout` does it: to the process and to its group.
    send(&child, signal);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    assert!(begun.elapsed() < PATIENCE, "{:?}", begun.elapsed());
    assert!(out(&output).contains("Trials"), "no summary: {}", out(&output));
    assert!(err(&output).contains("--resume"), "{}", err(&output));
    assert!(!folder.join("now.json").exists(), "nothing runs");
    nothing_is_left(folder);
    output
}

/// Runs of milliseconds: the signal mostly comes while the next trial is being chosen.
#[test]
fn a_signal_between_short_trials_is_seen_and_the_session_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("short runs");
    let mut finished = 0;
    for signal in [Signal::SIGINT, Signal::SIGTERM] {
        let child = start(&mut if finished == 0 { new(100, &folder) } else { resume(&folder) });
        until("a trial", || trials(&folder).len() > finished + 2);
        stopped(child, signal, &folder);
        finished = trials(&folder).len();
    }
}

/// It ended at once, without summary and results.
#[test]
fn a_session_whose_terminal_is_gone_ends_with_its_summary() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let mut finished = 0;
    for signal in [Signal::SIGHUP, Signal::SIGQUIT] {
        let command = if finished == 0 { new(100, &folder) } else { resume(&folder) };
        let child = start(&mut with_signals("default", &command));
        until("a trial", || trials(&folder).len() > finished);
        stopped(child, signal, &folder);
        finished = trials(&folder).len();
    }
    assert!(folder.join("report.html").exists());
}

#[test]
fn a_session_that_ignores_the_end_of_its_terminal_goes_on() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let child = start(&mut with_signals("ignore", &new(100, &folder)));
    until("a trial", || !trials(&folder).is_empty());
    [Signal::SIGHUP, Signal::SIGQUIT].into_iter().for_each(|signal| send(&child, signal));
    let count = trials(&folder).len();
    until("more trials", || trials(&folder).len() > count + 2);
    stopped(child, Signal::SIGINT, &folder);
}

#[test]
fn a_signal_in_the_calibration_ends_it() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let child = start(hpl_tune().args(["--budget", "60s", "--blas", "builtin", "--out"]).arg(&folder));
    until("the calibration", || folder.join("calibration/stderr.txt").exists());
    stopped(child, Signal::SIGINT, &folder);
    assert!(!folder.join("machine.toml").exists());
}

#[test]
fn a_run_that_somebody_else_kills_is_a_failed_trial() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let child = start(&mut new(3000, &folder));
    let dat = folder.join("trials/0/HPL.dat");
    until("the first run", || run_of(&dat).is_some_and(|pid| kill(pid, Signal::SIGKILL).is_ok()));
    until("a later trial", || trials(&folder).len() > 1);
    stopped(child, Signal::SIGTERM, &folder);
    let rows = rows(&folder);
    assert!(!rows[0].passed && rows.iter().any(|row| row.passed));
    assert!(rows[0].failure_detail.as_ref().unwrap().contains("kill"), "{:?}", rows[0].failure_detail);
}

/// The process that runs this HPL.dat, not its guard.
fn run_of(dat: &Path) -> Option<Pid> {
    let name = dat.to_str().unwrap();
    std::fs::read_dir("/proc").unwrap().find_map(|entry| {
        let entry = entry.ok()?;
        let line = String::from_utf8(std::fs::read(entry.path().join("cmdline")).ok()?).ok()?;
        let own = line.contains(name) && !line.contains("__guard");
        own.then(|| entry.file_name().to_str()?.parse().ok().map(Pid::from_raw)).flatten()
    })
}

#[test]
fn trial_after_trial_that_fails_ends_the_session_with_the_reason() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let library = root.path().join("libtext.so");
    std::fs::write(&library, "no library").unwrap();
    let output = new(500, &folder).arg("--blas").arg(&library).arg("--quiet").output().unwrap();
    assert_eq!(output.status.code(), Some(4), "{}", err(&output));
    for word in ["libtext.so", "--resume"] {
        assert!(err(&output).contains(word), "{}", err(&output));
    }
    assert_eq!(trials(&folder).len(), 8);
    assert!(!out(&output).contains("HPL.dat"), "promises files that are not there: {}", out(&output));

    std::fs::remove_file(&library).unwrap();
    let output = resume(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("libtext.so is gone"), "{}", err(&output));
}

#[test]
fn a_refused_session_leaves_its_name_free() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let output = new(40_000, &folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("--n"), "{}", err(&output));
    assert!(!folder.exists());
}

/// A model that expects half the budget of one run.
#[test]
fn where_one_run_alone_fits_it_is_the_final_run() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let slow = root.path().join("slow.toml");
    let mut machine = Machine::parse(&std::fs::read_to_string(machine_toml()).unwrap()).unwrap();
    let memory_bytes = prepare::usable_bytes(&machine);
    let spec = DomainSpec { memory_bytes, ..hpl::machine::host::facts().domain_spec(500) };
    // Without phases the model goes by the rates, which are made slow.
    machine.phases.clear();
    let predictor = Predictor::new(&machine).unwrap();
    let run_s = prepare::SearchCosts::new(&spec, &Engine::Ours, &predictor).unwrap().trial_s(500, Extent::Whole);
    machine.rates.iter_mut().flat_map(|rate| &mut rate.coefficients).for_each(|c| *c *= 20.0 / (run_s - 0.1));
    std::fs::write(&slow, machine.to_toml().unwrap()).unwrap();
    let mut command = hpl_tune();
    command.args(["--budget", "35s", "--n", "500", "--machine"]).arg(&slow).arg("--out").arg(&folder);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let rows = rows(&folder);
    assert!(rows[0].strategy == "final" && rows[0].passed, "{}", err(&output));
    // It took a thousandth of what was expected: in the time that is left it is compared with the default.
    let known = ["confirm", "expert", "race"];
    assert!(rows[1..].iter().all(|row| known.contains(&row.strategy.as_str())), "{}", err(&output));
}

/// The end of a Slurm job bounds the budget; one that ends too soon is refused before anything is made.
#[test]
fn a_session_is_done_before_its_slurm_job_ends() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let in_job = |left_s: u64| {
        // It may have to wait for the calibration of this machine.
        let mut command = new(100, &folder);
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let end = (now_s + left_s).to_string();
        command.envs([("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", &*end), ("SLURMD_NODENAME", "n1")]);
        command
    };
    // A shell of salloc on another host: what would be measured is no node of the job.
    let output = in_job(110).env_remove("SLURMD_NODENAME").output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("is none of its nodes") && err(&output).contains("--sbatch"), "{}", err(&output));
    let output = in_job(70).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("job 17 ends in") && !folder.exists(), "{}", err(&output));

    let child = start(&mut in_job(110));
    until("a trial", || !trials(&folder).is_empty());
    let output = stopped(child, Signal::SIGTERM, &folder);
    assert!(err(&output).contains("job 17 ends in"), "{}", err(&output));
    let session = Session::load(&folder.join("session.toml")).unwrap();
    assert!((30.0..=50.0).contains(&session.budget_s), "{} s", session.budget_s);
}

/// What a job was too short for counted as spent in the next one.
#[test]
fn a_resume_in_a_short_job_leaves_the_rest_of_the_budget_to_another() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let mut first = hpl_tune();
    first.args(["--budget", "1h", "--n", "100", "--machine"]).arg(machine_toml()).arg("--out").arg(&folder);
    let child = start(&mut first);
    until("a trial", || !trials(&folder).is_empty());
    stopped(child, Signal::SIGTERM, &folder);
    let before = trials(&folder).len();
    let now_s = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut command = resume(&folder);
    let end = (now_s + 300).to_string();
    command.envs([("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", &*end), ("SLURMD_NODENAME", "n1")]);
    let child = start(&mut command);
    until("a trial", || trials(&folder).len() > before);
    let output = stopped(child, Signal::SIGTERM, &folder);
    assert!(err(&output).contains("job 17 ends in"), "{}", err(&output));
    let session = Session::load(&folder.join("session.toml")).unwrap();
    let (rows, spent_s) = (rows(&folder), session.elapsed_s);
    assert!(rows.len() > before && session.used_s(&rows) < spent_s + 1.0, "{} {spent_s}", session.used_s(&rows));
}

#[test]
fn a_session_whose_budget_is_used_is_shown_and_not_overdrawn() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let child = start(&mut new(100, &folder));
    until("a trial", || !trials(&folder).is_empty());
    stopped(child, Signal::SIGINT, &folder);
    replaced(&folder.join("session.toml"), "elapsed_s = ", "elapsed_s = 60.5");
    std::fs::remove_file(folder.join("machine.toml")).unwrap();
    let count = trials(&folder).len();
    let begun = Instant::now();
    let output = resume(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(6), "{}", err(&output));
    assert!(begun.elapsed() < PATIENCE);
    assert!(err(&output).contains("used up"), "{}", err(&output));
    assert_eq!(trials(&folder).len(), count);
}

#[test]
fn a_session_does_not_go_on_with_fewer_cores() {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let child = start(&mut new(100, &folder));
    until("a trial", || !trials(&folder).is_empty());
    stopped(child, Signal::SIGINT, &folder);
    let many: Vec<String> = (0..9999).map(|core| core.to_string()).collect();
    replaced(&folder.join("session.toml"), "cores = ", &format!("cores = [{}]", many.join(", ")));
    let output = resume(&folder).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("9999 cores"), "{}", err(&output));
}

/// Replaces the line of a file that begins so.
fn replaced(path: &Path, start: &str, line: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    let lines = text.lines().map(|old| if old.starts_with(start) { line } else { old });
    let changed = lines.collect::<Vec<_>>().join("\n");
    assert!(changed != text, "{} has no line '{start}'", path.display());
    std::fs::write(path, changed).unwrap();
}

#[test]
fn a_closed_pipe_changes_no_exit_code() {
    let closed = || std::io::pipe().unwrap().1;
    let status = hpl_tune().arg("--budget").arg("1s").stderr(closed()).status().unwrap();
    assert_eq!(status.code(), Some(2));
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("session");
    let mut child = new(100, &folder).stdout(closed()).stderr(closed()).spawn().unwrap();
    until("a trial", || !trials(&folder).is_empty());
    send(&child, Signal::SIGINT);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let status = hpl_tune().arg("report").arg(&folder).stdout(closed()).status().unwrap();
    assert_eq!(status.code(), Some(0));
}

#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_a_disk_without_room_blames_no_candidate() {
    let disk = SmallDisk::mount();
    let folder = disk.0.path().join("session");
    let output = new(500, &folder).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", err(&output));
    assert!(err(&output).contains("free some space"), "{}", err(&output));
    assert!(trials(&folder).is_empty());
    disk.grow();
    let child = start(&mut resume(&folder));
    until("a trial", || !trials(&folder).is_empty());
    stopped(child, Signal::SIGINT, &folder);
    // Filled while trials run.
    let child = start(&mut resume(&folder));
    let count = trials(&folder).len();
    until("a trial", || trials(&folder).len() > count);
    let ballast = disk.fill();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", err(&output));
    assert!(out(&output).contains("Best"), "no summary: {}", out(&output));
    std::fs::remove_file(ballast).unwrap();
    let recorded = rows(&folder);
    assert!(recorded.iter().all(|row| row.passed), "{}", err(&output));
    let child = start(&mut resume(&folder));
    until("a trial", || trials(&folder).len() > recorded.len());
    stopped(child, Signal::SIGINT, &folder);
    assert_eq!(rows(&folder)[..recorded.len()], recorded);
}

/// A file system of 1 MiB.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=1m", "tmpfs"]).arg(folder.path()).status();
        assert!(mounted.unwrap().success());
        Self(folder)
    }

    /// Takes all space that is left.
    fn fill(&self) -> PathBuf {
        let path = self.0.path().join("ballast");
        let mut file = File::create(&path).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        path
    }

    fn grow(&self) {
        let status = Command::new("mount").args(["-o", "remount,size=16m"]).arg(self.0.path()).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("--lazy").arg(self.0.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "{} stays mounted", self.0.path().display());
    }
}
