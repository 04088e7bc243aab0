//! The first runs of a session, where no model is asked: the usual HPL.dat, or what is nearest to it in the space, with one thing changed.
//!
//! NB over its range, then the other numbers of ranks, DEPTH and the other grids, then NB over its range with each number of
//! ranks: what sources call important, in the order in which anybody would sweep it. A model that was made for another
//! engine may be wrong about each of them, and a search that follows it would never find out.

use std::collections::HashSet;

use space::dims::{Dim, Point, Space};
use space::stats::mean;

use super::Ctx;
use super::context::finite;
use super::surrogate::OFFSET_SD;
use crate::search::history::TrialResult;

/// Ratio of one NB to the next that is run.
const NB_STEP: f64 = 1.3;

/// A point that is expected to be slower than the best by more than a model and runs may differ, as a difference of logarithms, is left
/// out.
const HOPELESS: f64 = OFFSET_SD;

/// Part of the budget that the design may take.
const SHARE: f64 = 0.2;

/// The next point of the design about `usual`, `None` when it is done or has taken its part of the budget.
pub(crate) fn next(ctx: &Ctx<'_>, usual: &Point) -> Option<Point> {
    // A run may take longer than is predicted: other engines may repeat it, or do more in a call.
    let walls: Vec<f64> = ctx.history.trials.iter().map(|trial| trial.wall_s).collect();
    let run_s = mean(&walls).max(ctx.prior.cost_s(usual));
    let most_runs = SHARE * ctx.budget_total_s / run_s;
    if ctx.trial as f64 >= most_runs || most_runs.is_nan() {
        return None;
    }
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    let best = ctx.prior.log_rates(ctx.space.points()).into_iter().map(finite).fold(f64::NEG_INFINITY, f64::max);
    let worth = |point: &Point| finite(ctx.prior.log_rate(point)) > best - HOPELESS;
    let ranks = ctx.space.dims().iter().position(|dim| dim.name == "ranks");
    let runs = |point: &Point| ranks.is_none_or(|ranks| !never_passes(ctx, ranks, point.0[ranks]));
    points(ctx.space, usual).into_iter().find(|point| !tried.contains(point) && worth(point) && runs(point))
}

/// Whether runs with this number of ranks have failed, and none has passed: the launcher may refuse it.
fn never_passes(ctx: &Ctx<'_>, ranks: usize, level: u16) -> bool {
    let mut own = ctx.history.trials.iter().filter(|trial| trial.point.0[ranks] == level).peekable();
    own.peek().is_some() && own.all(|trial| trial.outcome == TrialResult::Failed)
}

/// All points of the design, in order.
fn points(space: &dyn Space, usual: &Point) -> Vec<Point> {
    let dim = |name: &str| space.dims().iter().position(|dim| dim.name == name);
    let (nb, ranks, grid, depth) = (dim("nb"), dim("ranks"), dim("grid"), dim("depth"));
    let levels = |dim: Option<usize>| dim.map_or(0, |dim| space.dims()[dim].levels.len());
    let all = |dim: Option<usize>| (0..levels(dim)).filter_map(move |level| Some((dim?, u16::try_from(level).ok()?)));
    let sweep = |about: &Point| -> Vec<Point> {
        let Some(nb) = nb else { return Vec::new() };
        let spaced = spaced(&space.dims()[nb], usual.0[nb]);
        spaced.into_iter().filter_map(|level| with(space, about, nb, level)).collect()
    };
    let others: Vec<Point> = all(ranks).filter_map(|(_, level)| of_ranks(space, usual, ranks?, grid, level)).collect();
    let single = all(depth).chain(all(grid)).filter_map(|(dim, level)| with(space, usual, dim, level));
    // It has run, unless it is only the nearest to what has.
    let mut points = vec![usual.clone()];
    points.extend(sweep(usual));
    points.extend(others.iter().cloned());
    points.extend(single);
    points.extend(others.iter().flat_map(sweep));
    points
}

/// `about` with another level of one dimension.
fn with(space: &dyn Space, about: &Point, dim: usize, level: u16) -> Option<Point> {
    let mut point = about.clone();
    point.0[dim] = level;
    space.canonical(&point)
}

/// `usual` with another number of ranks on the grid that is nearest to its own.
fn of_ranks(space: &dyn Space, usual: &Point, ranks: usize, grid: Option<usize>, level: u16) -> Option<Point> {
    let Some(grid) = grid else { return with(space, usual, ranks, level) };
    let at = |level: usize| space.dims()[grid].levels[level].feature;
    let far = |level: &usize| (at(*level) - at(usize::from(usual.0[grid]))).abs();
    let mut grids: Vec<usize> = (0..space.dims()[grid].levels.len()).collect();
    grids.sort_by(|a, b| far(a).total_cmp(&far(b)));
    let mut of_ranks = usual.clone();
    of_ranks.0[ranks] = level;
    grids.into_iter().find_map(|on| with(space, &of_ranks, grid, u16::try_from(on).ok()?))
}

/// Levels of NB about the usual one, each larger or smaller than the last by [`NB_STEP`] at least; features are log₂ NB.
fn spaced(nb: &Dim, usual: u16) -> Vec<u16> {
    let step = NB_STEP.log2();
    let at = |level: usize| nb.levels[level].feature;
    let usual = usize::from(usual);
    let mut kept = Vec::new();
    let ways: [&mut dyn Iterator<Item = usize>; 2] = [&mut (usual + 1..nb.levels.len()), &mut (0..usual).rev()];
    for way in ways {
        let mut last = at(usual);
        for level in way {
            if (at(level) - last).abs() >= step {
                kept.push(level);
                last = at(level);
            }
        }
    }
    kept.into_iter().filter_map(|level| u16::try_from(level).ok()).collect()
}

#[cfg(test)]
mod tests {
    use space::Candidates;
    use space::domain::{DomainSpec, ForeignDomain, ForeignSpec};

    use super::super::prior::Flat;
    use super::*;
    use crate::search::history::{History, Trial};
    use crate::search::schedule::tests::spec;

    fn domain() -> ForeignDomain {
        let obeys = ["nb", "nbmin", "pfact", "depth", "swap"].map(str::to_owned).to_vec();
        let foreign = ForeignSpec { obeys, threads: true, ..ForeignSpec::default() };
        ForeignDomain::new(&DomainSpec { n: 8000, ..spec() }, &foreign).unwrap()
    }

    /// The runs of a design with `trials` usual runs of a second in the budget, all of which pass.
    fn run(domain: &ForeignDomain, trials: f64) -> Vec<Point> {
        run_where(domain, trials, |_| TrialResult::Rate(1.0))
    }

    /// The same with these outcomes.
    fn run_where(domain: &ForeignDomain, trials: f64, outcome: impl Fn(&Point) -> TrialResult) -> Vec<Point> {
        let usual = domain.point(&domain.usual()).unwrap();
        let prior = Flat { cost_s: 1.0 };
        let mut history = History::default();
        let trial = |point: Point, number| Trial { number, outcome: outcome(&point), point, wall_s: 1.0, pair: None };
        history.trials.push(trial(usual.clone(), 0));
        loop {
            let number = history.trials.len() as u64;
            let ctx = Ctx {
                space: domain,
                history: &history,
                prior: &prior,
                budget_left_s: trials,
                budget_total_s: trials,
                pairs: None,
                trial: number,
                seed: 0,
            };
            let Some(point) = next(&ctx, &usual) else { break };
            history.trials.push(trial(point, number));
        }
        history.trials.into_iter().skip(1).map(|trial| trial.point).collect()
    }

    #[test]
    fn nb_is_swept_over_its_range_with_every_number_of_ranks() {
        let domain = domain();
        let points = run(&domain, 1e6);
        let of = |ranks: usize| -> Vec<usize> {
            let candidates = points.iter().map(|point| domain.candidate(point));
            let mut nb: Vec<usize> = candidates.filter(|c| c.hpl.ranks() == ranks).map(|c| c.hpl.nb).collect();
            nb.sort_unstable();
            nb.dedup();
            nb
        };
        for ranks in [1, 2] {
            let nb = of(ranks);
            assert!(nb[0] <= 32 && nb.contains(&448) && nb.windows(2).all(|pair| pair[1] <= 2 * pair[0]), "{nb:?}");
        }
        let distinct: HashSet<&Point> = points.iter().collect();
        assert_eq!(distinct.len(), points.len());
        assert!(points.iter().any(|point| domain.candidate(point).hpl.depth == 0));
    }

    /// Ten values of NB with a number of ranks that does not start would be ten failures.
    #[test]
    fn a_number_of_ranks_that_fails_is_not_swept() {
        let domain = domain();
        let alone = |point: &Point| domain.candidate(point).hpl.ranks() == 1;
        let outcome = |point: &Point| if alone(point) { TrialResult::Failed } else { TrialResult::Rate(1.0) };
        let points = run_where(&domain, 1e6, outcome);
        assert_eq!(points.iter().filter(|point| alone(point)).count(), 1);
        assert!(points.len() > 10, "{}", points.len());
        // The usual one has passed: one failure of NB is none of its ranks.
        let failing = points[0].clone();
        let of_nb = |point: &Point| if *point == failing { TrialResult::Failed } else { TrialResult::Rate(1.0) };
        assert_eq!(run_where(&domain, 1e6, of_nb).len(), run(&domain, 1e6).len());
    }

    #[test]
    fn it_takes_a_part_of_the_budget_and_nb_comes_first() {
        let domain = domain();
        let points = run(&domain, 40.0);
        assert_eq!(points.len(), 7);
        assert!(points.iter().all(|point| domain.candidate(point).hpl.ranks() == 2));
        assert!(run(&domain, 4.0).is_empty());
    }
}
