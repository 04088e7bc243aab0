//! What the model knows of the distribution of blocks among nodes of unequal speed.

use space::dims::Point;

use crate::search::strategy::context::finite;
use crate::search::strategy::warp::Warp;
use crate::search::strategy::{Ctx, Prior};

/// [`Prior::balance`] on the levelled scale of what the model expects: it holds under every hypothesis, also where runs contradict the
/// rest of the model.
pub(super) struct Balance<'a> {
    prior: &'a dyn Prior,
    scale: Warp,
    /// Of all points of the space, in its order; `None` where all are 0.
    all: Option<Vec<f64>>,
}

impl<'a> Balance<'a> {
    pub(super) fn new(ctx: &Ctx<'a>) -> Self {
        let points = ctx.space.points();
        let Some(balances) = ctx.prior.balances(points) else {
            return Self { prior: ctx.prior, scale: Warp { best: 0.0 }, all: None };
        };
        let logs: Vec<f64> = ctx.prior.log_rates(points).into_iter().map(finite).collect();
        let scale = Warp { best: logs.iter().copied().reduce(f64::max).unwrap_or(0.0) };
        let all = logs.iter().zip(&balances).map(|(&log, &balance)| levels(scale, log, balance)).collect();
        Self { prior: ctx.prior, scale, all: Some(all) }
    }

    /// That of a point.
    pub(super) fn of(&self, point: &Point) -> f64 {
        let known = self.all.is_some();
        if known { levels(self.scale, finite(self.prior.log_rate(point)), self.prior.balance(point)) } else { 0.0 }
    }

    pub(super) fn of_all(&self, points: &[&Point]) -> Vec<f64> {
        points.iter().map(|point| self.of(point)).collect()
    }

    /// Levels of all points of the space as if their blocks were dealt by the measured speeds; a guess knows of no other.
    pub(super) fn taken_off(&self, levels: Vec<f64>, is_guess: bool) -> Vec<f64> {
        match &self.all {
            Some(all) if !is_guess => levels.into_iter().zip(all).map(|(level, balance)| level - balance).collect(),
            _ => levels,
        }
    }

    /// The same levels as their blocks are dealt.
    pub(super) fn put_on(&self, levels: Vec<f64>) -> Vec<f64> {
        match &self.all {
            Some(all) => levels.into_iter().zip(all).map(|(level, balance)| level + balance).collect(),
            None => levels,
        }
    }
}

fn levels(scale: Warp, log: f64, balance: f64) -> f64 {
    scale.level(log) - scale.level(log - balance)
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::listed::Listed;

    use super::*;
    use crate::search::history::TrialResult;
    use crate::search::strategy::bayes::Bayes;
    use crate::search::strategy::prior::{Flat, PriorTable};
    use crate::search::strategy::surrogate::Surrogate;
    use crate::search::strategy::testing::{noise, ordered, session};

    /// The model has NB the wrong way round, and knows what weights do. Runs contradict it, and the noise of single runs is as large as
    /// what the nearest weights lose.
    #[test]
    fn a_model_that_is_wrong_about_nb_is_believed_about_weights() {
        const LOST: [(u16, f64); 4] = [(0, 0.02), (1, 0.01), (3, 0.08), (4, 0.3)];
        let dims =
            vec![ordered("nb", &[5.0, 5.6, 6.0, 6.6, 7.0, 7.6]), ordered("weights", &[-0.2, -0.1, 0.0, 0.1, 0.4])];
        let space = Listed::product(dims, |_| true);
        let by_weights = |point: &Point| [-0.02, -0.01, 0.0, -0.08, -0.3][usize::from(point.0[1])];
        let by_nb = |point: &Point| 0.04 * f64::from(point.0[0]);
        let points = space.points().iter();
        let expected: Vec<f64> = points.clone().map(|point| 4.0 - by_nb(point) + by_weights(point)).collect();
        let model = PriorTable::new(&space, &Flat { cost_s: 1.0 }).with_log_rates(expected);
        let prior = model.with_balances(points.map(by_weights).collect());
        let said = |seed: u64| {
            let run = |point: &Point, repeat| {
                TrialResult::Rate((3.0 + by_nb(point) + by_weights(point) + 0.01 * noise(seed, point, repeat)).exp())
            };
            let history = session(&Bayes, &space, &prior, seed, &run, |_, _| false, 20);
            let (budget_left_s, budget_total_s, trial) = (1e3, 1e3, 20);
            let (space, history, prior) = (&space, &history, &prior);
            let ctx = Ctx { space, history, prior, budget_left_s, budget_total_s, pairs: None, trial, seed };
            let surrogate = Surrogate::new(&ctx);
            let at = |nb, weights| surrogate.prediction(&Point(vec![nb, weights])).rate_gflops;
            assert!(at(5, 2) > at(0, 2), "the runs are believed about NB");
            LOST.map(|(weights, _)| (at(5, 2) / at(5, weights)).ln())
        };
        let seeds: Vec<[f64; 4]> = (1..=6).map(said).collect();
        for (at, (weights, lost)) in LOST.into_iter().enumerate() {
            // A single search is off by its luck with some of the runs.
            let said = seeds.iter().map(|said| said[at]).sum::<f64>() / seeds.len() as f64;
            assert!((said / lost - 1.0).abs() < 0.5, "weights {weights}: {said}, {lost} in truth");
        }
    }
}
