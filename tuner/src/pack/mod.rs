//! Packs: what lists, competitions and acceptances ask for after a run, in one folder with the evidence.
//!
//! [`scored`] is the run that is packed and refuses what is not a score, [`facts`] what was found on this host, [`site`] what
//! only people know, [`peak`] Rpeak, [`power`] a meter's readings, [`asked`] which fields each purpose wants, [`sources`] where values
//! are from, [`values`] what is known of them, [`sheet`] how they are printed, [`mod@write`] the folder, [`archive`] the folder as one file. [`verify`] looks for
//! what does not hold in a pack or in a run folder. A value that is not known is missing: nothing is filled in for it.

pub mod acceptance;
pub mod archive;
pub mod asked;
pub mod error;
pub mod facts;
pub mod folder;
pub mod init;
pub mod manifest;
pub mod nodes;
pub mod peak;
pub mod power;
pub mod repeats;
pub mod scored;
pub mod sheet;
pub mod site;
pub mod sources;
pub mod values;
pub mod verify;
pub mod write;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What a pack is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// A submission to the TOP500 list
    Top500,
    /// A submission to the Green500 list: that of the TOP500, with power
    Green500,
    /// A student cluster competition
    Scc,
    /// The acceptance of a machine
    Acceptance,
}

impl Purpose {
    /// Its name on the command line and in file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Top500 => "top500",
            Self::Green500 => "green500",
            Self::Scc => "scc",
            Self::Acceptance => "acceptance",
        }
    }
}
