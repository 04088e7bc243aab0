//! The rates of the search, trial by trial, and the best of them so far.

use objectives::real::Extent;
use space::stats::median;

use crate::record::Row;
use crate::record::session::Session;
use crate::report::summary::of_search;
use crate::report::{Summary, digits};

/// Rates of single trials at the N and extent of the search. The highest of them have luck in them: what is claimed of the best is
/// in the figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What the rates are, `GFLOP/s by windows`; with another objective than the rate it says that they are the rate alone.
    pub unit: String,
    /// Number and rate of each trial that passed.
    pub points: Vec<(f64, f64)>,
    /// The highest rate so far, as steps up to the last trial.
    pub best: Vec<(f64, f64)>,
    /// Median rate of the default.
    pub default: Option<f64>,
    /// First and last trial.
    pub trials: [f64; 2],
    /// Rates that are shown: outliers below are left out.
    pub rates: [f64; 2],
    /// The course in words.
    pub words: String,
    /// Trials that raised the best.
    pub raised: Vec<u64>,
}

impl Curve {
    /// `None` until a trial has passed.
    pub(super) fn new(session: &Session, rows: &[Row], summary: &Summary) -> Option<Self> {
        let passed = of_search(session, rows).into_iter();
        let points: Vec<(u64, f64)> =
            passed.filter_map(|row| Some((row.trial, row.comparable_rate_gflops()?))).collect();
        let (first, _) = *points.first()?;
        let last = rows.last()?.trial.max(first + 1);
        let (mut best, mut raised) = (Vec::new(), Vec::new());
        let mut highest = f64::NEG_INFINITY;
        for &(trial, rate) in points.iter().filter(|(_, rate)| rate.is_finite()) {
            if rate > highest {
                let before = best.last().map(|&(_, before)| (trial as f64, before));
                best.extend(before.into_iter().chain([(trial as f64, rate)]));
                raised.push(trial);
                highest = rate;
            }
        }
        let &(_, begin) = best.first()?;
        best.push((last as f64, highest));
        let rates: Vec<f64> = points.iter().map(|&(_, rate)| rate).collect();
        let default = summary.baseline.as_ref().map(|score| score.rate_gflops);
        let low = low(&rates).min(begin).min(default.unwrap_or(f64::INFINITY));
        let margin = (0.05 * (highest - low)).max(0.005 * highest.abs());
        let begin = digits(begin);
        let words = match raised.last() {
            Some(&last) if last != first => format!("from {begin} to {}, raised last by trial {last}", digits(highest)),
            _ => format!("{begin}, by trial {first}"),
        };
        // By another objective the trial with the highest rate need not be the best.
        let what = if session.objective.is_rate() { "" } else { "rate alone, " };
        let by = if session.extent == Extent::Windows { " by windows" } else { "" };
        Some(Self {
            unit: format!("{what}GFLOP/s{by}"),
            points: points.into_iter().map(|(trial, rate)| (trial as f64, rate)).collect(),
            best,
            default,
            trials: [first as f64, last as f64],
            rates: [low - margin, highest + margin],
            words,
            raised,
        })
    }
}

/// The rate from which on single trials are shown: those far below the middle say nothing of the best ones.
fn low(rates: &[f64]) -> f64 {
    let lowest = rates.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = rates.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    median(rates).map_or(lowest, |middle| lowest.max(middle - 2.0 * (highest - middle).max(0.02 * middle)))
}
