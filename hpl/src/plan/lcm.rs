//! Common multiples.

/// The least common multiple of two positive numbers, or the largest `usize` if it is larger.
pub(crate) fn lcm(a: usize, b: usize) -> usize {
    let (mut gcd, mut rest) = (a, b);
    while rest > 0 {
        (gcd, rest) = (rest, gcd % rest);
    }
    (a / gcd).saturating_mul(b)
}

#[cfg(test)]
mod tests {
    use super::lcm;

    #[test]
    fn the_least_common_multiple_is_a_multiple_of_both() {
        assert_eq!([lcm(8, 32), lcm(12, 32), lcm(5, 7), lcm(1, 1), lcm(16, 16)], [32, 96, 35, 1, 16]);
        assert_eq!(lcm(usize::MAX, 2), usize::MAX);
    }
}
