//! A rough look at every point of a large space.
//!
//! The kernel is a product over dimensions, so the dimensions are cut into two groups and the correlation of each
//! combination of levels within a group with each observed point is tabulated once. A point then costs one
//! multiplication per observation, in single precision: 10⁵ points × 500 observations take a few tens of milliseconds.

use std::collections::HashMap;

use space::dims::Point;

use super::kernel::{SMOOTH, Table};
use super::posterior::Posterior;

/// What screening says of one point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Glance {
    /// Posterior mean, to single precision.
    pub(crate) mean: f64,
    /// Largest correlation with an observed point.
    pub(crate) nearest: f64,
}

/// Looks at all `points`; `basis`: their values of the linear basis.
pub(crate) fn glance(posterior: &Posterior, points: &[Point], basis: &[f64]) -> Vec<Glance> {
    let data = &posterior.data;
    let beliefs = &posterior.beliefs;
    let known: f64 = posterior.alpha.iter().sum();
    let tilt: f64 = posterior.alpha.iter().zip(&data.basis).map(|(alpha, basis)| alpha * basis).sum();
    let offset = beliefs.offset_sd.powi(2) * known + posterior.change_mean();
    let slope = beliefs.slope_mean + beliefs.slope_sd.powi(2) * tilt;
    // A tried point's own share is left out, its mean is not needed here.
    let variance = SMOOTH * posterior.hyper.signal * posterior.hyper.signal;
    let weights: Vec<f32> = posterior.alpha.iter().map(|alpha| (variance * alpha) as f32).collect();

    let cut = cut(points);
    let first = Group::new(points, 0, cut, &posterior.tables, &data.points);
    let second = Group::new(points, cut, posterior.tables.len(), &posterior.tables, &data.points);
    let look = |(i, &basis): (usize, &f64)| {
        let (known, nearest) = weighted(&weights, first.row(i), second.row(i));
        Glance { mean: offset + slope * basis + f64::from(known), nearest: f64::from(nearest) }
    };
    basis.iter().enumerate().map(look).collect()
}

/// Σ w a b and max a b. Eight lanes, so that the compiler uses vector registers: it may not reorder a float sum.
fn weighted(w: &[f32], a: &[f32], b: &[f32]) -> (f32, f32) {
    const LANES: usize = 8;
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

/// The number of leading dimensions in the first group: both groups should have few distinct combinations.
fn cut(points: &[Point]) -> usize {
    let dims = points.first().map_or(0, |point| point.0.len());
    let mut levels = vec![0_u16; dims];
    for point in points {
        for (top, &level) in levels.iter_mut().zip(&point.0) {
            *top = level.max(*top);
        }
    }
    let sizes: Vec<f64> = levels.iter().map(|&top| f64::from(top) + 1.0).collect();
    let cost = |cut: usize| sizes[..cut].iter().product::<f64>() + sizes[cut..].iter().product::<f64>();
    (0..=dims).min_by(|&a, &b| cost(a).total_cmp(&cost(b))).unwrap_or(0)
}

/// Correlations over some of the dimensions.
struct Group {
    /// Row of `rows` that belongs to each point.
    which: Vec<u32>,
    /// Number of observed points.
    observed: usize,
    /// One row per distinct combination of levels, one column per observed point.
    rows: Vec<f32>,
}

impl Group {
    fn new(points: &[Point], from: usize, to: usize, tables: &[Table], observed: &[Point]) -> Self {
        let mut seen: HashMap<&[u16], u32> = HashMap::new();
        let mut which: Vec<u32> = Vec::with_capacity(points.len());
        let mut rows = Vec::new();
        let mut last: Option<(&[u16], u32)> = None;
        for point in points {
            let levels = &point.0[from..to];
            let next = seen.len() as u32;
            // Points that follow each other often agree in the first group.
            let row = match last {
                Some((before, row)) if before == levels => row,
                _ => *seen.entry(levels).or_insert(next),
            };
            if row == next {
                rows.extend(observed.iter().map(|seen| {
                    let pairs = levels.iter().zip(&seen.0[from..to]);
                    tables[from..to].iter().zip(pairs).map(|(table, (&i, &j))| table.rho(i, j)).product::<f64>() as f32
                }));
            }
            last = Some((levels, row));
            which.push(row);
        }
        Self { which, observed: observed.len(), rows }
    }

    fn row(&self, point: usize) -> &[f32] {
        let start = self.which[point] as usize * self.observed;
        &self.rows[start..start + self.observed]
    }
}
