//! Settings of the nodes of a simulated cluster: what a lower clock and a power limit do to time and power.
//!
//! Of the computing time one part goes by the clock and one by the memory. Of the power above idle one part is there whenever cores
//! compute, the other goes by a power of the clock. A limit of the packages is the highest clock at which cores that compute keep it.

use serde::{Deserialize, Serialize};
use space::NodeSettings;

use super::power::NodePower;

/// Share of the highest clock below which no power limit brings it.
const LEAST: f64 = 0.25;
/// Halvings of the range of clocks: to one part in a million.
const HALVINGS: u32 = 20;

/// The settings that a simulated cluster has, and how it obeys them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SimulatedSettings {
    /// Clocks in MHz, rising; the nodes are found at the last.
    #[serde(default)]
    pub clocks_mhz: Vec<u32>,
    /// Power limits of a package in watts, rising; the nodes are found at the last.
    #[serde(default)]
    pub package_limits_w: Vec<u32>,
    /// Packages of a node.
    pub packages: u32,
    /// Power of a node outside of its packages, in watts.
    pub board_watts: f64,
    /// Share of the power above idle that does not go by the clock.
    pub constant_share: f64,
    /// Exponent of the clock in the other part.
    pub exponent: f64,
    /// Share of the computing time, at the highest clock, that goes by the memory.
    pub memory_share: f64,
}

impl SimulatedSettings {
    /// Whether all values are possible.
    pub(super) fn is_valid(&self) -> bool {
        let rising = |values: &[u32]| values.windows(2).all(|pair| pair[0] < pair[1]) && values.first() != Some(&0);
        let share = |value: f64| (0.0..=1.0).contains(&value);
        let amounts = self.board_watts >= 0.0 && self.board_watts.is_finite() && (1.0..=5.0).contains(&self.exponent);
        rising(&self.clocks_mhz)
            && rising(&self.package_limits_w)
            && self.packages > 0
            && amounts
            && share(self.constant_share)
            && share(self.memory_share)
    }

    /// The clock at `settings` as a share of the highest.
    pub(super) fn clock(&self, power: Option<NodePower>, settings: &NodeSettings) -> f64 {
        let highest = self.clocks_mhz.last().copied();
        let asked =
            settings.max_clock_mhz.zip(highest).map_or(1.0, |(asked, highest)| f64::from(asked) / f64::from(highest));
        let asked = asked.min(1.0);
        let (Some(power), Some(limit_w)) = (power, settings.package_limit_w) else { return asked };
        let of_package = |clock: f64| (self.busy(power, clock) - self.board_watts) / f64::from(self.packages);
        let keeps = |clock: f64| of_package(clock) <= f64::from(limit_w);
        if keeps(asked) {
            return asked;
        }
        let (mut below, mut above) = (LEAST, asked);
        for _ in 0..HALVINGS {
            let middle = f64::midpoint(below, above);
            if keeps(middle) { below = middle } else { above = middle }
        }
        below
    }

    /// Watts of a node whose cores all compute at this share of the highest clock.
    pub(super) fn busy(&self, power: NodePower, clock: f64) -> f64 {
        let share = self.constant_share + (1.0 - self.constant_share) * clock.powf(self.exponent);
        power.idle_watts + (power.busy_watts - power.idle_watts) * share
    }
}
