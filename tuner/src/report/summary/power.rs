//! The power of the run that a summary shows.

use serde::Serialize;

use crate::record::Row;

/// The power of one run; measured by what `source` names.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ShownPower {
    /// The trial.
    pub trial: u64,
    /// As [`Row::power_w`].
    pub power_w: Option<f64>,
    /// As [`Row::energy_j`].
    pub energy_j: Option<f64>,
    /// As [`Row::gflops_per_w`].
    pub gflops_per_w: Option<f64>,
    /// As [`Row::power_coverage`].
    pub power_coverage: Option<f64>,
    /// As [`Row::run_power_w`].
    pub run_power_w: Option<f64>,
    /// As [`Row::run_energy_j`].
    pub run_energy_j: Option<f64>,
    /// As [`Row::power_source`].
    pub source: String,
}

impl ShownPower {
    /// That of a trial; `None` where nothing of it was read.
    pub(super) fn new(row: &Row) -> Option<Self> {
        Some(Self {
            trial: row.trial,
            power_w: row.power_w,
            energy_j: row.energy_j,
            gflops_per_w: row.gflops_per_w,
            power_coverage: row.power_coverage,
            run_power_w: row.run_power_w,
            run_energy_j: row.run_energy_j,
            source: row.power_source.clone()?,
        })
    }
}
