//! Trials of several nodes of which some stood apart.

use serde::Serialize;

use crate::record::Row;

/// How often nodes stood apart, and how in the last trial of these.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NodesApart {
    /// Trials in which a node did.
    pub trials: usize,
    /// The last of them.
    pub last_trial: u64,
    /// As [`Row::nodes_apart`] of that.
    pub last: String,
}

impl NodesApart {
    /// `None` where no node did in any of `rows`.
    pub(super) fn new(rows: &[Row]) -> Option<Self> {
        let found = rows.iter().filter_map(|row| Some((row.trial, row.nodes_apart.as_ref()?)));
        let (last_trial, last) = found.clone().next_back()?;
        Some(Self { trials: found.count(), last_trial, last: last.clone() })
    }
}
