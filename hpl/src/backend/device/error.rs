//! Errors of a device.

/// An operation of a device failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{device} device: {reason}")]
pub struct DeviceError {
    /// Which device.
    pub device: String,
    /// What failed.
    pub reason: String,
}
