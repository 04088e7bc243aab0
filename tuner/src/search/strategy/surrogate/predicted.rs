//! What the process says of points.

use std::collections::HashSet;

use space::dims::Point;

use super::fitted::{Fitted, NOISE, OFFSET_SD, Surrogate, TOGETHER, is_long, most_runs};
use crate::record::Prediction;
use crate::record::lead::Lead;
use crate::search::history::History;
use crate::search::strategy::at_once;
use crate::search::strategy::gp::kernel::KernelDims;
use crate::search::strategy::gp::posterior::{FIT_POINTS, Marginal};
use crate::search::strategy::gp::screen::{Groups, Screened, screen};

/// A point beside its rival, the best of the other tried points, on the levelled scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Contrast {
    /// Its mean less that of the rival; of the best one the other way round.
    pub(crate) lead: f64,
    /// Standard deviation of what one run of the point changes of that, or where [pairs pay](Surrogate::paying_pairs) and the two can be
    /// measured in turn, what one pair of both does.
    pub(crate) sd: f64,
    /// Place of the rival; `None` where nothing else was tried.
    pub(crate) rival: Option<usize>,
}

/// The first runs, as many as are taken by themselves: a search has its pairs among them.
pub(crate) fn first_runs(history: &History) -> History {
    let first = |count: usize| {
        let trials = history.trials.iter().take(count).cloned().collect();
        History { trials, ..History::default() }
    };
    let most = first(most_runs(history));
    // They may have been shorter than later ones.
    if is_long(&most) { first(FIT_POINTS) } else { most }
}

impl Surrogate<'_> {
    /// Those of the tried points, each with a trial, that may lead: of many only what the process is conditioned on.
    pub(crate) fn contenders<'b>(&self, mut tried: Vec<(&'b Point, u64)>) -> Vec<(&'b Point, u64)> {
        if is_long(self.ctx.history)
            && let Some(Fitted { posterior, .. }) = self.fits.first()
        {
            let known: HashSet<&Point> = posterior.data.points.iter().collect();
            tried.retain(|(point, _)| known.contains(point));
        }
        tried
    }

    /// Standard deviation of the log rate of one run, near the best.
    pub fn noise_sd(&self) -> f64 {
        self.fits.first().map_or_else(|| NOISE.median, |fitted| fitted.posterior.hyper.noise)
    }

    /// How far `best` is ahead of `usual`; of a pair the deviation of two runs, one right after the other. `None` before the first run.
    pub(crate) fn lead(&self, best: &Point, usual: &Point) -> Option<Lead> {
        let points = [best, usual];
        let balances = self.balance.of_all(&points);
        let first = &self.fits.first()?.posterior;
        let of_fit = |Fitted { centre, posterior, weight, .. }: &Fitted| {
            let basis = points.map(|point| self.expected(point) - centre);
            let at = posterior.predict(&points, &basis);
            let apart = (at[0].mean + balances[0]) - (at[1].mean + balances[1]);
            (*weight, apart, posterior.differences(&points, &basis, 1)[0])
        };
        let by: Vec<(f64, f64, f64)> = self.fits.iter().map(of_fit).collect();
        let apart: f64 = by.iter().map(|(weight, apart, _)| weight * apart).sum();
        let variance: f64 = by.iter().map(|(weight, at, left)| weight * (left + (at - apart).powi(2))).sum();
        // Levels are stretched where rates are far below the best.
        let usual = self.predict(&[usual])[0].mean;
        let log = |mean, sd| self.seen.log_rate(Marginal { mean, sd });
        let mean = log(usual + apart, 0.0).mean - log(usual, 0.0).mean;
        Some(Lead { mean, sd: log(usual, variance.sqrt()).sd, pair_sd: first.hyper.noise_of_two_runs().sqrt() })
    }

    /// What a pair costs, as [`PairTrials::cost`](crate::search::strategy::PairTrials::cost), where two points are told apart by it in less time
    /// than by runs of both one after the other: what is learned grows with the inverse of the variance. Of many runs only those alone
    /// are taken.
    pub(crate) fn paying_pairs(&self) -> Option<f64> {
        let hyper = &self.fits.first()?.posterior.hyper;
        let cost = self.ctx.pairs.filter(|_| !is_long(self.ctx.history))?.cost;
        (hyper.noise_of_pair() * cost < hyper.noise_of_two_runs()).then_some(cost)
    }

    /// Standard deviation of the noise of a pair, where it [pays](Self::paying_pairs).
    pub(crate) fn sd_of_paying_pair(&self) -> Option<f64> {
        self.paying_pairs()?;
        Some(self.fits.first()?.posterior.hyper.noise_of_pair().sqrt())
    }

    /// The number of points that the process is conditioned on.
    #[cfg(test)]
    pub(crate) fn conditioned_on(&self) -> usize {
        self.fits.first().map_or(0, |fitted| fitted.posterior.data.len())
    }

    /// The first trial after a change of speed that is likely, but not yet accepted.
    pub(crate) fn suspect(&self) -> Option<usize> {
        self.suspect
    }

    /// Mean and standard deviation on the levelled scale, without the noise of a run.
    pub(crate) fn predict(&self, points: &[&Point]) -> Vec<Marginal> {
        let mut by = self.predict_by(points);
        if by.len() == 1 {
            return by.remove(0).1;
        }
        let moments = |i: usize| {
            let mean: f64 = by.iter().map(|(weight, at)| weight * at[i].mean).sum();
            let square: f64 =
                by.iter().map(|(weight, at)| weight * (at[i].sd.powi(2) + (at[i].mean - mean).powi(2))).sum();
            Marginal { mean, sd: square.sqrt() }
        };
        (0..points.len()).map(moments).collect()
    }

    /// Draws of the levels of points, which rise and fall together: under each hypothesis by its probability, and under `ways`
    /// draws of its hyperparameters; none before the first run. `normal` gives standard normal numbers.
    pub(crate) fn draws(
        &self,
        points: &[&Point],
        (ways, count): (usize, usize),
        normal: &mut dyn FnMut() -> f64,
    ) -> Vec<Vec<f64>> {
        let axes = KernelDims::new(self.ctx.space.dims());
        let mut all = Vec::with_capacity(ways * count);
        let balances = self.balance.of_all(points);
        for Fitted { centre, level, posterior, weight, .. } in &self.fits {
            let basis: Vec<f64> = points.iter().map(|point| self.expected(point) - centre).collect();
            for one in posterior.drawn(&axes, (ways as f64 * weight).round() as usize, normal) {
                let levels = one.joint(points, &basis).draws(count, normal);
                let on = |drawn: Vec<f64>| {
                    drawn.into_iter().zip(&balances).map(|(y, balance)| y + level + balance).collect()
                };
                all.extend(levels.into_iter().map(on));
            }
        }
        all
    }

    /// [`Self::predict`] under each hypothesis, with its probability.
    pub(crate) fn predict_by(&self, points: &[&Point]) -> Vec<(f64, Vec<Marginal>)> {
        let expected: Vec<f64> = points.iter().map(|point| self.expected(point)).collect();
        let balances = self.balance.of_all(points);
        if self.fits.is_empty() {
            let sd = self.beliefs(TOGETHER).prior_sd().hypot(OFFSET_SD);
            let one = |(level, balance): (&f64, &f64)| Marginal { mean: level + balance, sd };
            return vec![(1.0, expected.iter().zip(&balances).map(one).collect())];
        }
        let one = |Fitted { centre, level, posterior, weight, .. }: &Fitted| {
            let basis: Vec<f64> = expected.iter().map(|level| level - centre).collect();
            let marginals = posterior.predict(points, &basis).into_iter().zip(&balances);
            (*weight, marginals.map(|(at, balance)| Marginal { mean: at.mean + level + balance, ..at }).collect())
        };
        self.fits.iter().map(one).collect()
    }

    /// Each of `points`, of which the first `tried` were run, beside its rival, under each hypothesis with its probability. The
    /// rival of the best one is the second. Where nothing else was tried, the lead is the mean.
    pub(crate) fn contrasts(&self, points: &[&Point], tried: usize) -> Vec<(f64, Vec<Contrast>)> {
        let alone = |at: &Marginal| Contrast { lead: at.mean, sd: at.sd, rival: None };
        let by_pairs = self.paying_pairs().is_some();
        if self.fits.is_empty() || tried == 0 {
            let by = self.predict_by(points).into_iter();
            return by.map(|(weight, at)| (weight, at.iter().map(alone).collect())).collect();
        }
        let balances = self.balance.of_all(points);
        let one = |Fitted { centre, posterior, weight, .. }: &Fitted| {
            let basis: Vec<f64> = points.iter().map(|point| self.expected(point) - centre).collect();
            let at = posterior.predict_with_speed(points, &basis);
            let mean = |i: usize| at[i].0.mean + balances[i];
            let best_but = |other: Option<usize>| {
                let others = (0..tried).filter(|&i| Some(i) != other);
                others.max_by(|&a, &b| mean(a).total_cmp(&mean(b)))
            };
            let leader = best_but(None).expect("one was tried");
            let second = best_but(Some(leader));
            let apart = by_pairs.then(|| posterior.differences(&points[..tried], &basis[..tried], leader));
            let contrast = |i: usize| {
                let (here, of_speed) = at[i];
                // A run of the best one can only gain by showing that the second is better.
                let (rival, sign) = if i == leader { (second, -1.0) } else { (Some(leader), 1.0) };
                let Some(rival) = rival else { return alone(&Marginal { mean: mean(i), ..here }) };
                let is_pair = || i < tried && self.ctx.can_pair([points[i], points[rival]]);
                let apart =
                    apart.as_ref().filter(|_| is_pair()).map(|apart| apart[if i == leader { rival } else { i }]);
                let sd = match apart {
                    Some(variance) => variance / (variance + posterior.hyper.noise_of_pair()).sqrt(),
                    None => (here.sd * here.sd - of_speed).max(0.0) / here.sd.hypot(posterior.hyper.noise),
                };
                Contrast { lead: sign * (mean(i) - mean(rival)), sd, rival: Some(rival) }
            };
            (*weight, (0..points.len()).map(contrast).collect())
        };
        at_once(&self.fits, one)
    }

    /// A rough optimistic level of every point of the space: the mean plus `spread` standard deviations; the highest of the
    /// hypotheses'.
    pub(crate) fn optimistic(&self, spread: f64) -> Vec<f64> {
        let groups = Groups::new(self.ctx.space.points());
        let one = |Fitted { centre, level, posterior, .. }: &Fitted| -> Vec<f64> {
            let basis: Vec<f64> = self.levels.iter().map(|level| level - centre).collect();
            let value = |at: Screened| level + at.mean + spread * at.sd;
            screen(posterior, &groups, &basis).into_iter().map(value).collect()
        };
        let all = at_once(&self.fits, one).into_iter();
        let highest = all.reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect());
        self.balance.put_on(highest.unwrap_or_else(|| self.levels.clone()))
    }

    /// Posterior of the rate at one point.
    pub fn prediction(&self, point: &Point) -> Prediction {
        self.as_rate(self.predict(&[point])[0])
    }

    /// By how much the rate of one level exceeds that of another, relatively.
    pub(crate) fn gain(&self, from: f64, to: f64) -> f64 {
        let log = |mean| self.seen.log_rate(Marginal { mean, sd: 0.0 }).mean;
        (log(to) - log(from)).exp_m1()
    }

    /// What a level means as a rate.
    pub(crate) fn as_rate(&self, at: Marginal) -> Prediction {
        let at = self.seen.log_rate(at);
        Prediction { rate_gflops: at.mean.exp(), sd: at.sd }
    }
}
