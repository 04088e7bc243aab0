//! The memory of a run, and the largest N for a memory size.

/// Largest order: HPL's formats hold a C `int`.
pub const MAX_N: usize = i32::MAX as usize;

/// The program with its libraries, stacks and buffers that do not grow with N: 5.3 MiB measured on one rank, 5.7 on four, 6.2 on one
/// of two threads, which copy rows of U; up to 7.1 on one rank with another kernel, which maps more of the program at once.
const PROGRAM_BYTES: u64 = 8 << 20;

/// Memory that a run of order `n` takes, all ranks together, in bytes: what none of ranks that are threads of one process but the
/// last case below exceeds.
///
/// The matrix \[A | b\], to which others add ((DEPTH + 2)·Q + P)·NB columns: each process column has up to DEPTH + 1
/// panels and a packed copy of one, each process row a copy of U. No DEPTH has more panels than the matrix. 1 % is for
/// what is small or rounded up. Ranks that are threads of one process share panels and rows and take less: DEPTH + 1
/// panels (DEPTH, but at least 1, at Q = 1), Q packed ones, and 1 + (P − 1)/P of U at P > 1, of which ranks of one thread
/// need a strip at a time. With SWAP bin-exch, whose
/// messages double from round to round, it is about 4 of U at P = 4, so that at DEPTH 0 there is nothing to spare, and
/// P = 5 took one more than this says.
pub fn required_bytes(n: usize, p: usize, q: usize, nb: usize, depth: usize) -> u64 {
    bytes_with((depth, 2), (p, 1), q, n, nb)
}

/// Memory that a run of our engine takes where each rank is a process of its own, in bytes: ((DEPTH + 3)·Q + 3·P)·NB columns beside the
/// matrix.
///
/// What a process has received is no memory for what it sends: at Q > 1 it has one panel more, and at P > 1 it has, besides U, the
/// rows that it sends and those that it receives. Neither is counted where no other rank has a part of them.
pub fn required_bytes_of_processes(n: usize, p: usize, q: usize, nb: usize, depth: usize) -> u64 {
    bytes_with((depth, if q > 1 { 3 } else { 2 }), (p, if p > 1 { 3 } else { 1 }), q, n, nb)
}

/// Memory of the matrix with `depth` and `more` panels in each of `q` process columns and `rows` times U in each of `p` process
/// rows.
fn bytes_with((depth, more): (usize, usize), (p, rows): (usize, usize), q: usize, n: usize, nb: usize) -> u64 {
    let depth = depth.min(n.div_ceil(nb.max(1)));
    let [n, p, q, nb, depth, more, rows] = [n, p, q, nb, depth, more, rows].map(|size| size as u128);
    let blocks = (depth + more).saturating_mul(q).saturating_add(rows.saturating_mul(p));
    let columns = blocks.saturating_mul(nb.min(n)).saturating_add(n);
    let words = columns.saturating_mul(n + 1).saturating_mul(101) / 100;
    u64::try_from(words.saturating_mul(8)).unwrap_or(u64::MAX).saturating_add(PROGRAM_BYTES)
}

/// The largest order, a whole number of `nb`, whose run takes at most `memory_bytes`; 0 when not even one
/// block fits.
pub fn largest_n(memory_bytes: u64, p: usize, q: usize, nb: usize, depth: usize) -> usize {
    largest_of(nb, |n| required_bytes(n, p, q, nb, depth) <= memory_bytes)
}

/// The largest order, a multiple of `step`, that `fits`, as all smaller ones do; 0 when not even `step` fits.
pub(crate) fn largest_of(step: usize, fits: impl Fn(usize) -> bool) -> usize {
    let step = step.max(1);
    let fits = |steps: usize| fits(steps * step);
    // `low` steps fit, `high` do not: memory rises with N.
    let (mut low, mut high) = (0, MAX_N / step + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn largest_n_fits_and_the_next_block_does_not() {
        for memory_bytes in [0, 1, 5_000, 1 << 20, 15 << 30, 1 << 50] {
            for (p, q, nb, depth) in [(1, 1, 1, 0), (1, 2, 128, 1), (2, 1, 240, 0), (16, 17, 384, 1)] {
                let n = largest_n(memory_bytes, p, q, nb, depth);
                assert_eq!(n % nb, 0);
                assert!(n == 0 || required_bytes(n, p, q, nb, depth) <= memory_bytes);
                assert!(required_bytes(n + nb, p, q, nb, depth) > memory_bytes);
            }
        }
    }

    #[test]
    fn largest_n_never_exceeds_a_c_int() {
        assert!(largest_n(u64::MAX, 1, 1, 1, 0) <= MAX_N);
    }

    #[test]
    fn a_matrix_of_16_gib_has_an_order_near_46000() {
        // √(16 GiB / 8) = 46340 without workspace.
        let n = largest_n(16 << 30, 1, 2, 128, 1);
        assert!((45_400..46_340).contains(&n), "{n}");
    }

    #[test]
    fn look_ahead_beyond_the_last_panel_takes_nothing() {
        assert_eq!(required_bytes(1000, 2, 2, 100, 10), required_bytes(1000, 2, 2, 100, usize::MAX));
        assert!(required_bytes(1000, 2, 2, 100, 9) < required_bytes(1000, 2, 2, 100, 10));
    }

    #[test]
    fn processes_take_more_for_what_they_send() {
        let extra = |p, q, depth| {
            let bytes = required_bytes(20_000, p, q, 256, depth);
            let of_processes = required_bytes_of_processes(20_000, p, q, 256, depth);
            (of_processes - bytes) as f64 / (1.01 * 8.0 * 20_001.0 * 256.0)
        };
        for depth in [0, 1, 3] {
            let blocks = [(1, 1), (1, 4), (4, 1), (2, 2), (4, 4)].map(|(p, q)| extra(p, q, depth).round() as usize);
            assert_eq!(blocks, [0, 4, 8, 6, 12], "DEPTH {depth}");
        }
        assert_eq!(required_bytes_of_processes(usize::MAX, 8, 8, usize::MAX, usize::MAX), u64::MAX);
    }
}
