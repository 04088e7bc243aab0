//! `kill -9` at any moment: no finished trial is lost, nothing is left running, the session goes on.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use objectives::real::TRIAL_VARIABLE;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use tuner::record::{Outcome, journal};

use crate::engine::{Fake, GOOD};
use crate::hostile::until;
use crate::program::{hpl_tune, machine_toml};

/// Pauses before each kill, in milliseconds: spread over start, runs of 0.1 s and the moments between them.
const PAUSES_MS: [u64; 20] =
    [130, 1010, 470, 250, 880, 90, 640, 1370, 330, 560, 720, 180, 1230, 410, 990, 60, 820, 290, 1110, 530];

#[test]
fn killed_three_times_nothing_is_lost() {
    killed(&PAUSES_MS[..3]);
}

#[test]
#[ignore = "20 kills, half a minute; run by hand"]
fn killed_twenty_times_nothing_is_lost() {
    killed(&PAUSES_MS);
}

#[test]
fn killed_at_twenty_random_moments_a_fast_engine_loses_nothing() {
    killed_at_random(20, 7);
}

#[test]
#[ignore = "1000 kills, about ten minutes; run by hand"]
fn killed_at_a_thousand_random_moments_a_fast_engine_loses_nothing() {
    killed_at_random(1000, 11);
}

/// What was under way is taken from the journal: another proposal is put there in the place of the strategy's, which would propose
/// the same anew. Killed again, it has failed.
#[test]
fn a_proposal_that_was_killed_is_run_once_more() {
    let fake = Fake::new(&format!("sleep 1\n{GOOD}"));
    let folder = fake.folder();
    let path = folder.join("journal.jsonl");
    let under_way = || journal::read(&path).map_or(Vec::new(), |contents| contents.under_way);
    let killed = |mut command: std::process::Command, wanted: &dyn Fn(&journal::UnderWay) -> bool| {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        until("a trial under way", || under_way().first().is_some_and(wanted));
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&folder);
        under_way().remove(0)
    };
    let first = killed(fake.session(), &|trial| trial.begun.identity.trial == 2);
    let (nb, other) = (first.begun.candidate.hpl.nb, if first.begun.candidate.hpl.nb == 64 { 96 } else { 64 });
    assert!(first.starts == 1 && first.begun.expected_s > 0.0);
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, last) = text.trim_end().rsplit_once('\n').unwrap();
    let changed = last.replace(&format!("\"nb\":{nb}"), &format!("\"nb\":{other}"));
    assert_ne!(last, changed);
    std::fs::write(&path, format!("{before}\n{changed}\n")).unwrap();
    let again = killed(resumed(&folder), &|trial| trial.starts == 2);
    let of = |trial: &journal::UnderWay| (trial.begun.identity.trial, trial.begun.candidate.hpl.nb);
    assert_eq!(of(&again), (2, other));
    // Twice is enough: perhaps it is what brings the machine down.
    let rows = crate::engine::run_until(&mut resumed(&folder), &folder, 4);
    assert_eq!((rows[2].trial, rows[2].nb, rows[2].outcome, rows.len()), (2, other, Outcome::Killed, 4));
    assert_eq!(rows[2].failure_detail.as_deref(), Some("killed: the end of the session, each time that it ran"));
    assert!(rows[3].trial == 3 && rows[3].passed, "{:?}", rows[3]);
    let stopped = under_way();
    assert!(stopped.iter().all(|trial| (trial.begun.identity.trial, trial.kills()) == (4, 0)), "{stopped:?}");
}

/// Kills sessions of an engine that takes milliseconds at random moments, from the start of the program on. Every run
/// that came to its end is in the record once, and was not run again.
fn killed_at_random(kills: usize, seed: u64) {
    // Runs scatter, or a search of so small a space would soon have nothing left to learn. The engine's own log of the runs that
    // it finished: the folder of the trial.
    let good = GOOD.replace("$2 / 8))", "$2 / 8 + number * 37 % 41))");
    assert_ne!(good, GOOD);
    let fake = Fake::new(&format!("{good}\nbasename \"$PWD\" >> ../../../finished.log"));
    let folder = fake.folder();
    let log = folder.parent().unwrap().join("finished.log");
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut recorded = BTreeSet::new();
    let (mut sessions, mut never_began) = (0, 0);
    for kill in 0..kills {
        let mut command = if folder.join("session.toml").exists() { resumed(&folder) } else { fake.session() };
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Most of the moments are while trials run; the start takes some 50 ms.
        std::thread::sleep(Duration::from_millis(rng.random_range(0..400)));
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&folder);
        sessions += 1;
        never_began += usize::from(!folder.join("session.toml").exists());
        let rows: BTreeSet<u64> = trials(&folder).into_iter().collect();
        assert!(rows.is_superset(&recorded), "kill {kill}: a recorded trial is gone");
        recorded = rows;
    }
    goes_on(if folder.join("session.toml").exists() { resumed(&folder) } else { fake.session() }, &folder);
    let rows = trials(&folder);
    let distinct: BTreeSet<u64> = rows.iter().copied().collect();
    assert_eq!(distinct.len(), rows.len(), "a trial is recorded twice");
    let finished = std::fs::read_to_string(log).unwrap();
    let finished: Vec<u64> = finished.lines().map(|line| line.parse().unwrap()).collect();
    let once: BTreeSet<u64> = finished.iter().copied().collect();
    // A kill in the millisecond between the engine's last line and the guard's word that it has ended.
    let again = finished.len() - once.len();
    assert!(again <= kills / 10, "{again} runs that had finished were run again");
    let lost: Vec<&u64> = once.iter().filter(|trial| !distinct.contains(trial)).collect();
    // The run that the last kill ended may have finished after it.
    assert!(lost.len() <= 1 && lost.iter().all(|trial| **trial >= *distinct.last().unwrap()), "lost: {lost:?}");
    println!(
        "{sessions} kills, {never_began} before the session began, {} trials, none lost, {again} run again",
        rows.len()
    );
}

fn killed(pauses_ms: &[u64]) {
    let root = tempfile::tempdir().unwrap();
    let folder = root.path().join("killed session");
    // A busy machine may have killed it before it had begun.
    let session = || {
        if folder.join("session.toml").exists() {
            return resumed(&folder);
        }
        let mut command = hpl_tune();
        command.args(["--budget", "90s", "--blas", "builtin", "--n", "1500", "--machine"]);
        command.arg(machine_toml()).arg("--out").arg(&folder);
        command
    };
    let mut recorded = BTreeSet::new();
    for (kill, pause_ms) in pauses_ms.iter().enumerate() {
        let mut command = session();
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(*pause_ms));
        child.kill().unwrap();
        child.wait().unwrap();
        nothing_is_left(&folder);
        let rows: BTreeSet<u64> = trials(&folder).into_iter().collect();
        assert!(rows.is_superset(&recorded), "kill {kill}: a recorded trial is gone");
        recorded = rows;
    }
    let finished = finished_runs(&folder);
    goes_on(session(), &folder);
    let rows = trials(&folder);
    let distinct: BTreeSet<u64> = rows.iter().copied().collect();
    assert_eq!(distinct.len(), rows.len(), "a trial is recorded twice");
    assert!(distinct.is_superset(&finished), "a run that had finished is not in the record");
    assert!(distinct.len() > recorded.len(), "the session did not go on");
}

pub(crate) fn trials(folder: &Path) -> Vec<u64> {
    let path = folder.join("journal.jsonl");
    if !path.exists() {
        return Vec::new();
    }
    journal::read(&path).unwrap().rows.iter().map(|row| row.trial).collect()
}

/// Trials whose run came to its own end, recorded or not.
fn finished_runs(folder: &Path) -> BTreeSet<u64> {
    let Ok(entries) = std::fs::read_dir(folder.join("trials")) else { return BTreeSet::new() };
    let number = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        path.join("result.json").exists().then(|| path.file_name().unwrap().to_str().unwrap().parse().unwrap())
    };
    entries.filter_map(number).collect()
}

/// Every process that has this folder on its command line, or belongs to a trial in it, is gone soon.
pub(crate) fn nothing_is_left(folder: &Path) {
    let begun = Instant::now();
    while let Some(process) = alive(folder) {
        assert!(begun.elapsed() < Duration::from_secs(60), "still running: {process}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn alive(folder: &Path) -> Option<String> {
    let name = folder.to_str().unwrap();
    // Other engines, and what they start, say nothing of it on their command lines.
    let absolute = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let mark = format!("{TRIAL_VARIABLE}={}/", absolute.display());
    let mut processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let process = entry.ok()?.path();
        let line = std::fs::read(process.join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        let environment = std::fs::read(process.join("environ")).unwrap_or_default();
        let is_of_trial = environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(mark.as_bytes()));
        (line.contains(name) || is_of_trial).then_some(line)
    });
    processes.next()
}

/// What an engine had left behind was not seen.
#[test]
fn a_process_of_a_trial_is_seen_whatever_its_command_line_says() {
    let folder = tempfile::tempdir().unwrap();
    let mut left = std::process::Command::new("sleep");
    let trial = folder.path().canonicalize().unwrap().join("trials/0");
    let mut left = left.arg("1000").env(TRIAL_VARIABLE, trial).spawn().unwrap();
    // Right after its start a process has neither a command line nor variables.
    let begun = Instant::now();
    let mut seen = None;
    while seen.is_none() && begun.elapsed() < Duration::from_secs(10) {
        seen = alive(folder.path()).filter(|line| line.starts_with("sleep"));
    }
    left.kill().unwrap();
    left.wait().unwrap();
    assert!(seen.is_some());
    nothing_is_left(folder.path());
}

fn resumed(folder: &Path) -> std::process::Command {
    let mut command = hpl_tune();
    command.arg("--resume").arg(folder);
    command
}

/// Lets a session add to its record, or come to its end, then kills it.
fn goes_on(mut session: std::process::Command, folder: &Path) {
    let before = trials(folder).len();
    let mut child = session.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Beyond the runs that had finished and are only recorded now.
    let is_over = |child: &mut std::process::Child| child.try_wait().unwrap().is_some_and(|status| status.success());
    until("more trials", || trials(folder).len() > before + 1 || is_over(&mut child));
    // It may be gone already.
    let _ = child.kill();
    child.wait().unwrap();
    nothing_is_left(folder);
}
