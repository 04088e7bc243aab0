//! The covariance between two points, as tables over pairs of levels.
//!
//! k(x, x') = Σ_d effect_d² e_d(x_d, x'_d) + signal² · ([`SMOOTH`] Π_d ρ_d(x_d, x'_d) + (1 − [`SMOOTH`]) [x = x']): what each
//! dimension does by itself, and what they do together. An ordered dimension has the Matérn-5/2 correlation of the distance
//! of its features (\[Rasmussen\], equation 4.17), scaled to 0..1 over the dimension; a categorical one has
//! ρ_d = exp(−rate · [x_d ≠ x'_d]) and e_d = [x_d = x'_d]. Since the space is finite, ρ_d and e_d are small tables, and since the
//! kernel is made of sums and products of them, groups of dimensions can be tabulated too (see [`super::screen`]).

use std::sync::Arc;

use space::dims::{Dim, DimKind, Point};

/// Positions of the levels of each dimension, all that the kernel needs to know of a space.
#[derive(Debug, Clone)]
pub(crate) struct KernelDims {
    pub(crate) dims: Vec<KernelDim>,
    /// e_d.
    shapes: Arc<[Correlations]>,
}

/// One dimension.
#[derive(Debug, Clone)]
pub(crate) enum KernelDim {
    /// Number of levels.
    Categorical(usize),
    /// Positions in 0..1.
    Ordered(Vec<f64>),
}

impl KernelDims {
    pub(crate) fn new(dims: &[Dim]) -> Self {
        Self::of(dims.iter().map(KernelDim::new).collect())
    }

    pub(crate) fn of(dims: Vec<KernelDim>) -> Self {
        let shape = |axis: &KernelDim| match axis {
            KernelDim::Categorical(_) => Correlations::new(axis, f64::INFINITY),
            KernelDim::Ordered(_) => Correlations::new(axis, EFFECT_RATE),
        };
        let shapes = dims.iter().map(shape).collect();
        Self { dims, shapes }
    }

    /// What each dimension does by itself, for an effect of 1.
    pub(super) fn shapes(&self) -> &[Correlations] {
        &self.shapes
    }
}

impl KernelDim {
    fn new(dim: &Dim) -> Self {
        match dim.kind {
            DimKind::Categorical => Self::Categorical(dim.levels.len()),
            DimKind::Ordered => Self::Ordered(unit_positions(dim)),
        }
    }

    fn levels(&self) -> usize {
        match self {
            Self::Categorical(levels) => *levels,
            Self::Ordered(positions) => positions.len(),
        }
    }
}

/// Features of the levels of a dimension, scaled to 0..1; all 0 when they do not differ.
pub(crate) fn unit_positions(dim: &Dim) -> Vec<f64> {
    let features = dim.levels.iter().map(|level| level.feature);
    let low = features.clone().fold(f64::INFINITY, f64::min);
    let range = features.clone().fold(f64::NEG_INFINITY, f64::max) - low;
    features.map(|feature| if range > 0.0 && range.is_finite() { (feature - low) / range } else { 0.0 }).collect()
}

/// Correlation of one dimension between all pairs of its levels.
#[derive(Debug, Clone)]
pub(crate) struct Correlations {
    levels: usize,
    /// ρ_d, row by row.
    rho: Vec<f64>,
    /// ∂ ln ρ_d / ∂ ln rate, row by row.
    slope: Vec<f64>,
}

impl Correlations {
    /// `rate`: how fast the correlation falls; 1 / length scale for an ordered dimension.
    pub(crate) fn new(axis: &KernelDim, rate: f64) -> Self {
        let levels = axis.levels();
        let differ = ((-rate).exp(), -rate);
        let (mut rho, mut slope) = (vec![1.0; levels * levels], vec![0.0; levels * levels]);
        for i in 0..levels {
            for j in 0..i {
                let (value, derivative) = match axis {
                    KernelDim::Categorical(_) => differ,
                    KernelDim::Ordered(at) => matern52(5_f64.sqrt() * rate * (at[i] - at[j]).abs()),
                };
                for at in [i * levels + j, j * levels + i] {
                    (rho[at], slope[at]) = (value, derivative);
                }
            }
        }
        Self { levels, rho, slope }
    }

    pub(crate) fn levels(&self) -> u16 {
        u16::try_from(self.levels).expect("levels are numbered by u16")
    }

    /// Where two levels are in the table.
    pub(super) fn place(&self, i: u16, j: u16) -> u32 {
        u32::from(i) * self.levels as u32 + u32::from(j)
    }

    /// ρ_d of a level with each.
    fn row(&self, level: u16) -> &[f64] {
        &self.rho[usize::from(level) * self.levels..][..self.levels]
    }

    pub(super) fn rho_at(&self, place: u32) -> f64 {
        self.rho[place as usize]
    }

    pub(super) fn slope_at(&self, place: u32) -> f64 {
        self.slope[place as usize]
    }

    pub(crate) fn rho(&self, i: u16, j: u16) -> f64 {
        self.rho_at(self.place(i, j))
    }
}

/// Matérn-5/2 correlation at scaled distance a = √5 r / ℓ, with its derivative ∂ ln ρ / ∂ ln a.
fn matern52(a: f64) -> (f64, f64) {
    let square = a * a / 3.0;
    let polynomial = 1.0 + a + square;
    (polynomial * (-a).exp(), -square * (1.0 + a) / polynomial)
}

/// Share of the signal's variance that neighbours have in common: the rest belongs to each point alone. Real landscapes
/// have such points, the best grid of \[Cornebize\] stands 2 % above both of its neighbours, and without it the process would
/// be sure of them without looking. Where it is too large, every new point promises a gain that it does not have.
pub(crate) const SMOOTH: f64 = 0.995;

/// Rate of e_d of an ordered dimension: of three levels the outer ones correlate by a quarter.
const EFFECT_RATE: f64 = 2.0;

/// The covariance of a process with given hyperparameters.
#[derive(Debug, Clone)]
pub(crate) struct Kernel {
    /// signal².
    variance: f64,
    /// [`SMOOTH`], or 1.
    smooth: f64,
    /// ρ_d.
    pub(crate) tables: Vec<Correlations>,
    /// effect_d², 0 where a dimension has one level: it cannot do anything.
    pub(crate) effects: Vec<f64>,
    /// e_d.
    pub(crate) shapes: Arc<[Correlations]>,
}

impl Kernel {
    /// `rates`, `effects`: one for each dimension.
    pub(crate) fn new(axes: &KernelDims, signal: f64, rates: &[f64], effects: &[f64]) -> Self {
        let tables = axes.dims.iter().zip(rates).map(|(axis, &rate)| Correlations::new(axis, rate)).collect();
        let effects = axes.dims.iter().zip(effects).map(|(axis, &sd)| if axis.levels() < 2 { 0.0 } else { sd * sd });
        let (effects, shapes) = (effects.collect(), Arc::clone(&axes.shapes));
        Self { variance: signal * signal, smooth: SMOOTH, tables, effects, shapes }
    }

    /// Variance of what the dimensions do together.
    pub(super) fn variance(&self) -> f64 {
        self.variance
    }

    /// The part of it that a point has in common with others.
    pub(super) fn of_others(&self) -> f64 {
        self.smooth * self.variance
    }

    /// What two points have in common of what the dimensions do together.
    pub(crate) fn joint(&self, a: &Point, b: &Point) -> f64 {
        let pairs = a.0.iter().zip(&b.0);
        let smooth: f64 = self.tables.iter().zip(pairs).map(|(table, (&i, &j))| table.rho(i, j)).product();
        // Equal points correlate by exactly 1 in every dimension.
        if smooth == 1.0 && a == b { self.variance } else { self.of_others() * smooth }
    }

    /// The same without what belongs to each point alone.
    pub(crate) fn of_neighbours(self) -> Self {
        Self { variance: self.of_others(), smooth: 1.0, ..self }
    }

    /// What they have in common of what a dimension does by itself.
    pub(crate) fn effect(&self, dim: usize, i: u16, j: u16) -> f64 {
        self.effects[dim] * self.shapes[dim].rho(i, j)
    }

    /// What they have in common of what the dimensions do by themselves.
    pub(crate) fn alone(&self, a: &Point, b: &Point) -> f64 {
        let pairs = a.0.iter().zip(&b.0).enumerate();
        pairs.map(|(dim, (&i, &j))| self.effect(dim, i, j)).sum()
    }

    /// Covariance of `point` with each of `points`, of which `levels` has those of each dimension.
    pub(super) fn column(&self, point: &Point, (points, levels): (&[Point], &[Vec<u16>]), column: &mut [f64]) {
        let mut joint = vec![1.0; column.len()];
        column.fill(0.0);
        for (dim, (&level, levels)) in point.0.iter().zip(levels).enumerate() {
            let of_level = self.tables[dim].row(level);
            joint.iter_mut().zip(levels).for_each(|(joint, &other)| *joint *= of_level[usize::from(other)]);
            let (effect, of_level) = (self.effects[dim], self.shapes[dim].row(level));
            if effect > 0.0 {
                column.iter_mut().zip(levels).for_each(|(sum, &other)| *sum += effect * of_level[usize::from(other)]);
            }
        }
        for ((sum, joint), other) in column.iter_mut().zip(joint).zip(points) {
            *sum += if joint == 1.0 && point == other { self.variance } else { self.of_others() * joint };
        }
    }

    /// Covariance of two points.
    pub(crate) fn covariance(&self, a: &Point, b: &Point) -> f64 {
        self.alone(a, b) + self.joint(a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slope_is_the_derivative_of_the_logarithm() {
        let axes = [KernelDim::Categorical(3), KernelDim::Ordered(vec![0.0, 0.3, 1.0])];
        for axis in &axes {
            let (rate, step) = (0.8_f64, 1e-6_f64);
            let (low, high) =
                (Correlations::new(axis, rate * (-step).exp()), Correlations::new(axis, rate * step.exp()));
            let table = Correlations::new(axis, rate);
            for i in 0..3 {
                for j in 0..3 {
                    let numeric = (high.rho(i, j).ln() - low.rho(i, j).ln()) / (2.0 * step);
                    assert!((numeric - table.slope_at(table.place(i, j))).abs() < 1e-8, "{axis:?} {i} {j}");
                }
            }
        }
    }

    #[test]
    fn correlation_is_one_at_no_distance_and_falls_with_it() {
        let table = Correlations::new(&KernelDim::Ordered(vec![0.0, 0.5, 1.0]), 2.0);
        assert_eq!(table.rho(1, 1), 1.0);
        assert!(table.rho(0, 1) < 1.0 && table.rho(0, 2) < table.rho(0, 1) && table.rho(0, 2) > 0.0);
    }
}
