//! Grids P×Q and their aspects P:Q.

/// The grid of `ranks` ranks that is as square as possible with P ≤ Q.
pub fn squarest(ranks: usize) -> (usize, usize) {
    let p = (1..=ranks.isqrt()).rev().find(|p| ranks.is_multiple_of(*p)).unwrap_or(1);
    (p, ranks / p)
}

/// The aspects that any of the rank counts has, by rising P/Q: those of at most `elongation`, and the squarest of each.
pub(super) fn aspects(splits: &[(usize, usize)], elongation: usize) -> Vec<(usize, usize)> {
    let grids = |ranks: usize| divisors(ranks).into_iter().map(move |p| (p, ranks / p));
    let usual = |&(p, q): &(usize, usize)| p.max(q) / p.min(q) <= elongation || (p, q) == squarest(p * q);
    let all = splits.iter().flat_map(|&(ranks, _)| grids(ranks).filter(usual));
    let mut aspects: Vec<_> = all.map(|(p, q)| aspect(p, q)).collect();
    aspects.sort_by(|(p, q), (other_p, other_q)| (p * other_q).cmp(&(other_p * q)));
    aspects.dedup();
    aspects
}

/// P:Q in lowest terms; 0:0 of a record that has no ranks.
pub(super) fn aspect(p: usize, q: usize) -> (usize, usize) {
    let gcd = num_integer::gcd(p, q).max(1);
    (p / gcd, q / gcd)
}

/// The grid P×Q of `ranks` ranks with this aspect, if there is one.
pub(super) fn grid_of(ranks: usize, (p, q): (usize, usize)) -> Option<(usize, usize)> {
    let scale = (ranks / (p * q)).isqrt();
    (scale * scale * p * q == ranks).then_some((scale * p, scale * q))
}

pub(super) fn divisors(n: usize) -> Vec<usize> {
    let small: Vec<usize> = (1..=n.isqrt()).filter(|d| n.is_multiple_of(*d)).collect();
    let large = small.iter().rev().map(|d| n / d).filter(|d| d * d > n);
    small.iter().copied().chain(large).collect()
}
