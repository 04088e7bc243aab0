//! `[device]`: rates of the device of one rank, and of the host beside it.

use serde::{Deserialize, Serialize};

/// What the operations of a run cost where the matrix lies in the memory of a device, one for each rank.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceRates {
    /// Pairs of k and the rate in GFLOP/s of C(m×n) −= A(m×k)·B(k×n) for large m and n, k ascending.
    pub dgemm_gflops: Vec<[f64; 2]>,
    /// Order of a square C at which that rate is halved: the time of a product is that of m·n + `dgemm_half`² elements.
    #[serde(default)]
    pub dgemm_half: f64,
    /// Rate of L1⁻¹·U as a share of DGEMM's.
    pub trsm_share: f64,
    /// Bandwidth of the device's memory in GB/s (10⁹ bytes a second).
    pub memory_gbytes_per_s: f64,
    /// Bandwidth between host and device in each direction, in GB/s.
    pub link_gbytes_per_s: f64,
    /// Time to start an operation on the device, in seconds.
    pub launch_s: f64,
    /// Rate of the panel factorization by the host threads of one rank, in GFLOP/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_panel_gflops: Option<f64>,
    /// Time of these threads per column of the panel beyond that, in seconds.
    #[serde(default)]
    pub host_panel_column_s: f64,
    /// Time of a panel factorization on the device that does not depend on its rows, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel_s: Option<f64>,
    /// Time of it per row of the panel, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel_row_s: Option<f64>,
    /// Columns of the panel that these two times are for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub panel_nb: Option<usize>,
    /// Share of the device that a panel factorization takes from the operations beside it.
    #[serde(default)]
    pub panel_share: f64,
}
