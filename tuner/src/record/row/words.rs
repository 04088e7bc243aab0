//! Words of a row that no parameter has.

use objectives::real::Extent;
use serde::{Deserialize, Serialize};
use space::Swap;

/// How much of a run a trial did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fidelity {
    /// Some steps of the full-size run.
    Window,
    /// The whole run with its residual.
    Full,
}

impl From<Extent> for Fidelity {
    fn from(extent: Extent) -> Self {
        match extent {
            Extent::Whole => Self::Full,
            Extent::Windows => Self::Window,
        }
    }
}

/// SWAP without its threshold, which has its own column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SwapName {
    /// Binary exchange.
    BinExch,
    /// Spread and roll.
    Long,
    /// Binary exchange up to the threshold, spread and roll above.
    Mix,
}

impl From<Swap> for SwapName {
    fn from(swap: Swap) -> Self {
        match swap {
            Swap::BinExch => Self::BinExch,
            Swap::Long => Self::Long,
            Swap::Mix { .. } => Self::Mix,
        }
    }
}
