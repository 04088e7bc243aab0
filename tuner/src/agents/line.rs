//! What the process on a node prints: a line of JSON each.

use hpl::machine::host::HostVitals;
use hpl::measure::power::{SensorSet, SensorValue, Unreadable};
use serde::{Deserialize, Serialize};

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeLine {
    /// The first one: what can be read there.
    Found {
        /// The node.
        node: String,
        /// Its sensors.
        sensors: SensorSet,
        /// Those that cannot be read.
        unreadable: Vec<Unreadable>,
        /// Whether more lines follow: there is a sensor, or the system says how the node fares.
        more: bool,
    },
    /// A sample of the sensors.
    Sample {
        /// The node.
        node: String,
        /// When, in seconds since 1970 by its clock.
        at_s: f64,
        /// Processor seconds that this process has taken for samples so far.
        cpu_s: f64,
        /// The value of each sensor.
        values: Vec<Option<SensorValue>>,
    },
    /// How the node fares.
    Vitals {
        /// The node.
        node: String,
        /// When, in seconds since 1970 by its clock.
        at_s: f64,
        /// What was seen.
        vitals: HostVitals,
    },
}
