//! Where the swaps of a panel move rows.

use std::collections::BTreeMap;

/// The pairs (from, to) of the rows that the swaps of row j with row `pivots[j]`, for j = 0, 1, …, move.
pub(super) fn moves(pivots: &[usize]) -> Vec<(usize, usize)> {
    let mut content = BTreeMap::new();
    for (j, &pivot) in pivots.iter().enumerate() {
        let (upper, lower) = (*content.get(&j).unwrap_or(&j), *content.get(&pivot).unwrap_or(&pivot));
        content.insert(pivot, upper);
        content.insert(j, lower);
    }
    content.into_iter().map(|(to, from)| (from, to)).filter(|(from, to)| from != to).collect()
}

#[cfg(test)]
mod tests {
    use super::moves;

    #[test]
    fn moves_are_the_effect_of_the_swaps() {
        for pivots in [vec![], vec![0, 1, 2], vec![5, 5, 7, 3], vec![3, 2, 2, 9], vec![1, 1], vec![8, 9, 8, 9]] {
            let mut content: Vec<usize> = (0..10).collect();
            pivots.iter().enumerate().for_each(|(j, &pivot)| content.swap(j, pivot));
            let mut found: Vec<usize> = (0..10).collect();
            moves(&pivots).into_iter().for_each(|(from, to)| found[to] = from);
            assert_eq!(found, content, "{pivots:?}");
        }
    }
}
