//! What one seed makes of a landscape: the k-th run of each point, what crashes, when the machine slows down.
//!
//! All of it follows from (seed, point, repeat) by a hash, never from who asks, so that every tool meets the same
//! luck; `tuner/benches/peers.py` computes the same numbers.

use space::dims::Space;

use super::landscape::Landscape;
use crate::search::hashed::{hash, normal};

/// What is added to the recorded landscape.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scenario {
    /// Relative standard deviation of every run around the mean of its point, in place of the recorded runs.
    pub cv: Option<f64>,
    /// Share of the points that crash, in boxes of two dimensions.
    pub crash: f64,
    /// Relative loss of speed from the middle of the evaluations, or of a session, on.
    pub drift: f64,
    /// Standard deviation of the logarithm of a speed that changes all the time, as on a machine that others share; in sessions.
    pub wander: f64,
    /// Standard deviation of the logarithm of the ratio that two runs in turn in one process show, in that of two runs one after the
    /// other; `None` where there are no such runs; in sessions.
    pub pair_noise: Option<f64>,
    /// Evaluations of one search.
    pub evals: usize,
}

/// One seed's version of a landscape.
#[derive(Debug, Clone)]
pub struct SeededLandscape<'a> {
    landscape: &'a Landscape,
    scenario: Scenario,
    seed: u64,
    dead: Vec<bool>,
}

impl<'a> SeededLandscape<'a> {
    /// The world of `seed`.
    pub fn new(landscape: &'a Landscape, scenario: Scenario, seed: u64) -> Self {
        let mut world = Self { landscape, scenario, seed, dead: vec![false; landscape.len()] };
        world.dead = world.crashing();
        world
    }

    /// The recorded landscape.
    pub fn landscape(&self) -> &'a Landscape {
        self.landscape
    }

    /// Its scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The value, in the table's unit, of the `repeat`-th run of a point as the `number`-th evaluation of a search, both
    /// from 0; `None` for a run that fails.
    pub fn run(&self, at: usize, repeat: usize, number: usize) -> Option<f64> {
        let truth = self.truth(at)?;
        let site = &self.landscape.sites[at];
        let noise = normal(self.seed, at as u64, repeat as u64);
        let value = match self.scenario.cv {
            Some(cv) => truth * (cv * noise).exp(),
            None => site.runs[self.drawn(at, repeat)] * (site.cv * noise).exp(),
        };
        let slower = self.scenario.drift > 0.0 && number >= self.scenario.evals / 2;
        let rate = self.landscape.rate(value) * if slower { 1.0 - self.scenario.drift } else { 1.0 };
        Some(self.landscape.rate(rate))
    }

    /// The mean value of a point in the table's unit; `None` where it fails.
    pub fn truth(&self, at: usize) -> Option<f64> {
        self.landscape.truth(at).filter(|_| !self.dead[at])
    }

    /// The mean of a point as a rate, 0 where it fails.
    pub fn rate(&self, at: usize) -> f64 {
        self.truth(at).map_or(0.0, |value| self.landscape.rate(value))
    }

    /// The best mean as a rate.
    pub fn best(&self) -> f64 {
        (0..self.landscape.len()).map(|at| self.rate(at)).fold(0.0, f64::max)
    }

    /// Which of the recorded runs is the `repeat`-th: they come in a random order, then again in the same.
    fn drawn(&self, at: usize, repeat: usize) -> usize {
        let count = self.landscape.sites[at].runs.len();
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|&run| hash(self.seed, at as u64, run as u64, 2));
        order[repeat % count]
    }

    /// Boxes of one level in each of two dimensions, or of one level where there is one dimension alone, until the
    /// wanted share of the points is covered; a box that would cover twice the share is left out.
    fn crashing(&self) -> Vec<bool> {
        let (dims, points) = (self.landscape.space.dims(), self.landscape.space.points());
        let wanted = (self.scenario.crash * points.len() as f64).round() as usize;
        let mut dead = vec![false; points.len()];
        for k in 0..1000 {
            let draw = |i: u64, below: usize| (hash(self.seed, k, i, 3) % below as u64) as usize;
            let (a, b) = (draw(0, dims.len()), draw(1, dims.len()));
            let level = |i, d: usize| draw(i, dims[d].levels.len()) as u16;
            let (on_a, on_b) = (level(2, a), level(3, b));
            let hit = |at: &usize| points[*at].0[a] == on_a && (a == b || points[*at].0[b] == on_b);
            let hits: Vec<usize> = (0..points.len()).filter(hit).collect();
            let covered = dead.iter().filter(|dead| **dead).count();
            if covered >= wanted {
                break;
            }
            if covered + hits.len() <= wanted.max(1) * 3 / 2 && (a != b || dims.len() == 1) {
                hits.into_iter().for_each(|at| dead[at] = true);
            }
        }
        dead
    }
}

/// How many steps a wandering speed takes to forget its past, to a factor of e.
const MEMORY: f64 = 10.0;

/// A speed of standard deviation 1 that wanders: a step of the process of Ornstein and Uhlenbeck after the other, until `steps`.
pub fn wander(seed: u64, steps: usize) -> f64 {
    let kept = (-1.0 / MEMORY).exp();
    let luck = |step: usize| normal(seed, u64::MAX, step as u64);
    (1..=steps).fold(luck(0), |at, step| kept * at + (1.0 - kept * kept).sqrt() * luck(step))
}

#[cfg(test)]
mod tests {
    use super::super::landscape::tests::hill;
    use super::*;

    #[test]
    fn a_wandering_speed_has_its_deviation_and_its_memory() {
        let [now, soon, late] =
            [100, 105, 200].map(|steps| (0..2000).map(|seed| wander(seed, steps)).collect::<Vec<f64>>());
        let product = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / 2000.0;
        assert!((product(&now, &now) - 1.0).abs() < 0.1, "{}", product(&now, &now));
        assert!((product(&now, &soon) - (-0.5_f64).exp()).abs() < 0.1, "{}", product(&now, &soon));
        assert!(product(&now, &late).abs() < 0.1, "{}", product(&now, &late));
    }

    #[test]
    fn recorded_runs_come_each_once_before_any_comes_again() {
        let landscape = hill(0);
        let world = SeededLandscape::new(&landscape, Scenario { evals: 10, ..Scenario::default() }, 5);
        let mut values: Vec<f64> = (0..3).map(|repeat| world.run(4, repeat, 0).unwrap()).collect();
        values.sort_by(f64::total_cmp);
        let mut runs = landscape.sites[4].runs.clone();
        runs.sort_by(f64::total_cmp);
        assert_eq!(values, runs);
        assert_eq!(world.run(4, 3, 0), world.run(4, 0, 9));
    }

    #[test]
    fn a_drift_slows_the_second_half_and_crashes_cover_their_share() {
        let landscape = hill(0);
        let scenario = Scenario { cv: Some(0.0), crash: 0.2, drift: 0.1, evals: 10, ..Scenario::default() };
        for seed in 0..20 {
            let world = SeededLandscape::new(&landscape, scenario, seed);
            let dead = (0..landscape.len()).filter(|&at| world.truth(at).is_none()).count();
            assert!((landscape.len() / 10..=landscape.len() * 2 / 5).contains(&dead), "{dead} of {}", landscape.len());
            let alive = (0..landscape.len()).find(|&at| world.truth(at).is_some()).unwrap();
            let (before, after) = (world.run(alive, 0, 4).unwrap(), world.run(alive, 0, 5).unwrap());
            assert!((after / before - 0.9).abs() < 1e-12);
        }
    }
}
