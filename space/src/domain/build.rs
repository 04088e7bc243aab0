//! Common parts of the domains of our engine and of other engines: numbers of ranks and threads, allowed values, and the
//! rule that leaves no candidate.

use super::error::DomainError;
use super::grids::{divisors, grid_of};
use super::limits::Limits;
use super::spec::DomainSpec;
use super::values::{Values, up_to};
use crate::HplParams;
use crate::rules::MAX_PLACES;
use crate::rules::RuleError;
use crate::workspace::{RunShape, Workspace};

/// All (ranks, threads), by rising ranks.
pub(super) fn splits(spec: &DomainSpec) -> Result<Vec<(usize, usize)>, DomainError> {
    let cores = spec.cores;
    let sizes = [("N", Some(spec.n)), ("cores", Some(cores)), ("ranks", spec.ranks), ("threads", spec.threads)];
    for (name, found) in sizes {
        if found == Some(0) {
            return Err(RuleError::TooSmall { name, min: 1, found: 0 }.into());
        }
    }
    if cores > MAX_PLACES {
        return Err(DomainError::Places { found: cores });
    }
    let unequal = &spec.unequal;
    let counts = [unequal.rank_speeds().len(), unequal.kernels.len()];
    if let Some(&found) = counts.iter().find(|&&count| count > 0 && Some(count) != spec.ranks) {
        let ranks = spec.ranks.map_or("any number of".to_owned(), |ranks| ranks.to_string());
        return Err(DomainError::Unequal { found, ranks });
    }
    let splits = match (spec.ranks, spec.threads) {
        (None, None) => {
            let splits = divisors(cores).into_iter().map(|ranks| (ranks, cores / ranks));
            splits.filter(|&(_, threads)| fills_all(spec, threads)).collect()
        }
        (Some(ranks), None) => vec![(ranks, (cores / ranks).max(1))],
        (None, Some(threads)) => vec![((cores / threads).max(1), threads)],
        (Some(ranks), Some(threads)) => vec![(ranks, threads)],
    };
    match splits.iter().find(|(ranks, threads)| ranks.saturating_mul(*threads) > cores) {
        Some(&(ranks, threads)) => Err(DomainError::Cores { ranks, threads, cores }),
        None => Ok(splits),
    }
}

/// Whether ranks of `threads` threads can have all cores of `spec`.
pub(super) fn fills_all(spec: &DomainSpec, threads: usize) -> bool {
    let most = spec.most_threads.unwrap_or(spec.cores);
    let common = spec.common_cores.unwrap_or(most);
    fills_nodes(threads, most, spec.cores) && fills_nodes(threads, common, spec.cores)
}

/// Whether ranks of `threads` threads can have all `cores`, those of nodes with `most` cores each: the threads of a rank are on one
/// node.
pub(super) fn fills_nodes(threads: usize, most: usize, cores: usize) -> bool {
    most >= cores || most.max(1).is_multiple_of(threads)
}

/// The values of `usual` that `limits` allow, or else those of `finest`, for order `n`.
pub(super) fn narrowed(usual: Values, finest: &Values, limits: &Limits, n: usize) -> Result<Values, DomainError> {
    let values = limits.apply(usual, finest)?;
    // Listed values may be above N too, and NB below every NBMIN has no candidate.
    let mut values = Values { nb: up_to(&values.nb, n), nbmin: up_to(&values.nbmin, n), ..values };
    let (nb, nbmin) = (values.nb[values.nb.len() - 1], values.nbmin[0]);
    values.nb.retain(|&nb| nb >= nbmin);
    if values.nb.is_empty() { Err(DomainError::Recursion { nb, nbmin }) } else { Ok(values) }
}

/// The properties of a grid that decide which other parameters have an effect.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct GridKind {
    one_row: bool,
    /// From 5 on all are equal.
    columns: usize,
}

impl GridKind {
    pub(super) fn of(hpl: &HplParams) -> Self {
        Self { one_row: hpl.p == 1, columns: hpl.q.min(5) }
    }
}

/// The shape of a run whose ranks have so many threads.
pub(super) type ShapeOf<'a> = &'a dyn Fn(&HplParams, usize) -> RunShape;

/// The rule that leaves no point; `memory`: what runs keep beside the matrix, and their shapes.
pub(super) fn emptied(spec: &DomainSpec, values: &Values, memory: (Workspace, ShapeOf<'_>)) -> DomainError {
    let has_grid = |&(ranks, _): &(usize, usize)| values.aspects.iter().any(|&pq| grid_of(ranks, pq).is_some());
    if values.splits.iter().any(has_grid) {
        return too_large(spec, values, memory);
    }
    let dims = values.dims();
    let labels = |d: usize| dims[d].levels.iter().map(|level| level.label.clone()).collect();
    DomainError::NoGrid { ranks: labels(0), grids: labels(1) }
}

/// If there is a grid, only memory can leave no point: the memory of the candidate that needs the least, with the smallest
/// NB, with the DEPTH and on the allowed grid that need the least.
fn too_large(spec: &DomainSpec, values: &Values, (workspace, shape_of): (Workspace, ShapeOf<'_>)) -> DomainError {
    let DomainSpec { n, memory_bytes, .. } = *spec;
    let nb = values.nb[0];
    let mut shapes = Vec::new();
    for &(ranks, threads) in &values.splits {
        for (p, q) in values.aspects.iter().filter_map(|&pq| grid_of(ranks, pq)) {
            let hpl = |&depth: &usize| HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
            shapes.extend(values.depth.iter().map(|depth| shape_of(&hpl(depth), threads)));
        }
    }
    let needs = shapes.into_iter().map(|shape| (workspace.bytes(shape), shape));
    let least = needs.min_by_key(|(bytes, shape)| (*bytes, shape.p));
    let (needed_bytes, shape) = least.expect("an allowed number of ranks has an allowed grid");
    let largest_n = workspace.largest_n(memory_bytes, nb, shape);
    DomainError::Memory { n, needed_bytes, memory_bytes, largest_n }
}

/// The level of `value`, the first one where it is not allowed.
pub(super) fn level_or_first<T: PartialEq>(values: &[T], value: &T) -> u16 {
    level(values, value).unwrap_or_default()
}

/// The level of a number which all larger ones are equal to in effect: that of the first of the rising `values` that is not below it.
pub(super) fn level_from(values: &[usize], value: usize) -> u16 {
    values.iter().position(|&known| known >= value).and_then(|level| u16::try_from(level).ok()).unwrap_or_default()
}

pub(super) fn level<T: PartialEq>(values: &[T], value: &T) -> Option<u16> {
    values.iter().position(|known| known == value).and_then(|level| u16::try_from(level).ok())
}
