//! Ranks that are not alike: what is known of each, in the order of ranks.

use serde::{Deserialize, Serialize};

use crate::{KernelChoice, Share};

/// Speeds this near to each other, as a share of them, are one: outliers stand out by more.
pub const ALIKE: f64 = 0.02;

/// What distinguishes the ranks of a run; nothing by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Unequal {
    /// Relative speed of each rank with PMAP row-major; none where they are alike or unknown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub speeds: Vec<Share>,
    /// Kernels of each rank; none where all have the same.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelChoice>,
}

impl Unequal {
    /// Whether nothing distinguishes the ranks.
    pub fn is_empty(&self) -> bool {
        self.speeds.is_empty() && self.kernels.is_empty()
    }

    /// Ranks that it speaks of, `None` for none; the larger number where speeds and kernels disagree.
    pub fn ranks(&self) -> Option<usize> {
        Some(self.speeds.len().max(self.kernels.len())).filter(|&ranks| ranks > 0)
    }

    /// Speed of each rank as part of that of the fastest; none without speeds.
    pub fn relative(&self) -> Vec<f64> {
        let fastest = self.speeds.iter().map(|speed| speed.get()).fold(0.0, f64::max);
        self.speeds.iter().map(|speed| speed.get() / fastest).collect()
    }

    /// How many times as long each rank takes as the fastest; none without speeds.
    pub fn slowness(&self) -> Vec<f64> {
        self.relative().into_iter().map(f64::recip).collect()
    }

    /// Whether the speeds differ by more than [`ALIKE`].
    pub fn differs(&self) -> bool {
        self.relative().iter().any(|&speed| speed < 1.0 - ALIKE)
    }
}
