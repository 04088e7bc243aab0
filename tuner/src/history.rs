//! The trials of a session as strategies see them.

use space::dims::Point;
use space::domain::HplDomain;
use space::flops::rate_gflops;

use crate::record::{self, Row};

/// One finished trial at the target N.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// Number of the trial in the session, from 0.
    pub number: u64,
    /// What was run, canonical.
    pub point: Point,
    /// What came of it.
    pub outcome: Outcome,
    /// Wall-clock seconds that the trial cost.
    pub wall_s: f64,
}

/// What a strategy learns from a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Outcome {
    /// A run with a passed residual, in GFLOP/s.
    Rate(f64),
    /// Ended at its time limit: the rate is at most this many GFLOP/s.
    TimedOut {
        /// Rate that a run finishing just at the limit would have had.
        at_most_gflops: f64,
    },
    /// Crashed, failed its residual, or could not start.
    Failed,
}

/// All finished trials of a session, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// The trials, by rising number.
    pub trials: Vec<Trial>,
}

impl History {
    /// The trials of `domain` among `rows`: full runs at its N of points that it has. Trials that were
    /// skipped on purpose say nothing of their point and are left out.
    pub fn from_rows(rows: &[Row], domain: &HplDomain) -> Self {
        let trial = |row: &Row| {
            let outcome = match (row.score_gflops(), row.outcome) {
                (Some(rate), _) => Outcome::Rate(rate),
                (None, record::Outcome::Skipped) => return None,
                // Counts the generation of the matrix as solution time: too low a bound by that share.
                (None, record::Outcome::TimedOut) => {
                    Outcome::TimedOut { at_most_gflops: rate_gflops(row.n, row.wall_s) }
                }
                (None, _) => Outcome::Failed,
            };
            Some(Trial { number: row.trial, point: domain.point(&row.candidate())?, outcome, wall_s: row.wall_s })
        };
        Self { trials: rows.iter().filter_map(trial).collect() }
    }
}

#[cfg(test)]
mod tests {
    use space::KernelChoice;
    use space::dims::Space;
    use space::domain::{DomainSpec, default_candidate};

    use super::*;
    use crate::record::arbitrary::row_of;

    #[test]
    fn rows_of_the_domain_become_trials() {
        let spec = DomainSpec {
            n: 1000,
            cores: 2,
            memory_bytes: 1 << 30,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
        };
        let domain = HplDomain::new(&spec).unwrap();
        let candidate = default_candidate(&spec);
        let row = |trial: u64, outcome: record::Outcome, candidate: &space::Candidate| {
            let row = row_of(trial, candidate);
            let passed = outcome == record::Outcome::Passed;
            Row { outcome, passed, rate_gflops: row.rate_gflops.filter(|_| passed), ..row }
        };
        let elsewhere = domain.candidate(&domain.points()[0]);
        let other_n = space::Candidate { hpl: space::HplParams { n: 999, ..candidate.hpl }, ..candidate.clone() };
        let rows = [
            row(0, record::Outcome::Passed, &candidate),
            row(1, record::Outcome::Passed, &other_n),
            row(2, record::Outcome::Skipped, &candidate),
            row(3, record::Outcome::TimedOut, &elsewhere),
            row(4, record::Outcome::Crashed, &elsewhere),
        ];
        let history = History::from_rows(&rows, &domain);
        assert_eq!(history.trials.iter().map(|trial| trial.number).collect::<Vec<_>>(), [0, 3, 4]);
        assert_eq!(domain.candidate(&history.trials[0].point), candidate);
        assert_eq!(history.trials[0].outcome, Outcome::Rate(20.0));
        assert_eq!(history.trials[1].outcome, Outcome::TimedOut { at_most_gflops: rate_gflops(1000, 0.5) });
        assert_eq!(history.trials[2].outcome, Outcome::Failed);
    }
}
