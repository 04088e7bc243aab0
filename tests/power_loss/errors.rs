//! Calls of the system that fail: a full disk, a quota, a broken disk, a server that has forgotten a file.

use std::collections::BTreeSet;
use std::process::Stdio;

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

/// Sessions in which one call of the tuner fails, or it and all that follow for a while.
fn failing(sessions: usize, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (mut stopped, mut kept) = (0, 0);
    for _ in 0..sessions {
        let fake = Fake::new(ENGINE);
        let folder = folder(fake.home());
        let (call, most) = CALLS.choose(&mut rng).unwrap();
        let error = ERRORS.choose(&mut rng).unwrap();
        let first = rng.random_range(1..=*most);
        let last = first + if rng.random() { 0 } else { rng.random_range(1..=3) };
        let inject = format!("inject={call}:error={error}:when={first}..{last}");
        let what = &inject;
        let log = fake.home().with_extension("calls");
        let mut command = trace::traced(&begun(&fake, &folder), &log, &["-e", &inject]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        until("five trials", || trials(&folder).len() >= 5 || child.try_wait().unwrap().is_some());
        send(&child, Signal::SIGINT);
        let output = child.wait_with_output().unwrap();
        std::fs::remove_file(log).unwrap();
        nothing_is_left(&folder);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!said.contains("panicked"), "{what}: {said}");
        assert!(output.status.code().is_some_and(|code| code != 101), "{what}: {:?} {said}", output.status);
        let finished: BTreeSet<u64> = said.lines().filter_map(finished_trial).collect();
        stopped += usize::from(output.status.code() != Some(130));
        kept += finished.len();
        let began = folder.join("session.toml").exists();
        assert!(began || finished.is_empty(), "{what}: the session is gone: {said}");
        goes_on(if began { resumed(&folder) } else { begun(&fake, &folder) }, &folder, &finished, what);
    }
    format!("errors: {sessions} sessions, {stopped} ended by the error, {kept} finished trials, none lost")
}
