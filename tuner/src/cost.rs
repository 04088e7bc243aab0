//! What a run will cost in wall-clock time: the model's word, scaled by what runs really took.

use objectives::predict::Predictor;
use space::Candidate;

use crate::record::{Fidelity, Row};
use crate::report::stats::median;

/// Fixed part of a run's wall clock (starting the process and its threads), in seconds.
const START_S: f64 = 0.1;

/// Share that generation and check add to the solve time, until runs have told better.
const CHECK_SHARE: f64 = 0.1;

/// Standard deviation of the log cost of a run about the model's word, before any run.
const MODEL_SPREAD: f64 = 0.15;

/// Standard deviation of the log cost between runs of one candidate, as believed before there are repeats.
const RUN_SPREAD: f64 = 0.03;

/// Repeats that this belief is worth.
const BELIEF: f64 = 3.0;

/// How much less sure the cost is at another N, per unit of ln N.
const SPREAD_BY_N: f64 = 0.1;

/// Standard deviations between the expected cost and one that is hardly exceeded: one run in forty takes longer.
const HARDLY: f64 = 2.0;

/// Wall-clock seconds of a run by the model alone.
pub fn model_s(predictor: &Predictor, candidate: &Candidate) -> f64 {
    START_S + predictor.time_s(candidate) * (1.0 + CHECK_SHARE)
}

/// The model corrected by the finished runs of a session.
pub struct CostEstimate<'a> {
    predictor: &'a Predictor,
    measured: Vec<Measured>,
    /// Standard deviation of the log cost between runs of one candidate.
    run_spread: f64,
}

/// A finished full run.
struct Measured {
    candidate: Candidate,
    /// Measured over modelled cost.
    ratio: f64,
}

impl<'a> CostEstimate<'a> {
    /// Learns from the rows of a session.
    pub fn new(rows: &[Row], predictor: &'a Predictor) -> Self {
        let full = rows.iter().filter(|row| row.passed && row.fidelity == Fidelity::Full);
        let measured = full.map(|row| {
            let candidate = row.candidate();
            Measured { ratio: row.wall_s / model_s(predictor, &candidate), candidate }
        });
        let measured: Vec<Measured> = measured.collect();
        Self { predictor, run_spread: run_spread(&measured), measured }
    }

    /// Expected wall-clock seconds of a run: by its own earlier runs at any N, else by those of all candidates.
    pub fn of(&self, candidate: &Candidate) -> f64 {
        median(&self.ratios(candidate).1).unwrap_or(1.0) * model_s(self.predictor, candidate)
    }

    /// Wall-clock seconds that a run hardly exceeds, by the spread of the runs that [`of`](Self::of) goes by: the fewer
    /// they are and the farther their N, the more.
    pub fn at_most(&self, candidate: &Candidate) -> f64 {
        let (own, ratios) = self.ratios(candidate);
        let spread = if own { self.run_spread } else { spread(&ratios).max(self.run_spread) };
        let count = ratios.len() as f64;
        let sd = match (median(&ratios), self.nearest(candidate)) {
            (Some(_), Some(distance)) => (spread * (1.0 + 1.0 / count).sqrt()).hypot(SPREAD_BY_N * distance),
            _ => MODEL_SPREAD,
        };
        // A machine that slows down does so for the next run too.
        let lately = ratios.last().copied().filter(|_| own).unwrap_or(0.0);
        let centre = median(&ratios).unwrap_or(1.0).max(lately);
        centre * (HARDLY * sd).exp() * model_s(self.predictor, candidate)
    }

    /// Measured over modelled cost of the candidate's own runs at any N, and whether there are such; else those of all.
    fn ratios(&self, candidate: &Candidate) -> (bool, Vec<f64>) {
        let own: Vec<f64> =
            self.measured.iter().filter(|run| same(&run.candidate, candidate)).map(|run| run.ratio).collect();
        if own.is_empty() { (false, self.measured.iter().map(|run| run.ratio).collect()) } else { (true, own) }
    }

    /// Distance in ln N to the nearest run.
    fn nearest(&self, candidate: &Candidate) -> Option<f64> {
        let distance = |run: &Measured| (run.candidate.hpl.n as f64 / candidate.hpl.n as f64).ln().abs();
        self.measured.iter().map(distance).reduce(f64::min)
    }
}

/// Whether two candidates differ in nothing but N.
fn same(a: &Candidate, b: &Candidate) -> bool {
    a.engine == b.engine && space::HplParams { n: b.hpl.n, ..a.hpl } == b.hpl
}

/// Standard deviation of the log cost between runs of the same candidate at the same N, pooled over all that were
/// repeated and over [`BELIEF`].
fn run_spread(measured: &[Measured]) -> f64 {
    let mut left: Vec<&Measured> = measured.iter().collect();
    let (mut squares, mut free) = (BELIEF * RUN_SPREAD * RUN_SPREAD, BELIEF);
    while let Some(first) = left.first().map(|run| &run.candidate) {
        let (group, others): (Vec<&Measured>, _) = left.iter().partition(|run| run.candidate == *first);
        let logs: Vec<f64> = group.iter().map(|run| run.ratio.ln()).collect();
        squares += squared_deviations(&logs);
        free += logs.len() as f64 - 1.0;
        left = others;
    }
    (squares / free).sqrt()
}

/// Standard deviation of the logarithms of positive values; 0 for fewer than two.
fn spread(values: &[f64]) -> f64 {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    (squared_deviations(&logs) / (logs.len() as f64 - 1.0).max(1.0)).sqrt()
}

fn squared_deviations(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;
    use crate::schedule::tests::predictor;

    /// Runs of NB 64 + 8·`number` that took these multiples of the model's time.
    fn rows(runs: &[(u64, f64)]) -> Vec<Row> {
        let predictor = predictor();
        let row = |&(number, ratio): &(u64, f64)| {
            let row = row(number);
            Row { wall_s: ratio * model_s(&predictor, &row.candidate()), ..row }
        };
        runs.iter().map(row).collect()
    }

    /// Bound over expectation for NB 64 after these runs.
    fn margin(runs: &[(u64, f64)], n: usize) -> f64 {
        let predictor = predictor();
        let rows = rows(runs);
        let cost = CostEstimate::new(&rows, &predictor);
        let mut candidate = row(0).candidate();
        candidate.hpl.n = n;
        cost.at_most(&candidate) / cost.of(&candidate)
    }

    #[test]
    fn the_bound_follows_the_spread_of_the_runs() {
        let steady = margin(&[(0, 1.0), (0, 1.0), (0, 1.0), (0, 1.0), (0, 1.0)], 1000);
        let noisy = margin(&[(0, 1.0), (0, 1.2), (0, 0.8), (0, 1.1), (0, 0.9)], 1000);
        assert!(1.0 < steady && steady < 1.06 && noisy > 1.2, "{steady} {noisy}");
        // Without a run of its own, without any run, and far away it is less sure.
        assert!(margin(&[(1, 1.0), (2, 1.3)], 1000) > noisy.min(1.3));
        assert!(margin(&[], 1000) > 1.3);
        assert!(margin(&[(0, 1.0), (0, 1.0)], 4000) > margin(&[(0, 1.0), (0, 1.0)], 1000) + 0.1);
    }

    #[test]
    fn a_slow_last_run_raises_the_bound_and_not_the_expectation() {
        let predictor = predictor();
        let of = |runs| CostEstimate::new(&rows(runs), &predictor).of(&row(0).candidate());
        let at_most = |runs| CostEstimate::new(&rows(runs), &predictor).at_most(&row(0).candidate());
        let (early, late) = (&[(0, 1.2), (0, 1.0), (0, 1.0)], &[(0, 1.0), (0, 1.0), (0, 1.2)]);
        assert_eq!(of(early), of(late));
        assert!(at_most(late) > 1.15 * at_most(early));
    }
}
