//! A trial before it starts.

use objectives::real::Extent;
use space::Candidate;

use super::row::{Identity, Prediction};

/// A candidate that is measured in turn with that of a trial, in one process, and the first trial of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    /// The first trial in which it passed.
    pub trial: u64,
    /// Its parameters.
    pub candidate: Candidate,
}

/// A trial that is to run next.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTrial {
    /// Its number, where it was started before and its end was never recorded.
    pub trial: Option<u64>,
    /// The run.
    pub candidate: Candidate,
    /// How much of it.
    pub extent: Extent,
    /// What is measured in turn with it; `None` where it is measured alone.
    pub reference: Option<Reference>,
    /// What chose it, as stored.
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// The trial that it measures again.
    pub repeat_of: Option<u64>,
    /// The trial measured just before, to compare with.
    pub paired_with: Option<u64>,
    /// What is expected of it.
    pub predicted: Option<Prediction>,
    /// Expected wall-clock cost in seconds.
    pub expected_s: f64,
    /// Names of the nodes that it is kept to; none for all of the session.
    pub nodes: Vec<String>,
}

/// Names of nodes as [`Row::nodes`](super::Row::nodes) has them.
pub fn names_in_order(nodes: &[String]) -> String {
    let mut names = nodes.to_vec();
    names.sort();
    names.join(" ")
}

impl PlannedTrial {
    /// Whether a search on all nodes has proposed it. What else there is follows from the record and the time left.
    pub fn is_of_search(&self) -> bool {
        let others = [Identity::BASELINE, Identity::CONFIRM, Identity::EXPERT, Identity::PROMOTE, Identity::FINAL];
        self.nodes.is_empty() && !others.contains(&self.strategy.as_str())
    }
}
