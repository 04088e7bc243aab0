//! Calls of the system that fail: a full disk, a quota, a broken disk, a server that has forgotten a file.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use nix::sys::signal::Signal;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{ENGINE, begun, finished_trial, folder, goes_on, resumed, send, trace};
use crate::engine::Fake;
use crate::hostile::until;
use crate::kill::{nothing_is_left, trials};
use crate::program::err;

const ERRORS: [&str; 4] = ["ENOSPC", "EIO", "EDQUOT", "ESTALE"];

/// Calls that fail, each with about how many of them a session makes until its fifth trial.
const CALLS: [(&str, usize); 8] = [
    ("write", 90),
    ("fsync", 70),
    ("fdatasync", 5),
    ("openat", 200),
    ("renameat", 25),
    ("mkdir", 12),
    ("ftruncate", 3),
    ("unlink", 15),
];

#[test]
#[ignore = "needs strace: tests/run runs it where that is"]
fn needs_strace_a_call_that_fails_loses_no_finished_trial() {
    println!("{}", failing(8, 5));
}

#[test]
#[ignore = "needs strace, takes minutes; run by hand, see CONTRIBUTING.md"]
fn calls_that_fail_lose_no_finished_trial() {
    println!("{}", failing(150, 23));
}

/// A line that reached the file, but not the disk, stays there when it cannot be taken back: the session ends, rather than write it again
/// behind that.
#[test]
#[ignore = "needs strace: tests/run runs it where that is"]
fn needs_strace_a_line_that_cannot_be_taken_back_is_not_written_again() {
    let fake = Fake::new(ENGINE);
    let folder = folder(fake.home());
    let log = fake.home().with_extension("calls");
    // Of the second trial's end, the fourth line.
    let fails = ["-e", "inject=fdatasync:error=ENOSPC:when=4", "-e", "inject=ftruncate:error=EIO:when=3+"];
    let output = trace::traced(&begun(&fake, &folder), &log, &fails).output().unwrap();
    std::fs::remove_file(log).unwrap();
    assert_eq!(output.status.code(), Some(5), "{}", err(&output));
    assert_eq!(std::fs::read_to_string(folder.join("journal.jsonl")).unwrap().lines().count(), 4);
    goes_on(resumed(&folder), &folder, &BTreeSet::from([0]), "resumed");
}

/// Calls that write, or see to it that what was written is on the disk.
const WRITES: [&str; 7] = ["write", "fsync", "fdatasync", "ftruncate", "renameat", "mkdir", "unlink"];

/// Each of these calls that a session makes until its fifth trial fails once with each error, in a session of its own.
#[test]
#[ignore = "needs strace, takes half an hour; run by hand, see CONTRIBUTING.md"]
fn each_write_that_fails_loses_no_finished_trial() {
    let fake = Fake::new(ENGINE);
    let log = fake.home().with_extension("calls");
    let traced =
        trace::traced(&begun(&fake, &folder(fake.home())), &log, &["-e", &format!("trace={}", WRITES.join(","))]);
    ended_after_five_trials(traced, &folder(fake.home()));
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::remove_file(log).unwrap();
    for call in WRITES {
        let count = lines.lines().filter(|line| line.starts_with(&format!("{call}("))).count();
        let injected = |number: usize| ERRORS.map(|error| format!("inject={call}:error={error}:when={number}"));
        let told: Vec<Told> = (1..=count).flat_map(injected).map(|inject| with(&inject)).collect();
        println!("{call}: {count} calls, {}", Told::all(&told));
    }
}

/// What a session with a call that fails told.
#[derive(Debug, Clone, Copy)]
struct Told {
    /// Whether the error ended it.
    stopped: bool,
    /// Trials that it said were finished.
    finished: usize,
}

impl Told {
    fn all(told: &[Self]) -> String {
        let stopped = told.iter().filter(|told| told.stopped).count();
        let kept: usize = told.iter().map(|told| told.finished).sum();
        format!("{} sessions, {stopped} ended by the error, {kept} finished trials, none lost", told.len())
    }
}

/// Sessions in which one call of the tuner fails, or it and all that follow for a while.
fn failing(sessions: usize, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut session = |_| {
        let (call, most) = CALLS.choose(&mut rng).unwrap();
        let error = ERRORS.choose(&mut rng).unwrap();
        let first = rng.random_range(1..=*most);
        let last = first + if rng.random() { 0 } else { rng.random_range(1..=3) };
        with(&format!("inject={call}:error={error}:when={first}..{last}"))
    };
    let told: Vec<Told> = (0..sessions).map(&mut session).collect();
    format!("errors: {}", Told::all(&told))
}

/// A session with what strace injects; it loses no finished trial, and goes on.
fn with(inject: &str) -> Told {
    let fake = Fake::new(ENGINE);
    let folder = folder(fake.home());
    let log = fake.home().with_extension("calls");
    let output = ended_after_five_trials(trace::traced(&begun(&fake, &folder), &log, &["-e", inject]), &folder);
    std::fs::remove_file(log).unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("panicked"), "{inject}: {said}");
    assert!(output.status.code().is_some_and(|code| code != 101), "{inject}: {:?} {said}", output.status);
    let finished: BTreeSet<u64> = said.lines().filter_map(finished_trial).collect();
    let began = folder.join("session.toml").exists();
    assert!(began || finished.is_empty(), "{inject}: the session is gone: {said}");
    goes_on(if began { resumed(&folder) } else { begun(&fake, &folder) }, &folder, &finished, inject);
    Told { stopped: output.status.code() != Some(130), finished: finished.len() }
}

/// Runs a session until five trials are recorded, or it ends.
fn ended_after_five_trials(mut session: Command, folder: &Path) -> Output {
    let mut child = session.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    until("five trials", || trials(folder).len() >= 5 || child.try_wait().unwrap().is_some());
    send(&child, Signal::SIGINT);
    let output = child.wait_with_output().unwrap();
    nothing_is_left(folder);
    output
}
