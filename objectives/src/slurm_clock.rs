//! The highest clock of the nodes of a job as Slurm is asked for it: `srun --cpu-freq`.

use serde::{Deserialize, Serialize};
use space::NodeSettings;

/// kHz in a MHz.
const KHZ: u64 = 1000;

/// How the clock is asked for. Slurm sets it for the processors of a step and puts back what it found at the end of the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlurmClock {
    /// The lowest clock that all nodes can have, in MHz: the other end of the range.
    pub least_mhz: u32,
    /// The highest clock that the nodes were found with, in MHz.
    pub found_mhz: u32,
    /// What chooses clocks in the range, as `performance`: Slurm takes no range without it.
    pub governor: String,
}

impl SlurmClock {
    /// The word for `srun`; `None` where the nodes are to be as they were found.
    pub fn word(&self, settings: &NodeSettings) -> Option<String> {
        let asked_mhz = settings.max_clock_mhz.filter(|&mhz| mhz < self.found_mhz)?;
        let [least_khz, asked_khz] = [self.least_mhz, asked_mhz].map(|mhz| KHZ * u64::from(mhz));
        Some(format!("--cpu-freq={least_khz}-{asked_khz}:{}", self.governor))
    }
}
