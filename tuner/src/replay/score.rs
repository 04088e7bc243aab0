//! How good searches were: the measures by which tools are compared.

use std::collections::HashSet;

use serde::Serialize;

use super::trace::SearchTrace;
use super::world::SeededLandscape;

/// Distances from the best rate that count as reached.
pub const GOALS: [f64; 3] = [0.01, 0.0025, 0.001];
/// Times at which [`ToolScore::performance`] is sampled, as in \[AutoTuning\].
const SAMPLES: usize = 50;
/// Share of the way from the median to the best that random search goes until the last of them.
const CUTOFF: f64 = 0.95;

/// Evaluations until a point within a goal was run, over all seeds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Reach {
    /// Largest relative distance of the point's mean rate from the best.
    pub within: f64,
    /// Mean over the seeds; a search that never reached it counts its evaluations and one more.
    pub mean: f64,
    /// 90th percentile.
    pub p90: usize,
    /// Searches that never reached it.
    pub never: usize,
}

/// The gain over the declared best that was predicted, and the true one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct GainBound {
    /// The bound, relative, mean over the searches that named one.
    pub at_most: f64,
    /// Share of them in which no more was left.
    pub held: f64,
}

/// The measures of one tool on one landscape.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolScore {
    /// The tool.
    pub tool: String,
    /// Number of searches.
    pub seeds: usize,
    /// Evaluations to each of [`GOALS`].
    pub reach: [Reach; 3],
    /// Mean over time of (tool − random) / (best − random), where random is the expectation of uniform search without
    /// replacement: 0 as good as random, 1 the best from the start \[AutoTuning\].
    pub performance: f64,
    /// True relative distance of the declared best from the best, 95th percentile.
    pub regret_p95: f64,
    /// True relative distance of the declared best from the best, mean.
    pub regret_mean: f64,
    /// Evaluations of a search, mean.
    pub evaluations: f64,
    /// What searches said in the end that was left to gain; `None` where none said it.
    pub left: Option<GainBound>,
    /// Failed evaluations of a search, mean.
    pub failed: f64,
    /// Evaluations of points run before in the same search, mean.
    pub repeats: f64,
    /// Seconds that a suggestion took, 95th percentile.
    pub ask_s_p95: f64,
}

/// Scores the searches of one tool, each with the world that it met.
///
/// # Panics
/// Without any search.
pub fn score(searches: &[(SearchTrace, SeededLandscape<'_>)]) -> ToolScore {
    let seeds = searches.len();
    let mean = |value: &dyn Fn(&SearchTrace, &SeededLandscape<'_>) -> f64| {
        searches.iter().map(|(trace, world)| value(trace, world)).sum::<f64>() / seeds as f64
    };
    let regret = |trace: &SearchTrace, world: &SeededLandscape<'_>| {
        1.0 - trace.declared.map_or(0.0, |at| world.rate(at)) / world.best()
    };
    let mut regrets: Vec<f64> = searches.iter().map(|(trace, world)| regret(trace, world)).collect();
    let mut asks: Vec<f64> = searches.iter().flat_map(|(trace, _)| trace.ask_s.iter().copied()).collect();
    let repeats = |trace: &SearchTrace, _: &SeededLandscape<'_>| {
        let distinct: HashSet<usize> = trace.points.iter().copied().collect();
        (trace.points.len() - distinct.len()) as f64
    };
    ToolScore {
        tool: searches[0].0.tool.clone(),
        seeds,
        reach: GOALS.map(|within| reach(searches, within)),
        performance: performance(searches),
        regret_p95: percentile(&mut regrets, 95),
        regret_mean: mean(&regret),
        evaluations: mean(&|trace, _| trace.points.len() as f64),
        left: gain_bound(searches),
        failed: mean(&|trace, world| trace.points.iter().filter(|at| world.truth(**at).is_none()).count() as f64),
        repeats: mean(&repeats),
        ask_s_p95: percentile(&mut asks, 95),
    }
}

fn gain_bound(searches: &[(SearchTrace, SeededLandscape<'_>)]) -> Option<GainBound> {
    let named = searches.iter().filter_map(|(trace, world)| {
        let rate = world.rate(trace.declared?);
        Some((trace.left?.at_most, world.best() / rate - 1.0))
    });
    let (bounds, held): (Vec<f64>, Vec<f64>) =
        named.map(|(bound, left)| (bound, f64::from(u8::from(left <= bound)))).unzip();
    (!bounds.is_empty()).then(|| GainBound { at_most: space::stats::mean(&bounds), held: space::stats::mean(&held) })
}

fn reach(searches: &[(SearchTrace, SeededLandscape<'_>)], within: f64) -> Reach {
    let hits = searches.iter().map(|(trace, world)| {
        let wanted = world.best() * (1.0 - within);
        let hit = trace.points.iter().position(|&at| world.rate(at) >= wanted);
        (hit.map_or(world.scenario().evals.max(trace.points.len()) + 1, |at| at + 1), hit.is_none())
    });
    let hits: Vec<(usize, bool)> = hits.collect();
    let mut counts: Vec<f64> = hits.iter().map(|(count, _)| *count as f64).collect();
    Reach {
        within,
        mean: counts.iter().sum::<f64>() / counts.len() as f64,
        p90: percentile(&mut counts, 90) as usize,
        never: hits.iter().filter(|(_, never)| *never).count(),
    }
}

/// The smallest value that at least `percent` of them do not exceed; 0 of none.
pub(crate) fn percentile(values: &mut [f64], percent: usize) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get((values.len() * percent).div_ceil(100).saturating_sub(1)).copied().unwrap_or(0.0)
}

/// [`ToolScore::performance`]: the time axis is that of the recorded costs plus the time of the suggestions, and ends where
/// random search is expected to have gone 95 % of the way from the median to the best.
fn performance(searches: &[(SearchTrace, SeededLandscape<'_>)]) -> f64 {
    let total: f64 = searches.iter().map(|(trace, world)| one_performance(trace, world)).sum();
    total / searches.len() as f64
}

fn one_performance(trace: &SearchTrace, world: &SeededLandscape<'_>) -> f64 {
    let landscape = world.landscape();
    let random = RandomSearch::new(world);
    let cost_s = landscape.sites.iter().map(|site| site.cost_s).sum::<f64>() / landscape.len() as f64;
    let mut ends = Vec::with_capacity(trace.points.len());
    let (mut clock_s, mut best) = (0.0, 0.0_f64);
    for (&at, ask_s) in trace.points.iter().zip(&trace.ask_s) {
        clock_s += ask_s + landscape.sites[at].cost_s;
        best = best.max(world.rate(at));
        ends.push((clock_s, best));
    }
    let last = random.evaluations_to(CUTOFF);
    // From the end of random search's first run to the start of the one after the last.
    let sample = |k: usize| {
        let evaluations = 1.0 + last as f64 * (k as f64 + 0.5) / SAMPLES as f64;
        let expected = random.after(evaluations as usize);
        // Before its first run has ended a search holds what random search does.
        let found = ends.iter().take_while(|(end, _)| *end <= evaluations * cost_s).last();
        let found = found.map_or(expected, |(_, best)| best.max(random.worst()));
        let left = random.best() - expected;
        // Random search has seen it all.
        if left > 0.0 { (found - expected) / left } else { 0.0 }
    };
    (0..SAMPLES).map(sample).sum::<f64>() / SAMPLES as f64
}

/// The expectation of uniform search without replacement; a failing point is as good as the worst that passes.
struct RandomSearch {
    /// Rates of all points, best first.
    rates: Vec<f64>,
}

impl RandomSearch {
    fn new(world: &SeededLandscape<'_>) -> Self {
        let rates = (0..world.landscape().len()).map(|at| world.rate(at));
        let worst = rates.clone().filter(|rate| *rate > 0.0).fold(f64::INFINITY, f64::min);
        let mut rates: Vec<f64> = rates.map(|rate| rate.max(worst)).collect();
        rates.sort_by(|a, b| b.total_cmp(a));
        Self { rates }
    }

    fn best(&self) -> f64 {
        self.rates[0]
    }

    fn worst(&self) -> f64 {
        self.rates[self.rates.len() - 1]
    }

    /// Expected best rate after a number of evaluations:
    /// the best of n draws is the j-th with probability C(N−1−j, n−1) / C(N, n).
    fn after(&self, draws: usize) -> f64 {
        let (count, draws) = (self.rates.len() as f64, draws.min(self.rates.len()) as f64);
        let (mut probability, mut sum) = (draws / count, 0.0);
        for (j, rate) in self.rates.iter().enumerate() {
            sum += probability * rate;
            let rest = count - j as f64 - 1.0;
            if rest < draws {
                break;
            }
            probability *= (rest - draws + 1.0) / rest;
        }
        sum
    }

    /// The fewest evaluations after which the expectation is `share` of the way from the median to the best.
    fn evaluations_to(&self, share: f64) -> usize {
        let median = self.rates[self.rates.len() / 2];
        let wanted = median + share * (self.best() - median);
        let (mut low, mut high) = (1, self.rates.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.after(middle) >= wanted { high = middle } else { low = middle + 1 }
        }
        low
    }
}

#[cfg(test)]
mod tests {
    use super::super::landscape::tests::hill;
    use super::super::world::Scenario;
    use super::*;

    #[test]
    fn random_search_is_expected_as_counted() {
        let random = RandomSearch { rates: vec![4.0, 2.0, 1.0] };
        assert!((random.after(1) - 7.0 / 3.0).abs() < 1e-12);
        // Pairs: (4,2) (4,1) (2,1).
        assert!((random.after(2) - 10.0 / 3.0).abs() < 1e-12);
        assert!((random.after(3) - 4.0).abs() < 1e-12 && (random.after(9) - 4.0).abs() < 1e-12);
        assert_eq!((random.evaluations_to(0.95), random.evaluations_to(0.5)), (3, 2));
    }

    #[test]
    fn a_search_is_scored_by_what_it_ran() {
        let landscape = hill(0);
        let scenario = Scenario { cv: Some(0.0), evals: 6, ..Scenario::default() };
        let world = SeededLandscape::new(&landscape, scenario, 1);
        let mut order: Vec<usize> = (0..landscape.len()).collect();
        order.sort_by(|a, b| world.rate(*a).total_cmp(&world.rate(*b)));
        let (worst, best) = (order[0], order[order.len() - 1]);
        let trace = |points: Vec<usize>, declared| SearchTrace {
            tool: "t".into(),
            landscape: "hill".into(),
            seed: 1,
            ask_s: vec![0.0; points.len()],
            points,
            declared: Some(declared),
            left: None,
        };
        let of = |traces: &[SearchTrace]| {
            score(&traces.iter().map(|trace| (trace.clone(), world.clone())).collect::<Vec<_>>())
        };
        let at_once = of(&[trace(vec![best], best)]);
        assert_eq!(at_once.reach.map(|reach| (reach.mean, reach.p90, reach.never)), [(1.0, 1, 0); 3]);
        assert!((at_once.performance - 1.0).abs() < 1e-9 && at_once.regret_p95 == 0.0);
        let late = of(&[trace(vec![worst, worst, best], worst), trace(vec![worst], worst)]);
        assert_eq!((late.reach[0].mean, late.reach[0].p90, late.reach[0].never), (5.0, 7, 1));
        assert!(late.performance < at_once.performance && late.regret_p95 > 0.05);
        assert_eq!(late.repeats, 0.5);
    }

    #[test]
    fn a_search_in_random_order_is_as_good_as_random() {
        let landscape = hill(0);
        let scenario = Scenario { cv: Some(0.0), evals: landscape.len(), ..Scenario::default() };
        let searches: Vec<(SearchTrace, SeededLandscape<'_>)> = (0..400)
            .map(|seed| {
                let mut points: Vec<usize> = (0..landscape.len()).collect();
                points.sort_by_key(|&at| crate::search::hashed::hash(seed, at as u64, 9, 9));
                let ask_s = vec![0.0; points.len()];
                let trace = SearchTrace {
                    tool: "random".into(),
                    landscape: "hill".into(),
                    seed,
                    points,
                    ask_s,
                    declared: None,
                    left: None,
                };
                (trace, SeededLandscape::new(&landscape, scenario, seed))
            })
            .collect();
        let score = score(&searches);
        assert!(score.performance.abs() < 0.08, "{}", score.performance);
    }
}
