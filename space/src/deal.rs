//! Dealing: the owners of the blocks for processes of unequal speed.

/// Owner of each of `blocks` blocks, dealt so that each process has its part of every *suffix*: the trailing matrix stays
/// balanced.
///
/// `shares` are relative speeds, one per process. From the last block k to the first, each goes to
/// argmin_j (count_j + 1)/share_j; ties to the smallest (k − j) mod procs, so that equal shares deal in turn, process 0
/// first. In a suffix of `l` blocks process j owns more than share_j/Σ·l − 1 blocks and at most share_j/Σ·(l + m − 1),
/// with m processes of positive share: this is D'Hondt's method, which never cuts a part and favours the large. No
/// adjacency rule, as that of \[HPL-GPU\], bounds a share by 1/2. Takes blocks × procs steps.
///
/// # Panics
/// When a share is negative or not finite, or none is positive.
pub fn deal(blocks: usize, shares: &[f64]) -> Vec<usize> {
    let largest = shares.iter().copied().fold(0.0, f64::max);
    assert!(
        largest > 0.0 && shares.iter().all(|share| share.is_finite() && *share >= 0.0),
        "shares are finite, none is negative and one is positive"
    );
    // By a power of two: products below stay in range, and exact where they were.
    let unit = largest.log2().floor().exp2();
    let shares: Vec<f64> = shares.iter().map(|share| share / unit).collect();
    let procs = shares.len();
    let (mut counts, mut owners) = (vec![0.0; procs], vec![0; blocks]);
    for (k, owner) in owners.iter_mut().enumerate().rev() {
        // In the order of ties: a later process must be strictly better.
        let in_order = (0..procs).map(|back| (k % procs + procs - back) % procs).filter(|&j| shares[j] > 0.0);
        let better = |best: usize, j: usize| {
            if (counts[j] + 1.0) * shares[best] < (counts[best] + 1.0) * shares[j] { j } else { best }
        };
        *owner = in_order.reduce(better).unwrap_or_default();
        counts[*owner] += 1.0;
    }
    owners
}
