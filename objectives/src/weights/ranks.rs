//! More ranks on faster nodes: weights for programs that know none.

/// How many of `ranks` equal ranks each of the nodes gets, in proportion to `shares` and at most `most` of each: each
/// rank in turn goes where it leaves the most share per rank (D'Hondt's method, as the engine deals blocks).
/// `None` when the nodes have no room for so many, or no share is positive.
pub fn rank_counts(shares: &[f64], most: &[usize], ranks: usize) -> Option<Vec<usize>> {
    let mut counts = vec![0; shares.len()];
    for _ in 0..ranks {
        let open = (0..shares.len()).filter(|&i| counts[i] < most[i] && shares[i] > 0.0);
        let worth = |i: &usize| shares[*i] / (counts[*i] + 1) as f64;
        let best = open.max_by(|a, b| worth(a).total_cmp(&worth(b)).then(b.cmp(a)))?;
        counts[best] += 1;
    }
    Some(counts)
}
