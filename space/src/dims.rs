//! Named dimensions and points: the form of a candidate for search strategies.
//!
//! A [`Space`] lists its dimensions, each with its levels. A [`Point`] is one level of each. A dimension without
//! effect has level 0 ([`Space::canonical`]), so that equal runs are equal points, and points that break
//! a hard rule do not exist. Strategies build canonical points only.

use std::collections::HashMap;
use std::hash::Hash;

use serde::{Deserialize, Serialize};

use crate::effects::effect;

/// Levels of a dimension at most: a [`Point`] counts them in 16 bits.
pub const MAX_LEVELS: usize = u16::MAX as usize;

/// How the levels of a dimension relate to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DimKind {
    /// Levels are only equal or different.
    Categorical,
    /// Levels have a position ([`Level::feature`]); near levels behave similarly.
    Ordered,
}

/// One value that a dimension can take.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// The value as users read it, `128` or `1ringM`.
    pub label: String,
    /// Its position on the dimension's axis, such as log2 NB or log(P/Q); 0, 1, … when categorical.
    pub feature: f64,
}

/// A named dimension with at least one level; ordered levels rise in `feature`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Dim {
    /// HPL's name in lower case: `nb`, `grid`, `bcast`, ….
    pub name: String,
    /// How its levels relate.
    pub kind: DimKind,
    /// Its levels.
    pub levels: Vec<Level>,
}

/// One level index per dimension, in the order of [`Space::dims`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point(pub Vec<u16>);

/// A finite space of canonical points.
pub trait Space: Sync {
    /// The dimensions, fixed for the life of the space.
    fn dims(&self) -> &[Dim];

    /// The canonical form of a point: levels that cannot matter set to 0; `None` when the point breaks a
    /// hard rule. Idempotent. `point` has one valid level index per dimension.
    fn canonical(&self, point: &Point) -> Option<Point>;

    /// All canonical points, each once, in a fixed order.
    fn points(&self) -> &[Point];

    /// The prior of each dimension: the standard deviation, over its levels, of its effect on the logarithm of the rate, by its
    /// name in `datasets/effects.toml`.
    fn effects(&self) -> Vec<f64> {
        self.dims().iter().map(|dim| effect(&dim.name)).collect()
    }
}

/// All canonical points in lexicographic order, `None` when there are more than `limit`; `begins` says whether any of them begins
/// with the first so many of the levels, behind which are zeros, and of all levels whether they are one.
///
/// Where it depends on dimensions before it alone whether a level matters, and level 0 needs the least memory, the first levels
/// begin no point if they are not canonical with zeros behind them.
pub(crate) fn enumerate(dims: &[Dim], limit: usize, begins: impl Fn(&[u16], usize) -> bool) -> Option<Vec<Point>> {
    let mut points = Vec::new();
    let add = |levels: &[u16]| {
        points.push(Point(levels.to_vec()));
        points.len() <= limit
    };
    Walk { dims, begins, each: add }.extend(&mut vec![0; dims.len()], 0).then_some(points)
}

/// Whether there are more points than `limit`, without making them: what follows the first `known` levels, at least two, is
/// counted once for each `kind` of these, `None` where nothing does. Of equal kinds it must be as much, but for what does
/// not fit the memory.
pub(crate) fn exceeds<K: Eq + Hash>(
    dims: &[Dim],
    limit: usize,
    known: usize,
    kind: impl Fn(&[u16]) -> Option<K>,
    begins: impl Fn(&[u16], usize) -> bool,
) -> bool {
    let known = known.min(dims.len());
    let mut counts: HashMap<K, usize> = HashMap::new();
    let mut total = 0;
    let count = |levels: &[u16]| {
        let Some(kind) = kind(levels) else { return true };
        total += *counts.entry(kind).or_insert_with(|| {
            let mut count = 0;
            let one = |_: &[u16]| {
                count += 1;
                count <= limit
            };
            Walk { dims, begins: &begins, each: one }.extend(&mut levels.to_vec(), known);
            count
        });
        total <= limit
    };
    // The first levels are all combined.
    let leading: Vec<Dim> = dims
        .iter()
        .enumerate()
        .map(|(d, dim)| if d < known { dim.clone() } else { Dim { levels: dim.levels[..1].to_vec(), ..dim.clone() } })
        .collect();
    !Walk { dims: &leading, begins: |_: &[u16], _: usize| true, each: count }.extend(&mut vec![0; dims.len()], 0)
}

struct Walk<'a, F, G> {
    dims: &'a [Dim],
    begins: F,
    /// Called with each point; returns whether to continue.
    each: G,
}

impl<F: Fn(&[u16], usize) -> bool, G: FnMut(&[u16]) -> bool> Walk<'_, F, G> {
    /// Visits the canonical points with the first `d` of `levels`; whether it came to the last.
    fn extend(&mut self, levels: &mut [u16], d: usize) -> bool {
        let Some(dim) = self.dims.get(d) else { return (self.each)(levels) };
        (0..dim.levels.len() as u16).all(|level| {
            levels[d] = level;
            levels[d + 1..].fill(0);
            // The ranks alone say nothing yet: their grid comes next.
            let dead = d > 0 && !(self.begins)(levels, d + 1);
            dead || self.extend(levels, d + 1)
        })
    }
}
