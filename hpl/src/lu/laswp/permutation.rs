//! The row permutation of a panel, computed from its pivots.

use std::collections::HashMap;

use crate::plan::layout::Distribution;

/// The combined effect of a panel's row swaps on the rows of the trailing matrix.
///
/// The new rows of the diagonal block may be any rows; every other changed row gets the content of a row of the block.
#[derive(Debug)]
pub(crate) struct RowPermutation {
    /// Global row whose content becomes row i of U.
    pub(crate) sources: Vec<usize>,
    /// (destination: global row below the diagonal block, source: global row of the block).
    pub(crate) displaced: Vec<(usize, usize)>,
    /// For each process row, the rows of U whose source it owns, ascending.
    pub(crate) gathered: Vec<Vec<usize>>,
    /// For each process row, the entries of `displaced` whose destination it owns, ascending.
    pub(crate) scattered: Vec<Vec<usize>>,
    /// Process row that owns the diagonal block.
    pub(crate) owner: usize,
    /// First global row of the diagonal block.
    pub(crate) start: usize,
    /// First global row below it.
    pub(crate) end: usize,
}

impl RowPermutation {
    /// The permutation of the panel whose first global row is `ia`: row ia + j is swapped with `pivots[j]` ≥ ia + j,
    /// for j = 0, 1, ….
    pub(crate) fn new(rows: &Distribution, ia: usize, pivots: &[usize]) -> Self {
        let jb = pivots.len();
        // Content of the diagonal block and of the changed rows below it, by global source row.
        let mut sources: Vec<usize> = (ia..ia + jb).collect();
        let mut displaced: Vec<(usize, usize)> = Vec::new();
        let mut entries: HashMap<usize, usize> = HashMap::new();
        for (j, &pivot) in pivots.iter().enumerate() {
            if pivot < ia + jb {
                sources.swap(j, pivot - ia);
                continue;
            }
            let at = *entries.entry(pivot).or_insert_with(|| {
                displaced.push((pivot, pivot));
                displaced.len() - 1
            });
            std::mem::swap(&mut sources[j], &mut displaced[at].1);
        }
        let by_owner = |owners: Vec<usize>| {
            let mut lists = vec![Vec::new(); rows.procs()];
            owners.into_iter().enumerate().for_each(|(i, owner)| lists[owner].push(i));
            lists
        };
        let gathered = by_owner(sources.iter().map(|&row| rows.owner(row)).collect());
        let scattered = by_owner(displaced.iter().map(|&(destination, _)| rows.owner(destination)).collect());
        Self { sources, displaced, gathered, scattered, owner: rows.owner(ia), start: ia, end: ia + jb }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Compared with the row swaps done one by one.
        #[test]
        fn permutation_equals_the_row_swaps(
            m in 1_usize..60, ia in 0_usize..60, jb in 1_usize..20, picks in prop::collection::vec(0.0_f64..1.0, 20),
        ) {
            let nb = 20;
            let (ia, jb) = (ia.min(m - 1) / nb * nb, jb.min(nb));
            let jb = jb.min(m - ia);
            let pivots: Vec<usize> = (0..jb).map(|j| ia + j + ((m - ia - j) as f64 * picks[j]) as usize).collect();
            let mut content: Vec<usize> = (0..m).collect();
            for (j, &pivot) in pivots.iter().enumerate() {
                content.swap(ia + j, pivot);
            }
            let rows = Distribution::block_cyclic(m, nb, 3);
            let permutation = RowPermutation::new(&rows, ia, &pivots);
            prop_assert_eq!(&content[ia..ia + jb], &permutation.sources[..]);
            for &(destination, source) in &permutation.displaced {
                prop_assert_eq!(content[destination], source);
                prop_assert!((ia..ia + jb).contains(&source) && destination >= ia + jb);
                content[destination] = destination;
            }
            prop_assert!(content[ia + jb..].iter().enumerate().all(|(i, &from)| from == ia + jb + i));
            prop_assert_eq!(permutation.gathered.concat().len(), jb);
        }
    }
}
