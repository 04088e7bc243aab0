//! A trial that has started: who it is, and what it runs.

use objectives::real::{Extent, RunSpec};
use serde::{Deserialize, Serialize};
use space::Candidate;

use super::row::{Identity, Prediction};
use crate::record::{PlannedTrial, Reference};

/// A trial that has started, as the journal and its folder say it before it runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    /// Who it is, and on which nodes.
    pub identity: Identity,
    /// The run.
    pub candidate: Candidate,
    /// How much of it.
    #[serde(default)]
    pub extent: Extent,
    /// What is measured in turn with it; `None` where it is measured alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Candidate>,
    /// What was expected of it.
    pub predicted: Option<Prediction>,
    /// Expected wall-clock cost in seconds.
    #[serde(default)]
    pub expected_s: f64,
    /// Names of the nodes that it is kept to; none for all of the session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// Seed of the session.
    #[serde(default)]
    pub seed: u64,
    /// Name of the host that started it; empty where that was not kept.
    #[serde(default)]
    pub host: String,
}

impl Begun {
    /// What is started.
    pub fn run(&self) -> RunSpec {
        RunSpec {
            candidate: self.candidate.clone(),
            extent: self.extent,
            reference: self.reference.clone(),
            nodes: self.nodes.clone(),
        }
    }

    /// This trial to be started once more, under its number.
    pub fn again(&self) -> PlannedTrial {
        let identity = self.identity.clone();
        PlannedTrial {
            trial: Some(identity.trial),
            candidate: self.candidate.clone(),
            extent: self.extent,
            reference: identity
                .reference_trial
                .zip(self.reference.clone())
                .map(|(trial, candidate)| Reference { trial, candidate }),
            strategy: identity.strategy,
            why: identity.why,
            repeat_of: identity.repeat_of,
            paired_with: identity.paired_with,
            predicted: self.predicted,
            expected_s: self.expected_s,
            nodes: self.nodes.clone(),
        }
    }

    /// Whether `other` is a start of the same proposal.
    pub fn is_again(&self, other: &Self) -> bool {
        let of = |begun: &Self| {
            let Identity { trial, strategy, why, nodes, .. } = begun.identity.clone();
            (trial, strategy, why, nodes, begun.candidate.clone(), begun.extent, begun.reference.clone())
        };
        of(self) == of(other)
    }
}
