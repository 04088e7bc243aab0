//! The coefficients of the phases, fitted to the measured phases of runs.
//!
//! In runs at DEPTH 0 without a split no phases overlap, so that the time of a phase is that of its own work: the
//! factorization on the process row with the longest panel, without the waits of the others; the row exchange with the
//! wait for rows; the update with its packing. The steps of a run are summed in a few groups, which reduces the weight of
//! clock reads and single interruptions. Runs that were slowed by other load, as a first fit shows, are left out of the
//! second fit.

use hpl::plan::layout::Layout;
use hpl::plan::recursion::Recipe;
use hpl::plan::{ColumnStrips, Plan};
use space::machine::{EnginePhase, PhaseRate};
use space::result::PhaseTime;
use space::{Candidate, Pmap, RunResult};

use super::forms::{Exchange, PanelWork, Shape, trsv};
use super::quiet::slowed;
use crate::fit::{Weighted, robust};

/// Groups of steps per run and rank.
const GROUPS: usize = 6;

/// Minimum number of runs for the fit of a phase.
const LEAST_RUNS: usize = 3;

/// Why no rates could be fitted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LearnError {
    /// Not enough runs.
    #[error(
        "{found} usable runs with {threads} threads per rank are too few for phase {phase:?}, {LEAST_RUNS} are needed: \
         the model does not distinguish most variants; give the calibration more time"
    )]
    TooFew {
        /// Threads of each rank.
        threads: usize,
        /// The phase.
        phase: EnginePhase,
        /// Runs at DEPTH 0 without a split.
        found: usize,
    },
}

/// Rates fitted to runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Learned {
    /// Rates of each phase and number of threads.
    pub rates: Vec<PhaseRate>,
    /// Runs at DEPTH 0 without a split.
    pub runs: usize,
    /// Number of these that were slowed by other load and left out.
    pub slowed: usize,
}

/// One phase in some steps of one run on one rank.
struct Piece {
    phase: EnginePhase,
    run: usize,
    terms: Vec<f64>,
    time_s: f64,
}

/// A phase of one step on one rank: terms and seconds.
type Stretch = (Vec<f64>, f64);

/// Rates of each phase and number of threads in `runs`; runs with look-ahead or a split are ignored.
///
/// # Errors
/// [`LearnError`] where the factorization, the update or the substitution of some number of threads has too few runs.
pub fn learn(runs: &[RunResult], date: &str, origin: &str) -> Result<Learned, LearnError> {
    let plain = |run: &&RunResult| run.candidate.hpl.depth == 0 && run.candidate.engine.split.get() == 0.0;
    let runs: Vec<&RunResult> = runs.iter().filter(plain).collect();
    let mut threads: Vec<usize> = runs.iter().map(|run| run.candidate.engine.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut learned = Learned { rates: Vec::new(), runs: runs.len(), slowed: 0 };
    for threads in threads {
        let chosen: Vec<&RunResult> =
            runs.iter().copied().filter(|run| run.candidate.engine.threads == threads).collect();
        let mut pieces: Vec<Piece> = chosen.iter().enumerate().flat_map(|(at, run)| pieces(at, run)).collect();
        let slowed = slowed(&ratios(&pieces, chosen.len()));
        pieces.retain(|piece| !slowed[piece.run]);
        learned.slowed += slowed.iter().filter(|&&slowed| slowed).count();
        for phase in EnginePhase::ALL {
            let mine = of_phase(&pieces, phase);
            let mut of: Vec<usize> = mine.iter().map(|piece| piece.run).collect();
            of.dedup();
            let optional = matches!(phase, EnginePhase::RowsHere | EnginePhase::RowsExchanged);
            if of.len() >= LEAST_RUNS {
                let sizes = |size: fn(&Candidate) -> usize| {
                    let sizes = of.iter().map(|&at| size(&chosen[at].candidate));
                    sizes.fold([usize::MAX, 0], |[low, high], size| [low.min(size), high.max(size)])
                };
                let (n, nb) = (sizes(|c| c.hpl.n), sizes(|c| c.hpl.nb));
                let (coefficients, spread, fit_error) = fit(&mine);
                let (date, origin) = (date.to_owned(), origin.to_owned());
                let runs = of.len();
                learned.rates.push(PhaseRate {
                    phase,
                    threads,
                    coefficients,
                    n,
                    nb,
                    runs,
                    spread,
                    fit_error,
                    date,
                    origin,
                });
            } else if !optional {
                return Err(LearnError::TooFew { threads, phase, found: of.len() });
            }
        }
    }
    Ok(learned)
}

fn of_phase(pieces: &[Piece], phase: EnginePhase) -> Vec<&Piece> {
    pieces.iter().filter(|piece| piece.phase == phase).collect()
}

/// Measured time of each run divided by its fitted time, from all phases and all runs.
fn ratios(pieces: &[Piece], runs: usize) -> Vec<f64> {
    let (mut real_s, mut fitted_s) = (vec![0.0; runs], vec![0.0; runs]);
    for phase in EnginePhase::ALL {
        let mine = of_phase(pieces, phase);
        if mine.is_empty() {
            continue;
        }
        let coefficients = coefficients(&mine);
        for piece in mine {
            real_s[piece.run] += piece.time_s;
            fitted_s[piece.run] += piece.fitted_s(&coefficients);
        }
    }
    real_s.iter().zip(&fitted_s).map(|(real_s, fitted_s)| real_s / fitted_s.max(f64::MIN_POSITIVE)).collect()
}

impl Piece {
    fn fitted_s(&self, coefficients: &[f64]) -> f64 {
        self.terms.iter().zip(coefficients).map(|(term, c)| term * c).sum()
    }
}

/// Seconds of each run in `pieces`.
fn totals(pieces: &[&Piece]) -> Vec<f64> {
    let mut total_s = vec![0.0; pieces.iter().map(|piece| piece.run).max().unwrap_or(0) + 1];
    pieces.iter().for_each(|piece| total_s[piece.run] += piece.time_s);
    total_s
}

/// The fit with equal weights of the runs; within a run, a group is weighted by its time.
fn coefficients(pieces: &[&Piece]) -> Vec<f64> {
    let total_s = totals(pieces);
    let weigh = |piece: &&Piece| Weighted {
        terms: piece.terms.clone(),
        time_s: piece.time_s,
        weight: piece.time_s / total_s[piece.run],
    };
    robust(&pieces.iter().map(weigh).collect::<Vec<_>>())
}

/// Coefficients, spread of the runs around the fit, and mean relative error of a run.
fn fit(pieces: &[&Piece]) -> (Vec<f64>, f64, f64) {
    let (total_s, coefficients) = (totals(pieces), coefficients(pieces));
    let mut fitted_s = vec![0.0; total_s.len()];
    for piece in pieces {
        fitted_s[piece.run] += piece.fitted_s(&coefficients);
    }
    let known = total_s.iter().zip(&fitted_s).filter(|(total_s, _)| **total_s > 0.0);
    let mut ratios: Vec<f64> = known.map(|(total_s, fitted_s)| fitted_s / total_s).collect();
    ratios.sort_by(f64::total_cmp);
    let at = |share: f64| ratios[((ratios.len() - 1) as f64 * share).round() as usize];
    let spread = (at(0.75) - at(0.25)) / at(0.5).max(f64::MIN_POSITIVE);
    let error = ratios.iter().map(|ratio| (ratio - 1.0).abs()).sum::<f64>() / ratios.len() as f64;
    (coefficients, spread, error)
}

/// The phases of one run in groups of steps.
fn pieces(run: usize, result: &RunResult) -> Vec<Piece> {
    let reader = Reader::new(result);
    let mut pieces = Vec::new();
    let mut add = |phase, stretches: Vec<Stretch>| {
        let size = stretches.len().div_ceil(GROUPS).max(1);
        let groups = stretches.chunks(size).map(|group| {
            let mut terms = vec![0.0; phase_terms(phase)];
            group.iter().for_each(|(more, _)| terms.iter_mut().zip(more).for_each(|(sum, term)| *sum += term));
            Piece { phase, run, terms, time_s: group.iter().map(|(_, time_s)| time_s).sum() }
        });
        pieces.extend(groups.filter(|piece| piece.time_s > 0.0 && piece.terms.iter().any(|&term| term > 0.0)));
    };
    let hpl = &result.candidate.hpl;
    for col in 0..hpl.q {
        add(EnginePhase::Fact, reader.fact(col));
        for row in 0..hpl.p {
            let rows = if hpl.p == 1 { EnginePhase::RowsHere } else { EnginePhase::RowsExchanged };
            add(rows, reader.rows(row, col));
            add(EnginePhase::Update, reader.update(row, col));
        }
    }
    add(EnginePhase::Trsv, reader.trsv());
    pieces
}

fn phase_terms(phase: EnginePhase) -> usize {
    phase.coefficient_count()
}

/// A measured run with its plan.
struct Reader<'a> {
    result: &'a RunResult,
    plan: Plan,
}

impl<'a> Reader<'a> {
    fn new(result: &'a RunResult) -> Self {
        let Candidate { hpl, engine } = &result.candidate;
        let layout = Layout::of(hpl, &engine.weights);
        Self { result, plan: Plan { layout, depth: 0, split: 0.0, strips: ColumnStrips::Whole } }
    }

    /// Times of step `k` on a rank of the grid; the substitution is the step after the last.
    fn time(&self, k: usize, row: usize, col: usize) -> Option<&PhaseTime> {
        let hpl = &self.result.candidate.hpl;
        let rank = if hpl.pmap == Pmap::Row { row * hpl.q + col } else { col * hpl.p + row };
        let phases = &self.result.phases;
        let at = k * hpl.ranks() + rank;
        phases.get(at).filter(|time| (time.step as usize, time.rank as usize) == (k, rank))
    }

    /// The panels that process column `col` factors.
    fn fact(&self, col: usize) -> Vec<Stretch> {
        let hpl = &self.result.candidate.hpl;
        let recipe = Recipe::new(hpl);
        let whole = PanelWork::new(&recipe, hpl.nb);
        let mine = (0..self.plan.steps()).filter(|&k| self.plan.layout.cols.block_owner(k) == col);
        let one = |k: usize| {
            let shapes = (0..hpl.p).map(|row| self.plan.panel(k, row));
            let longest = shapes.max_by_key(|shape| shape.mp)?;
            let time_s = (0..hpl.p).filter_map(|row| Some(self.time(k, row, col)?.fact_s)).reduce(f64::min)?;
            let last = (longest.jb != hpl.nb).then(|| PanelWork::new(&recipe, longest.jb));
            let work = last.as_ref().unwrap_or(&whole);
            Some((work.terms(longest.mp, longest.diag_rows > 0, hpl.p).to_vec(), time_s))
        };
        mine.filter_map(one).collect()
    }

    /// Steps of a rank that have something to update, with the local sizes of the update.
    fn updates(&self, row: usize, col: usize) -> impl Iterator<Item = (Exchange, &PhaseTime)> {
        let Candidate { hpl, engine } = &self.result.candidate;
        (0..self.plan.steps()).filter_map(move |k| {
            let panel = self.plan.panel(k, row);
            let end = panel.ia + panel.jb;
            let cols = &self.plan.layout.cols;
            let n = cols.local_len(col) - cols.local_from(col, end);
            let m = (panel.mp - panel.diag_rows) as f64;
            let below = (self.plan.layout.n() - end) as f64;
            let shape = Shape { m, n, k: panel.jb as f64, threads: engine.threads.max(1) };
            let share = if below > 0.0 { m / below } else { 1.0 / hpl.p as f64 };
            let owns_diagonal = panel.diag_rows > 0;
            let exchange = Exchange { shape, p: hpl.p, share, owns_diagonal, swap: hpl.swap };
            self.time(k, row, col).filter(|_| n > 0).map(|time| (exchange, time))
        })
    }

    fn rows(&self, row: usize, col: usize) -> Vec<Stretch> {
        let alone = self.result.candidate.hpl.p == 1;
        let one = |(exchange, time): (Exchange, &PhaseTime)| {
            let terms = if alone {
                exchange.shape.rows_here().to_vec()
            } else {
                let (start, place) = (exchange.start(exchange.shape.threads), exchange.place());
                start.iter().zip(&place).map(|(start, place)| start + place).collect()
            };
            (terms, time.rs_s)
        };
        self.updates(row, col).map(one).collect()
    }

    fn update(&self, row: usize, col: usize) -> Vec<Stretch> {
        let one = |(exchange, time): (Exchange, &PhaseTime)| {
            let (update, pack) = (exchange.shape.update(), exchange.shape.pack());
            (update.iter().zip(&pack).map(|(update, pack)| update + pack).collect(), time.update_s)
        };
        self.updates(row, col).map(one).collect()
    }

    /// The back substitution on its slowest rank.
    fn trsv(&self) -> Vec<Stretch> {
        let Candidate { hpl, engine } = &self.result.candidate;
        let places = (0..hpl.p).flat_map(|row| (0..hpl.q).map(move |col| (row, col)));
        let times = places.filter_map(|(row, col)| Some(self.time(self.plan.steps(), row, col)?.trsv_s));
        let terms = trsv(hpl.n, hpl.nb, hpl.ranks(), engine.threads.max(1)).to_vec();
        times.reduce(f64::max).map(|time_s| (terms, time_s)).into_iter().collect()
    }
}
