//! The power of the run that a summary shows.

use objectives::real::Extent;
use serde::Serialize;
use space::stats::median;

use super::score::by_candidate;
use crate::record::Row;

/// How the energies that windows predict compare with those of whole runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EnergyByWindows {
    /// Candidates that have both.
    pub candidates: usize,
    /// Median of predicted by measured energy of the core phase.
    pub median_ratio: f64,
}

impl EnergyByWindows {
    /// Of the candidates that have both at one N; `None` where none has.
    pub(super) fn new(rows: &[Row]) -> Option<Self> {
        let ratio = |runs: Vec<&Row>| {
            let of = |extent, energy: fn(&Row) -> Option<f64>| {
                median(
                    &runs.iter().filter(|row| row.extent == extent).filter_map(|row| energy(row)).collect::<Vec<_>>(),
                )
            };
            // What readings do not cover takes as much.
            let measured = of(Extent::Whole, |row| Some(row.power_w? * row.time_s?))?;
            Some(of(Extent::Windows, |row| row.estimated_energy_j)? / measured)
        };
        let groups = by_candidate(rows.iter().filter(|row| row.passed));
        let ratios: Vec<f64> = groups.into_iter().filter_map(|(_, runs)| ratio(runs)).collect();
        Some(Self { candidates: ratios.len(), median_ratio: median(&ratios)? })
    }
}

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
    /// As [`Row::run_power_coverage`].
    pub run_power_coverage: Option<f64>,
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
            run_power_coverage: row.run_power_coverage,
            source: row.power_source.clone()?,
        })
    }
}
