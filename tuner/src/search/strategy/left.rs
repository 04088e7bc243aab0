//! What is left to gain: by how much the best point of the space may exceed the best known one.
//!
//! E[max over all points] is no sum over points, as neighbours rise and fall together: so the posterior is drawn at many points
//! at once, and each draw has its own best. Of a large space the points that could be it are drawn.

use std::collections::HashSet;

use space::dims::Point;
use space::stats::mean;

use super::feasible::Feasibility;
use super::surrogate::Surrogate;
use super::{Ctx, bayes};
use crate::record::left::{GainLeft, LEVEL};
use crate::search::hashed::normal;
use crate::search::history::{HARDLY_SD, NO_CHANCE};

/// Points that are drawn, as many tried ones with the best means as untried ones that look best by [`HARDLY_SD`] standard deviations above
/// the mean.
const DRAWN: usize = 100;
/// Draws of hyperparameters, and of levels for each.
const DRAWS: (usize, usize) = (8, 64);
/// Trials since the leader's first run, before the search is called complete.
const PATIENCE: usize = 12;

/// What a search that ends when little is left to gain does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// It goes on.
    Search,
    /// It runs the best so far again, whose lead may be chance.
    Again(Point),
    /// It ends.
    End,
}

/// Whether no more than `gain` is left, relative. A bound that is looked at after each run falls too low sooner or later, mostly by a
/// lucky run: so it has to hold some trials after the leader was first run, and the leader has to be run as often as `NO_CHANCE`.
pub fn next(ctx: &Ctx<'_>, gain: f64) -> Next {
    let surrogate = Surrogate::new(ctx);
    let Some((leader, _)) = bayes::leaders_by(&surrogate, ctx, 1).pop() else { return Next::Search };
    let runs = || ctx.history.trials.iter().filter(|trial| trial.measures(&leader)).count();
    let first = ctx.history.trials.iter().position(|trial| trial.point == leader);
    let held = first.is_some_and(|first| ctx.history.trials.len() > first + PATIENCE);
    match held && left_by(&surrogate, ctx).is_some_and(|left| left.at_most <= gain) {
        false => Next::Search,
        true if runs() < NO_CHANCE => Next::Again(leader),
        true => Next::End,
    }
}

/// What is left to gain, as the runs show it; `None` before one has passed, and where all that was not run is likely to fail, of which
/// runs say nothing.
pub fn left(ctx: &Ctx<'_>) -> Option<GainLeft> {
    left_by(&Surrogate::new(ctx), ctx)
}

fn left_by(surrogate: &Surrogate<'_>, ctx: &Ctx<'_>) -> Option<GainLeft> {
    let known = bayes::leaders_by(surrogate, ctx, DRAWN);
    let unsteady = bayes::unsteady(ctx);
    // What will not be chosen beside the leader is no gain over it.
    let is_like =
        |point: &Point| known.first().is_some_and(|(first, _)| unsteady.contains(first)) || !unsteady.contains(point);
    let known: Vec<&Point> = known.iter().map(|(point, _)| point).filter(|point| is_like(point)).collect();
    // Where no run keeps the power limit, there is nothing to gain over.
    known.first()?;
    let points = [known, untried(ctx, surrogate)?].concat();
    let mut count = 0;
    let mut luck = || {
        count += 1;
        normal(ctx.seed, ctx.trial, count)
    };
    // The first one leads.
    let gain = |levels: Vec<f64>| surrogate.gain(levels[0], levels.iter().copied().fold(levels[0], f64::max));
    let mut gains: Vec<f64> = surrogate.draws(&points, DRAWS, &mut luck).into_iter().map(gain).collect();
    gains.sort_by(f64::total_cmp);
    let last = (LEVEL * gains.len() as f64).ceil() as usize;
    Some(GainLeft { at_most: *gains.get(last.checked_sub(1)?)?, expected: mean(&gains) })
}

/// The untried points that may be best, those that are likely to fail apart; `None` where that leaves none.
fn untried<'a>(ctx: &Ctx<'a>, surrogate: &Surrogate<'_>) -> Option<Vec<&'a Point>> {
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let mut order: Vec<(f64, &Point)> = surrogate.optimistic(HARDLY_SD).into_iter().zip(ctx.space.points()).collect();
    order.retain(|(_, point)| !tried.contains(point));
    let falling = |a: &(f64, &Point), b: &(f64, &Point)| b.0.total_cmp(&a.0).then(a.1.cmp(b.1));
    if order.len() > DRAWN {
        order.select_nth_unstable_by(DRAWN, falling);
        order.truncate(DRAWN);
    }
    let points: Vec<&Point> = order.into_iter().map(|(_, point)| point).collect();
    let are_likely = Feasibility::new(ctx).are_likely(&points);
    let is_all_tried = points.is_empty();
    let likely: Vec<&Point> =
        points.into_iter().zip(are_likely).filter_map(|(point, likely)| likely.then_some(point)).collect();
    (is_all_tried || !likely.is_empty()).then_some(likely)
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::listed::Listed;

    use super::super::bayes::Bayes;
    use super::super::prior::Flat;
    use super::super::testing::{categorical, noise, ordered, session};
    use super::*;
    use crate::search::history::{History, Trial, TrialResult};

    fn space() -> Listed {
        let nb = ordered("nb", &[5.0, 5.6, 6.0, 6.6, 7.0, 7.3, 7.6, 8.0]);
        Listed::product(vec![nb, categorical("bcast", &["a", "b", "c", "d"]), ordered("depth", &[0.0, 1.0])], |_| true)
    }

    fn truth(point: &Point) -> f64 {
        let at = |dim: usize| f64::from(point.0[dim]);
        4.0 - 0.01 * (at(0) - 4.6).powi(2) - 0.02 * at(1) - 0.03 * at(2)
    }

    fn searched(runs: usize, seed: u64) -> History {
        let run = |point: &Point, repeat| TrialResult::Rate((truth(point) + 0.005 * noise(seed, point, repeat)).exp());
        session(&Bayes, &space(), &Flat { cost_s: 1.0 }, seed, &run, |_, _| false, runs)
    }

    fn ask<T>(history: &History, what: impl FnOnce(&Ctx<'_>) -> T) -> T {
        let (space, prior) = (space(), Flat { cost_s: 1.0 });
        let trial = history.trials.len() as u64;
        what(&Ctx {
            space: &space,
            history,
            prior: &prior,
            budget_left_s: 1.0,
            budget_total_s: 2.0,
            pairs: None,
            trial,
            seed: 3,
        })
    }

    #[test]
    fn what_is_left_is_bounded_and_falls_with_the_runs() {
        let top = space().points().iter().map(truth).fold(f64::NEG_INFINITY, f64::max);
        let mut held = 0;
        for seed in 0..10 {
            let of = |runs| {
                let history = searched(runs, seed);
                let left = ask(&history, left).unwrap();
                let declared = ask(&history, |ctx| bayes::leaders(ctx, 1).remove(0).0);
                (left, (top - truth(&declared)).exp_m1())
            };
            let ((early, _), (late, really)) = (of(4), of(30));
            assert!(early.at_most > 0.02 && late.at_most < 0.6 * early.at_most, "{early:?} {late:?}");
            assert!(late.expected >= 0.0 && late.expected < early.expected, "{early:?} {late:?}");
            held += u32::from(really <= late.at_most);
        }
        assert!(held >= 9, "held in {held} of 10 searches");
        assert_eq!(ask(&History::default(), left), None);
        let history = searched(20, 1);
        assert_eq!(ask(&history, left), ask(&history, left), "the record decides");
    }

    /// Most runs failed, and of what was not run none is likely to work: it is no sign that nothing is left.
    #[test]
    fn where_all_else_is_likely_to_fail_nothing_is_said() {
        let points = space().points().to_vec();
        let outcome = |at: usize| if at == 0 { TrialResult::Rate(50.0) } else { TrialResult::Failed };
        let trial = |at: usize| Trial {
            number: at as u64,
            point: points[at].clone(),
            outcome: outcome(at),
            wall_s: 1.0,
            pair: None,
        };
        let history = History { trials: (0..points.len() - 2).map(trial).collect(), ..History::default() };
        assert_eq!(ask(&history, left), None);
        assert_eq!(ask(&history, |ctx| next(ctx, 0.5)), Next::Search);
    }

    #[test]
    fn a_search_ends_once_its_leader_has_held_its_place_in_three_runs() {
        let mut history = searched(40, 2);
        let leader = ask(&history, |ctx| bayes::leaders(ctx, 1).remove(0).0);
        assert_eq!(ask(&history, |ctx| next(ctx, 1e-9)), Next::Search, "more is left than that");
        let runs = |history: &History| history.trials.iter().filter(|trial| trial.point == leader).count();
        let of_leader = history.trials.iter().find(|trial| trial.point == leader).unwrap().clone();
        let mut kept = 0;
        history.trials.retain(|trial| {
            trial.point != leader || {
                kept += 1;
                kept == 1
            }
        });
        while runs(&history) < NO_CHANCE {
            assert_eq!(ask(&history, |ctx| next(ctx, 0.5)), Next::Again(leader.clone()));
            history.trials.push(of_leader.clone());
        }
        assert_eq!(ask(&history, |ctx| next(ctx, 0.5)), Next::End);
        let first = history.trials.iter().position(|trial| trial.point == leader).unwrap();
        history.trials.truncate(first + PATIENCE);
        assert_eq!(ask(&history, |ctx| next(ctx, 0.5)), Next::Search, "it has not held its place");
    }
}
