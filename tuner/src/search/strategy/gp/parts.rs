//! The covariance of observations, in parts: what does not depend on hyperparameters is tabulated once, for all that are tried.
//!
//! Two by two, observations are in the order of the lower triangle below the diagonal, column by column.

use faer::Mat;

use super::data::Data;
use super::hyper::{Beliefs, Hyper};
use super::kernel::{Kernel, KernelDims};
use super::linalg::dot;

/// What observations have in common whatever the hyperparameters.
pub(super) struct CovarianceParts<'a> {
    data: &'a Data,
    /// Of each dimension where their levels are in its table; none where all levels are equal.
    places: Vec<Vec<u32>>,
    /// Of each dimension what it does by itself, for an effect of 1.
    shapes: Vec<Vec<f64>>,
    /// Those of one point.
    same: Vec<usize>,
    /// Those that were measured in turn.
    in_turn: Vec<usize>,
    /// Time between them, in the length of a usual run.
    between: Vec<f64>,
    /// What offset, slope and changes add, and to each observation with itself.
    fixed: Vec<f64>,
    fixed_diagonal: Vec<f64>,
}

/// The covariance with some hyperparameters.
pub(super) struct Covariance {
    /// What the dimensions do together, two by two.
    joint: Vec<f64>,
    /// What a speed that wanders adds, two by two; none where it does not.
    wandering: Vec<f64>,
    /// All of it; the lower triangle.
    pub(super) whole: Mat<f64>,
}

impl<'a> CovarianceParts<'a> {
    pub(super) fn new(axes: &KernelDims, beliefs: &Beliefs, data: &'a Data) -> Self {
        let which = |is: &dyn Fn((usize, usize)) -> bool| -> Vec<usize> {
            pairs(data.len()).enumerate().filter(|(_, pair)| is(*pair)).map(|(at, _)| at).collect()
        };
        let fixed = |(i, j): (usize, usize)| {
            // Offsets after the i-th and the j-th change have the earlier changes in common.
            let changes = data.changes[i].min(data.changes[j]) as f64;
            let slope = beliefs.slope_sd.powi(2) * data.basis[i] * data.basis[j];
            beliefs.offset_sd.powi(2) + slope + beliefs.change_sd.powi(2) * changes
        };
        let (mut places, mut shapes) = (Vec::new(), Vec::new());
        for (dim, table) in axes.shapes().iter().enumerate() {
            let level = |i: usize| data.points[i].0[dim];
            let place = |(i, j)| table.place(level(i), level(j));
            let all: Vec<u32> = pairs(data.len()).map(place).collect();
            shapes.push(all.iter().map(|&at| table.rho_at(at)).collect());
            let differ = (1..data.len()).any(|i| level(i) != level(0));
            places.push(if differ { all } else { Vec::new() });
        }
        Self {
            data,
            places,
            shapes,
            same: which(&|(i, j)| data.points[i] == data.points[j]),
            in_turn: which(&|(i, j)| data.is_pair(i, j)),
            between: pairs(data.len()).map(|(i, j)| (data.time[i] - data.time[j]).abs()).collect(),
            fixed: pairs(data.len()).map(fixed).collect(),
            fixed_diagonal: (0..data.len()).map(|i| fixed((i, i))).collect(),
        }
    }

    /// With these hyperparameters, of which `kernel` is made.
    pub(super) fn at(&self, hyper: &Hyper, kernel: &Kernel) -> Covariance {
        let mut joint = vec![kernel.of_others(); self.fixed.len()];
        for (table, places) in kernel.tables.iter().zip(&self.places) {
            joint.iter_mut().zip(places).for_each(|(joint, &at)| *joint *= table.rho_at(at));
        }
        self.same.iter().for_each(|&at| joint[at] = kernel.variance());
        let mut off: Vec<f64> = self.fixed.iter().zip(&joint).map(|(fixed, joint)| fixed + joint).collect();
        for (effect, shape) in kernel.effects.iter().zip(&self.shapes).filter(|(effect, _)| **effect > 0.0) {
            off.iter_mut().zip(shape).for_each(|(off, shape)| *off += effect * shape);
        }
        self.in_turn.iter().for_each(|&at| off[at] += hyper.noise * hyper.noise);
        let wanders = hyper.wander > 0.0;
        let wandering: Vec<f64> = self.between.iter().filter(|_| wanders).map(|&time| hyper.wandering(time)).collect();
        off.iter_mut().zip(&wandering).for_each(|(off, wandering)| *off += wandering);
        let count = self.data.len();
        let mut whole = Mat::zeros(count, count);
        let alone = kernel.variance() + kernel.effects.iter().sum::<f64>() + hyper.wandering(0.0);
        for i in 0..count {
            whole[(i, i)] = self.fixed_diagonal[i] + alone + hyper.noise_of(self.data, i);
        }
        pairs(count).zip(off).for_each(|(pair, off)| whole[pair] = off);
        Covariance { joint, wandering, whole }
    }

    /// Σ ½ w ∂k/∂ ln θ over all observations two by two, those on the diagonal too, with `weight` the lower triangle of w; in the order
    /// of [`Beliefs::priors`].
    pub(super) fn slopes(&self, parts: &Covariance, hyper: &Hyper, kernel: &Kernel, weight: &Mat<f64>) -> Vec<f64> {
        let Self { data, .. } = self;
        let off: Vec<f64> = pairs(data.len()).map(|pair| weight[pair]).collect();
        let diagonal: Vec<f64> = (0..data.len()).map(|i| weight[(i, i)]).collect();
        let all: f64 = diagonal.iter().sum();
        let of_noise: f64 = diagonal.iter().enumerate().map(|(i, w)| w * hyper.noise_of(data, i)).sum();
        let of_turns: f64 = self.in_turn.iter().map(|&at| off[at]).sum();
        let of_apart: f64 = diagonal.iter().enumerate().map(|(i, w)| w * hyper.apart_of(data, i)).sum();
        let shared: Vec<f64> = off.iter().zip(&parts.joint).map(|(w, joint)| w * joint).collect();
        let wandering: Vec<f64> = off.iter().zip(&parts.wandering).map(|(w, wandering)| w * wandering).collect();
        let common = [
            all * kernel.variance() + 2.0 * shared.iter().sum::<f64>(),
            of_noise + 2.0 * of_turns * hyper.noise * hyper.noise,
            all * hyper.wandering(0.0) + 2.0 * wandering.iter().sum::<f64>(),
            dot(&wandering, &self.between) / hyper.memory,
            of_apart,
        ];
        let rates = kernel.tables.iter().zip(&self.places).map(|(table, places)| {
            shared.iter().zip(places).map(|(shared, &at)| shared * table.slope_at(at)).sum::<f64>()
        });
        let effects = kernel.effects.iter().zip(&self.shapes);
        let effects = effects.map(|(effect, shape)| effect * (all + 2.0 * dot(&off, shape)));
        common.into_iter().chain(rates).chain(effects).collect()
    }
}

/// Below the diagonal, column by column.
fn pairs(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count).flat_map(move |j| (j + 1..count).map(move |i| (i, j)))
}
