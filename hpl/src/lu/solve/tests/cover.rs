//! The matrix of variants, and covering samples of it: few runs in which every pair of values occurs.
//!
//! Depends only on `space`, so that tests of the programs can include this file.

use std::collections::BTreeSet;

use space::{Bcast, Candidate, EngineParams, Form, HplParams, Looking, Share, Swap};

const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];
const BCAST: [Bcast; 6] = [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];
/// Sections of N = 300 on a few ranks have more columns than the threshold at first, and fewer at the end.
const SWAP: [Swap; 3] = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 40 }];
const DEPTH: [usize; 4] = [0, 1, 2, 3];
const FORM: [Form; 2] = [Form::Transposed, Form::NotTransposed];
const SPLIT: [f64; 2] = [0.0, 0.5];

/// Number of values of PFACT, RFACT, BCAST, SWAP, DEPTH, L1, U, EQUIL and split.
pub(crate) const LENGTHS: [usize; 9] =
    [LOOKING.len(), LOOKING.len(), BCAST.len(), SWAP.len(), DEPTH.len(), FORM.len(), FORM.len(), 2, SPLIT.len()];

/// `base` with one value of each dimension of [`LENGTHS`].
pub(crate) fn variant(base: HplParams, values: [usize; 9]) -> Candidate {
    let [pfact, rfact, bcast, swap, depth, l1, u, equil, split] = values;
    let hpl = HplParams {
        pfact: LOOKING[pfact],
        rfact: LOOKING[rfact],
        bcast: BCAST[bcast],
        swap: SWAP[swap],
        depth: DEPTH[depth],
        l1: FORM[l1],
        u: FORM[u],
        equil: equil == 1,
        ..base
    };
    let split = Share::new(SPLIT[split]).unwrap_or_default();
    // With one rank, a second thread does the look-ahead.
    let threads = if base.ranks() == 1 { 2 } else { 1 };
    Candidate { hpl, engine: EngineParams { threads, split, ..EngineParams::default() } }
}

/// Runs of order `n` on a P×Q grid in which every pair of values of the matrix occurs.
pub(crate) fn covering(n: usize, nb: usize, p: usize, q: usize) -> Vec<Candidate> {
    let base = HplParams { nb, ..HplParams::baseline(n, p, q) };
    // Each shape has other rows: together they cover more than pairs.
    let rows = pairwise(&LENGTHS, n + 7 * p + 31 * q);
    rows.into_iter().map(|row| variant(base, std::array::from_fn(|d| row[d]))).collect()
}

/// Two values of two dimensions: the first dimension is the smaller.
type Pair = [(usize, usize); 2];

/// Rows of one value per dimension in which every pair of values of two dimensions occurs at least once.
///
/// Greedy: each row starts with an uncovered pair, fills the other dimensions in random order, each with the value
/// that covers most uncovered pairs, and is the best of several tries.
pub(crate) fn pairwise(lengths: &[usize], seed: usize) -> Vec<Vec<usize>> {
    let mut random = Random(seed as u64);
    let mut uncovered = all_pairs(lengths);
    let mut rows = Vec::new();
    while let Some(&pair) = uncovered.iter().next() {
        let tries = (0..20).map(|_| fill(lengths, pair, &uncovered, &mut random));
        let best = tries.max_by_key(|row| pairs_of(row).filter(|pair| uncovered.contains(pair)).count());
        let Some(row) = best else { break };
        pairs_of(&row).for_each(|pair| {
            uncovered.remove(&pair);
        });
        rows.push(row);
    }
    rows
}

fn all_pairs(lengths: &[usize]) -> BTreeSet<Pair> {
    let dims = (0..lengths.len()).flat_map(|a| (a + 1..lengths.len()).map(move |b| (a, b)));
    dims.flat_map(|(a, b)| (0..lengths[a]).flat_map(move |x| (0..lengths[b]).map(move |y| [(a, x), (b, y)]))).collect()
}

fn pairs_of(row: &[usize]) -> impl Iterator<Item = Pair> {
    (0..row.len()).flat_map(move |a| (a + 1..row.len()).map(move |b| [(a, row[a]), (b, row[b])]))
}

/// A row with `pair`.
fn fill(lengths: &[usize], pair: Pair, uncovered: &BTreeSet<Pair>, random: &mut Random) -> Vec<usize> {
    let mut row: Vec<Option<usize>> = vec![None; lengths.len()];
    pair.iter().for_each(|&(dim, value)| row[dim] = Some(value));
    let mut left: Vec<usize> = (0..lengths.len()).filter(|&dim| row[dim].is_none()).collect();
    while !left.is_empty() {
        let dim = left.swap_remove(random.below(left.len()));
        let covers = |value: usize| {
            let pairs = row.iter().enumerate().filter_map(|(other, with)| with.map(|with| (other, with)));
            pairs.filter(|&with| uncovered.contains(&[(dim, value).min(with), (dim, value).max(with)])).count()
        };
        // Starts from a random value, so that ties are broken at random.
        let first = random.below(lengths[dim]);
        row[dim] = (0..lengths[dim]).map(|value| (value + first) % lengths[dim]).max_by_key(|&value| covers(value));
    }
    row.into_iter().flatten().collect()
}

/// A small random number generator.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
