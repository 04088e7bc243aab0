//! Settings of the nodes under which a run works.
//!
//! Whoever starts the run makes them: no engine does.

use serde::{Deserialize, Serialize};

/// Settings of all nodes of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct NodeSettings {
    /// Highest clock of every processor, in MHz; `None` for that which the node was found with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_clock_mhz: Option<u32>,
    /// Power limit of every processor package, in watts; `None` for that which the node was found with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub package_limit_w: Option<u32>,
    /// Power limit of every accelerator, in watts; `None` for that which the node was found with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_limit_w: Option<u32>,
}

impl NodeSettings {
    /// Names of the dimensions, in the order of the fields.
    pub const NAMES: [&str; 3] = ["max_clock_mhz", "package_limit_w", "gpu_limit_w"];

    /// Whether the node is as it was found.
    pub fn is_as_found(&self) -> bool {
        *self == Self::default()
    }

    /// The values, in the order of [`NodeSettings::NAMES`].
    pub fn values(&self) -> [Option<u32>; 3] {
        [self.max_clock_mhz, self.package_limit_w, self.gpu_limit_w]
    }

    /// The values that are set, by the names of their dimensions.
    pub fn named(&self) -> impl Iterator<Item = (&'static str, u32)> {
        Self::NAMES.into_iter().zip(self.values()).filter_map(|(name, value)| Some((name, value?)))
    }
}

/// The values of each setting that a search tries; none of a setting that it leaves alone.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SettingLevels {
    /// Values of [`NodeSettings::max_clock_mhz`], rising; the last is that which the node was found with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub max_clock_mhz: Vec<u32>,
    /// Values of [`NodeSettings::package_limit_w`], rising; the last is that which the node was found with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub package_limit_w: Vec<u32>,
    /// Values of [`NodeSettings::gpu_limit_w`], rising; the last is that which the node was found with.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpu_limit_w: Vec<u32>,
}

impl SettingLevels {
    /// Whether no setting is tried.
    pub fn is_empty(&self) -> bool {
        self.values().iter().all(|values| values.is_empty())
    }

    /// Number of different settings.
    pub fn combinations(&self) -> usize {
        self.values().iter().map(|values| values.len().max(1)).product()
    }

    /// The settings that the nodes were found with.
    pub fn as_found(&self) -> NodeSettings {
        let [max_clock_mhz, package_limit_w, gpu_limit_w] = self.values().map(|values| values.last().copied());
        NodeSettings { max_clock_mhz, package_limit_w, gpu_limit_w }
    }

    /// The values of each, in the order of [`NodeSettings::NAMES`].
    pub fn values(&self) -> [&[u32]; 3] {
        [&self.max_clock_mhz, &self.package_limit_w, &self.gpu_limit_w]
    }
}
