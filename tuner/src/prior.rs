//! The model's word on every point of the space, computed once per session.

use std::collections::HashMap;

use objectives::predict::Predictor;
use space::dims::{Point, Space};
use space::domain::HplDomain;
use space::flops::rate_gflops;

use crate::cost;
use crate::strategy::Prior;

/// Predictions of the calibrated model for all points of a domain.
pub struct ModelPrior {
    by_point: HashMap<Point, Expected>,
}

#[derive(Clone, Copy)]
struct Expected {
    log_rate: f64,
    cost_s: f64,
}

impl ModelPrior {
    /// Asks the model about every point of `domain`.
    pub fn new(domain: &HplDomain, predictor: &Predictor) -> Self {
        let expect = |point: &Point| {
            let candidate = domain.candidate(point);
            let time_s = predictor.time_s(&candidate);
            let log_rate = rate_gflops(candidate.hpl.n, time_s).ln();
            (point.clone(), Expected { log_rate, cost_s: cost::model_s(predictor, &candidate) })
        };
        Self { by_point: domain.points().iter().map(expect).collect() }
    }

    /// How many different rates the model predicts: it is blind to several dimensions.
    pub fn distinct(&self) -> usize {
        let mut rates: Vec<u64> = self.by_point.values().map(|e| e.log_rate.to_bits()).collect();
        rates.sort_unstable();
        rates.dedup();
        rates.len()
    }

    fn expected(&self, point: &Point) -> Expected {
        // A point outside the domain is no candidate: expect nothing of it.
        self.by_point.get(point).copied().unwrap_or(Expected { log_rate: f64::MIN_POSITIVE.ln(), cost_s: f64::MAX })
    }
}

impl Prior for ModelPrior {
    fn log_rate(&self, point: &Point) -> f64 {
        self.expected(point).log_rate
    }

    fn cost_s(&self, point: &Point) -> f64 {
        self.expected(point).cost_s
    }
}
