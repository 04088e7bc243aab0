//! Points of a space: drawn at random, or next to another.

use std::collections::BTreeSet;

use rand::{Rng, RngExt};

use crate::dims::{Dim, DimKind, Point, Space};

/// A point drawn uniformly from all canonical points, `None` when there is none.
pub fn uniform<'a>(space: &'a dyn Space, rng: &mut impl Rng) -> Option<&'a Point> {
    let points = space.points();
    (!points.is_empty()).then(|| &points[rng.random_range(0..points.len())])
}

/// The canonical points one step away from `point`, in a fixed order, `point` not among them.
///
/// A step is to the next level below or above that exists in an ordered dimension, or to any other level of a
/// categorical one. Where such a level breaks a hard rule, one other dimension moves along, as little as it
/// can: from 1×1, twice the ranks are 1×2 and 2×1.
pub fn neighbours(space: &dyn Space, point: &Point) -> Vec<Point> {
    let mut found = BTreeSet::new();
    for (d, dim) in space.dims().iter().enumerate() {
        let (here, end) = (point.0[d], dim.levels.len() as u16);
        match dim.kind {
            DimKind::Categorical => found.extend((0..end).flat_map(|level| settle(space, &moved(point, d, level), d))),
            DimKind::Ordered => {
                let first = |levels: &mut dyn Iterator<Item = u16>| {
                    levels.map(|level| settle(space, &moved(point, d, level), d)).find(|points| !points.is_empty())
                };
                found.extend(first(&mut (0..here).rev()).into_iter().flatten());
                found.extend(first(&mut (here + 1..end)).into_iter().flatten());
            }
        }
    }
    found.remove(point);
    found.into_iter().collect()
}

/// The canonical form of `point`, or of what differs from it least in one dimension other than `kept`.
fn settle(space: &dyn Space, point: &Point, kept: usize) -> Vec<Point> {
    if let Some(canonical) = space.canonical(point) {
        return vec![canonical];
    }
    let others = space.dims().iter().enumerate().filter(|(d, _)| *d != kept);
    others.flat_map(|(d, dim)| nearest(space, point, d, dim)).collect()
}

/// The canonical forms of the valid points that differ from `point` in dimension `d` alone, nearest ones only.
fn nearest(space: &dyn Space, point: &Point, d: usize, dim: &Dim) -> Vec<Point> {
    let here = dim.levels[usize::from(point.0[d])].feature;
    let distance = |feature: f64| if dim.kind == DimKind::Ordered { (feature - here).abs() } else { 1.0 };
    let valid = dim.levels.iter().enumerate().filter_map(|(level, to)| {
        let canonical = space.canonical(&moved(point, d, level as u16))?;
        Some((distance(to.feature), canonical))
    });
    let valid: Vec<_> = valid.collect();
    let least = valid.iter().map(|(distance, _)| *distance).fold(f64::INFINITY, f64::min);
    // Features are logarithms of ratios: equal distances may differ in the last bit.
    valid.into_iter().filter(|(distance, _)| *distance <= least + 1e-9).map(|(_, point)| point).collect()
}

fn moved(point: &Point, d: usize, level: u16) -> Point {
    let mut point = point.clone();
    point.0[d] = level;
    point
}
