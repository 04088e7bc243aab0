//! `hpl-tune calibrate`: this machine's rates into `machine.toml`.

use std::io::Write;
use std::time::Instant;

use hpl::measure::probe::ProbeError;
use hpl::program::files::check_writable;
use objectives::calibration::{CalibrationError, CalibrationOptions, calibrate as measure};
use space::domain::largest_n;

use crate::cli::CalibrateArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::search::budget::LONGEST_CALIBRATION_S;
use crate::search::progress::Progress;

/// Shortest and longest calibration in seconds.
const LIMITS_S: std::ops::RangeInclusive<f64> = 2.0..=LONGEST_CALIBRATION_S;

/// Measures this machine and writes what was found; warnings go to standard error. The exit code is that of a failed residual where the
/// residual of each run failed.
///
/// # Errors
/// A budget outside 2 s to 60 s, kernels that cannot be used, a machine too busy or small to measure, or a file
/// that cannot be written.
pub fn calibrate(args: &CalibrateArgs) -> anyhow::Result<u8> {
    let budget_s = args.budget.as_secs_f64();
    if !LIMITS_S.contains(&budget_s) {
        return Err(bad_input(format!("--budget {budget_s} s: a calibration takes between 2s and 60s")));
    }
    check_writable(&args.out).map_err(RecordError::write(&args.out))?;
    let started = Instant::now();
    let mut progress = Progress::new(budget_s, args.quiet);
    progress.phase("calibrating");
    let mut last = "";
    let mut tell = |progress: &mut Progress, now: &'static str, share: f64| {
        if now != last {
            last = now;
            progress.now(now);
            // A session reads it; without one it is for nobody.
            let _ = if args.tell { writeln!(std::io::stdout(), "{now}") } else { Ok(()) };
        }
        progress.tick(budget_s * (1.0 - share));
    };
    tell(&mut progress, "kernels that are installed", 0.0);
    let (kernels, why) = hpl::backend::host::kernels::resolve(&args.blas).map_err(bad_input)?;
    let kernels_s = started.elapsed().as_secs_f64();
    let facts = hpl::machine::host::facts();
    let options = CalibrationOptions {
        kernels: kernels.clone(),
        cores: facts.cores_allowed.clone(),
        budget_s: budget_s - kernels_s,
        max_n: largest_n(facts.memory_available_bytes, 1, facts.cores_allowed.len(), 512, 1),
        origin: "hpl-tune calibrate".to_owned(),
    };
    let done = measure(&options, &mut |now, share| tell(&mut progress, now, share));
    progress.end();
    let mut calibration = done.map_err(|error| bad_input(of_whole_budget(error, kernels_s)))?;
    let host = &mut calibration.machine.host;
    // `kernels` is what a later run needs to load them; which version they were belongs to the origin.
    host.origin = format!("{}, kernels {} ({why})", host.origin, host.kernels);
    host.kernels = kernels.to_string();
    for warning in &calibration.warnings {
        progress.warn(warning);
    }
    let text = calibration.machine.to_toml()?;
    replace_file(&args.out, text.as_bytes())?;
    if !args.quiet {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}\nwritten to {}", args.out.display())?;
    }
    Ok(code(calibration.runs, calibration.runs_failed))
}

/// `error` in seconds of the budget that was asked for, of which the choice of the kernels took `kernels_s`.
fn of_whole_budget(error: CalibrationError, kernels_s: f64) -> CalibrationError {
    match error {
        CalibrationError::Probe(ProbeError::TooShort { budget_s, enough_s }) => {
            ProbeError::TooShort { budget_s: budget_s + kernels_s, enough_s: enough_s + kernels_s }.into()
        }
        other => other,
    }
}

/// The exit code after so many runs, of which `failed` had a wrong result.
fn code(runs: usize, failed: usize) -> u8 {
    if failed > 0 && failed == runs { exit::RESIDUAL } else { exit::DONE }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use space::KernelChoice;

    use super::*;

    #[test]
    fn wrong_results_alone_are_told_by_the_exit_code() {
        assert_eq!([(0, 0), (40, 0), (40, 39)].map(|(runs, failed)| code(runs, failed)), [exit::DONE; 3]);
        assert_eq!(code(40, 40), exit::RESIDUAL);
    }

    /// Of 2 s it was said that "1.2 s are too short", and what was to be enough left no time for the choice of the kernels.
    #[test]
    fn a_budget_that_is_too_short_is_told_as_it_was_asked_for() {
        let short = ProbeError::TooShort { budget_s: 1.25, enough_s: 3.25 };
        let told = of_whole_budget(short.into(), 0.75).to_string();
        assert_eq!(told, "calibration: 2.0 s are too short to calibrate this machine; give it at least 4.0 s");
    }

    /// What was measured was lost, as it is printed once it is written.
    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_anything_is_measured() {
        let budget = Duration::from_secs(20);
        // A folder in which nobody can make a file.
        let out = "/proc/machine.toml".into();
        let begun = Instant::now();
        let args = CalibrateArgs { out, budget, blas: KernelChoice::Builtin, quiet: true, tell: false };
        let refused = calibrate(&args).unwrap_err().to_string();
        assert!(refused.starts_with("cannot write /proc/machine.toml: "), "{refused}");
        assert!(begun.elapsed() < budget / 4, "{:?}", begun.elapsed());
    }
}
