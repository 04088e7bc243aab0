//! Power loss at any moment: no finished trial is lost, none is run twice, the session goes on.
//!
//! A real session is run under `strace` ([`trace`]), which tells each write, rename and sync of the tuner, its guards and the
//! engine; a trait in the program would tell only what goes through it. After each of them the power may be lost: [`disk`] says what is left, and [`resumed`] goes on from there. A trial
//! has finished when the tuner has said so on standard error. [`errors`] makes the calls fail instead.

mod disk;
mod errors;
mod resumed;
mod trace;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tuner::record::Row;

use self::disk::{Disk, Loss};
use self::resumed::Resumed;
use self::trace::Call;
use crate::engine::Fake;
use crate::hostile::until;
use crate::kill::{nothing_is_left, trials};
use crate::program::hpl_tune;
use crate::tune::rows;

/// An engine whose rate tells its candidate and trial, and which notes each run that it finished, beside the run folder.
const ENGINE: &str = r#"
rate=$((200 + $2 / 8 + number * 37 % 41)); [ "$MODE" = fast ] && rate=$((rate + 50))
echo "WR11C2R4 $1 $2 1 2 0.00 0.$rate"
echo "||Ax-b||_oo/(eps)= 2.1e-03 ...... PASSED"
echo "$number" >> ../../../finished.log
"#;

/// Trials of the recorded session: before it is killed, and once it has gone on.
const TRIALS: [usize; 2] = [5, 9];

/// Recordings, at most, until the kill comes between two calls.
const RECORDINGS: usize = 10;

#[test]
#[ignore = "needs strace: tests/run runs it where that is"]
fn needs_strace_after_a_power_loss_a_session_goes_on() {
    let session = Recorded::new();
    println!("{}", session.through_the_library(600, 3));
    println!("{}", session.through_the_program(5, 3));
}

#[test]
#[ignore = "needs strace, takes minutes; run by hand, see CONTRIBUTING.md"]
fn after_a_power_loss_at_any_moment_a_session_goes_on() {
    println!("{}", Recorded::new().through_the_library(12_000, 17));
}

#[test]
#[ignore = "needs strace, takes minutes; run by hand, see CONTRIBUTING.md"]
fn after_a_power_loss_at_any_moment_the_program_goes_on() {
    println!("{}", Recorded::new().through_the_program(120, 17));
}

/// A session with all that it did, killed once and resumed.
struct Recorded {
    fake: Fake,
    calls: Vec<Call>,
    /// The record that it left.
    rows: Vec<Row>,
}

impl Recorded {
    fn new() -> Self {
        (0..RECORDINGS).find_map(|_| Self::once()).expect("no kill came between two calls")
    }

    /// `None` where the kill came in the middle of a call.
    fn once() -> Option<Self> {
        let fake = Fake::new(ENGINE);
        let home = fake.home().to_owned();
        let folder = folder(&home);
        let mut calls = Vec::new();
        for (sitting, enough) in TRIALS.into_iter().enumerate() {
            let command = if sitting == 0 { begun(&fake, &folder) } else { resumed(&folder) };
            let log = home.with_extension(format!("calls{sitting}"));
            let mut child = quiet(&mut trace::recorded(&command, &log));
            until("enough trials", || trials(&folder).len() >= enough || child.try_wait().unwrap().is_some());
            // The first is killed, the second may write what a session writes at its end.
            send(&child, if sitting == 0 { Signal::SIGKILL } else { Signal::SIGINT });
            child.wait().unwrap();
            nothing_is_left(&folder);
            until("the end of the log", || fs::read_to_string(&log).unwrap().contains(" +++ "));
            calls.extend(trace::read(&log, &home)?);
            fs::remove_file(log).unwrap();
        }
        let recorded = Self { rows: rows(&folder), fake, calls };
        recorded.is_all_that_was_written();
        Some(recorded)
    }

    /// The model, told every call, holds what the folder holds, to the byte.
    fn is_all_that_was_written(&self) {
        let home = self.fake.home();
        let mut disk = Disk::new();
        self.calls.iter().for_each(|call| disk.run(call, home));
        let copy = tempfile::tempdir().unwrap();
        disk.lose_power(Loss::None, copy.path(), &mut ChaCha8Rng::seed_from_u64(0));
        assert!(same(&folder(home), &folder(copy.path())) > 30);
    }

    /// Draws states of the disk, the same number after each call, and hands each to `check` with the trials that had finished.
    fn states(&self, count: usize, seed: u64, mut check: impl FnMut(&Path, &BTreeSet<u64>, String)) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut disk = Disk::new();
        let mut finished = BTreeSet::new();
        for (done, call) in self.calls.iter().enumerate() {
            disk.run(call, self.fake.home());
            if let Call::Say(text) = call {
                finished.extend(finished_trial(text));
            }
            let upto = |done: usize| done * count / self.calls.len();
            for _ in upto(done)..upto(done + 1) {
                let loss = *Loss::ALL.choose(&mut rng).unwrap();
                let state = empty_folder();
                disk.lose_power(loss, state.path(), &mut rng);
                check(state.path(), &finished, format!("{loss:?} after call {done}, {call:.200?}"));
            }
        }
        assert!(finished.len() >= TRIALS[1] - 1, "{finished:?}");
    }

    fn through_the_library(&self, count: usize, seed: u64) -> String {
        let resumed = Resumed::new(&folder(self.fake.home()), &self.rows);
        let (mut tried, mut began, mut adopted) = (0, 0, 0);
        self.states(count, seed, |home, finished, what| {
            tried += 1;
            let Some(rows) = resumed.goes_on(&folder(home), finished, &what) else { return };
            began += 1;
            adopted += rows - finished.len();
        });
        format!(
            "library: {tried} states, {began} of a session that had begun, {adopted} trials recorded that were not said"
        )
    }

    /// Some of the states, through `hpl-tune --resume`.
    fn through_the_program(&self, count: usize, seed: u64) -> String {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (mut tried, mut new) = (0, 0);
        self.states(count, rng.random(), |home, finished, what| {
            let folder = folder(home);
            let log = folder.with_file_name("finished.log");
            let _ = fs::remove_file(&log);
            let began = folder.join("session.toml").exists();
            assert!(began || finished.is_empty(), "{what}: the session is gone");
            let command = if began { resumed(&folder) } else { begun(&self.fake, &folder) };
            goes_on(command, &folder, finished, &what);
            let again = fs::read_to_string(log).unwrap();
            let twice = again.lines().find(|line| finished.contains(&line.parse().unwrap()));
            assert!(twice.is_none(), "{what}: run twice: {twice:?}");
            tried += 1;
            new += usize::from(!began);
        });
        format!("program: {tried} states, {new} of a session that had not begun")
    }
}

/// Lets a session add two trials to its record, and looks whether the record has those that had finished, and each once.
fn goes_on(mut command: Command, folder: &Path, finished: &BTreeSet<u64>, what: &str) {
    let before = trials(folder).len();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("two trials", || trials(folder).len() >= before + 2 || child.try_wait().unwrap().is_some());
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 130)), "{what}: {:?} {said}", output.status);
    nothing_is_left(folder);
    let numbers = trials(folder);
    let distinct: BTreeSet<u64> = numbers.iter().copied().collect();
    assert_eq!(distinct.len(), numbers.len(), "{what}: recorded twice: {numbers:?}");
    assert!(distinct.is_superset(finished), "{what}: lost of {finished:?}: {numbers:?} {said}");
    assert!(numbers.len() >= before + 2 || output.status.success(), "{what}: {said}");
}

/// The run folder of a session below a home, in a folder that the session makes, too.
fn folder(home: &Path) -> PathBuf {
    home.join("runs/a session")
}

fn begun(fake: &Fake, folder: &Path) -> Command {
    fake.session_in(folder)
}

fn resumed(folder: &Path) -> Command {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder);
    command
}

fn quiet(command: &mut Command) -> Child {
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// It may be gone already.
fn send(child: &Child, signal: Signal) {
    let _ = kill(Pid::from_raw(child.id().cast_signed()), signal);
}

/// The trial whose line this is.
fn finished_trial(said: &str) -> Option<u64> {
    said.contains("  N 100 NB ").then(|| said.split_whitespace().next()?.parse().ok())?
}

/// An empty folder in memory, where there is such: a power loss needs no disk here.
fn empty_folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// Compares two folders; the number of files in them.
fn same(one: &Path, other: &Path) -> usize {
    let names = |folder: &Path| -> BTreeSet<_> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(one), names(other), "{}", one.display());
    let count = |name: std::ffi::OsString| {
        let (one, other) = (one.join(&name), other.join(&name));
        if one.is_dir() {
            return same(&one, &other);
        }
        assert!(fs::read(&one).unwrap() == fs::read(other).unwrap(), "{} is not as the model has it", one.display());
        1
    };
    names(one).into_iter().map(count).sum()
}
