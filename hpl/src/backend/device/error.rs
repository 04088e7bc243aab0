//! Errors of a device.

use serde::{Deserialize, Serialize};

/// An operation of a device failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{device} device: {reason}")]
pub struct DeviceError {
    /// Which device.
    pub device: String,
    /// What failed.
    pub reason: String,
    /// Whether it failed for lack of memory, of the device or of the host's that it reads: a smaller N may fit.
    #[serde(default)]
    pub lacks_memory: bool,
}
