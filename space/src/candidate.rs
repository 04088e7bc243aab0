//! A candidate: everything that one run needs to be told.

use serde::{Deserialize, Serialize};

use crate::{EngineParams, HplParams};

/// HPL's parameters with our engine's: what flows through the program and comes back as a record.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Candidate {
    /// What HPL.dat says.
    pub hpl: HplParams,
    /// What `engine-params.toml` says.
    pub engine: EngineParams,
}
