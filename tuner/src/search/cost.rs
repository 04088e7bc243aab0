//! What a run will cost in wall-clock time: the model's prediction, scaled by what runs really took.

use std::collections::{BTreeSet, HashMap, HashSet};

use hpl::plan::windows::{Window, Windows};
use objectives::predict::Predictor;
use objectives::real::Extent;
use space::flops::{hpl_flops, rate_gflops};
use space::stats::{mean, median, squared_deviations};
use space::{Candidate, HplParams};

use crate::record::{Finished, SharedCandidate};
use crate::search::history::{HARDLY_SD, offset};

/// Fixed part of a run's wall clock (starting the process and its threads), in seconds.
const START_S: f64 = 0.1;

/// Share that what is not timed adds to the solve time, until runs have shown it: generation and check, and the panels before windows.
const UNTIMED_SHARE: f64 = 0.1;

/// Standard deviation of the log cost of a run about the model's prediction, before any run, and per unit of ln N from the nearest one.
const MODEL_SPREAD: f64 = 0.15;

/// Standard deviation of the log cost between runs of one candidate, as assumed before there are repeats.
const RUN_SPREAD: f64 = 0.03;

/// Time of a pair in that of the windows of both alone, until pairs have shown it: each window is measured twice, in one process.
const PAIR_COST: f64 = 2.0;

/// Bytes per second at which a core fills the memory of windows, until windows have shown it: pages of a fresh process
/// come slowly on a virtual machine.
const FILL_BYTES_PER_S: f64 = 0.75e9;

/// Wall-clock seconds of a job by the model alone.
pub fn model_s(predictor: &Predictor, candidate: &Candidate, extent: Extent) -> f64 {
    of_solve_s(predictor.time_s(candidate), candidate, extent)
}

/// Wall-clock seconds of a job whose whole run factors and solves in `solve_s`.
pub(crate) fn of_solve_s(solve_s: f64, candidate: &Candidate, extent: Extent) -> f64 {
    match extent {
        Extent::Whole => whole_s(solve_s),
        Extent::Windows => {
            let part = windows_part(candidate);
            let cores = candidate.hpl.ranks() * candidate.engine.threads.max(1);
            let bytes = size_of::<f64>() as f64 * (part.largest as f64).powi(2);
            let fill_s = bytes / (FILL_BYTES_PER_S * cores as f64);
            START_S + solve_s * part.work * (1.0 + UNTIMED_SHARE) + fill_s
        }
    }
}

/// Wall-clock seconds of a whole run whose factorization and back substitution take `solve_s`.
pub fn whole_s(solve_s: f64) -> f64 {
    START_S + solve_s * (1.0 + UNTIMED_SHARE)
}

/// Seconds of solving in a whole run of `wall_s`: what [`model_s`] takes for it.
pub fn solve_s(wall_s: f64) -> f64 {
    (wall_s - START_S).max(START_S) / (1.0 + UNTIMED_SHARE)
}

/// What a passed trial takes by the model alone; of others it is not asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelledTime {
    /// Seconds in which its whole run factors and solves.
    solve_s: f64,
    /// Wall-clock seconds of its job.
    job_s: f64,
}

impl ModelledTime {
    pub(crate) fn new<R: Finished>(row: &R, predictor: &Predictor) -> Self {
        if !row.passed() {
            return Self { solve_s: f64::NAN, job_s: f64::NAN };
        }
        let candidate = row.candidate();
        let solve_s = predictor.time_s(&candidate);
        Self { solve_s, job_s: of_solve_s(solve_s, &candidate, row.extent()) }
    }
}

/// What the engine's own choice of windows measures of a run.
struct WindowsPart {
    /// Part of the flops.
    work: f64,
    /// Order of the largest trailing matrix.
    largest: usize,
}

fn windows_part(candidate: &Candidate) -> WindowsPart {
    let hpl = &candidate.hpl;
    // Its own choice is never after the last step.
    let windows = Windows::Auto.of(hpl).unwrap_or_default();
    let trailing = |step: usize| hpl.n.saturating_sub(step * hpl.nb);
    let flops = |window: &Window| hpl_flops(trailing(window.first)) - hpl_flops(trailing(window.first + window.steps));
    WindowsPart {
        work: windows.iter().map(flops).sum::<f64>() / hpl_flops(hpl.n),
        largest: windows.iter().map(|window| trailing(window.first)).max().unwrap_or(0),
    }
}

/// All of them.
const EXTENTS: [Extent; 2] = [Extent::Whole, Extent::Windows];

/// The model corrected by the finished runs of a session.
pub struct CostEstimate<'a> {
    predictor: &'a Predictor,
    measured: Vec<CostRatio>,
    /// What whole runs and windows say of candidates without one; `None` where there are none.
    others: [Option<OfOthers>; 2],
    /// Standard deviation of the log cost between runs of one candidate.
    run_spread: f64,
    /// See [`of_pairs`](Self::of_pairs).
    of_pairs: f64,
}

/// What a finished trial cost.
struct CostRatio {
    run: SharedCandidate,
    extent: Extent,
    /// Measured over modelled cost.
    ratio: f64,
}

/// What the jobs of one extent say of a candidate without one.
struct OfOthers {
    /// Median of measured over modelled cost.
    ratio: f64,
    /// Standard deviation of the logarithm of that of one more.
    sd: f64,
    /// Their N, each once.
    orders: BTreeSet<usize>,
}

impl OfOthers {
    fn new(measured: &[CostRatio], extent: Extent, run_spread: f64) -> Option<Self> {
        let all = || measured.iter().filter(|cost| cost.extent == extent);
        let ratios: Vec<f64> = all().map(|cost| cost.ratio).collect();
        let spread = spread(&ratios).max(run_spread);
        // No run of another one makes a candidate's own less sure than the model alone does.
        let sd = sd_of_one_more(spread, ratios.len()).min(spread.max(MODEL_SPREAD));
        Some(Self { ratio: median(&ratios)?, sd, orders: all().map(|cost| cost.run.hpl.n).collect() })
    }

    /// Distance in ln N to the nearest of them.
    fn distance(&self, n: usize) -> f64 {
        let distance = |order: &usize| (*order as f64 / n as f64).ln().abs();
        self.orders.iter().map(distance).fold(f64::INFINITY, f64::min)
    }
}

impl<'a> CostEstimate<'a> {
    /// Learns from the rows of a session. The time of a whole run that windows estimate counts as one more of a candidate, as long as
    /// there is no whole run of it; with the [`offset`] that candidates with both show.
    pub fn new<R: Finished>(rows: &[R], predictor: &'a Predictor) -> Self {
        let modelled: Vec<ModelledTime> = rows.iter().map(|row| ModelledTime::new(row, predictor)).collect();
        Self::of_modelled(rows, &modelled, predictor)
    }

    /// The same of rows whose times by the model are known.
    pub(crate) fn of_modelled<R: Finished>(rows: &[R], modelled: &[ModelledTime], predictor: &'a Predictor) -> Self {
        let alone = |row: &R| row.passed() && row.reference_trial().is_none();
        let passed = |extent| rows.iter().zip(modelled).filter(move |(row, _)| alone(row) && row.extent() == extent);
        let of = |row: &R, extent, ratio| CostRatio { run: row.shared(), extent, ratio };
        let own = |(row, modelled): (&R, &ModelledTime)| of(row, row.extent(), row.wall_s() / modelled.job_s);
        let mut measured: Vec<CostRatio> = passed(Extent::Whole).chain(passed(Extent::Windows)).map(own).collect();
        let at_any_n = |row: &R| {
            let shared = row.shared();
            SharedCandidate { hpl: HplParams { n: 0, ..shared.hpl }, ..shared }
        };
        let whole: HashSet<SharedCandidate> = passed(Extent::Whole).map(|(row, _)| at_any_n(row)).collect();
        let windows = passed(Extent::Windows);
        let slower = (-offset(&rows.iter().collect::<Vec<&R>>())).exp();
        let estimated = windows.filter(|(row, _)| !whole.contains(&at_any_n(row))).filter_map(|(row, modelled)| {
            let solve_s = rate_gflops(row.n(), 1.0) / row.estimated_rate_gflops()?;
            Some(of(row, Extent::Whole, whole_s(slower * solve_s) / whole_s(modelled.solve_s)))
        });
        measured.extend(estimated);
        let run_spread = run_spread(&measured);
        let others = EXTENTS.map(|extent| OfOthers::new(&measured, extent, run_spread));
        let of_pairs = of_pairs(rows, modelled, others.each_ref().map(|others| Some(others.as_ref()?.ratio)));
        Self { predictor, measured, others, run_spread, of_pairs }
    }

    /// What jobs of this extent mostly take, in what the model says of them; 1 before the first one.
    pub(crate) fn usual_ratio(&self, extent: Extent) -> f64 {
        self.others(extent).map_or(1.0, |others| others.ratio)
    }

    /// Wall-clock time of a pair, in that of the trials of both alone.
    pub fn of_pairs(&self) -> f64 {
        self.of_pairs
    }

    /// Expected wall-clock seconds of a job: by earlier ones of its candidate at any N, else by those of all candidates.
    pub fn of(&self, candidate: &Candidate, extent: Extent) -> f64 {
        let of_others = || self.others(extent).map(|others| others.ratio);
        let ratio = median(&self.own(candidate, extent)).or_else(of_others).unwrap_or(1.0);
        ratio * model_s(self.predictor, candidate, extent)
    }

    /// Wall-clock seconds that a job hardly exceeds, by the spread of those that [`of`](Self::of) goes by: the fewer
    /// they are and the farther their N, the more.
    pub fn at_most(&self, candidate: &Candidate, extent: Extent) -> f64 {
        let modelled_s = model_s(self.predictor, candidate, extent);
        let Some(others) = self.others(extent) else { return (HARDLY_SD * MODEL_SPREAD).exp() * modelled_s };
        let own = self.own(candidate, extent);
        let (centre, sd) = match (median(&own), own.last()) {
            // A machine that slows down does so for the next run too.
            (Some(usual), Some(lately)) => (usual.max(*lately), sd_of_one_more(self.run_spread, own.len())),
            _ => (others.ratio, others.sd),
        };
        let sd = sd.hypot(MODEL_SPREAD * others.distance(candidate.hpl.n));
        centre * (HARDLY_SD * sd).exp() * modelled_s
    }

    fn others(&self, extent: Extent) -> Option<&OfOthers> {
        let [whole, windows] = &self.others;
        if extent == Extent::Whole { whole.as_ref() } else { windows.as_ref() }
    }

    /// Measured over modelled cost of the candidate's own jobs of this extent at any N.
    fn own(&self, candidate: &Candidate, extent: Extent) -> Vec<f64> {
        let own = self.measured.iter().filter(|cost| cost.extent == extent && cost.run.is_at_any_n(candidate));
        own.map(|cost| cost.ratio).collect()
    }
}

/// Standard deviation of one more value about the median of `count` that scatter by `spread`.
fn sd_of_one_more(spread: f64, count: usize) -> f64 {
    spread * (1.0 + 1.0 / count as f64).sqrt()
}

/// See [`CostEstimate::of_pairs`]: the geometric mean of what is expected and of what the pairs took; with the usual ratios of whole runs and
/// of windows alone.
fn of_pairs<R: Finished>(rows: &[R], modelled: &[ModelledTime], [whole, windows]: [Option<f64>; 2]) -> f64 {
    let modelled_s = |trial: u64| Some(modelled[rows.iter().position(|row| row.trial() == trial)?].job_s);
    let pairs = rows.iter().zip(modelled).filter_map(|(row, own)| {
        let both_s = own.job_s + modelled_s(row.pair()?.reference_trial)?;
        let usual = if row.extent() == Extent::Whole { whole } else { windows };
        Some((row.wall_s() / both_s / usual?).ln())
    });
    let logs: Vec<f64> = pairs.filter(|log| log.is_finite()).chain([PAIR_COST.ln()]).collect();
    mean(&logs).exp()
}

/// Standard deviation of the log cost between runs of the same candidate at the same N, pooled over all that were
/// repeated and over one more with [`RUN_SPREAD`].
fn run_spread(measured: &[CostRatio]) -> f64 {
    let mut places = HashMap::new();
    let mut runs = Vec::with_capacity(measured.len());
    for cost in measured {
        let next = places.len();
        runs.push((*places.entry((cost.extent, &cost.run)).or_insert(next), cost.ratio));
    }
    runs.sort_by_key(|(place, _)| *place);
    let (mut squares, mut free) = (RUN_SPREAD * RUN_SPREAD, 1.0);
    for group in runs.chunk_by(|a, b| a.0 == b.0).filter(|group| group.len() > 1) {
        let logs: Vec<f64> = group.iter().map(|(_, ratio)| ratio.ln()).collect();
        squares += squared_deviations(&logs);
        free += logs.len() as f64 - 1.0;
    }
    (squares / free).sqrt()
}

/// Standard deviation of the log cost between candidates, of these ratios and of one more with [`MODEL_SPREAD`].
fn spread(ratios: &[f64]) -> f64 {
    let squares =
        MODEL_SPREAD * MODEL_SPREAD + squared_deviations(&ratios.iter().map(|ratio| ratio.ln()).collect::<Vec<f64>>());
    (squares / ratios.len() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Row;
    use crate::record::arbitrary::{row, windows};
    use crate::search::schedule::tests::predictor;

    /// Runs of NB 64 + 8·`number` that took these multiples of the model's time.
    fn rows(runs: &[(u64, f64)]) -> Vec<Row> {
        let predictor = predictor();
        let row = |&(number, ratio): &(u64, f64)| {
            let row = row(number);
            Row { wall_s: ratio * model_s(&predictor, &row.candidate(), Extent::Whole), ..row }
        };
        runs.iter().map(row).collect()
    }

    /// Bound over expectation for NB 64 after these runs.
    fn margin(runs: &[(u64, f64)], n: usize) -> f64 {
        let predictor = predictor();
        let rows = rows(runs);
        let cost = CostEstimate::new(&rows, &predictor);
        let candidate = row(0).candidate().at_n(n);
        cost.at_most(&candidate, Extent::Whole) / cost.of(&candidate, Extent::Whole)
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

    /// That candidates differ by as much as the model is unsure of is forgotten by many runs, not by the first one.
    #[test]
    fn one_run_of_another_candidate_is_no_certainty() {
        let others = |count: u64| margin(&(1..=count).map(|number| (number, 1.0)).collect::<Vec<_>>(), 1000);
        assert!((others(1) - others(0)).abs() < 1e-9 && others(0) > 1.3, "{} {}", others(1), others(0));
        assert!(others(2) < others(1) && others(12) < others(2) && others(12) > 1.08, "{} {}", others(2), others(12));
    }

    /// A pair is no run of its candidate: it takes longer, and says how much.
    #[test]
    fn pairs_say_what_pairs_take() {
        let (predictor, mut rows) = (predictor(), rows(&[(0, 1.0), (1, 1.0)]));
        let of = |rows: &[Row]| CostEstimate::new(rows, &predictor).of_pairs();
        assert_eq!(of(&rows), PAIR_COST);
        let both_s = rows.iter().map(|row| row.wall_s).sum::<f64>();
        let alone_s = CostEstimate::new(&rows, &predictor).of(&rows[1].candidate(), Extent::Whole);
        let pair = Row {
            reference_trial: Some(0),
            reference_rate_gflops: Some(1.0),
            log_ratio: Some(0.0),
            wall_s: 3.0 * both_s,
            ..rows[1].clone()
        };
        rows.extend(vec![pair; 30]);
        assert!((of(&rows) - 3.0).abs() < 0.1, "{}", of(&rows));
        assert_eq!(CostEstimate::new(&rows, &predictor).of(&rows[1].candidate(), Extent::Whole), alone_s);
    }

    #[test]
    fn windows_cost_a_part_of_a_run_and_tell_what_a_run_costs() {
        let predictor = predictor();
        let candidate = row(0).candidate().at_n(20_000);
        let part = windows_part(&candidate);
        assert!((0.04..0.08).contains(&part.work) && part.largest <= 20_000, "{} {}", part.work, part.largest);
        let [whole, windows] = [Extent::Whole, Extent::Windows].map(|extent| model_s(&predictor, &candidate, extent));
        assert!(windows < 0.2 * whole, "{windows} {whole}");
        // Windows that estimate half the model's rate: a whole run takes about twice the model's time.
        let rate = predictor.rate_gflops(&candidate) / 2.0;
        let seen =
            Row { n: 20_000, estimated_rate_gflops: Some(rate), ..crate::record::arbitrary::windows(0, 64, rate) };
        let rows = [seen];
        let cost = CostEstimate::new(&rows, &predictor);
        let ratio = cost.of(&candidate, Extent::Whole) / whole;
        assert!((1.9..2.0).contains(&ratio), "{ratio}");
        // A whole run of another candidate does not change that; one of its own does.
        let [own, other] = [64, 128].map(|nb| {
            let run = Row { n: 20_000, nb, ..row(0) };
            Row { wall_s: 1.2 * model_s(&predictor, &run.candidate(), Extent::Whole), ..run }
        });
        let after = |run: &Row| {
            let rows = [rows[0].clone(), run.clone()];
            CostEstimate::new(&rows, &predictor).of(&candidate, Extent::Whole) / whole
        };
        assert!((after(&other) - ratio).abs() < 1e-9 && (after(&own) - 1.2).abs() < 1e-9, "{}", after(&own));
    }

    /// That of a candidate is 10 % slower than its windows say, which is half believed of the others.
    #[test]
    fn what_windows_say_of_a_whole_run_is_corrected_by_whole_runs() {
        let predictor = predictor();
        let run = Row { trial: 2, rate_gflops: Some(18.0), ..row(0) };
        let rows = [windows(0, 64, 20.0), windows(1, 96, 20.0), run];
        let solved_s =
            |rows: &[Row]| CostEstimate::new(rows, &predictor).of(&rows[1].candidate(), Extent::Whole) - START_S;
        assert!((solved_s(&rows) / solved_s(&rows[..2]) - 0.9_f64.powf(-0.5)).abs() < 1e-9);
    }

    #[test]
    fn a_slow_last_run_raises_the_bound_and_not_the_expectation() {
        let predictor = predictor();
        let of = |runs| CostEstimate::new(&rows(runs), &predictor).of(&row(0).candidate(), Extent::Whole);
        let at_most = |runs| CostEstimate::new(&rows(runs), &predictor).at_most(&row(0).candidate(), Extent::Whole);
        let (early, late) = (&[(0, 1.2), (0, 1.0), (0, 1.0)], &[(0, 1.0), (0, 1.0), (0, 1.2)]);
        assert_eq!(of(early), of(late));
        assert!(at_most(late) > 1.15 * at_most(early));
    }
}
