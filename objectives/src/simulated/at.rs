//! A simulated cluster whose nodes are at some settings.

use space::{NodeSettings, SettingLevels};

use super::SimulatedCluster;
use super::power::NodePower;

impl SimulatedCluster {
    /// The settings that a search may vary; none of what the cluster does not have.
    pub fn setting_levels(&self) -> SettingLevels {
        self.settings.as_ref().map_or_else(SettingLevels::default, |settings| SettingLevels {
            max_clock_mhz: settings.clocks_mhz.clone(),
            package_limit_w: settings.package_limits_w.clone(),
            gpu_limit_w: Vec::new(),
        })
    }

    /// The cluster with its nodes at `settings`.
    pub(super) fn at(&self, settings: &NodeSettings) -> Self {
        let Some(own) = self.settings.as_ref().filter(|_| !settings.is_as_found()) else { return self.clone() };
        let clock = own.clock(self.power, settings);
        let slower = self.slower(settings);
        let power = self.power.map(|power| NodePower { busy_watts: own.busy(power, clock), ..power });
        let mut machine = self.machine.clone();
        let phases = machine.phases.iter_mut().flat_map(|phase| &mut phase.coefficients);
        phases.for_each(|coefficient| *coefficient *= slower);
        Self { power, machine, settings: None, ..self.clone() }
    }

    /// Factor on the computing time at `settings`.
    pub(super) fn slower(&self, settings: &NodeSettings) -> f64 {
        let Some(own) = self.settings.as_ref().filter(|_| !settings.is_as_found()) else { return 1.0 };
        own.memory_share + (1.0 - own.memory_share) / own.clock(self.power, settings)
    }
}
