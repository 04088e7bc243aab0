//! What is kept of the power of a trial: columns of its row, and `power.json` in its folder.

use objectives::simulated::SimulatedPower;
use serde::{Deserialize, Serialize};

use super::window::Mean;

/// Version of `power.json` in the folder of a trial.
pub const RECORD_SCHEMA: u32 = 2;

/// What stands behind every source that is no calibrated meter.
pub const GRADE: &str = "not Green500 grade";

/// Share of the core phase that readings have to cover before GFLOPS/W are given.
pub const LEAST_COVERAGE: f64 = 0.8;

/// Share of a run that readings have to cover for a search to compare its power with those of others. It is less than
/// [`LEAST_COVERAGE`]: a sensor that answers each few seconds says enough of windows of a quarter of a minute.
pub const LEAST_TO_COMPARE: f64 = 0.5;

/// The columns of a row; all absent where nothing was read.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunPower {
    /// As `Row::energy_j`.
    pub energy_j: Option<f64>,
    /// As `Row::power_w`.
    pub power_w: Option<f64>,
    /// As `Row::gflops_per_w`.
    pub gflops_per_w: Option<f64>,
    /// As `Row::power_coverage`.
    pub power_coverage: Option<f64>,
    /// As `Row::run_energy_j`.
    pub run_energy_j: Option<f64>,
    /// As `Row::run_power_w`.
    pub run_power_w: Option<f64>,
    /// As `Row::run_power_coverage`.
    pub run_power_coverage: Option<f64>,
    /// As `Row::estimated_energy_j`.
    pub estimated_energy_j: Option<f64>,
    /// As `Row::estimated_power_w`.
    pub estimated_power_w: Option<f64>,
    /// As `Row::power_source`.
    pub power_source: Option<String>,
}

impl RunPower {
    /// That of a simulated run: nothing of it was read.
    pub fn simulated(power: SimulatedPower) -> Self {
        let SimulatedPower { core_s, core_w, rate_gflops, run_s, run_w } = power;
        let core = core_s.is_some();
        Self {
            energy_j: core_s.map(|core_s| core_s * core_w),
            power_w: core.then_some(core_w),
            gflops_per_w: rate_gflops.filter(|_| core && core_w > 0.0).map(|rate| rate / core_w),
            power_coverage: core.then_some(1.0),
            run_energy_j: Some(run_s * run_w),
            run_power_w: Some(run_w),
            run_power_coverage: Some(1.0),
            power_source: Some(SIMULATED.to_owned()),
            ..Self::default()
        }
    }

    /// Share that readings cover: of the core phase, where it is that which counts and its time is known, else of the whole run.
    pub fn coverage(&self, of_core: bool) -> Option<f64> {
        self.power_coverage.filter(|_| of_core).or(self.run_power_coverage)
    }
}

/// The source of simulated power.
const SIMULATED: &str = "simulated";

/// `trials/N/power.json`: what every sensor gave during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PowerRecord {
    /// [`RECORD_SCHEMA`].
    pub schema_version: u32,
    /// As `Row::power_source`.
    pub source: String,
    /// Whether it stands for all that ran: not for one of several nodes, and not for accelerators alone.
    pub of_all: bool,
    /// Length of the core phase in seconds; `None` where its time is not known.
    pub core_s: Option<f64>,
    /// Of the source, over the core phase; `None` where no reading lies in it.
    pub core: Option<Mean>,
    /// Of the source, over the whole run.
    pub run: Option<Mean>,
    /// Each sensor by itself; empty for a meter.
    pub sensors: Vec<SensorMeans>,
    /// Each node by itself, where the runs are on several and all of them are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeMeans>,
    /// Share of the nodes of the run whose power it is.
    #[serde(default = "whole")]
    pub node_share: f64,
    /// Samples of the sensors.
    pub samples: usize,
    /// Seconds from the first sample to the last.
    pub sampled_s: f64,
    /// Processor seconds that taking them took.
    pub sampler_cpu_s: f64,
}

fn whole() -> f64 {
    1.0
}

/// A node by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeMeans {
    /// Its name.
    pub node: String,
    /// Over the core phase; `None` where it was not read.
    pub core: Option<Mean>,
    /// Over the whole run.
    pub run: Option<Mean>,
    /// Seconds that were added to the times of its clock.
    pub clock_offset_s: Option<f64>,
}

/// A sensor by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SensorMeans {
    /// The node that has it, where several are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The interface that has it.
    pub source: String,
    /// Its name there.
    pub name: String,
    /// Whether it is part of the power of the row.
    pub counted: bool,
    /// Whether it has shown more than 0 W.
    pub moves: bool,
    /// Over the core phase.
    pub core: Option<Mean>,
    /// Over the whole run.
    pub run: Option<Mean>,
}

impl PowerRecord {
    /// Its file in the folder of a trial.
    pub const NAME: &str = "power.json";

    /// The columns of the run with this rate.
    pub fn columns(&self, rate_gflops: Option<f64>) -> RunPower {
        let joules = |mean: &Mean| mean.mean_watts * mean.covered_s;
        let (core, run) = (self.core.as_ref(), self.run.as_ref());
        let of_nodes = |share: f64| share.min(1.0) * self.node_share;
        let coverage = core.zip(self.core_s).map(|(core, core_s)| of_nodes(core.covered_s / core_s));
        let covered = core.filter(|core| self.of_all && core.mean_watts > 0.0 && coverage >= Some(LEAST_COVERAGE));
        RunPower {
            energy_j: core.map(joules),
            power_w: core.map(|core| core.mean_watts),
            gflops_per_w: covered.zip(rate_gflops).map(|(core, rate)| rate / core.mean_watts),
            power_coverage: coverage,
            run_energy_j: run.map(joules),
            run_power_w: run.map(|run| run.mean_watts),
            run_power_coverage: run.map(|run| of_nodes(run.coverage())),
            power_source: Some(self.source.clone()),
            ..RunPower::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(span_s: f64, covered_s: f64, mean_watts: f64) -> Option<Mean> {
        let (lowest_watts, highest_watts) = (mean_watts, mean_watts);
        Some(Mean { span_s, covered_s, values: 10, mean_watts, lowest_watts, highest_watts, gaps: Vec::new() })
    }

    fn record(core_s: f64, core: Option<Mean>, run: Option<Mean>) -> PowerRecord {
        PowerRecord {
            schema_version: RECORD_SCHEMA,
            source: "powercap package-0; not Green500 grade".into(),
            of_all: true,
            core_s: Some(core_s),
            core,
            run,
            sensors: Vec::new(),
            nodes: Vec::new(),
            node_share: 1.0,
            samples: 11,
            sampled_s: 100.0,
            sampler_cpu_s: 1e-3,
        }
    }

    /// 80 s of 400 W between 20 s of 100 W: the mean of the job would make GFLOPS/W 18 % too good.
    #[test]
    fn the_core_phase_counts_not_the_job() {
        let found = record(80.0, mean(80.0, 80.0, 400.0), mean(100.0, 100.0, 340.0)).columns(Some(2000.0));
        assert_eq!((found.energy_j, found.power_w, found.gflops_per_w), (Some(32_000.0), Some(400.0), Some(5.0)));
        assert_eq!((found.run_energy_j, found.run_power_w), (Some(34_000.0), Some(340.0)));
        assert_eq!((found.power_coverage, found.run_power_coverage), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn little_coverage_gives_watts_and_no_efficiency() {
        let found = record(80.0, mean(79.0, 60.0, 400.0), None).columns(Some(2000.0));
        assert_eq!((found.power_coverage, found.power_w, found.gflops_per_w), (Some(0.75), Some(400.0), None));
        assert_eq!((found.energy_j, found.run_power_w), (Some(24_000.0), None));
        let part = PowerRecord { of_all: false, ..record(80.0, mean(80.0, 80.0, 400.0), None) };
        let several = part.columns(Some(2000.0));
        assert_eq!((several.power_w, several.gflops_per_w), (Some(400.0), None));
        let none = record(80.0, None, None).columns(Some(2000.0));
        assert_eq!((none.energy_j, none.power_coverage, none.gflops_per_w), (None, None, None));
    }
}
