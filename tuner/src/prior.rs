//! The calibrated model as the prior of a search.

use std::num::NonZero;

use objectives::predict::Predictor;
use space::flops::rate_gflops;
use space::{Candidate, Candidates};

use crate::cost;
use crate::strategy::Prior;
use crate::strategy::prior::PriorTable;

/// The model's word on all points of `domain`, on all cores that this process may use: no run is under way meanwhile.
pub fn table<'a>(domain: &'a dyn Candidates, predictor: &Predictor) -> PriorTable<'a> {
    let (points, n) = (domain.points(), domain.spec().n);
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let times = predictor.screen(points.len(), |i| domain.candidate(&points[i]), threads);
    let log_rates = times.iter().map(|&solve_s| rate_gflops(n, solve_s).ln()).collect();
    let costs_s = times.into_iter().map(cost::whole_s).collect();
    PriorTable::of(domain, log_rates, costs_s)
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
