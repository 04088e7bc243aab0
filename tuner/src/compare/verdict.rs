//! B by A, judged by a tolerance.
//!
//! With an interval the judgement is of the whole interval. Without one, where a side has fewer than six runs, B is slower when
//! all its runs are below all runs of A by more than the tolerance: this is not an interval and has no level.

use serde::Serialize;

use super::run::Run;
use super::sides::Side;
use crate::report::stats::{MedianRatio, Ratio, paired_ratio, ratio_of_medians};

/// B by A.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// The runs were made in turn: the median of the ratios of the pairs.
    Pairs(Ratio),
    /// They were not: the ratio of the medians.
    Medians(MedianRatio),
}

impl Difference {
    /// Of the runs of two sides; `None` where one has none.
    pub fn new(a: &Side<'_>, b: &Side<'_>) -> Option<Self> {
        match in_turn(&a.runs, &b.runs) {
            // The ratio is that of the second by the first.
            Some(pairs) => paired_ratio(&pairs).map(Self::Pairs),
            None => ratio_of_medians(&a.rates(), &b.rates()).map(Self::Medians),
        }
    }

    /// The ratio.
    pub fn ratio(&self) -> f64 {
        match self {
            Self::Pairs(found) => found.median,
            Self::Medians(found) => found.ratio,
        }
    }

    /// Its interval and the level of that.
    pub fn interval(&self) -> Option<([f64; 2], f64)> {
        match self {
            Self::Pairs(found) => found.interval.zip(found.level),
            Self::Medians(found) => found.interval.zip(found.level),
        }
    }
}

/// Rates of B and A in pairs, where the start times say that the runs were made in turn: in the order of time every two successive
/// runs are one of each, on the same host. Two pairs at least, as a single one shows no order.
fn in_turn(a: &[&Run], b: &[&Run]) -> Option<Vec<(f64, f64)>> {
    if a.len() != b.len() || a.len() < 2 {
        return None;
    }
    let mut all = with_starts(a, false)?;
    all.extend(with_starts(b, true)?);
    all.sort_by_key(|(started, ..)| *started);
    // Runs that began at the same time are the same runs, or were no runs of one machine.
    if all.windows(2).any(|two| two[0].0 == two[1].0) {
        return None;
    }
    // Two machines at work at the same time have nothing in common that a pair would leave out of its ratio.
    let pair = |two: &[StartedRun<'_>]| match two {
        [(_, false, a, host), (_, true, b, other)] | [(_, true, b, host), (_, false, a, other)] if host == other => {
            Some((*b, *a))
        }
        _ => None,
    };
    all.chunks(2).map(pair).collect()
}

/// When a run began, whether it is one of B, its rate, and its host.
type StartedRun<'a> = (jiff::Timestamp, bool, f64, Option<&'a str>);

/// The runs of a side; `None` where one has no start or no rate.
fn with_starts<'a>(runs: &[&'a Run], is_b: bool) -> Option<Vec<StartedRun<'a>>> {
    runs.iter().map(|&run| Some((run.started?, is_b, run.rate_gflops()?, run.origin.host.as_deref()))).collect()
}

/// Whether B has become slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is below 1 by more than the tolerance, or without an interval all runs are.
    Slower,
    /// It is above 1 by more than the tolerance.
    Faster,
    /// It is within the tolerance.
    Alike,
    /// It is neither: the runs leave it open.
    Open,
}

impl Verdict {
    /// The judgement of `difference` by `tolerance`, a share.
    pub fn new(difference: &Difference, a: &Side<'_>, b: &Side<'_>, tolerance: f64) -> Self {
        let (least, most) = (1.0 - tolerance, 1.0 + tolerance);
        match difference.interval() {
            Some(([_, high], _)) if high < least => Self::Slower,
            Some(([low, _], _)) if low > most => Self::Faster,
            Some(([low, high], _)) if low >= least && high <= most => Self::Alike,
            Some(_) => Self::Open,
            None => match (a.range(), b.range()) {
                ([low, _], [_, high]) if high < least * low => Self::Slower,
                ([_, high], [low, _]) if low > most * high => Self::Faster,
                _ => Self::Open,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::RunOrigin;
    use super::super::sides::sides;
    use super::super::sides::tests::{run, source};
    use super::*;

    fn judged(a: &[f64], b: &[f64], tolerance: f64) -> (Difference, Verdict) {
        let runs = |rates: &[f64]| rates.iter().map(|&rate| run(1000, 128, rate)).collect();
        let (a, b) = (source("a", runs(a)), source("b", runs(b)));
        let [a, b] = sides(&a, &b).unwrap();
        let difference = Difference::new(&a, &b).unwrap();
        let verdict = Verdict::new(&difference, &a, &b, tolerance);
        (difference, verdict)
    }

    fn verdict(a: &[f64], b: &[f64], tolerance: f64) -> Verdict {
        judged(a, b, tolerance).1
    }

    const SIX: [f64; 6] = [100.0, 100.5, 101.0, 100.2, 100.8, 100.4];

    #[test]
    fn the_whole_interval_is_judged() {
        let by = |factor: f64| SIX.map(|rate| factor * rate);
        assert_eq!(verdict(&SIX, &by(0.95), 0.01), Verdict::Slower);
        assert_eq!(verdict(&SIX, &by(0.95), 0.06), Verdict::Alike);
        assert_eq!(verdict(&SIX, &by(0.985), 0.01), Verdict::Open, "the interval reaches to 0.995");
        assert_eq!(verdict(&SIX, &by(1.05), 0.01), Verdict::Faster);
        assert_eq!(verdict(&SIX, &SIX, 0.011), Verdict::Alike);
        // One run among many does not make it slower.
        assert_eq!(verdict(&SIX, &[100.0, 100.5, 101.0, 100.2, 100.8, 50.0], 0.01), Verdict::Open);
    }

    #[test]
    fn without_an_interval_all_runs_must_be_slower() {
        assert_eq!(judged(&SIX, &[95.0; 5], 0.01).0.interval(), None);
        assert_eq!(verdict(&SIX, &[95.0; 5], 0.01), Verdict::Slower);
        assert_eq!(verdict(&SIX, &[95.0, 99.5], 0.01), Verdict::Open);
        assert_eq!(verdict(&[100.0], &[98.9], 0.01), Verdict::Slower);
        assert_eq!(verdict(&[100.0], &[99.1], 0.01), Verdict::Open);
        assert_eq!(verdict(&[100.0], &[102.0], 0.01), Verdict::Faster);
    }

    #[test]
    fn runs_made_in_turn_are_pairs() {
        let at = |second: usize, rate: f64| {
            let started = format!("2026-11-20T07:00:{second:02}Z").parse().ok();
            Run { started, ..run(1000, 128, rate) }
        };
        // A machine that becomes slower while both run: ABBA and so on.
        let speed = |second: usize| 100.0 - second as f64;
        let side = |seconds: &[usize], factor: f64| -> Vec<Run> {
            seconds.iter().map(|&second| at(second, factor * speed(second))).collect()
        };
        let compare = |of_a: &[usize], of_b: &[usize]| {
            let (a, b) = (source("a", side(of_a, 1.0)), source("b", side(of_b, 0.9)));
            let [a, b] = sides(&a, &b).unwrap();
            Difference::new(&a, &b).unwrap()
        };
        let Difference::Pairs(ratio) = compare(&[0, 3, 4, 7, 8, 11], &[1, 2, 5, 6, 9, 10]) else { panic!() };
        assert!((ratio.median - 0.9).abs() < 0.01 && ratio.interval.is_some(), "{ratio:?}");
        let apart = compare(&[0, 1, 2, 3, 4, 5], &[6, 7, 8, 9, 10, 11]);
        assert!(matches!(apart, Difference::Medians(_)));
        assert!(matches!(compare(&[0], &[1]), Difference::Medians(_)));
        assert!(matches!(compare(&[0, 1], &[0, 1]), Difference::Medians(_)), "the same runs");
    }

    /// Two nodes of a job, each with the runs of one side, which begin in turn.
    #[test]
    fn runs_of_two_hosts_at_the_same_time_are_no_pairs() {
        let by_pairs = |host_of_b: &str| {
            let side = |host: &str, first: usize| -> Vec<Run> {
                let at = |second: usize| Run {
                    started: format!("2026-11-20T07:00:{second:02}Z").parse().ok(),
                    origin: RunOrigin { host: Some(host.to_owned()), ..RunOrigin::default() },
                    ..run(1000, 128, 100.0)
                };
                (0..6).map(|pair| at(first + 10 * pair)).collect()
            };
            let (a, b) = (source("a", side("n1", 0)), source("b", side(host_of_b, 1)));
            let [a, b] = sides(&a, &b).unwrap();
            matches!(Difference::new(&a, &b).unwrap(), Difference::Pairs(_))
        };
        assert!(by_pairs("n1") && !by_pairs("n2"));
    }
}
