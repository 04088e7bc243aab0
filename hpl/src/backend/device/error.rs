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
}
