//! The calibrated model as the prior of a search.

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::dims::Point;
use space::flops::rate_gflops;
use space::{Candidate, Candidates};

use crate::cost;
use crate::strategy::Prior;
use crate::strategy::prior::PriorTable;

/// The model's word on the points of a domain, computed anew at each question.
struct Model<'a> {
    domain: &'a dyn Candidates,
    predictor: &'a Predictor,
}

impl Prior for Model<'_> {
    fn log_rate(&self, point: &Point) -> f64 {
        let candidate = self.domain.candidate(point);
        rate_gflops(candidate.hpl.n, self.predictor.time_s(&candidate)).ln()
    }

    fn cost_s(&self, point: &Point) -> f64 {
        cost::model_s(self.predictor, &self.domain.candidate(point), Extent::Whole)
    }
}

/// The model's word on all points of `domain`, computed once.
pub fn table<'a>(domain: &'a dyn Candidates, predictor: &Predictor) -> PriorTable<'a> {
    PriorTable::new(domain, &Model { domain, predictor })
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
