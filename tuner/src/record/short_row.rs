//! A row without its texts: what stays in memory of a finished trial.
//!
//! A [`Row`] takes some 2 KB, half of them for texts that only the report shows. The journal has them. What is kept is 100 bytes, and what
//! many trials have in common is there once.

use std::collections::HashSet;
use std::hash::Hash;
use std::sync::Arc;

use objectives::real::Extent;
use space::{Candidate, EngineParams};

use super::finished::{Finished, MeasuredPair, SharedCandidate, fields};
use super::{Outcome, Row};

/// What the search needs of a finished trial.
#[derive(Debug, Clone, PartialEq)]
pub struct ShortRow {
    trial: u64,
    strategy: Arc<str>,
    run: Arc<SharedCandidate>,
    extent: Extent,
    outcome: Outcome,
    passed: bool,
    wall_s: f64,
    budget_left_s: f64,
    rate_gflops: Option<f64>,
    estimated_rate_gflops: Option<f64>,
    /// `None` where it was measured alone, or failed, compares with no other trial, and no power was read.
    more: Option<Box<More>>,
}

/// What only some trials have.
#[derive(Debug, Clone, Default, PartialEq)]
struct More {
    paired_with: Option<u64>,
    reference_trial: Option<u64>,
    pair: Option<MeasuredPair>,
    power_w: Option<f64>,
    run_power_w: Option<f64>,
    estimated_power_w: Option<f64>,
    power_source: Option<Arc<str>>,
}

impl ShortRow {
    /// What its power was read from.
    pub fn power_source(&self) -> Option<&str> {
        self.more.as_ref()?.power_source.as_deref()
    }
}

impl Finished for ShortRow {
    fields!();

    fn n(&self) -> usize {
        self.run.hpl.n
    }

    fn shared(&self) -> SharedCandidate {
        SharedCandidate::clone(&self.run)
    }

    fn paired_with(&self) -> Option<u64> {
        self.more.as_ref()?.paired_with
    }

    fn reference_trial(&self) -> Option<u64> {
        self.more.as_ref()?.reference_trial
    }

    fn pair(&self) -> Option<MeasuredPair> {
        self.more.as_ref()?.pair
    }

    fn power_w(&self) -> Option<f64> {
        self.more.as_ref()?.power_w
    }

    fn run_power_w(&self) -> Option<f64> {
        self.more.as_ref()?.run_power_w
    }

    fn estimated_power_w(&self) -> Option<f64> {
        self.more.as_ref()?.estimated_power_w
    }

    fn is_of(&self, candidate: &Candidate) -> bool {
        self.run.is(candidate)
    }
}

/// Makes short rows that share what they have in common.
#[derive(Debug, Default)]
pub struct Shortener {
    runs: HashSet<Arc<SharedCandidate>>,
    engines: HashSet<Arc<EngineParams>>,
    words: HashSet<Arc<str>>,
}

impl Shortener {
    /// What is kept of `row`.
    pub fn short(&mut self, row: &Row) -> ShortRow {
        let Candidate { hpl, engine } = row.candidate();
        let run = SharedCandidate { hpl, engine: shared(&mut self.engines, Arc::new(engine)) };
        let more = More {
            paired_with: row.paired_with,
            reference_trial: row.reference_trial,
            pair: row.pair(),
            power_w: row.power_w,
            run_power_w: row.run_power_w,
            estimated_power_w: row.estimated_power_w,
            power_source: row.power_source.as_deref().map(|source| shared(&mut self.words, Arc::from(source))),
        };
        ShortRow {
            trial: row.trial,
            strategy: shared(&mut self.words, Arc::from(row.strategy.as_str())),
            run: shared(&mut self.runs, Arc::new(run)),
            extent: row.extent,
            outcome: row.outcome,
            passed: row.passed,
            wall_s: row.wall_s,
            budget_left_s: row.budget_left_s,
            rate_gflops: row.rate_gflops,
            estimated_rate_gflops: row.estimated_rate_gflops,
            more: (more != More::default()).then(|| Box::new(more)),
        }
    }
}

/// The one of `known` that equals `value`, which is known from now on.
fn shared<T: Eq + Hash + ?Sized>(known: &mut HashSet<Arc<T>>, value: Arc<T>) -> Arc<T> {
    if let Some(known) = known.get(&value) {
        return Arc::clone(known);
    }
    known.insert(Arc::clone(&value));
    value
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::arbitrary::{any_row, row, row_of};
    use crate::record::{limited_power_w, mean_power_w};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A search that looks at short rows sees what it would see of the rows.
        #[test]
        fn a_short_row_says_what_the_row_says(row in any_row()) {
            let short = Shortener::default().short(&row);
            prop_assert_eq!(short.candidate(), row.candidate());
            prop_assert!(short.is_of(&row.candidate()) && row.is_of(&short.candidate()));
            let of = |row: &dyn Finished| (row.trial(), row.paired_with(), row.extent(), row.n(), row.outcome(), row.passed());
            prop_assert_eq!(of(&short), of(&row));
            let rates = |row: &dyn Finished| {
                let figures = [row.rate_gflops(), row.estimated_rate_gflops(), row.score_gflops(), row.comparable_rate_gflops()];
                (figures, row.wall_s(), row.budget_left_s(), row.strategy().to_owned(), row.pair())
            };
            prop_assert_eq!(rates(&short), rates(&row));
            prop_assert_eq!(short.power_source(), row.power_source.as_deref());
            prop_assert_eq!((mean_power_w(&short), limited_power_w(&short)), (mean_power_w(&row), limited_power_w(&row)));
        }
    }

    #[test]
    fn what_trials_have_in_common_is_there_once() {
        let mut shortener = Shortener::default();
        let candidate = row(0).candidate();
        let rows: Vec<ShortRow> = (0..9).map(|trial| shortener.short(&row_of(trial, &candidate))).collect();
        assert!(rows.iter().all(|row| Arc::ptr_eq(&row.run, &rows[0].run)));
        let other = shortener.short(&row(1));
        assert!(other.run.hpl != rows[0].run.hpl && Arc::ptr_eq(&other.run.engine, &rows[0].run.engine));
        assert!(rows.iter().all(|row| Arc::ptr_eq(&row.strategy, &rows[0].strategy)));
        assert!(size_of::<ShortRow>() <= 96, "{} bytes", size_of::<ShortRow>());
    }
}
