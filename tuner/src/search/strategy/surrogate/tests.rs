use space::dims::{Point, Space};
use space::listed::Listed;

use super::Surrogate;
use crate::search::history::{History, Trial, TrialResult};
use crate::search::strategy::Ctx;
use crate::search::strategy::prior::Flat;
use crate::search::strategy::testing::ordered;

/// A timeout binds under one prior and not under another: what it adds is no sign that one of them holds.
#[test]
fn priors_are_judged_by_passed_runs_alone() {
    let space = Listed::product(vec![ordered("nb", &[5.0, 5.6, 6.0, 6.6, 7.0, 7.6])], |_| true);
    let run = |level: u16| Trial {
        number: u64::from(level),
        point: Point(vec![level]),
        outcome: match level {
            5 => TrialResult::TimedOut { at_most_gflops: 10.0 },
            _ => TrialResult::Rate(50.0 + f64::from(level)),
        },
        wall_s: 1.0,
        pair: None,
    };
    let judged = |count: u16| {
        let history = History { trials: (0..count).map(run).collect(), ..History::default() };
        let (budget_left_s, budget_total_s, trial) = (40.0, 60.0, u64::from(count));
        let (space, history, prior) = (&space, &history, &Flat { cost_s: 1.0 });
        let ctx = Ctx { space, history, prior, budget_left_s, budget_total_s, pairs: None, trial, seed: 1 };
        let surrogate = Surrogate::new(&ctx);
        (surrogate.evidence, surrogate.fits[0].score)
    };
    let ((passed, score), (with_timeout, of_all)) = (judged(5), judged(6));
    assert_eq!((space.points().len(), passed, passed.0), (6, with_timeout, score));
    assert_ne!(of_all, score, "it is known all the same");
}
