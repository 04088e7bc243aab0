//! The matrix of variants, whole and as covering samples: few runs in which every two values meet.
//!
//! Needs `space` alone, so that tests of the programs can include this file.

use std::collections::BTreeSet;

use space::{Bcast, Candidate, EngineParams, Form, HplParams, Looking, Share, Swap};

const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];
const BCAST: [Bcast; 6] = [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];
/// Sections of N = 300 on a few ranks have more columns than this at first, and fewer at last.
const SWAP: [Swap; 3] = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 40 }];
const DEPTH: [usize; 4] = [0, 1, 2, 3];
const FORM: [Form; 2] = [Form::Transposed, Form::NotTransposed];
const SPLIT: [f64; 2] = [0.0, 0.5];

/// Values of PFACT, RFACT, BCAST, SWAP, DEPTH, L1, U, EQUIL and split.
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
    // A rank alone looks ahead by a second thread.
    let threads = if base.ranks() == 1 { 2 } else { 1 };
    Candidate { hpl, engine: EngineParams { threads, split, ..EngineParams::default() } }
}

/// Runs of order `n` on a P×Q grid in which every two values of the matrix meet.
pub(crate) fn covering(n: usize, nb: usize, p: usize, q: usize) -> Vec<Candidate> {
    let base = HplParams { nb, ..HplParams::baseline(n, p, q) };
    // Other rows for other shapes: together they cover more than pairs.
    let rows = pairwise(&LENGTHS, n + 7 * p + 31 * q);
    rows.into_iter().map(|row| variant(base, std::array::from_fn(|d| row[d]))).collect()
}

/// Two values of two dimensions: the first dimension is the smaller.
type Pair = [(usize, usize); 2];

/// Rows of one value per dimension in which every two values of two dimensions meet at least once.
///
/// Greedy: each row starts at a pair still open, fills the other dimensions in a drawn order, each with the value
/// that closes most, and is the best of a few such tries.
pub(crate) fn pairwise(lengths: &[usize], seed: usize) -> Vec<Vec<usize>> {
    let mut draw = Draw(seed as u64);
    let mut open = all_pairs(lengths);
    let mut rows = Vec::new();
    while let Some(&pair) = open.iter().next() {
        let tries = (0..20).map(|_| fill(lengths, pair, &open, &mut draw));
        let best = tries.max_by_key(|row| pairs_of(row).filter(|pair| open.contains(pair)).count());
        let Some(row) = best else { break };
        pairs_of(&row).for_each(|pair| {
            open.remove(&pair);
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
fn fill(lengths: &[usize], pair: Pair, open: &BTreeSet<Pair>, draw: &mut Draw) -> Vec<usize> {
    let mut row: Vec<Option<usize>> = vec![None; lengths.len()];
    pair.iter().for_each(|&(dim, value)| row[dim] = Some(value));
    let mut left: Vec<usize> = (0..lengths.len()).filter(|&dim| row[dim].is_none()).collect();
    while !left.is_empty() {
        let dim = left.swap_remove(draw.below(left.len()));
        let closed = |value: usize| {
            let pairs = row.iter().enumerate().filter_map(|(other, with)| with.map(|with| (other, with)));
            pairs.filter(|&with| open.contains(&[(dim, value).min(with), (dim, value).max(with)])).count()
        };
        // Counted from a drawn value, so that ties are anybody's.
        let first = draw.below(lengths[dim]);
        row[dim] = (0..lengths[dim]).map(|value| (value + first) % lengths[dim]).max_by_key(|&value| closed(value));
    }
    row.into_iter().flatten().collect()
}

/// A small generator of choices.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}
