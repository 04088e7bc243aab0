//! The trials of a session as strategies see them.

use std::collections::{HashMap, HashSet};

use objectives::real::Extent;
use space::Candidates;
use space::dims::Point;
use space::flops::rate_gflops;
use space::stats::median;

use crate::record::{self, Finished, MeasuredPair, Objective, limited_power_w, mean_power_w};

/// Times that something happens when it is no chance any more.
pub(crate) const NO_CHANCE: usize = 3;

/// Standard deviations above what is expected that are hardly exceeded: once in forty times.
pub(crate) const HARDLY_SD: f64 = 2.0;

/// Standard deviation of the log rate of single runs: those of HPL on machines that others share differ by 1.3 and 2.6 %
/// (`datasets/landscapes`).
pub(crate) const RUN_SD: f64 = 0.01;

/// That of a whole run's rate over what its windows say, about that of a run: in the mean of all candidates, before any has both, and of
/// each about that mean.
const OFFSET_SD: f64 = RUN_SD;

/// One finished trial at the target N.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Number of the trial in the session, from 0.
    pub number: u64,
    /// What was run, canonical.
    pub point: Point,
    /// What came of it.
    pub outcome: TrialResult,
    /// Wall-clock seconds that the trial cost.
    pub wall_s: f64,
    /// What was measured in turn with it; `None` where it was measured alone.
    pub pair: Option<PairedRun>,
}

impl Trial {
    /// Whether the point was run in it, by itself or as a reference.
    pub fn measures(&self, point: &Point) -> bool {
        self.point == *point || self.pair.as_ref().is_some_and(|pair| pair.reference == *point)
    }
}

/// The reference of a pair that passed.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedRun {
    /// What was run, canonical.
    pub reference: Point,
    /// GFLOP/s of its whole run.
    pub rate: f64,
}

/// What a strategy learns from a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TrialResult {
    /// A run with a passed residual, or the windows of one that passed their checks, in GFLOP/s of whole runs.
    Rate(f64),
    /// Ended at its time limit, which bounds its rate.
    TimedOut {
        /// Rate of a run that ends just at the limit, in GFLOP/s. Of a whole run all of its time counts as solution: the bound is too low
        /// by the part in which its matrix was generated, which is not known.
        at_most_gflops: f64,
    },
    /// Crashed, failed its residual, or could not start.
    Failed,
    /// Passed, but its power, which the objective needs, was not read: it was tried, and says nothing of its point.
    Unread,
}

/// All finished trials of a session, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The trials, by rising number.
    pub trials: Vec<Trial>,
    /// The references of pairs that failed, by the number of the trial: which of the two failed is not known.
    pub failed_references: HashMap<u64, Point>,
    /// Where the session has a power limit: the power of each passed trial over the limit, as natural logarithm, with its point.
    pub powers: Vec<(Point, f64)>,
}

impl History {
    /// Mean wall-clock seconds of a trial; `None` before the first one that took any.
    pub(crate) fn usual_s(&self) -> Option<f64> {
        let total_s: f64 = self.trials.iter().map(|trial| trial.wall_s).sum();
        (total_s > 0.0).then(|| total_s / self.trials.len() as f64)
    }

    /// The trials of `domain` among `rows`: whole runs and windows at its N of points that it has. What windows say is
    /// brought to whole runs by the [`offset`] of the two. Trials that were skipped on purpose say nothing of their point
    /// and are left out.
    ///
    /// Where the objective is GFLOPS/W, a rate is that which the run would have at the power of the first one: the rate of equal
    /// power, which compares as GFLOPS/W do and with predicted rates. Where there is a power limit rates are as they are. In both, passed
    /// runs whose power was not read are [unread](TrialResult::Unread).
    pub fn from_rows<R: Finished>(rows: &[R], domain: &dyn Candidates, objective: Objective) -> Self {
        Self::at_points(rows, |at| point_of(&rows[at], domain), domain.spec().n, objective)
    }

    /// The same of rows whose [points](point_of) `point` says by their places, at order `n`.
    pub(crate) fn at_points<R: Finished>(
        rows: &[R],
        point: impl Fn(usize) -> Option<Point>,
        n: usize,
        objective: Objective,
    ) -> Self {
        let place_of = |trial: u64| rows.iter().position(|row| row.trial() == trial);
        let at_n = || rows.iter().enumerate().filter(|(_, row)| row.n() == n);
        let rows: Vec<&R> = at_n().map(|(_, row)| row).collect();
        let factor = offset(&rows).exp();
        let power_w =
            |extent| if objective == Objective::GflopsPerWatt { reference_power_w(&rows, extent) } else { None };
        let [whole_w, windows_w] = [Extent::Whole, Extent::Windows].map(power_w);
        let of_extent = |extent| if extent == Extent::Windows { factor } else { 1.0 };
        let at_equal_power = |row: &R| match objective {
            Objective::Gflops => Some(1.0),
            Objective::GflopsWithin { .. } => limited_power_w(row).map(|_| 1.0),
            Objective::GflopsPerWatt => {
                let reference_w = if row.extent() == Extent::Whole { whole_w } else { windows_w };
                Some(reference_w? / mean_power_w(row)?)
            }
        };
        let to_whole = |row: &R| at_equal_power(row).map(|ratio| ratio * of_extent(row.extent()));
        let quickest = quickest_windows(&rows);
        let reference = |row: &R| {
            let pair = row.pair().filter(|_| objective.is_rate())?;
            Some((point(place_of(pair.reference_trial)?)?, pair))
        };
        let trial = |(at, row): (usize, &R)| {
            let pair = reference(row);
            let (outcome, pair) = match (row.comparable_rate_gflops(), to_whole(row), row.outcome()) {
                (Some(rate), Some(to_whole), _) => {
                    // Both are moved alike, so that their ratio is the one that was measured in turn.
                    let apart = |pair: &MeasuredPair| (rate / pair.reference_rate_gflops / pair.log_ratio.exp()).sqrt();
                    let moved = pair.as_ref().map_or(1.0, |(_, pair)| apart(pair));
                    let paired = pair.map(|(reference, pair)| PairedRun {
                        reference,
                        rate: pair.reference_rate_gflops * moved * to_whole,
                    });
                    (TrialResult::Rate(rate / moved * to_whole), paired)
                }
                (Some(_), None, _) => (TrialResult::Unread, None),
                (None, _, record::Outcome::Skipped) => return None,
                // Which of the two took so long is not known.
                (None, _, record::Outcome::TimedOut) if row.reference_trial().is_some() => (TrialResult::Failed, None),
                (None, to_whole, record::Outcome::TimedOut | record::Outcome::Beaten) => match limit(row, quickest) {
                    Some(rate) => (TrialResult::TimedOut { at_most_gflops: rate * to_whole.unwrap_or(1.0) }, None),
                    None => (TrialResult::Failed, None),
                },
                (None, ..) => (TrialResult::Failed, None),
            };
            Some(Trial { number: row.trial(), point: point(at)?, outcome, wall_s: row.wall_s(), pair })
        };
        let power = |(at, row): (usize, &R)| {
            let limit = objective.power_limit_w()? as f64;
            row.comparable_rate_gflops()?;
            Some((point(at)?, (limited_power_w(row)? / limit).ln()))
        };
        let failed_reference = |(_, row): (usize, &R)| {
            let has_failed = row.comparable_rate_gflops().is_none() && row.outcome() != record::Outcome::Skipped;
            let reference = row.reference_trial().filter(|_| has_failed)?;
            Some((row.trial(), point(place_of(reference)?)?))
        };
        Self {
            trials: at_n().filter_map(trial).collect(),
            failed_references: at_n().filter_map(failed_reference).collect(),
            powers: at_n().filter_map(power).collect(),
        }
    }

    /// The points whose runs are above the power limit, by the median of their powers; none where there is no limit.
    pub fn above_limit(&self) -> HashSet<&Point> {
        let mut powers: HashMap<&Point, Vec<f64>> = HashMap::new();
        for (point, power) in &self.powers {
            powers.entry(point).or_default().push(*power);
        }
        let is_above = |powers: &[f64]| median(powers).is_some_and(|power| power > 0.0);
        powers.into_iter().filter(|(_, own)| is_above(own)).map(|(point, _)| point).collect()
    }
}

/// The point of `domain` that a trial stands for; `None` at another N, and where the domain has none.
pub(crate) fn point_of<R: Finished>(row: &R, domain: &dyn Candidates) -> Option<Point> {
    if row.n() == domain.spec().n { domain.point(&row.candidate()) } else { None }
}

/// The power to which those of this extent are compared: that of the first passed windows, and what these would have as a whole run by the
/// candidates that have both, so that the two say the same of a candidate; where there are no such, that of the first passed run.
fn reference_power_w<R: Finished>(rows: &[&R], extent: Extent) -> Option<f64> {
    let first =
        |extent| rows.iter().filter(|row| row.passed() && row.extent() == extent).find_map(|row| mean_power_w(*row));
    let logs = if extent == Extent::Whole {
        logs_of_both(rows, |row| mean_power_w(row).filter(|_| row.passed()))
    } else {
        Vec::new()
    };
    match (median(&logs), first(Extent::Windows)) {
        (Some(log), Some(windows_w)) => Some(windows_w * log.exp()),
        _ => first(extent),
    }
}

/// Logarithm of a whole run's rate over what its windows say: the mean over the candidates that have both, drawn towards
/// 0 as long as they are few. One number for all candidates is what little a session can know of it.
pub fn offset<R: Finished>(rows: &[&R]) -> f64 {
    let logs = logs_of_both(rows, Finished::comparable_rate_gflops);
    logs.iter().sum::<f64>() / (logs.len() as f64 + 1.0)
}

/// Logarithm of what `value` gives of whole run by windows for each candidate that has both, in the order of the whole runs.
fn logs_of_both<R: Finished>(rows: &[&R], value: impl Fn(&R) -> Option<f64>) -> Vec<f64> {
    let of = |extent| rows.iter().filter(move |row| row.extent() == extent);
    if of(Extent::Windows).next().is_none() {
        return Vec::new();
    }
    let mut places = HashMap::new();
    for row in of(Extent::Whole) {
        let next = places.len();
        places.entry(row.shared()).or_insert(next);
    }
    let values = |extent| {
        let mut values = vec![Vec::new(); places.len()];
        for row in of(extent) {
            if let (Some(own), Some(&place)) = (value(row), places.get(&row.shared())) {
                values[place].push(own);
            }
        }
        values
    };
    let both = values(Extent::Whole).into_iter().zip(values(Extent::Windows));
    both.filter_map(|(whole, windows)| Some((median(&whole)? / median(&windows)?).ln())).collect()
}

/// Standard deviation that is left of the [`offset`].
pub fn offset_sd<R: Finished>(rows: &[&R]) -> f64 {
    OFFSET_SD / (1.0 + logs_of_both(rows, Finished::comparable_rate_gflops).len() as f64).sqrt()
}

/// Wall-clock seconds and rate of the windows that passed in the least time.
fn quickest_windows<R: Finished>(rows: &[&R]) -> Option<(f64, f64)> {
    let windows = rows.iter().filter(|row| row.extent() == Extent::Windows);
    let rates = windows.filter_map(|row| Some((row.wall_s(), row.comparable_rate_gflops()?)));
    rates.min_by(|a, b| a.0.total_cmp(&b.0))
}

/// The bound of the rate of a trial that was ended before its end, in GFLOP/s of its extent, see [`TrialResult::TimedOut`]; `quickest`: of
/// all [windows](quickest_windows).
fn limit<R: Finished>(row: &R, quickest: Option<(f64, f64)>) -> Option<f64> {
    match (row.extent(), row.outcome()) {
        (_, record::Outcome::Beaten) => row.estimated_rate_gflops(),
        (Extent::Whole, _) => Some(rate_gflops(row.n(), row.wall_s())),
        // Windows take the same part of all runs, nearly: what takes twice as long is half as fast.
        (Extent::Windows, _) => quickest.map(|(wall_s, rate)| rate * wall_s / row.wall_s()),
    }
}

#[cfg(test)]
mod tests;
