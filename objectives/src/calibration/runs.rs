//! Short runs of the engine, whose phases are fitted for the timeline.
//!
//! Every run uses all cores. The runs cycle through the splits of the cores into ranks and threads and
//! through NB, each with other variants of the panel and of the row exchange; any number of runs is a balanced sample.
//! Every second round has twice the order, for forms that are not linear in the size. In every fourth round the runs have
//! look-ahead, and most of them a split: overlapping phases are not fitted, they correct the fit.

use std::time::Instant;

use hpl::program::{RunError, RunOptions, Runner};
use space::candidate::EngineProfile;
use space::workspace::{RunShape, Workspace};
use space::{Candidate, EngineParams, HplParams, KernelChoice, Looking, RunResult, Share, Swap};

use super::waiting::Waiting;

/// Values of NB, over the range of a search.
const NB: [usize; 23] =
    [128, 32, 256, 64, 16, 384, 96, 192, 48, 512, 24, 144, 80, 320, 40, 224, 112, 448, 160, 72, 288, 56, 352];

/// Sufficient number of runs per split of the cores.
const ENOUGH: usize = 150;

/// Wanted number of runs of the larger order per split of the cores.
const LARGE_RUNS: f64 = 16.0;

/// Smallest order that is run.
const SMALLEST_N: usize = 128;

/// A run is disturbed if one of its threads waits for a core longer than this fraction of its time.
const TOLERATED: f64 = 0.02;

/// Disturbed runs are left out if at least this fraction of the runs that passed is undisturbed.
const CLEAN_SHARE: f64 = 0.33;

/// Options of the runs.
pub(super) struct Options<'a> {
    pub(super) kernels: &'a KernelChoice,
    pub(super) cores: usize,
    /// End of the time budget.
    pub(super) started: Instant,
    pub(super) budget_s: f64,
    pub(super) max_n: usize,
    pub(super) memory_bytes: u64,
    /// Rate of all cores together, in GFLOP/s.
    pub(super) peak_gflops: f64,
}

/// The runs and their disturbances.
#[derive(Debug, Default)]
pub(super) struct Runs {
    pub(super) results: Vec<RunResult>,
    /// Runs that passed and during which other processes took a core; they are among the results only when there are few others.
    pub(super) disturbed: usize,
    pub(super) made: usize,
    /// Runs whose residual failed, which are not among the results.
    pub(super) failed: usize,
}

impl Runs {
    /// Disturbed runs as a share of those that passed.
    pub(super) fn disturbed_share(&self) -> f64 {
        self.disturbed as f64 / self.made.saturating_sub(self.failed).max(1) as f64
    }

    /// Whether no phases are fitted: predictions from the few other runs were off by a factor of two.
    pub(super) fn are_too_disturbed(&self) -> bool {
        self.disturbed_share() > 1.0 - CLEAN_SHARE
    }
}

/// Splits of the cores: (P, Q, threads), grids as square as possible and both flat ones.
fn splits(cores: usize) -> Vec<(usize, usize, usize)> {
    let mut splits = Vec::new();
    for threads in (1..=cores).filter(|threads| cores.is_multiple_of(*threads)) {
        let ranks = cores / threads;
        let (p, q) = space::domain::squarest(ranks);
        for grid in [(p, q, threads), (1, ranks, threads), (ranks, 1, threads)] {
            if !splits.contains(&grid) {
                splits.push(grid);
            }
        }
    }
    splits
}

/// Run number `index` on one of the splits, of order `n`.
fn candidate(
    index: usize,
    n: usize,
    split: (usize, usize, usize),
    overlaps: bool,
    kernels: &KernelChoice,
) -> Candidate {
    const LOOKING: [Looking; 3] = [Looking::Right, Looking::Left, Looking::Crout];
    const SWAP: [Swap; 3] = [Swap::Mix { threshold: 64 }, Swap::BinExch, Swap::Long];
    // Low bits of a hashed index: variants that are independent of NB and of each other.
    let mut bits = (index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut pick = |count: usize| {
        bits = (bits ^ (bits >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (bits >> 33) as usize % count
    };
    let (p, q, threads) = split;
    let nb = NB[index % NB.len()].min((n / 4).max(1));
    let hpl = HplParams {
        nb,
        pfact: LOOKING[pick(3)],
        rfact: LOOKING[pick(3)],
        nbmin: [1, 2, 4, 8, 16, 32][pick(6)].min(nb),
        ndiv: 2 + pick(3),
        swap: SWAP[pick(3)],
        depth: if overlaps { 1 + pick(2) } else { 0 },
        ..HplParams::baseline(n, p, q)
    };
    let section = if overlaps { [0.0, 0.3, 0.5, 0.7][pick(4)] } else { 0.0 };
    let split = Share::new(section).unwrap_or_default();
    let engine = EngineParams { threads, split, kernels: kernels.clone(), ..EngineParams::default() };
    Candidate { hpl, engine }.canonical(EngineProfile::Ours)
}

/// The run at the largest order that `memory_bytes` hold, where they do not hold its own; `None` where even a small one does not fit.
fn fitting(run: Candidate, memory_bytes: u64) -> Option<Candidate> {
    let HplParams { n, nb, .. } = run.hpl;
    let threads = run.engine.threads;
    let shape = RunShape::on_hosts(&run.hpl, threads, run.hpl.ranks() * threads);
    let most = Workspace::Hpl.largest_n(memory_bytes, nb, shape);
    if n <= most { Some(run) } else { (most >= SMALLEST_N).then(|| run.at_n(most)) }
}

/// Runs until the budget is used or there are enough; `progress` is called with the share of the time used.
///
/// # Errors
/// [`RunError`] when the kernels cannot be used or a run breaks off. One that does not fit into the memory is left out.
pub(super) fn measure(options: &Options<'_>, progress: &mut dyn FnMut(f64)) -> Result<Runs, RunError> {
    let runner = Runner::new(options.kernels)?;
    let splits = splits(options.cores);
    let begun_s = options.started.elapsed().as_secs_f64();
    let left_s = (options.budget_s - begun_s).max(0.0);
    let large = order_for(options, left_s / (LARGE_RUNS * splits.len() as f64));
    let orders = [(large / 2).max(SMALLEST_N.min(large)), large];
    // Seconds that a run of each order took at most.
    let mut costs_s = [0.0_f64; 2];
    let (mut runs, mut clean) = (Runs::default(), Vec::new());
    for index in 0..ENOUGH * splits.len() {
        let round = index / splits.len();
        let size = round % 2;
        let used_s = options.started.elapsed().as_secs_f64();
        // Before the first run of twice the order: eight times as many operations.
        let expected_s = if size == 0 { costs_s[0] } else { costs_s[1].max(8.0 * costs_s[0]) };
        if used_s + expected_s > options.budget_s {
            break;
        }
        // Each split starts at its own position in the order of NB.
        let at = round + 7 * (index % splits.len());
        let split = splits[index % splits.len()];
        let candidate = candidate(at, orders[size], split, round % 4 == 3, options.kernels);
        let Some(candidate) = fitting(candidate, options.memory_bytes) else { continue };
        let (clock, waiting) = (Instant::now(), Waiting::default());
        let result = match runner.run(&candidate, &RunOptions { threshold: 16.0, force: false, watch: &waiting }) {
            Ok(finished) => finished.result,
            // Others have taken memory since.
            Err(error) if error.lacks_memory() => continue,
            Err(error) => return Err(error),
        };
        let cost_s = clock.elapsed().as_secs_f64();
        costs_s[size] = costs_s[size].max(cost_s);
        runs.made += 1;
        // If the system does not count the waits, all runs are undisturbed.
        let waited_s = waiting.waited_s().unwrap_or(0.0);
        let disturbed = waited_s > TOLERATED * result.time_s;
        if result.passed {
            runs.disturbed += usize::from(disturbed);
            clean.push(!disturbed);
            runs.results.push(result);
        } else {
            runs.failed += 1;
        }
        progress(((used_s + cost_s - begun_s) / left_s.max(f64::MIN_POSITIVE)).min(1.0));
    }
    // Of a machine that is never idle no run is used, of any other those that were not disturbed.
    if !runs.are_too_disturbed() {
        let mut clean = clean.into_iter();
        runs.results.retain(|_| clean.next().unwrap_or(true));
    }
    Ok(runs)
}

/// The order of a run that takes `run_s` seconds, limited by the memory and the largest N of later runs.
fn order_for(options: &Options<'_>, run_s: f64) -> usize {
    // A run reaches about two thirds of the rate of the product, and is generated and checked.
    let n = (run_s * options.peak_gflops * 1e9 / 2.0 * 1.5).cbrt() as usize;
    let fits = (options.memory_bytes as f64 / 16.0).sqrt() as usize;
    n.clamp(SMALLEST_N, fits.max(SMALLEST_N)).min(options.max_n.max(1))
}

#[cfg(test)]
mod tests {
    use space::order;

    use super::*;

    #[test]
    fn splits_use_all_cores() {
        assert_eq!(splits(1), [(1, 1, 1)]);
        assert_eq!(splits(2), [(1, 2, 1), (2, 1, 1), (1, 1, 2)]);
        assert!(splits(12).iter().all(|(p, q, threads)| p * q * threads == 12));
    }

    /// With 4 GB the flat grid of 64 ranks has no room for four panels of NB = 512 on each at the order of the others.
    #[test]
    fn runs_fit_into_the_memory_or_are_left_out() {
        let hpl = HplParams { nb: 512, depth: 2, ..HplParams::baseline(16_000, 1, 64) };
        let wide = Candidate { hpl, engine: EngineParams::default() };
        let narrow = Candidate { hpl: HplParams { nb: 16, ..hpl }, ..wide.clone() };
        let fitted = fitting(wide.clone(), 4 << 30).unwrap().hpl;
        let needed_bytes = order::required_bytes(fitted.n, 1, 64, 512, 2);
        assert!((SMALLEST_N..16_000).contains(&fitted.n) && needed_bytes <= 4 << 30, "{fitted:?}");
        assert_eq!(fitting(narrow.clone(), 4 << 30), Some(narrow));
        assert_eq!(fitting(wide, 1 << 20), None);
    }

    #[test]
    fn runs_are_valid_and_differ() {
        let runs: Vec<Candidate> =
            (0..40).map(|i| candidate(i, 900, splits(4)[i % 5], i % 2 == 1, &KernelChoice::Builtin)).collect();
        assert!(runs.iter().all(|run| run.check() == Ok(())));
        let overlaps = |run: &Candidate| run.hpl.depth > 0;
        assert!(runs.iter().enumerate().all(|(i, run)| overlaps(run) == (i % 2 == 1)));
        let distinct = |of: fn(&Candidate) -> usize| {
            let mut values: Vec<usize> = runs.iter().map(of).collect();
            values.sort_unstable();
            values.dedup();
            values.len()
        };
        assert!(distinct(|run| run.hpl.nb) > 15 && distinct(|run| run.hpl.nbmin) >= 6);
        assert!(distinct(|run| run.hpl.pfact as usize) == 3 && distinct(|run| run.hpl.swap.code()) == 3);
    }
}
