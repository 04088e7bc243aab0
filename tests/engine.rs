//! Other engines, driven through `--engine` as a user does: here a script that behaves as told.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tuner::record::{Outcome, Row};

use crate::hostile::until;
use crate::kill::{nothing_is_left, trials};
use crate::program::{err, hpl_tune, machine_toml, out};
use crate::tune::rows;

/// A script that is another HPL: it runs in the folder of its trial, `$1` is N, `$2` NB, `$MODE` its own dimension.
pub(crate) struct Fake {
    home: tempfile::TempDir,
}

/// Prints a result that depends on NB and the mode. Its arithmetic is the shell's.
pub(crate) const GOOD: &str = r#"
rate=$((200 + $2 / 8)); [ "$MODE" = fast ] && rate=$((rate + 50))
echo "WR11C2R4 $1 $2 1 2 0.00 0.$rate"
echo "||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED"
"#;

impl Fake {
    pub(crate) fn new(body: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let script = home.path().join("my hpl.sh");
        fs::write(&script, format!("#!/bin/sh\nnumber=$(basename \"$PWD\")\n{body}\n")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let profile = format!(
            r"
schema_version = 1
name = 'fake'
about = 'a script'
source = 'this test'
program = '{}'
command = ['{{program}}', '{{n}}', '{{nb}}']
input = 'HPL.dat'
obeys = ['nb', 'bcast', 'depth']
[patterns]
result = '^W[RC]\d\S*\s+(?<n>\d+)\s+\d+\s+\d+\s+\d+\s+(?<time>\S+)\s+(?<gflops>\S+)'
residual = '^\|\|Ax-b\|\|_oo/.*=\s*(?<residual>\S+) \.+ (?<verdict>PASSED|FAILED)'
[[dimension]]
name = 'mode'
env = 'MODE'
values = ['slow', 'fast']
",
            script.display()
        );
        fs::write(home.path().join("fake.toml"), profile).unwrap();
        Self { home }
    }

    pub(crate) fn profile(&self) -> PathBuf {
        self.home.path().join("fake.toml")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.home.path().join("a session")
    }

    /// Where it lies.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A new session at N = 100 with the machine's rates given.
    pub(crate) fn session(&self) -> Command {
        self.session_in(&self.folder())
    }

    /// Such a session in any folder.
    pub(crate) fn session_in(&self, folder: &Path) -> Command {
        let mut command = hpl_tune();
        command.args(["--budget", "10m", "--n", "100", "--ranks", "1", "--machine"]).arg(machine_toml());
        command.arg("--engine").arg(self.profile()).arg("--out").arg(folder);
        command
    }

    fn run_until(&self, enough: usize) -> Vec<Row> {
        run_until(&mut self.session(), &self.folder(), enough)
    }
}

/// Runs a session until `enough` trials are recorded, then stops it as a user does.
pub(crate) fn run_until(session: &mut Command, folder: &Path, enough: usize) -> Vec<Row> {
    let mut child = session.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("enough trials", || trials(folder).len() >= enough || child.try_wait().unwrap().is_some());
    // It is still there unless it failed, which its exit code tells.
    let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", err(&output));
    nothing_is_left(folder);
    rows(folder)
}

/// A real program under Open MPI, as root or not, tuned for three trials through its shipped profile: those that passed. The
/// first has half of the budget; a later one that the machine holds up for seconds is ended, which is no fault of the program.
pub(crate) fn tuned_for_three_trials(engine: &str, flags: &[&str]) -> Vec<Row> {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("session");
    let mut command = hpl_tune();
    command.args(["--budget", "10m", "--n", "400", "--engine", engine, "--machine"]).arg(machine_toml());
    command.args(["--launcher", "mpirun.openmpi -np {np} --oversubscribe --bind-to none"]);
    command.args(flags).arg("--out").arg(&folder);
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let rows = run_until(&mut command, &folder, 3);
    let (passed, ended): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|row| row.passed);
    for row in &ended {
        assert_eq!(row.outcome, Outcome::TimedOut, "{:?}", row.failure_detail);
    }
    assert!(!passed.is_empty());
    passed
}

#[test]
fn another_engine_is_tuned_with_its_own_dimensions() {
    let fake = Fake::new(GOOD);
    let rows = fake.run_until(12);
    assert!(rows.iter().all(|row| row.passed && row.engine == "fake"), "{:?}", rows[0].failure_detail);
    assert!(rows.iter().any(|row| row.extra.as_deref() == Some(r#"{"mode":"fast"}"#)));
    // What it is not told is not recorded.
    assert!(rows.iter().all(|row| (&row.kernels, row.huge_pages, row.split) == (&None, None, None)), "{:?}", rows[0]);
    let session = fs::read_to_string(fake.folder().join("session.toml")).unwrap();
    assert!(!session.contains("kernels") && !fake.folder().join("engine-params.toml").exists(), "{session}");
    let distinct: std::collections::HashSet<_> = rows.iter().map(Row::candidate).collect();
    let repeats = rows.iter().filter(|row| row.repeat_of.is_some()).count();
    assert_eq!(distinct.len() + repeats, rows.len());
    // Any trial can be repeated by its command.
    let again = Command::new("bash").args(["-c", &rows[1].command]).current_dir("/").output().unwrap();
    assert!(out(&again).contains("PASSED"), "{}", rows[1].command);
    // What is exported runs, too.
    let run = Command::new(fake.folder().join("run.sh")).current_dir("/").output().unwrap();
    assert!(out(&run).contains("PASSED"), "{}", err(&run));
    assert!(out(&run).contains(&format!(" 0.{}", best(&rows))), "{}", out(&run));
}

/// The best rate as the script prints its digits.
fn best(rows: &[Row]) -> u32 {
    let best = rows.iter().filter_map(|row| row.rate_gflops).fold(0.0, f64::max);
    (best * 1000.0).round() as u32
}

#[test]
fn an_engine_that_misbehaves_in_every_way_is_survived() {
    // One trial in eleven each: fails, prints NaN, a wrong residual, nothing, a flood, leaves a child, crashes.
    let body = format!(
        r#"
case $((number % 11)) in
  1) echo "no licence" >&2; exit 1;;
  2) echo "WR11C2R4 $1 $2 1 2 0.00 nan"; echo "||Ax-b||_oo/(eps)= nan ...... PASSED"; exit 0;;
  3) echo "WR11C2R4 $1 $2 1 2 0.00 0.9"; echo "||Ax-b||_oo/(eps)= 1e9 ...... FAILED"; exit 0;;
  4) echo "hello"; exit 0;;
  5) head -c 2000000 /dev/zero | tr '\0' 'x'; echo;;
  6) (setsid sleep 1000 &) ;;
  7) kill -SEGV $$;;
esac
{GOOD}"#
    );
    let fake = Fake::new(&body);
    let rows = fake.run_until(23);
    let of = |place: u64| rows.iter().filter(move |row| row.trial % 11 == place).map(|row| row.outcome);
    for (place, outcome) in [
        (0, Outcome::Passed),
        (1, Outcome::Crashed),
        (2, Outcome::Residual),
        (3, Outcome::Residual),
        (4, Outcome::Output),
        (5, Outcome::Passed),
        (6, Outcome::Passed),
        (7, Outcome::Crashed),
    ] {
        assert!(of(place).all(|found| found == outcome), "{place}: {:?}", of(place).collect::<Vec<_>>());
    }
    assert!(rows.iter().filter(|row| !row.passed).all(|row| row.score_gflops().is_none()));
    assert!(rows.iter().any(|row| row.failure_detail.as_ref().is_some_and(|why| why.contains("no licence"))));
}

#[test]
fn an_engine_that_hangs_is_ended_at_its_limit() {
    let fake = Fake::new(&format!("[ $number = 1 ] && sleep 1000\n{GOOD}"));
    let rows = fake.run_until(4);
    assert_eq!(rows[1].outcome, Outcome::TimedOut, "{:?}", rows[1].failure_detail);
    assert!(rows[2].passed && rows[3].passed);
}

#[test]
fn a_run_that_falls_behind_is_ended_by_its_progress() {
    // Every trial but the first is half as fast from its first line on, and would not end.
    let fake = Fake::new(&format!(
        "echo 'at 5 0.4'; echo 'at 50 0.4'\n[ $number = 0 ] && echo 'at 100 0.4'\n[ $number = 0 ] || {{ echo 'at 20 0.1'; sleep 1000; }}\n{GOOD}"
    ));
    let path = fake.profile();
    let profile = fs::read_to_string(&path).unwrap();
    fs::write(&path, profile.replace("[patterns]", "[patterns]\nprogress = '^at (?<flops>\\S+) (?<gflops>\\S+)'"))
        .unwrap();
    let rows = fake.run_until(2);
    assert_eq!(rows[1].outcome, Outcome::Beaten, "{:?}", rows[1].failure_detail);
    assert!(rows[1].estimated_rate_gflops.unwrap() < 0.3 * rows[0].rate_gflops.unwrap());
    assert_eq!((rows[1].rate_gflops, rows[1].cost_fraction), (None, 0.2));
}

fn refused(fake: &Fake, change: impl Fn(String) -> String, flags: &[&str], words: &[&str]) {
    let path = fake.home.path().join("changed.toml");
    fs::write(&path, change(fs::read_to_string(fake.profile()).unwrap())).unwrap();
    let mut command = hpl_tune();
    command.args(["--budget", "1m", "--out"]).arg(fake.folder()).args(flags).arg("--engine").arg(&path);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    for word in words {
        assert!(err(&output).contains(word), "'{word}' is not in: {}", err(&output));
    }
    assert!(!fake.folder().exists(), "a refused session leaves its name free");
}

#[test]
fn bad_profiles_and_missing_programs_are_refused_before_anything_runs() {
    let fake = Fake::new(GOOD);
    let same = |text: String| text;
    refused(&fake, |text| text.replace("{nb}", "{block}"), &[], &["{block}", "nbmin"]);
    refused(&fake, |text| text.replace("'bcast'", "'broadcast'"), &[], &["broadcast", "known are"]);
    refused(&fake, |text| text.replace("(?<gflops>", "(?<mflops>"), &[], &["result", "gflops"]);
    refused(&fake, |text| text.replace("about", "abut"), &[], &["abut"]);
    refused(&fake, same, &["--program", "/no/such/hpl"], &["/no/such/hpl", "--program"]);
    refused(&fake, same, &["--blas", "builtin"], &["--blas builtin", "engine fake", "--program"]);
    refused(&fake, same, &["--threads", "2"], &["--threads 2", "engine fake", "leave it out"]);
    refused(&fake, same, &["--launcher", "srun"], &["--launcher", "{launch}"]);
    refused(&fake, same, &["--blas", "builtin", "--dry-run"], &["--blas builtin"]);
    refused(
        &fake,
        |text| text.replace("'{program}',", "'{launch}', '{program}',"),
        &["--launcher", "nompi -n {np}"],
        &["nompi", "--launcher"],
    );
    refused(
        &fake,
        |text| text.replace("'{program}',", "'{launch}', '{program}',"),
        &["--launcher", "sh {ranks}"],
        &["{ranks}"],
    );
}

#[test]
fn a_dry_run_shows_the_command_and_runs_nothing() {
    let fake = Fake::new("touch \"$0.was run\"");
    let output = fake.session().arg("--dry-run").output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    for word in ["MODE=slow", "my hpl.sh' 100 100", "100          Ns", "candidates at N = 100"] {
        assert!(out(&output).contains(word), "'{word}' is not in: {}", out(&output));
    }
    assert!(!fake.folder().exists());
    assert_eq!(fs::read_dir(fake.home.path()).unwrap().count(), 2, "something ran");
}

/// A node of eight accelerators of 80 GB.
const EIGHT: &str = "[host]\nname = 'eight'\norigin = 'made up'\n[[node]]\nname = 'gpu'\ncount = 1\ncores = 112\n\
                     memory_bytes = 640_000_000_000\naccelerators = 8\n";

/// The same script as an engine whose matrix the accelerators hold, with `flags`.
fn on_accelerators(fake: &Fake, flags: &[&str]) -> Command {
    let path = fake.profile();
    let profile = fs::read_to_string(&path).unwrap();
    let device = "schema_version = 2\nmemory = 'device'";
    fs::write(&path, profile.replace("schema_version = 1", device)).unwrap();
    let mut command = hpl_tune();
    command.args(["--budget", "10m"]).arg("--engine").arg(path).arg("--out").arg(fake.folder()).args(flags);
    command
}

#[test]
fn accelerators_give_ranks_and_order_and_the_host_does_not() {
    let fake = Fake::new(GOOD);
    let machine = fake.home.path().join("eight.toml");
    fs::write(&machine, EIGHT).unwrap();
    let output = on_accelerators(&fake, &["--dry-run", "--machine", machine.to_str().unwrap()]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    let n: usize = text.split("candidates at N = ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((260_000..280_000).contains(&n) && text.contains("# 8 ranks (2×4) of 1 thread"), "{text}");
    assert!(text.contains("the speed of the nodes is unknown"), "{text}");
}

#[test]
fn an_order_beyond_this_host_runs_on_accelerators_of_which_nothing_is_known() {
    // As fast as a run at that order in a tenth of a second is.
    let quick = GOOD.replace("0.$rate", "100000000$rate").replace("rate=", "sleep 0.1; rate=");
    let fake = Fake::new(&quick);
    let rows = run_until(&mut on_accelerators(&fake, &["--n", "400000", "--ranks", "8"]), &fake.folder(), 3);
    assert!(rows.iter().all(|row| row.passed && (row.n, row.p * row.q) == (400_000, 8)), "{:?}", rows[0]);
    assert!(!fake.folder().join("machine.toml").exists(), "the host's cores say nothing of accelerators");
    let fake = Fake::new(GOOD);
    let output = on_accelerators(&fake, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("no N") && err(&output).contains("--machine"), "{}", err(&output));
    assert!(!fake.folder().exists());
}

#[test]
fn session_dry_run_and_batch_script_refuse_the_same() {
    let fake = Fake::new(GOOD);
    let script = fake.home.path().join("job.sh");
    let many = fake.home.path().join("many.toml");
    let nodes = EIGHT.replace("count = 1", "count = 32").replace("cores = 112", "cores = 64");
    fs::write(&many, nodes).unwrap();
    for how in [&[][..], &["--dry-run"], &["--sbatch", script.to_str().unwrap()]] {
        let start = |more: &[&str]| {
            let mut command = hpl_tune();
            command.args(["--budget", "1m", "--n", "100", "--ranks", "2048", "--out"]).arg(fake.folder());
            command.arg("--engine").arg(fake.profile()).args(how).args(more).output().unwrap()
        };
        let output = start(&[]);
        assert_eq!(output.status.code(), Some(2), "{how:?} {}", err(&output));
        assert!(err(&output).contains("2048 cores") && err(&output).contains("--machine"), "{}", err(&output));
        if !how.is_empty() {
            let output = start(&["--machine", many.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(0), "{how:?} {}", err(&output));
        }
    }
    assert!(fs::read_to_string(script).unwrap().contains("--ntasks=2048\n"));
}

#[test]
fn a_batch_script_repeats_the_command_line() {
    let fake = Fake::new(GOOD);
    let script = fake.home.path().join("job.sh");
    let output = fake.session().arg("--sbatch").arg(&script).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = fs::read_to_string(&script).unwrap();
    for word in ["#SBATCH --ntasks=1", "--time=00:15:00", "--engine", "--budget 10m", "--resume", "B:TERM"] {
        assert!(text.contains(word), "'{word}' is not in: {text}");
    }
    assert!(!text.contains("--spares") && text.contains("\ncd "), "{text}");
    assert!(!text.contains("--sbatch") && Command::new("bash").arg("-n").arg(&script).status().unwrap().success());
    assert!(!Path::new(&fake.folder()).exists());
}
