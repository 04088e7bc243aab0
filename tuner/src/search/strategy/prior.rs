//! Priors that strategies and the driver build themselves.

use std::collections::HashMap;
use std::sync::Arc;

use space::dims::{Point, Space};

use super::Prior;

/// No model: all points are expected to be equally fast and costly.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Flat {
    /// Expected wall-clock cost of any run, in seconds.
    pub cost_s: f64,
}

impl Prior for Flat {
    fn log_rate(&self, _: &Point) -> f64 {
        0.0
    }

    fn cost_s(&self, _: &Point) -> f64 {
        self.cost_s
    }
}

/// A prior evaluated once at every point of a space, so that a suggestion does not run the model again.
#[derive(Debug, Clone)]
pub struct PriorTable<'a> {
    points: &'a [Point],
    /// Shared by the tables of one space.
    index: Arc<HashMap<&'a Point, usize>>,
    log_rates: Vec<f64>,
    costs_s: Vec<f64>,
    /// See [`Prior::balance`]; `None` where it is 0.
    balances: Option<Arc<Vec<f64>>>,
}

impl<'a> PriorTable<'a> {
    /// Evaluates `prior` at all points of `space`.
    pub fn new(space: &'a dyn Space, prior: &dyn Prior) -> Self {
        Self::of(space, prior.log_rates(space.points()), prior.costs_s(space.points()))
    }

    /// Log rates and costs of all points of `space`, in their order.
    pub(crate) fn of(space: &'a dyn Space, log_rates: Vec<f64>, costs_s: Vec<f64>) -> Self {
        let points = space.points();
        let index = Arc::new(points.iter().enumerate().map(|(i, point)| (point, i)).collect());
        Self { points, index, log_rates, costs_s, balances: None }
    }

    /// This prior with other log rates, in the order of the space's points.
    pub(crate) fn with_log_rates(&self, log_rates: Vec<f64>) -> Self {
        Self { log_rates, ..self.clone() }
    }

    /// This prior with the [balances](Prior::balance) of its points, in their order.
    pub(crate) fn with_balances(self, balances: Vec<f64>) -> Self {
        let balances = balances.iter().any(|&balance| balance != 0.0).then(|| Arc::new(balances));
        Self { balances, ..self }
    }

    /// Log rates of all points of the space, in its order.
    pub fn log_rates_of_all(&self) -> &[f64] {
        &self.log_rates
    }

    fn is_whole(&self, points: &[Point]) -> bool {
        std::ptr::eq(points, self.points)
    }
}

/// A point outside the space is expected to be infinitely slow.
impl Prior for PriorTable<'_> {
    fn log_rate(&self, point: &Point) -> f64 {
        self.index.get(point).map_or(f64::NEG_INFINITY, |&i| self.log_rates[i])
    }

    fn cost_s(&self, point: &Point) -> f64 {
        self.index.get(point).map_or(f64::INFINITY, |&i| self.costs_s[i])
    }

    fn balance(&self, point: &Point) -> f64 {
        let of = |balances: &Arc<Vec<f64>>| self.index.get(point).map(|&i| balances[i]);
        self.balances.as_ref().and_then(of).unwrap_or(0.0)
    }

    fn balances(&self, points: &[Point]) -> Option<Vec<f64>> {
        let balances = self.balances.as_ref()?;
        if self.is_whole(points) {
            return Some(balances.to_vec());
        }
        Some(points.iter().map(|point| self.balance(point)).collect())
    }

    fn log_rates(&self, points: &[Point]) -> Vec<f64> {
        if self.is_whole(points) {
            return self.log_rates.clone();
        }
        points.iter().map(|point| self.log_rate(point)).collect()
    }

    fn costs_s(&self, points: &[Point]) -> Vec<f64> {
        if self.is_whole(points) {
            return self.costs_s.clone();
        }
        points.iter().map(|point| self.cost_s(point)).collect()
    }
}
