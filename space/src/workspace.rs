//! Memory of a run by where its matrix lies: as HPL in main memory, or as our engine in the memory of devices.

use serde::{Deserialize, Serialize};

use crate::order::{largest_of, required_bytes, required_bytes_of_processes};

/// Most columns that our engine updates at once on a device which factors the panels of one process.
pub const DEVICE_PART_COLS: usize = 16_384;

/// Most rows that our engine moves at once on a device.
pub const DEVICE_PERMUTED_ROWS: usize = 4096;

/// Copies of L that a device has where panels travel, or where the host factors them.
pub const DEVICE_LS: usize = 2;

/// Leading dimensions on devices are multiples of it, in elements (256 bytes), for an ALIGN that divides it. DGEMM reads whole lines of the memory then.
pub const DEVICE_LD_STEP: usize = 32;

/// Bytes of what else a device has of a run, at most: lists of rows and tables of the generator, as many as may be queued.
pub const DEVICE_LISTS_BYTES: u64 = 48 << 20;

/// What a run keeps beside its matrix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Workspace {
    /// As HPL: [`required_bytes`].
    #[default]
    Hpl,
    /// As our engine where each rank is a process: [`required_bytes_of_processes`]. Profiles of other engines cannot say it.
    #[serde(skip)]
    OurProcesses,
    /// As our engine on devices, one for each rank.
    OurDevice,
}

/// The shape of a run as far as memory depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunShape {
    /// Order N.
    pub n: usize,
    /// Process rows.
    pub p: usize,
    /// Process columns.
    pub q: usize,
    /// NB.
    pub nb: usize,
    /// DEPTH.
    pub depth: usize,
    /// Whether the device factors panels where P = 1; without effect on hosts.
    pub device_factors: bool,
}

impl Workspace {
    /// Memory of a run on all ranks together, in bytes. Each device has as much as the one with the largest part of the matrix.
    pub fn bytes(self, shape: RunShape) -> u64 {
        let RunShape { n, p, q, nb, depth, .. } = shape;
        match self {
            Self::Hpl => required_bytes(n, p, q, nb, depth),
            Self::OurProcesses => required_bytes_of_processes(n, p, q, nb, depth),
            Self::OurDevice => {
                let each = device_words(shape).saturating_mul(8).saturating_add(u128::from(DEVICE_LISTS_BYTES));
                u64::try_from(each.saturating_mul((p * q) as u128)).unwrap_or(u64::MAX)
            }
        }
    }

    /// The largest order, a multiple of `step`, whose run takes at most `memory_bytes`; 0 when not even that order fits.
    /// `shape.n` is not read.
    pub fn largest_n(self, memory_bytes: u64, step: usize, shape: RunShape) -> usize {
        largest_of(step, |n| self.bytes(RunShape { n, ..shape }) <= memory_bytes)
    }
}

/// Smallest multiple of `align` ≥ `rows` that is no power of two and, where `align` allows, no multiple of 512: with
/// such a leading dimension the elements of one row would map to a few cache sets.
pub fn leading_dimension(rows: usize, align: usize) -> usize {
    let align = align.max(1);
    let mut ld = rows.max(1).next_multiple_of(align);
    while ld > 2 && (ld.is_power_of_two() || (ld.is_multiple_of(512) && !align.is_multiple_of(512))) {
        ld += align;
    }
    ld
}

/// Elements that our engine allocates on the device with the largest part of the matrix.
fn device_words(RunShape { n, p, q, nb, depth, device_factors }: RunShape) -> u128 {
    let nb = nb.clamp(1, n.max(1));
    let local = |procs: usize| n.div_ceil(nb).div_ceil(procs.max(1)).saturating_mul(nb).min(n);
    let (rows, cols) = (local(p), local(q) + 1);
    let ld = leading_dimension(rows, DEVICE_LD_STEP);
    let [n, rows, cols, nb, ld] = [n, rows, cols, nb, ld].map(|size| size as u128);
    let depth = (depth as u128).min(n.div_ceil(nb));
    let matrix = ld * cols;
    let l = if device_factors && p == 1 && q == 1 {
        // The identity, an inverse for each panel in flight, and U of a part.
        (depth.max(1) + 2) * nb * nb + nb * cols.min(DEVICE_PART_COLS as u128)
    } else {
        DEVICE_LS as u128 * (rows + 2 * nb) * nb
    };
    let exchanged = match (p, 2 * nb <= DEVICE_PERMUTED_ROWS as u128) {
        (1, true) => 0,
        (1, false) => 2 * nb * cols,
        // Gathered, received and moved rows, and U.
        _ => 7 * nb * cols,
    };
    let vectors = (2 * rows + cols).max(rows + nb) + n;
    matrix + l + exchanged + vectors
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: u64 = 80_740_000_000;

    fn one(nb: usize, device_factors: bool) -> RunShape {
        RunShape { n: 0, p: 1, q: 1, nb, depth: 1, device_factors }
    }

    #[test]
    fn leading_dimensions_hold_the_rows_and_use_all_cache_sets() {
        for (rows, align) in (0..3000).flat_map(|rows| [1, 4, 8, 512, 1000].map(|align| (rows, align))) {
            let ld = leading_dimension(rows, align);
            assert!(ld >= rows.max(1) && ld.is_multiple_of(align));
            assert!(!ld.is_power_of_two() || ld <= 2);
        }
        assert_eq!(
            (leading_dimension(1000, 8), leading_dimension(1024, 8), leading_dimension(1536, 8)),
            (1000, 1032, 1544)
        );
    }

    #[test]
    fn a_device_that_factors_keeps_little_beside_the_matrix() {
        let largest = |nb, factors| Workspace::OurDevice.largest_n(H100, 64, one(nb, factors));
        // √(80.74 GB / 8) = 100 461 without workspace.
        assert!((100_000..100_461).contains(&largest(1024, true)), "{}", largest(1024, true));
        assert!(largest(2048, true) as f64 > 0.99 * largest(1024, true) as f64);
        assert!(largest(1024, false) < largest(1024, true), "L has memory of its own");
        let hpl = Workspace::Hpl.largest_n(H100, 1024, one(1024, true));
        assert!(hpl < 98_000 && hpl == crate::order::largest_n(H100, 1, 1, 1024, 1), "{hpl}");
    }

    #[test]
    fn memory_rises_with_everything() {
        let base = RunShape { n: 50_000, p: 2, q: 4, nb: 512, depth: 1, device_factors: true };
        let bytes = |shape| Workspace::OurDevice.bytes(shape);
        assert!(bytes(RunShape { n: 50_001, ..base }) > bytes(base));
        assert!(bytes(RunShape { nb: 1024, ..base }) > bytes(base));
        assert_eq!(bytes(RunShape { device_factors: false, ..base }), bytes(base), "hosts factor where P > 1");
        assert!(bytes(RunShape { n: usize::MAX / 4, ..base }) == u64::MAX);
        assert!(bytes(RunShape { n: 0, nb: 0, ..base }) > 0);
    }
}
