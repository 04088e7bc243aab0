//! `[[measured]]`: a run of HPL that was measured, as far as its source states it.

use serde::{Deserialize, Serialize};

/// One measured run; what the source does not say is left out.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// Order N.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
    /// Blocking factor NB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nb: Option<usize>,
    /// Process rows P.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<usize>,
    /// Process columns Q.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub q: Option<usize>,
    /// Nodes that took part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,
    /// Ranks; P·Q where both are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<usize>,
    /// Score in GFLOP/s.
    pub rate_gflops: f64,
    /// Time of the run in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<f64>,
    /// Peak that the source states with the score, in GFLOP/s, of whatever part of the machine it counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_gflops: Option<f64>,
    /// What the source's own model predicts, in GFLOP/s. No measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published_model_gflops: Option<f64>,
    /// Other statements of the source about this run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

impl Measured {
    /// Ranks, as stated or as P·Q.
    pub fn ranks(&self) -> Option<usize> {
        self.ranks.or(self.p.zip(self.q).map(|(p, q)| p * q))
    }

    /// P×Q: as stated, else as square as the ranks allow with P ≤ Q.
    pub fn grid(&self) -> Option<(usize, usize)> {
        self.p.zip(self.q).or_else(|| self.ranks.map(crate::domain::squarest))
    }
}
