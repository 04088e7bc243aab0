//! How far one tried point is ahead of another.

use space::dims::Point;

use super::Ctx;
use super::surrogate::Surrogate;
use crate::record::lead::Lead;

/// How far `best` is ahead of `usual`, as the runs show it; `None` before one has passed, and of a point beside itself.
pub fn lead(ctx: &Ctx<'_>, best: &Point, usual: &Point) -> Option<Lead> {
    (best != usual).then(|| Surrogate::new(ctx).lead(best, usual))?
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::listed::Listed;

    use super::super::bayes::Bayes;
    use super::super::prior::Flat;
    use super::super::testing::{categorical, noise, ordered, session};
    use super::*;
    use crate::search::history::{History, TrialResult};

    fn space() -> Listed {
        let nb = ordered("nb", &[5.0, 5.6, 6.0, 6.6, 7.0, 7.3, 7.6, 8.0]);
        Listed::product(vec![nb, categorical("bcast", &["a", "b", "c", "d"])], |_| true)
    }

    fn truth(point: &Point) -> f64 {
        4.0 - 0.01 * (f64::from(point.0[0]) - 4.6).powi(2) - 0.02 * f64::from(point.0[1])
    }

    fn of(history: &History, best: &Point, usual: &Point) -> Option<Lead> {
        let (space, prior) = (space(), Flat { cost_s: 1.0 });
        let trial = history.trials.len() as u64;
        let (budget_left_s, budget_total_s) = (1.0, 2.0);
        lead(
            &Ctx { space: &space, history, prior: &prior, budget_left_s, budget_total_s, pairs: None, trial, seed: 3 },
            best,
            usual,
        )
    }

    #[test]
    fn it_is_near_the_truth_and_surer_with_more_runs() {
        let points = space().points().to_vec();
        let (mut held, mut narrower) = (0, 0);
        for seed in 0..10 {
            let run =
                |point: &Point, repeat| TrialResult::Rate((truth(point) + 0.005 * noise(seed, point, repeat)).exp());
            let history = |runs| session(&Bayes, &space(), &Flat { cost_s: 1.0 }, seed, &run, |_, _| false, runs);
            let (early, late) = (history(6), history(30));
            let (best, usual) = (&late.trials[late.trials.len() - 1].point, &early.trials[0].point);
            let [before, after] = [&early, &late].map(|history| of(history, best, usual));
            assert_eq!(of(&late, usual, usual), None, "one point");
            let (Some(before), Some(after)) = (before, after) else { continue };
            let found = (after.mean - (truth(best) - truth(usual))).abs();
            held += usize::from(found < 3.0 * after.sd + 1e-3);
            narrower += usize::from(after.sd < before.sd);
            assert!(after.pair_sd > 0.002 && after.pair_sd < 0.03, "{after:?}");
            assert_eq!(Some(after), of(&late, best, usual), "the record decides");
        }
        assert!(held >= 8 && narrower >= 8, "{held} {narrower}");
        assert_eq!(of(&History::default(), &points[0], &points[1]), None, "nothing has run");
    }
}
