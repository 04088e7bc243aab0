//! `[timeline]`: costs of a rank that the timeline knows and the closed forms do not.

use serde::{Deserialize, Serialize};

use super::check::Table;
use super::{MachineError, check};

/// What the parts of a step cost beyond `[[rate]]` and `[[layer]]`. Pairs are from cache and from memory, while all ranks of the
/// node work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RankCosts {
    /// CPUs of a node, at least 1: ranks of one CPU are equally fast.
    pub cpus: usize,
    /// Relative standard deviation of the time of one DGEMM call.
    #[serde(default)]
    pub spread: f64,
    /// Seconds per element of C beyond the rate of DGEMM; below 0 where its fit to wide products takes back some of it.
    #[serde(default)]
    pub dgemm_mn_s: f64,
    /// Cache that the panel of one rank may fill, in bytes.
    pub cache_bytes: f64,
    /// Factorization of an m×k panel without messages, in seconds per m·k².
    pub panel_s: [f64; 2],
    /// One pass over rows that are gathered or put in place, in seconds per byte.
    pub copy_s_per_byte: [f64; 2],
    /// A message within a node, in seconds per byte.
    pub inside_s_per_byte: [f64; 2],
    /// Seconds for one message of a pivot search.
    pub pivot_s: f64,
    /// Seconds per byte of its row.
    pub pivot_s_per_byte: f64,
}

impl RankCosts {
    /// Checks that every cost is possible.
    pub(super) fn check(&self) -> Result<(), MachineError> {
        let table = Table("[timeline]".to_owned());
        table.count("cpus", self.cpus)?;
        table.real("spread", self.spread, 1.0)?;
        let wanted = format_args!("a number from -1e-6 to 1e-6");
        table.require(self.dgemm_mn_s.abs() <= 1e-6, "dgemm_mn_s", wanted, self.dgemm_mn_s)?;
        table.above("cache_bytes", self.cache_bytes, check::MAX_BYTES as f64)?;
        let pairs = [
            ("panel_s", self.panel_s),
            ("copy_s_per_byte", self.copy_s_per_byte),
            ("inside_s_per_byte", self.inside_s_per_byte),
        ];
        pairs
            .iter()
            .flat_map(|(key, pair)| pair.map(|cost| (*key, cost)))
            .try_for_each(|(key, cost)| table.real(key, cost, check::MAX_S))?;
        table.real("pivot_s", self.pivot_s, check::MAX_S)?;
        table.real("pivot_s_per_byte", self.pivot_s_per_byte, check::MAX_S)
    }
}
