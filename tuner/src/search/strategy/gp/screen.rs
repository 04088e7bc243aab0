//! A rough look at every point of a large space.
//!
//! What dimensions do together has a product kernel, so the dimensions are cut into two groups and the correlation of each
//! combination of levels within a group with each observed point is tabulated once. A point then costs one
//! multiplication per observation, in single precision: 10⁵ points × 500 observations take a few tens of milliseconds.
//! What a dimension does by itself is known of each level, and added up for each combination.

use std::collections::HashMap;

use space::dims::Point;

use super::data::Data;
use super::kernel::{Correlations, Kernel, SMOOTH};
use super::linalg::LANES;
use super::posterior::Posterior;

/// What screening says of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Screened {
    /// Posterior mean, to single precision.
    pub(crate) mean: f64,
    /// A rough standard deviation: of what dimensions do together by the nearest observed point alone, of what one does by the
    /// nearest of its observed levels.
    pub(crate) sd: f64,
}

/// Looks at all points of `groups`; `basis`: their values of the linear basis.
pub(crate) fn screen(posterior: &Posterior, groups: &Groups<'_>, basis: &[f64]) -> Vec<Screened> {
    let data = &posterior.data;
    let beliefs = &posterior.beliefs;
    let known: f64 = posterior.alpha.iter().sum();
    let offset = beliefs.offset_sd.powi(2) * known + posterior.speed_mean();
    let slope = posterior.slope_mean();
    // A tried point's own share is left out, its mean is not needed here.
    let variance = SMOOTH * posterior.hyper.signal * posterior.hyper.signal;
    let weights: Vec<f32> = posterior.alpha.iter().map(|alpha| (variance * alpha) as f32).collect();

    let (first, second) = posterior.kernel.tables.split_at(groups.cut);
    let first = groups.first.correlations(first, &data.points, 0);
    let second = groups.second.correlations(second, &data.points, groups.cut);
    let effects: Vec<Vec<Effect>> = (0..posterior.kernel.effects.len())
        .map(|dim| effects(&posterior.kernel, dim, data, &posterior.alpha))
        .collect();
    let (one, two) = effects.split_at(groups.cut);
    let (one, two) = (groups.first.sums(one), groups.second.sums(two));
    let signal = posterior.hyper.signal * posterior.hyper.signal;
    let observed = data.len();
    let look = |(i, &basis): (usize, &f64)| {
        let which = |group: &Combinations<'_>| group.which[i] as usize;
        let (i, j) = (which(&groups.first), which(&groups.second));
        let (a, b) = (&first[i * observed..][..observed], &second[j * observed..][..observed]);
        let (known, nearest) = weighted(&weights, a, b);
        let alone = one[i].plus(two[j]);
        let unknown = signal * (1.0 - f64::from(nearest * nearest)) + alone.variance;
        Screened { mean: offset + slope * basis + f64::from(known) + alone.mean, sd: unknown.max(0.0).sqrt() }
    };
    basis.iter().enumerate().map(look).collect()
}

/// What is known of what one dimension, or some of them, do by themselves.
#[derive(Debug, Clone, Copy, Default)]
struct Effect {
    mean: f64,
    variance: f64,
}

impl Effect {
    fn plus(self, other: Self) -> Self {
        Self { mean: self.mean + other.mean, variance: self.variance + other.variance }
    }
}

/// What each level of a dimension does by itself; `alpha` as of [`Posterior`].
fn effects(kernel: &Kernel, dim: usize, data: &Data, alpha: &[f64]) -> Vec<Effect> {
    let of_level = |level: u16| {
        let seen =
            data.points.iter().zip(alpha).map(|(seen, alpha)| (kernel.shapes[dim].rho(level, seen.0[dim]), alpha));
        let (mut mean, mut nearest) = (0.0, 0.0_f64);
        for (rho, alpha) in seen {
            mean += rho * alpha;
            nearest = nearest.max(rho);
        }
        let variance = kernel.effects[dim];
        Effect { mean: variance * mean, variance: variance * (1.0 - nearest * nearest) }
    };
    (0..kernel.shapes[dim].levels()).map(of_level).collect()
}

/// Σ w a b and max a b.
fn weighted(w: &[f32], a: &[f32], b: &[f32]) -> (f32, f32) {
    let (mut sums, mut tops) = ([0.0_f32; LANES], [0.0_f32; LANES]);
    let mut rest = (0.0_f32, 0.0_f32);
    let chunks = (w.chunks_exact(LANES), a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail = chunks.0.remainder().iter().zip(chunks.1.remainder()).zip(chunks.2.remainder());
    for ((&w, &a), &b) in tail {
        rest = (rest.0 + w * a * b, rest.1.max(a * b));
    }
    for ((w, a), b) in chunks.0.zip(chunks.1).zip(chunks.2) {
        for lane in 0..LANES {
            let correlation = a[lane] * b[lane];
            sums[lane] += w[lane] * correlation;
            tops[lane] = if correlation > tops[lane] { correlation } else { tops[lane] };
        }
    }
    (sums.iter().sum::<f32>() + rest.0, tops.iter().fold(rest.1, |top, &lane| top.max(lane)))
}

/// The number of levels of each dimension that points have, up to the last of them.
fn sizes(points: &[Point]) -> Vec<usize> {
    let mut sizes = vec![0; points.first().map_or(0, |point| point.0.len())];
    for point in points {
        for (size, &level) in sizes.iter_mut().zip(&point.0) {
            *size = (usize::from(level) + 1).max(*size);
        }
    }
    sizes
}

/// The number of leading dimensions in the first group: both groups should have few distinct combinations.
fn cut(sizes: &[usize]) -> usize {
    let product = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
    let cost = |cut: usize| product(&sizes[..cut]) + product(&sizes[cut..]);
    (0..=sizes.len()).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}

/// The points of a space by their combinations of levels, in two groups of dimensions.
pub(crate) struct Groups<'a> {
    /// The number of dimensions in the first group.
    cut: usize,
    first: Combinations<'a>,
    second: Combinations<'a>,
}

impl<'a> Groups<'a> {
    pub(crate) fn new(points: &'a [Point]) -> Self {
        let sizes = sizes(points);
        let cut = cut(&sizes);
        let group = |from: usize, to: usize| Combinations::new(points, from, &sizes[from..to]);
        Self { cut, first: group(0, cut), second: group(cut, sizes.len()) }
    }
}

/// Combinations of levels in some dimensions that follow each other.
struct Combinations<'a> {
    /// Which of the combinations each point has.
    which: Vec<u32>,
    combinations: Vec<&'a [u16]>,
}

impl<'a> Combinations<'a> {
    /// `sizes`: the numbers of levels of its dimensions, of which `from` is the first.
    fn new(points: &'a [Point], from: usize, sizes: &[usize]) -> Self {
        let mut combinations: Vec<&[u16]> = Vec::new();
        // A table over all combinations, unless that has more places than there are points.
        let all = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
        let count = all.filter(|&count| count <= points.len());
        let levels = points.iter().map(|point| &point.0[from..from + sizes.len()]);
        let mut add = |levels: &'a [u16]| {
            combinations.push(levels);
            combinations.len() as u32 - 1
        };
        let which = match count {
            Some(count) => {
                let mut known = vec![u32::MAX; count];
                let place = |levels: &[u16]| {
                    levels.iter().zip(sizes).fold(0, |at, (&level, size)| at * size + usize::from(level))
                };
                let at = |levels: &'a [u16]| {
                    let known = &mut known[place(levels)];
                    if *known == u32::MAX {
                        *known = add(levels);
                    }
                    *known
                };
                levels.map(at).collect()
            }
            None => {
                let mut known: HashMap<&[u16], u32> = HashMap::new();
                levels.map(|levels| *known.entry(levels).or_insert_with(|| add(levels))).collect()
            }
        };
        Self { which, combinations }
    }

    /// What the dimensions of each combination do by themselves; `effects`: of each level of each of its dimensions.
    fn sums(&self, effects: &[Vec<Effect>]) -> Vec<Effect> {
        let one = |levels: &&[u16]| {
            let each = effects.iter().zip(*levels).map(|(effects, &level)| effects[usize::from(level)]);
            each.fold(Effect::default(), Effect::plus)
        };
        self.combinations.iter().map(one).collect()
    }

    /// Correlation of each combination, row by row, with each observed point in these dimensions, of which `from` is the first.
    fn correlations(&self, tables: &[Correlations], observed: &[Point], from: usize) -> Vec<f32> {
        let one = |levels: &[u16], seen: &Point| {
            let pairs = levels.iter().zip(&seen.0[from..]);
            tables.iter().zip(pairs).map(|(table, (&i, &j))| table.rho(i, j)).product::<f64>() as f32
        };
        self.combinations.iter().flat_map(|levels| observed.iter().map(|seen| one(levels, seen))).collect()
    }
}
