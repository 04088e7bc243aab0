//! Memory of a run by where its matrix lies: as HPL in main memory, or as our engine in the memory of devices.

use serde::{Deserialize, Serialize};

use crate::HplParams;
use crate::order::{largest_of, required_bytes, required_bytes_of_processes};

/// Fewest elements of a panel for each thread of a host that factors it in our engine.
pub const FACT_ELEMENTS: usize = 100_000;

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
    /// Most threads of a rank of our engine that factor a panel; 1 for other engines, and without effect on devices.
    pub fact_threads: usize,
}

impl RunShape {
    /// Of a run of our engine on hosts, whose ranks have `threads` threads each and of which a process, or a node of several processes, has
    /// `cores` cores. Without look-ahead a rank has those of the others of its process row as well, but for their first.
    pub fn on_hosts(&HplParams { n, p, q, nb, depth, .. }: &HplParams, threads: usize, cores: usize) -> Self {
        let borrowed = if depth == 0 { q.saturating_sub(1).saturating_mul(threads.saturating_sub(1)) } else { 0 };
        let fact_threads = threads.saturating_add(borrowed).min(cores.max(threads));
        Self { n, p, q, nb, depth, device_factors: false, fact_threads }
    }
}

impl Workspace {
    /// Memory of a run on all ranks together, in bytes. Each device has as much as the one with the largest part of the matrix.
    ///
    /// On hosts, of T > 1 threads that factor a panel P·Q·(T − 1/2)·NB² doubles are added: each but the first has a copy of L1, and they share
    /// the parts of U that they have solved, NB²/2 at most. A process column has no more copies than N·NB/[`FACT_ELEMENTS`].
    pub fn bytes(self, shape: RunShape) -> u64 {
        let RunShape { n, p, q, nb, depth, .. } = shape;
        match self {
            Self::Hpl => required_bytes(n, p, q, nb, depth).saturating_add(fact_bytes(shape)),
            Self::OurProcesses => required_bytes_of_processes(n, p, q, nb, depth).saturating_add(fact_bytes(shape)),
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

/// What [`Workspace::bytes`] adds for the threads that factor panels on hosts.
fn fact_bytes(RunShape { n, p, q, nb, fact_threads, .. }: RunShape) -> u64 {
    let [n, p, q, nb, others] = [n, p, q, nb.min(n), fact_threads.saturating_sub(1)].map(|size| size as u128);
    let copies = p.saturating_mul(others).min(n * nb / FACT_ELEMENTS as u128);
    let solved = if copies > 0 { p } else { 0 };
    // Halves of NB².
    let halves = q.saturating_mul(copies.saturating_mul(2).saturating_add(solved));
    u64::try_from(halves.saturating_mul(nb * nb).saturating_mul(4)).unwrap_or(u64::MAX)
}

/// Elements that our engine allocates on the device with the largest part of the matrix.
fn device_words(RunShape { n, p, q, nb, depth, device_factors, .. }: RunShape) -> u128 {
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
        RunShape { n: 0, p: 1, q: 1, nb, depth: 1, device_factors, fact_threads: 1 }
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
    fn each_thread_but_the_first_has_a_copy_of_l1() {
        let hpl = |n, p, q, nb, depth| HplParams { nb, depth, ..HplParams::baseline(n, p, q) };
        let more = |hpl: HplParams, threads| {
            let [one, all] =
                [1, threads].map(|threads| Workspace::Hpl.bytes(RunShape::on_hosts(&hpl, threads, usize::MAX)));
            all - one
        };
        let square = 8 * 8192 * 8192;
        assert_eq!(more(hpl(200_000, 1, 1, 8192, 1), 64), 63 * square + square / 2);
        assert_eq!(more(hpl(200_000, 2, 3, 8192, 1), 2), 6 * (square + square / 2));
        // Two threads of each of three process columns: T = 4.
        assert_eq!(more(hpl(200_000, 2, 3, 8192, 0), 2), 6 * (3 * square + square / 2));
        // Of 10 000 × 64 elements, six threads have 100 000 each.
        assert_eq!(more(hpl(10_000, 1, 1, 64, 1), 64), (6 * 8 + 4) * 64 * 64);
        assert_eq!(more(hpl(1000, 1, 1, 64, 1), 64), 0);
        let shape = RunShape::on_hosts(&hpl(200_000, 2, 3, 8192, 0), 2, 3);
        assert_eq!(shape.fact_threads, 3, "a node of three cores");
        let most = RunShape { n: usize::MAX, p: usize::MAX, q: usize::MAX, nb: usize::MAX, ..shape };
        assert_eq!(Workspace::OurProcesses.bytes(most), u64::MAX);
    }

    #[test]
    fn memory_rises_with_everything() {
        let base = RunShape { n: 50_000, p: 2, q: 4, nb: 512, depth: 1, device_factors: true, fact_threads: 1 };
        let bytes = |shape| Workspace::OurDevice.bytes(shape);
        assert!(bytes(RunShape { n: 50_001, ..base }) > bytes(base));
        assert!(bytes(RunShape { nb: 1024, ..base }) > bytes(base));
        assert_eq!(bytes(RunShape { device_factors: false, ..base }), bytes(base), "hosts factor where P > 1");
        assert!(bytes(RunShape { n: usize::MAX / 4, ..base }) == u64::MAX);
        assert!(bytes(RunShape { n: 0, nb: 0, ..base }) > 0);
    }
}
