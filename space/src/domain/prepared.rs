//! What another engine makes of a specification: its ranks and threads, the usual candidate, and the values of each dimension.

use super::build::{fills_nodes, splits};
use super::error::DomainError;
use super::spec::{DomainSpec, ForeignSpec};
use super::usual::default_candidate;
use super::values::{Detail, Values, up_to};
use crate::Candidate;
use crate::order::MAX_N;
use crate::rules::RuleError;

/// What `foreign` makes of `spec`: its ranks and threads, and the usual candidate.
pub(super) type Prepared = (DomainSpec, Vec<(usize, usize)>, Candidate);

/// [`Prepared`] of `spec` and `foreign`.
///
/// # Errors
/// [`DomainError`] when ranks or threads do not fit the cores, or N is too large.
pub(super) fn prepared(spec: &DomainSpec, foreign: &ForeignSpec) -> Result<Prepared, DomainError> {
    let threads = if foreign.threads { spec.threads } else { Some(1) };
    let spec = DomainSpec { threads, ..spec.clone() };
    let mut splits = splits(&spec)?;
    let (ranks, threads) = splits[0];
    let most = foreign.most_threads.unwrap_or(usize::MAX);
    let is_free = spec.ranks.is_none() && spec.threads.is_none();
    if spec.ranks.is_some() && spec.threads.is_none() {
        // The cores that are over stay idle.
        splits.iter_mut().for_each(|(_, threads)| *threads = (*threads).min(most));
    }
    // Fixed ranks or threads may leave cores of a node idle.
    splits.retain(|&(_, threads)| threads <= most && (!is_free || fills_nodes(threads, most, spec.cores)));
    if splits.is_empty() {
        return Err(DomainError::Cores { ranks, threads, cores: most });
    }
    if spec.n > MAX_N {
        return Err(RuleError::TooLarge { max: MAX_N, found: spec.n }.into());
    }
    let mut usual = usual(&spec, foreign);
    usual.engine.threads = usual.engine.threads.min(most);
    Ok((spec, splits, usual))
}

/// The usual candidate, with the usual value of every dimension that only this engine has.
fn usual(spec: &DomainSpec, foreign: &ForeignSpec) -> Candidate {
    let mut usual = default_candidate(spec);
    let wanted = foreign.usual_nb.unwrap_or(usual.hpl.nb);
    let far = |nb: &usize| (*nb as f64 / wanted as f64).ln().abs();
    if foreign.acts("nb") {
        let known = up_to(&foreign.nb, spec.n).into_iter().min_by(|a, b| far(a).total_cmp(&far(b)));
        usual.hpl.nb = known.unwrap_or(wanted.min(spec.n));
    }
    if foreign.acts("nbmin") {
        usual.hpl.nbmin = foreign.usual_nbmin.unwrap_or(usual.hpl.nbmin).min(usual.hpl.nb).max(1);
    }
    usual.engine.extra = foreign.extra.iter().map(|extra| (extra.name.clone(), extra.labels[0].clone())).collect();
    usual
}

/// The values at this detail; a parameter that is no dimension has the one of the usual candidate where it takes memory.
pub(super) fn values(detail: &Detail, (spec, splits, usual): &Prepared, foreign: &ForeignSpec) -> Values {
    let mut values = Values { split: vec![0.0], ..detail.values(spec, splits) };
    if !foreign.acts("nb") {
        values.nb = vec![usual.hpl.nb];
    } else if !foreign.nb.is_empty() {
        values.nb = up_to(&foreign.nb, spec.n);
    } else if let Err(place) = values.nb.binary_search(&usual.hpl.nb) {
        values.nb.insert(place, usual.hpl.nb);
    }
    if !foreign.acts("depth") {
        values.depth = vec![usual.hpl.depth];
    }
    if let Err(place) = values.nbmin.binary_search(&usual.hpl.nbmin) {
        values.nbmin.insert(place, usual.hpl.nbmin);
    }
    values
}
