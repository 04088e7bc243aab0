//! The calibrated model as the prior of a search.

use std::num::NonZero;

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::dims::Point;
use space::flops::rate_gflops;
use space::{Candidate, Candidates};

use crate::search::cost;
use crate::search::strategy::Prior;
use crate::search::strategy::prior::PriorTable;

/// The model's predictions for all points of `domain`, on all cores that this process may use: no run is under way meanwhile. Costs are those
/// of trials of this extent.
pub fn table<'a>(domain: &'a dyn Candidates, predictor: &Predictor, extent: Extent) -> PriorTable<'a> {
    let times = times(domain, predictor);
    let cost_s = |(point, &solve_s): (&Point, &f64)| match extent {
        Extent::Whole => cost::whole_s(solve_s),
        Extent::Windows => cost::of_solve_s(solve_s, &domain.candidate(point), extent),
    };
    let costs_s = domain.points().iter().zip(&times).map(cost_s).collect();
    let table = PriorTable::of(domain, log_rates(domain, &times), costs_s);
    let balance = |point: &Point| table.log_rate(point) - table.log_rate(&domain.balanced(point));
    let balances = domain.points().iter().map(balance).map(|log| if log.is_finite() { log } else { 0.0 }).collect();
    table.with_balances(balances)
}

/// Another model's log rates for the points of `table`, with the costs of `table`.
pub fn other_prior<'a>(table: &PriorTable<'a>, domain: &'a dyn Candidates, predictor: &Predictor) -> PriorTable<'a> {
    table.with_log_rates(log_rates(domain, &times(domain, predictor)))
}

/// Seconds of solving for each point of `domain`.
fn times(domain: &dyn Candidates, predictor: &Predictor) -> Vec<f64> {
    let points = domain.points();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    predictor.screen(points.len(), |i| domain.candidate(&points[i]), threads)
}

fn log_rates(domain: &dyn Candidates, times: &[f64]) -> Vec<f64> {
    times.iter().map(|&solve_s| rate_gflops(domain.spec().n, solve_s).ln()).collect()
}

/// How many different rates the model predicts: it is blind to several dimensions.
pub fn distinct(domain: &dyn Candidates, prior: &dyn Prior) -> usize {
    let mut rates: Vec<u64> = prior.log_rates(domain.points()).into_iter().map(f64::to_bits).collect();
    rates.sort_unstable();
    rates.dedup();
    rates.len()
}

/// The candidate that the model expects most of.
pub fn fastest(domain: &dyn Candidates, prior: &dyn Prior) -> Candidate {
    let rates = prior.log_rates(domain.points());
    let best = domain.points().iter().zip(rates).max_by(|a, b| a.1.total_cmp(&b.1));
    domain.candidate(best.expect("a domain has a point").0)
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::domain::HplDomain;

    use super::*;
    use crate::search::schedule::tests::{predictor, spec};

    #[test]
    fn costs_are_those_of_trials_of_the_search() {
        let (predictor, domain) = (predictor(), HplDomain::new(&spec()).unwrap());
        let points = domain.points();
        for extent in [Extent::Whole, Extent::Windows] {
            let table = table(&domain, &predictor, extent);
            for point in [&points[0], &points[points.len() / 2], &points[points.len() - 1]] {
                let cost_s = cost::model_s(&predictor, &domain.candidate(point), extent);
                assert!((table.cost_s(point) / cost_s - 1.0).abs() < 0.02, "{extent:?} {cost_s}");
            }
        }
    }
}
