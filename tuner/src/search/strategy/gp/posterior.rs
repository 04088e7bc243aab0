//! What the observations say about any point.

use faer::{ColRef, Mat};
use space::dims::Point;

use super::data::Data;
use super::fit::{draws, fit};
use super::hyper::{Beliefs, Hyper};
use super::kernel::{Kernel, KernelDims, SMOOTH};
use super::linalg::Factor;
use super::parts::CovarianceParts;

/// Mean and standard deviation of y without noise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Marginal {
    pub(crate) mean: f64,
    pub(crate) sd: f64,
}

/// Means and covariance of y without noise at some points.
pub(crate) struct Joint {
    pub(crate) means: Vec<f64>,
    pub(crate) covariance: Mat<f64>,
}

impl Joint {
    /// So many draws of y at all points by standard normal numbers; none where the covariance cannot be factored.
    pub(crate) fn draws(&self, count: usize, normal: &mut dyn FnMut() -> f64) -> Vec<Vec<f64>> {
        let Some(factor) = Factor::new(self.covariance.as_ref()) else { return Vec::new() };
        let around = factor.lower() * Mat::from_fn(self.means.len(), count, |_, _| normal());
        let one = |draw: usize| self.means.iter().enumerate().map(|(i, mean)| mean + around[(i, draw)]).collect();
        (0..count).map(one).collect()
    }
}

/// A Gaussian process conditioned on data.
#[derive(Debug, Clone)]
pub(crate) struct Posterior {
    pub(crate) beliefs: Beliefs,
    pub(crate) hyper: Hyper,
    pub(crate) data: Data,
    pub(crate) kernel: Kernel,
    /// Levels of the observed points, by dimensions.
    levels: Vec<Vec<u16>>,
    /// The number of changes for which it predicts: that of most observations, whose offset is known best.
    changes: usize,
    factor: Factor,
    /// K⁻¹ (y − prior mean).
    pub(crate) alpha: Vec<f64>,
}

/// Distinct points that the hyperparameters are fitted to, at most.
pub(crate) const FIT_POINTS: usize = 80;

/// Points predicted together: large enough for the triangular solve to run as matrix products.
const BLOCK: usize = 256;

impl Posterior {
    /// With hyperparameters fitted to the data.
    pub(crate) fn fitted(axes: &KernelDims, beliefs: Beliefs, data: Data) -> Option<Self> {
        let hyper = fit(axes, &beliefs, &data.clone().thinned(FIT_POINTS));
        Self::new(axes, beliefs, hyper, data)
    }

    /// The same with other hyperparameters, drawn from what the data leave of their beliefs. What belongs to each point alone is
    /// taken for noise: where nothing was run twice the two look alike, and one fast run is no fast point.
    pub(crate) fn drawn(&self, axes: &KernelDims, count: usize, normal: &mut dyn FnMut() -> f64) -> Vec<Self> {
        let thin = self.data.clone().thinned(FIT_POINTS);
        let hypers = draws(axes, &self.beliefs, &thin, &self.hyper, count, normal).into_iter();
        let one = |hyper: Hyper| {
            let alone = hyper.signal * (1.0 - SMOOTH).sqrt();
            let kernel = hyper.kernel(axes).of_neighbours();
            let hyper = Hyper { noise: hyper.noise.hypot(alone), ..hyper };
            Self::of(axes, kernel, self.beliefs.clone(), hyper, self.data.clone())
        };
        hypers.filter_map(one).collect()
    }

    /// `None` when the covariance cannot be factored, which takes values that are not finite.
    pub(crate) fn new(axes: &KernelDims, beliefs: Beliefs, hyper: Hyper, data: Data) -> Option<Self> {
        let kernel = hyper.kernel(axes);
        Self::of(axes, kernel, beliefs, hyper, data)
    }

    fn of(axes: &KernelDims, kernel: Kernel, beliefs: Beliefs, hyper: Hyper, data: Data) -> Option<Self> {
        let factor = Factor::new(CovarianceParts::new(axes, &beliefs, &data).at(&hyper, &kernel).whole.as_ref())?;
        let residual: Vec<f64> = (0..data.len()).map(|i| data.y[i] - beliefs.slope_mean * data.basis[i]).collect();
        let alpha = factor.solve(&residual);
        let changes = most_common(&data.changes);
        let of_dim = |dim: usize| data.points.iter().map(|point| point.0[dim]).collect();
        let levels = (0..axes.dims.len()).map(of_dim).collect();
        Some(Self { beliefs, hyper, data, kernel, levels, changes, factor, alpha })
    }

    /// Marginals at `points` (\[Rasmussen\], equations 2.25 and 2.26); `basis`: their values of the linear basis.
    pub(crate) fn predict(&self, points: &[&Point], basis: &[f64]) -> Vec<Marginal> {
        let blocks = points.chunks(BLOCK).zip(basis.chunks(BLOCK));
        blocks.flat_map(|(points, basis)| self.predict_block(points, basis).0).collect()
    }

    /// The same, with the covariance of each with the machine's speed as it is now: what a run there says of the speed.
    pub(crate) fn predict_with_speed(&self, points: &[&Point], basis: &[f64]) -> Vec<(Marginal, f64)> {
        let mut of_speed = Mat::from_fn(self.data.len(), 1, |i, _| self.with_speed(i));
        self.factor.solve_lower(&mut of_speed);
        let known = |v: ColRef<'_, f64>| v.iter().zip(of_speed.col(0).iter()).map(|(a, b)| a * b).sum::<f64>();
        let of_block = |(points, basis): (&[&Point], &[f64])| {
            let (marginals, cross) = self.predict_block(points, basis);
            let covariances = (0..points.len()).map(|j| self.speed() - known(cross.col(j)));
            marginals.into_iter().zip(covariances).collect::<Vec<_>>()
        };
        points.chunks(BLOCK).zip(basis.chunks(BLOCK)).flat_map(of_block).collect()
    }

    /// Marginals, and V of [`Self::means_and_explained`].
    fn predict_block(&self, points: &[&Point], basis: &[f64]) -> (Vec<Marginal>, Mat<f64>) {
        let (means, cross) = self.means_and_explained(points, basis);
        let marginal = |j: usize| {
            let explained: f64 = cross.col(j).iter().map(|v| v * v).sum();
            let left = self.covariance((points[j], basis[j]), (points[j], basis[j])) - explained;
            Marginal { mean: means[j], sd: left.max(0.0).sqrt() }
        };
        ((0..points.len()).map(marginal).collect(), cross)
    }

    /// Covariance of two points, each with its value of the linear basis, before any run.
    fn covariance(&self, (a, of_a): (&Point, f64), (b, of_b): (&Point, f64)) -> f64 {
        self.kernel.covariance(a, b) + self.common() + self.beliefs.slope_sd.powi(2) * of_a * of_b
    }

    /// Means at `points` and their covariance (\[Rasmussen\], equations 2.23 and 2.24).
    pub(crate) fn joint(&self, points: &[&Point], basis: &[f64]) -> Joint {
        let (means, cross) = self.means_and_explained(points, basis);
        let explained = cross.transpose() * &cross;
        let covariance = Mat::from_fn(points.len(), points.len(), |i, j| {
            self.covariance((points[i], basis[i]), (points[j], basis[j])) - explained[(i, j)]
        });
        Joint { means, covariance }
    }

    /// Variances of what `points` differ from the one at `other` by; `basis` as for [`Self::predict`].
    pub(crate) fn differences(&self, points: &[&Point], basis: &[f64], other: usize) -> Vec<f64> {
        let (_, cross) = self.means_and_explained(points, basis);
        let left = |a: usize, b: usize| {
            let explained: f64 = cross.col(a).iter().zip(cross.col(b).iter()).map(|(a, b)| a * b).sum();
            self.covariance((points[a], basis[a]), (points[b], basis[b])) - explained
        };
        let of_other = left(other, other);
        (0..points.len()).map(|i| (left(i, i) + of_other - 2.0 * left(i, other)).max(0.0)).collect()
    }

    /// Variance that all points have in common before any run.
    fn common(&self) -> f64 {
        self.beliefs.offset_sd.powi(2) + self.speed()
    }

    /// Variance of the machine's speed before any run.
    fn speed(&self) -> f64 {
        self.beliefs.change_sd.powi(2) * self.changes as f64 + self.hyper.wander.powi(2)
    }

    /// Covariance of a run with the machine's speed as it is now.
    fn with_speed(&self, run: usize) -> f64 {
        let change = self.beliefs.change_sd.powi(2) * self.data.changes[run].min(self.changes) as f64;
        change + self.hyper.wandering(self.data.now - self.data.time[run])
    }

    /// Means at `points`, and V with VᵀV what the data explain of their covariance.
    fn means_and_explained(&self, points: &[&Point], basis: &[f64]) -> (Vec<f64>, Mat<f64>) {
        let (offset, slope) = (self.beliefs.offset_sd.powi(2), self.beliefs.slope_sd.powi(2));
        let speed: Vec<f64> = (0..self.data.len()).map(|run| self.with_speed(run)).collect();
        let mut cross = Mat::zeros(self.data.len(), points.len());
        for (j, (point, basis)) in points.iter().zip(basis).enumerate() {
            let column = cross.col_as_slice_mut(j);
            self.kernel.column(point, (&self.data.points, &self.levels), column);
            for ((covariance, speed), of_run) in column.iter_mut().zip(&speed).zip(&self.data.basis) {
                *covariance += offset + slope * of_run * basis + speed;
            }
        }
        let means: Vec<f64> = (0..points.len())
            .map(|j| {
                let known: f64 = cross.col(j).iter().zip(&self.alpha).map(|(k, alpha)| k * alpha).sum();
                self.beliefs.slope_mean * basis[j] + known
            })
            .collect();
        self.factor.solve_lower(&mut cross);
        (means, cross)
    }

    /// Log density of the runs of each point given those of all others (\[Rasmussen\], equation 5.12, of a block), summed.
    pub(crate) fn leave_one_out(&self) -> f64 {
        let inverse = self.factor.inverse();
        let score = |runs: &Vec<usize>| {
            let block = Mat::from_fn(runs.len(), runs.len(), |a, b| {
                let (i, j) = (runs[a], runs[b]);
                inverse[(i.max(j), i.min(j))]
            });
            let alpha: Vec<f64> = runs.iter().map(|&i| self.alpha[i]).collect();
            let precision = Factor::new(block.as_ref())?;
            let errors = precision.solve(&alpha);
            Some(0.5 * precision.log_det() - 0.5 * alpha.iter().zip(errors).map(|(a, e)| a * e).sum::<f64>())
        };
        self.data.alike().iter().filter_map(score).sum()
    }

    /// What a change of the offset by N(0, `sd`) before each run, each alone, would gain in log density, with its size. `runs`:
    /// the place of each run's point in the data with its y, in the order of the runs.
    ///
    /// For v = 1 from that run on, K + sd² v vᵀ by the lemmas of Sylvester, Sherman and Morrison. Of K, the covariance of the
    /// runs, only that of their means is needed: with C runs of a point, c of them after the change, v has the mean c / C, and
    /// what is left of it contains the noise alone.
    pub(crate) fn changes(&self, sd: f64, runs: &[(usize, f64)]) -> Vec<Change> {
        let inverse = self.factor.inverse();
        let (count, variance, noise) = (self.data.len(), sd * sd, self.hyper.noise * self.hyper.noise);
        // The means of v, for the change that is looked at.
        let mut after = vec![0.0; count];
        let (mut pull, mut precision) = (0.0, 0.0);
        let mut changes = Vec::with_capacity(runs.len());
        for (at, &(place, y)) in runs.iter().enumerate().rev() {
            let share = 1.0 / self.data.count[place];
            let others = (0..count).map(|j| inverse[(j.max(place), j.min(place))] * after[j]).sum::<f64>();
            let apart = (1.0 - 2.0 * after[place] - share) / noise;
            pull += share * self.alpha[place] + (y - self.data.y[place]) / noise;
            precision += share * share * inverse[(place, place)] + 2.0 * share * others + apart;
            after[place] += share;
            let scale = 1.0 + variance * precision;
            changes.push(Change {
                at,
                gain: 0.5 * (variance * pull * pull / scale - scale.ln()),
                size: variance * pull / scale,
            });
        }
        changes.reverse();
        changes
    }

    /// Mean of the slope.
    pub(crate) fn slope_mean(&self) -> f64 {
        let tilt: f64 = self.alpha.iter().zip(&self.data.basis).map(|(alpha, basis)| alpha * basis).sum();
        self.beliefs.slope_mean + self.beliefs.slope_sd.powi(2) * tilt
    }

    /// What the machine's speed adds to the mean at every point.
    pub(crate) fn speed_mean(&self) -> f64 {
        self.alpha.iter().enumerate().map(|(run, alpha)| self.with_speed(run) * alpha).sum()
    }

    /// Mean of what each change adds to the offset.
    pub(crate) fn change_means(&self, count: usize) -> Vec<f64> {
        let variance = self.beliefs.change_sd.powi(2);
        let after = |change: usize| self.data.changes.iter().zip(&self.alpha).filter(move |(seen, _)| **seen > change);
        (0..count).map(|change| variance * after(change).map(|(_, alpha)| alpha).sum::<f64>()).collect()
    }
}

/// A possible change before an observation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Change {
    /// Number of observations before it.
    pub(crate) at: usize,
    /// Gain in log density.
    pub(crate) gain: f64,
    /// Its expected size.
    pub(crate) size: f64,
}

fn most_common(changes: &[usize]) -> usize {
    let count = |wanted: usize| changes.iter().filter(|seen| **seen == wanted).count();
    let last = changes.iter().copied().max().unwrap_or(0);
    (0..=last).max_by_key(|&wanted| count(wanted)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::data::Observed;
    use super::super::hyper::LogNormal;
    use super::super::kernel::KernelDim;
    use super::*;

    /// Eight points, then three of them again and five new ones at `step` less; each run on its own.
    fn all(step: f64, change_sd: f64) -> Posterior {
        conditioned(step, change_sd, |seen| Data::single(seen.iter().copied(), |_| 0.0))
    }

    fn conditioned(step: f64, change_sd: f64, gather: impl Fn(&[Observed<'_>]) -> Data) -> Posterior {
        let axes = KernelDims::of(vec![KernelDim::Ordered((0..13).map(|i| f64::from(i) / 12.0).collect())]);
        let prior = |median| LogNormal { median, spread: 1.0 };
        let beliefs = Beliefs {
            signal: prior(0.2),
            effects: vec![prior(0.1)],
            noise: prior(0.01),
            categorical: prior(1.0),
            ordered: prior(1.0),
            offset_sd: 0.5,
            slope_mean: 0.0,
            slope_sd: 0.0,
            change_sd,
            wander: LogNormal::NONE,
            memory: LogNormal { median: 1.0, spread: 0.0 },
            apart: LogNormal { median: 0.5, spread: 0.7 },
        };
        let points: Vec<Point> = [0, 6, 12, 3, 9, 5, 7, 6, 6, 4, 8, 7, 2, 1].map(|level| Point(vec![level])).into();
        let y = |i: usize| {
            let x = f64::from(points[i].0[0]) / 12.0;
            -(x - 0.5).powi(2) + 0.005 * f64::from((i as u32 * 7) % 5) - if i >= 8 { step } else { 0.0 }
        };
        let seen = (0..points.len()).map(|i| {
            let changes = usize::from(change_sd > 0.0 && i >= 8);
            Observed { point: &points[i], y: y(i), changes, time: i as f64, pair: None }
        });
        let data = gather(&seen.collect::<Vec<_>>());
        let hyper = Hyper {
            signal: 0.2,
            noise: 0.01,
            wander: 0.0,
            memory: 1.0,
            apart: 0.5,
            rates: vec![1.0],
            effects: vec![0.0],
        };
        Posterior::new(&axes, beliefs, hyper, data).unwrap()
    }

    #[test]
    fn a_change_is_found_where_it_is_and_none_where_there_is_none() {
        let best = |step| {
            let posterior = all(step, 0.0);
            let runs: Vec<(usize, f64)> = posterior.data.y.iter().copied().enumerate().collect();
            posterior.changes(0.1, &runs).into_iter().max_by(|a, b| a.gain.total_cmp(&b.gain)).unwrap()
        };
        let found = best(0.1);
        assert!(found.at == 8 && (found.size + 0.1).abs() < 0.02 && found.gain > 10.0, "{found:?}");
        assert!(best(0.0).gain < 1.5, "{:?}", best(0.0));
    }

    #[test]
    fn runs_gathered_by_their_points_tell_the_same_changes() {
        let single = all(0.03, 0.0);
        let gathered = conditioned(0.03, 0.0, |seen| Data::gathered(seen.iter().copied(), |_| 0.0));
        assert!(gathered.data.len() < single.data.len());
        let place = |point| gathered.data.points.iter().position(|other| other == point).unwrap();
        let runs =
            single.data.points.iter().zip(&single.data.y).map(|(point, &y)| (place(point), y)).collect::<Vec<_>>();
        let each: Vec<(usize, f64)> = single.data.y.iter().copied().enumerate().collect();
        for (a, b) in single.changes(0.1, &each).iter().zip(gathered.changes(0.1, &runs)) {
            assert!(a.at == b.at && (a.gain - b.gain).abs() < 1e-6 && (a.size - b.size).abs() < 1e-8, "{a:?} {b:?}");
        }
    }

    #[test]
    fn points_together_have_the_marginals_of_each_and_neighbours_rise_together() {
        let posterior = all(0.1, 0.1);
        let points = [Point(vec![5]), Point(vec![10]), Point(vec![11])];
        let points: Vec<&Point> = points.iter().collect();
        let joint = posterior.joint(&points, &[0.0; 3]);
        for (i, at) in posterior.predict(&points, &[0.0; 3]).into_iter().enumerate() {
            assert!(
                (joint.means[i] - at.mean).abs() < 1e-12 && (joint.covariance[(i, i)] - at.sd.powi(2)).abs() < 1e-12
            );
        }
        for (other, variance) in posterior.differences(&points, &[0.0; 3], 1).into_iter().enumerate() {
            let of = |a: usize, b: usize| joint.covariance[(a, b)];
            assert!((variance - (of(other, other) + of(1, 1) - 2.0 * of(other, 1))).abs() < 1e-12, "{other}");
        }
        let mut number = 0;
        let drawn = joint.draws(4000, &mut || {
            number += 1;
            crate::search::hashed::normal(5, 6, number)
        });
        let product = |i: usize, j: usize| {
            let of = |y: &Vec<f64>| (y[i] - joint.means[i]) * (y[j] - joint.means[j]);
            drawn.iter().map(of).sum::<f64>() / drawn.len() as f64
        };
        for (i, j) in [(0, 0), (1, 1), (1, 2)] {
            let (found, joined) = (product(i, j), joint.covariance[(i, j)]);
            assert!((found / joined - 1.0).abs() < 0.1, "{i} {j}: {found} {joined}");
        }
    }

    #[test]
    fn what_a_change_adds_is_learned_and_left_out_of_the_level() {
        let posterior = all(0.1, 0.1);
        assert!((posterior.change_means(1)[0] + 0.1).abs() < 0.02, "{:?}", posterior.change_means(1));
        let middle = posterior.predict(&[&Point(vec![6])], &[0.0])[0];
        assert!(middle.mean.abs() < 0.03 && middle.sd < 0.02, "{middle:?}");
    }
}
