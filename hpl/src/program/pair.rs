//! Windows of two runs, measured alternately in one process: the ratio of their rates, unaffected by drift of the machine.

use std::io;
use std::path::Path;

use space::Candidate;
use space::windows::{PAIR_SCHEMA, PairResult, WindowsResult};

use super::job::{Job, RankReport};
use super::memory::matrix_lens;
use super::windows::MeasurementStart;
use super::{Ranks, RunError, RunOptions, Runner};
use crate::backend::host::kernels::RankKernels;
use crate::plan::windows::{RateRatio, Window, WindowTimes, WindowsReport, in_turn};
use crate::program::files;

/// Measures windows of a candidate and of a reference alternately, on threads of this process.
///
/// # Errors
/// [`RunError`]; a failed check is no error.
pub fn measure_pair(
    candidate: &Candidate,
    reference: &Candidate,
    options: &RunOptions<'_>,
) -> Result<PairResult, RunError> {
    Runner::new(&candidate.engine.kernels)?.measure_pair_on(&Ranks::threads(), [candidate, reference], options)
}

/// Writes the result of a pair as JSON, complete or not at all.
///
/// # Errors
/// Those of [`files::write_atomically`].
pub fn write_pair(path: &Path, result: &PairResult) -> io::Result<()> {
    files::write_atomically(path, &serde_json::to_vec(result)?)
}

/// The result of a pair whose steps have the ratio `found`, from the windows of both.
pub fn pair_of(found: RateRatio, candidate: WindowsResult, reference: WindowsResult) -> PairResult {
    PairResult {
        pair_schema_version: PAIR_SCHEMA,
        predicted_log_ratio: with_substitution(found.log_ratio, candidate.predicted_trsv_s, &reference),
        predicted_log_ratio_sd: found.sd,
        candidate,
        reference,
    }
}

/// The logarithm of the ratio of the rates of two whole runs, from that of their steps alone: with the back substitution of the
/// candidate, `trsv_s` seconds, and the predicted times of the `reference`.
fn with_substitution(log_ratio: f64, trsv_s: f64, reference: &WindowsResult) -> f64 {
    let steps_s = (reference.predicted_time_s - reference.predicted_trsv_s) / log_ratio.exp();
    (reference.predicted_time_s / (steps_s + trsv_s)).ln()
}

/// One of the two runs, with the measurements of its windows so far.
struct Side<'a> {
    candidate: Candidate,
    kernels: RankKernels<'a>,
    measured: Option<(WindowsReport, Vec<RankReport>)>,
}

impl Runner {
    /// Measures windows of a candidate and of a reference of the same order alternately, with the loaded kernels.
    ///
    /// Each window is measured before and after its counterpart, so that a steady drift cancels. The ranks of both runs use
    /// the same memory.
    ///
    /// # Errors
    /// [`RunError::Orders`] if N differs, and the errors of a run of either; a failed check is no error.
    pub fn measure_pair_on(
        &self,
        ranks: &Ranks,
        pair: [&Candidate; 2],
        options: &RunOptions<'_>,
    ) -> Result<PairResult, RunError> {
        let measurement = MeasurementStart::now();
        let [n, reference_n] = pair.map(|candidate| candidate.hpl.n);
        if n != reference_n || n == 0 {
            return Err(RunError::Orders { n, reference_n });
        }
        let [a, b] = [self.side(ranks, pair[0], options.force)?, self.side(ranks, pair[1], options.force)?];
        [&a, &b].into_iter().for_each(|side| ranks.reserve(&matrix_lens(&side.candidate)));
        let hpl = [a.candidate.hpl, b.candidate.hpl];
        let mut sides = [a, b];
        let found = in_turn(hpl.each_ref(), |side, window| sides[side].measure(ranks, window))?;
        let result = |side: Side<'_>| {
            let measured = side.measured.expect("a window was measured");
            measurement.result(side.candidate, measured, options.threshold)
        };
        let [candidate, reference] = sides.map(result);
        Ok(pair_of(found.expect("an order above 0 has windows"), candidate, reference))
    }

    fn side(&self, ranks: &Ranks, candidate: &Candidate, force: bool) -> Result<Side<'_>, RunError> {
        let candidate = self.accept(ranks, candidate, force)?;
        let kernels = ranks.kernels(&self.kernels, &candidate.engine.rank_kernels)?;
        Ok(Side { candidate, kernels, measured: None })
    }
}

impl Side<'_> {
    /// Measures one more window; returns its times.
    fn measure(&mut self, ranks: &Ranks, window: Window) -> Result<WindowTimes, RunError> {
        let (outcome, of_ranks) = ranks.run_on_all(&self.candidate, &Job::Windows(vec![window]), &self.kernels, &())?;
        let report = outcome.windows();
        let times = report.windows[0].clone();
        match &mut self.measured {
            None => self.measured = Some((report, of_ranks)),
            Some((all, of_all)) => {
                all.add(report);
                of_all.extend(of_ranks);
            }
        }
        Ok(times)
    }
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams, KernelChoice};

    use super::*;
    use crate::plan::windows::Windows;

    fn candidate(n: usize, nb: usize, (p, q): (usize, usize), threads: usize) -> Candidate {
        let hpl = HplParams { nb, depth: 1, ..HplParams::baseline(n, p, q) };
        Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
    }

    #[test]
    fn both_are_measured_alternately_in_the_same_memory() {
        let runner = Runner::new(&KernelChoice::Builtin).unwrap();
        let options = RunOptions { threshold: 16.0, force: false, watch: &() };
        let (a, b) = (candidate(1200, 32, (1, 1), 2), candidate(1200, 48, (2, 1), 1));
        let ranks = Ranks::threads();
        let found = runner.measure_pair_on(&ranks, [&a, &b], &options).unwrap();
        assert!(found.passed() && found.predicted_log_ratio.abs() < 5.0 && found.predicted_log_ratio_sd > 0.0);
        assert_eq!(found.candidate.windows.len(), found.reference.windows.len());
        assert!(found.candidate.windows.len() >= 4, "{found:?}");
        let phases = |of: &space::WindowsResult| of.phases.len();
        let steps = |of: &space::WindowsResult| of.windows.iter().map(|window| window.steps).sum::<usize>();
        assert_eq!(phases(&found.candidate), steps(&found.candidate));
        assert_eq!(phases(&found.reference), 2 * steps(&found.reference));
        assert!(found.candidate.wall_s >= found.candidate.windows.iter().flat_map(|w| &w.step_s).sum());
    }

    #[test]
    fn the_back_substitution_is_part_of_the_ratio() {
        let runner = Runner::new(&KernelChoice::Builtin).unwrap();
        let options = RunOptions { threshold: 16.0, force: false, watch: &() };
        let measured =
            runner.measure_windows_on(&Ranks::threads(), &candidate(64, 32, (1, 1), 1), &Windows::Auto, &options);
        let reference = WindowsResult { predicted_time_s: 10.0, predicted_trsv_s: 1.0, ..measured.unwrap() };
        let equal_steps = with_substitution(0.0, 3.0, &reference);
        assert!((equal_steps - (10.0_f64 / 12.0).ln()).abs() < 1e-12);
        let equal_parts = with_substitution(0.1, 1.0 / 0.1_f64.exp(), &reference);
        assert!((equal_parts - 0.1).abs() < 1e-12);
    }

    #[test]
    fn any_order_has_pairs_and_different_orders_are_refused() {
        let runner = Runner::new(&KernelChoice::Builtin).unwrap();
        let options = RunOptions { threshold: 16.0, force: false, watch: &() };
        for n in [1, 31, 33, 100] {
            let pair = [candidate(n, 32, (1, 2), 1), candidate(n, 16, (1, 1), 1)];
            let found = runner.measure_pair_on(&Ranks::threads(), [&pair[0], &pair[1]], &options).unwrap();
            assert!(found.passed() && found.predicted_log_ratio.is_finite(), "{found:?}");
        }
        let pair = [candidate(100, 32, (1, 2), 1), candidate(101, 32, (1, 2), 1)];
        let refused = runner.measure_pair_on(&Ranks::threads(), [&pair[0], &pair[1]], &options).unwrap_err();
        assert!(refused.to_string().contains("N=100") && refused.to_string().contains("101"), "{refused}");
    }
}
