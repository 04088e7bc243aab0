//! The run to be beaten: a run that falls behind it is ended early.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use objectives::Failure;
use objectives::progress::{ProgressPoint, ratio};
use objectives::real::{Extent, RealRuns};
use space::stats::median;

use crate::record::session::Session;
use crate::record::store::Store;
use crate::record::{Finished, Identity, Outcome, PlannedTrial, SharedCandidate};

/// How often the progress is drawn while trials run, and a run is judged at first.
pub(super) const REDRAW: Duration = Duration::from_millis(200);

/// How often a run is judged by its progress in the end. Reading takes the machine from the run.
const JUDGE: Duration = Duration::from_secs(1);

/// Shares of the work between which a run is judged by its progress: before it says little, after it the end is near, and a
/// whole result worth more.
const JUDGED: std::ops::Range<f64> = 0.1..0.7;

/// A run is ended early when its mean rate is below this part of the best one's at the same share of the work: at the end of
/// that range, and at its begin, as moments differ by more than whole runs do.
const HOPELESS: f64 = 0.95;
const HOPELESS_AT_FIRST: f64 = 0.8;

/// Seconds below which a run of our engine is let go to its end: its phases correct the model.
const SHORT_S: f64 = 5.0;

/// Runs ended early one after the other, after which one is let go to its end: perhaps it is the machine that has changed.
const ENDED_IN_A_ROW: usize = 3;

/// Says when a run is to be judged: each time later after the last, up to [`JUDGE`], as short runs end soon.
pub(super) struct Pace {
    every: Duration,
    pub(super) last: Instant,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { every: REDRAW, last: Instant::now() }
    }

    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        let due = now.saturating_duration_since(self.last) >= self.every;
        if due {
            self.last = now;
            self.every = JUDGE.min(2 * self.every);
        }
        due
    }
}

/// The run to be beaten.
pub(crate) struct Rival {
    pub(super) rate_gflops: f64,
    pub(super) trace: Vec<ProgressPoint>,
}

impl Rival {
    /// The last whole run of the best candidate so far with its progress, where a new candidate may be ended early for it.
    pub(super) fn of(plan: &PlannedTrial, store: &Store, runs: &RealRuns) -> Option<Self> {
        let rows = store.rows();
        let whole = [Identity::BASELINE, Identity::CONFIRM, Identity::EXPERT, Identity::FINAL];
        let new = plan.repeat_of.is_none() && !whole.contains(&plan.strategy.as_str());
        let ended = rows.iter().rev().take_while(|row| row.outcome() == Outcome::Beaten).count();
        let short = store.session().engine == Session::OURS && plan.expected_s < SHORT_S;
        if !runs.reports_progress() || plan.extent != Extent::Whole || !new || short || ended >= ENDED_IN_A_ROW {
            return None;
        }
        let mut candidates: HashMap<SharedCandidate, (Vec<f64>, u64)> = HashMap::new();
        for row in rows.iter().filter(|row| row.n() == plan.candidate.hpl.n) {
            if let Some(rate_gflops) = row.score_gflops() {
                let (rates, last) = candidates.entry(row.shared()).or_default();
                rates.push(rate_gflops);
                *last = row.trial();
            }
        }
        let typical = |rates: &[f64]| median(rates).unwrap_or(0.0);
        // Of equals the first, so that the same record leads to the same end.
        let (rates, last) =
            candidates.into_values().max_by(|a, b| typical(&a.0).total_cmp(&typical(&b.0)).then(b.1.cmp(&a.1)))?;
        let trace = runs.progress_in(&store.folder().trial(last));
        (!trace.is_empty()).then_some(Self { rate_gflops: *rates.last()?, trace })
    }

    /// Why a run that has come so far is not worth its end, if it is not.
    pub(super) fn beats(&self, running: &[ProgressPoint]) -> Option<Failure> {
        let (ratio, flops) = ratio(running, &self.trace)?;
        let judged = (flops - JUDGED.start) / (JUDGED.end - JUDGED.start);
        let hopeless = HOPELESS_AT_FIRST + judged * (HOPELESS - HOPELESS_AT_FIRST);
        (JUDGED.contains(&flops) && ratio < hopeless).then_some(Failure::Beaten {
            done_percent: 100.0 * flops,
            estimated_rate_gflops: ratio * self.rate_gflops,
            best_rate_gflops: self.rate_gflops,
        })
    }
}
