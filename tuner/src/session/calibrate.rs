//! The calibration of a session: `hpl-tune calibrate` as a guarded child, so that a BLAS library that crashes
//! on loading, or hangs, is a message and not the end of the night.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, anyhow};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::Exit;
use objectives::real::{GuardRecord, guard};
use space::KernelChoice;

use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::store::Store;
use crate::search::budget::{Budget, LONGEST_CALIBRATION_S};
use crate::search::interrupt::Interrupt;
use crate::search::progress::Progress;

/// How often the child is looked at.
const POLL: Duration = Duration::from_millis(20);

/// Seconds that a calibration may take beyond its own budget before it is ended.
const PATIENCE_S: f64 = 10.0;

/// Measures this machine with `kernels` into the file `out`; `false` when a signal asked to stop.
///
/// # Errors
/// When the child fails, with the last lines that it printed.
pub fn in_child(
    program: &Path,
    kernels: &KernelChoice,
    out: &Path,
    store: &mut Store,
    budget: &Budget,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    progress.phase("calibrating");
    let folder = store.folder().calibration();
    std::fs::create_dir_all(&folder).map_err(RecordError::write(&folder))?;
    let mut first = None;
    for seconds in tries_s(budget.calibration_s()) {
        // Another try that takes all that is left is worth nothing.
        if first.is_some() && seconds > budget.left_s() {
            break;
        }
        let mut child = start(program, kernels, out, &folder, seconds)?;
        if !wait(&mut child, &folder, store, budget, progress, interrupt)? {
            return Ok(false);
        }
        let said = printed(&folder.join("stderr.txt"));
        if out.exists() {
            said.lines().for_each(|line| progress.line(line));
            return Ok(true);
        }
        let exit = GuardRecord::read(&folder).ok().and_then(|record| record.exit);
        let refused = exit == Some(Exit::Code(i32::from(exit::BAD_INPUT)));
        if !refused {
            return Err(failed(kernels, exit, &said));
        }
        // What the first try said is why there were others.
        first.get_or_insert((exit, said));
    }
    let (exit, said) = first.unwrap_or_default();
    Err(failed(kernels, exit, &said))
}

/// Seconds of each try, of which the first may take `first_s`: a busy or large machine may need more than its share of a small budget,
/// which is worth two more tries of twice the time each. The longest calibration is made once more, as what was in its way may be gone.
fn tries_s(first_s: f64) -> impl Iterator<Item = f64> {
    let tries = if first_s < LONGEST_CALIBRATION_S { 3 } else { 2 };
    [1.0, 2.0, 4.0].into_iter().take(tries).map(move |times| (times * first_s).min(LONGEST_CALIBRATION_S))
}

/// What the child has printed into the file at `path` so far. A library may print bytes that are no UTF-8.
fn printed(path: &Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

/// Why there is no calibration of `kernels`, by how the child ended and what it `said`.
fn failed(kernels: &KernelChoice, exit: Option<Exit>, said: &str) -> anyhow::Error {
    let advice = match kernels {
        KernelChoice::Builtin => "raise --budget, or give rates with --machine",
        _ => "raise --budget, name the kernels with --blas builtin, or give rates with --machine",
    };
    // What the calibration refused is as its user asked; it says so itself.
    let said = said.trim().trim_start_matches("hpl-tune: ");
    match exit {
        Some(Exit::Code(code)) if code == i32::from(exit::BAD_INPUT) => bad_input(format!("{said}; {advice}")),
        Some(exit) => anyhow!("the calibration {exit}: {said}; {advice}"),
        None => anyhow!("the calibration left no record: {said}; {advice}"),
    }
}

fn start(program: &Path, kernels: &KernelChoice, out: &Path, folder: &Path, seconds: f64) -> anyhow::Result<Child> {
    Command::new(program)
        .args([guard::VERB, "--parent", &std::process::id().to_string()])
        .args(["--deadline-s", &(seconds + PATIENCE_S).to_string(), "--folder"])
        .arg(folder)
        .arg("--")
        .arg(program)
        .args(["calibrate", "--quiet", "--tell", "--budget", &format!("{seconds}s")])
        .args(["--blas", &kernels.to_string(), "--out"])
        .arg(out)
        // A Ctrl-C is for the tuner, which decides what becomes of the calibration.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))
}

fn wait(
    child: &mut Child,
    folder: &Path,
    store: &mut Store,
    budget: &Budget,
    progress: &mut Progress,
    interrupt: &Interrupt,
) -> anyhow::Result<bool> {
    while child.try_wait().context("cannot wait for the calibration")?.is_none() {
        if interrupt.asked() {
            // The guard ends what it started; it was not waited for, so its id is its own.
            let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
            child.wait().context("cannot wait for the calibration")?;
            return Ok(false);
        }
        let told = printed(&folder.join("stdout.txt"));
        told.lines().next_back().into_iter().for_each(|now| progress.now(now));
        progress.tick(budget.left_s());
        store.heartbeat(budget.spent_s());
        std::thread::sleep(POLL);
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_calibration_takes_no_longer_than_the_longest() {
        let tries = |first_s| tries_s(first_s).collect::<Vec<_>>();
        assert_eq!(tries(12.0), [12.0, 24.0, 48.0]);
        assert_eq!(tries(40.0), [40.0, 60.0, 60.0]);
        assert_eq!(tries(LONGEST_CALIBRATION_S), [60.0, 60.0]);
    }

    /// With a library that complained in Latin-1 nothing was said of why there was no calibration.
    #[test]
    fn what_a_calibration_says_is_told_whatever_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("stderr.txt");
        assert_eq!(printed(&path), "");
        std::fs::write(&path, b"m\xe9moire\nhpl-tune: 2.0 s are too short\n").unwrap();
        assert_eq!(printed(&path), "m\u{fffd}moire\nhpl-tune: 2.0 s are too short\n");
    }

    #[test]
    fn a_refusal_is_told_as_the_calibration_said_it() {
        let refused = Some(Exit::Code(i32::from(exit::BAD_INPUT)));
        let error = failed(&KernelChoice::Auto, refused, "hpl-tune: calibration: 6.0 s are too short\n");
        assert!(error.to_string().starts_with("calibration: 6.0 s are too short; raise --budget"), "{error}");
        assert!(error.to_string().contains("--blas builtin"), "{error}");
        assert_eq!(exit::code(&error), exit::BAD_INPUT);
        assert!(failed(&KernelChoice::Auto, None, "").to_string().contains("left no record"));
        let builtin = failed(&KernelChoice::Builtin, refused, "hpl-tune: calibration: 6.0 s are too short\n");
        assert!(!builtin.to_string().contains("--blas"), "{builtin}");
    }
}
