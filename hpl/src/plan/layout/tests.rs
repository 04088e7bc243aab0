use proptest::prelude::*;
use space::{HplParams, Share, Weights};

use super::*;

/// Checks every method of an axis against its owner table by counting.
fn check(axis: &Distribution, owners: &[usize]) {
    let total: usize = (0..axis.procs()).map(|p| axis.local_len(p)).sum();
    assert_eq!(total, axis.len(), "local sizes sum to N");
    assert_eq!((0..axis.blocks()).map(|b| axis.block(b).len()).sum::<usize>(), axis.len());
    for p in 0..axis.procs() {
        let mine: Vec<usize> = (0..axis.len()).filter(|g| owners[g / axis.nb()] == p).collect();
        assert_eq!(axis.local_len(p), mine.len());
        for (local, &global) in mine.iter().enumerate() {
            assert_eq!((axis.owner(global), axis.local(global)), (p, local));
            assert_eq!(axis.global(p, local), global);
        }
        for from in 0..=axis.len() + axis.nb() {
            assert_eq!(axis.local_from(p, from), mine.iter().filter(|&&g| g < from).count());
        }
        let middle = mine.len() / 3..mine.len() - mine.len() / 4;
        let runs = axis.block_runs(p, middle.clone());
        let covered: Vec<usize> = runs.iter().flat_map(|run| run.global.clone()).collect();
        assert_eq!(covered, mine[middle.clone()]);
        assert!(runs.windows(2).all(|pair| pair[0].global.end < pair[1].global.start));
        assert!(runs.iter().all(|run| axis.local(run.global.start) == run.local));
    }
}

#[test]
fn edge_sizes() {
    for nb in [1_usize, 2, 8] {
        for n in [0, 1, nb - 1, nb, nb + 1, 5 * nb + 1] {
            for procs in [1, 2, 3, 7] {
                let owners: Vec<usize> = (0..n.div_ceil(nb)).map(|b| b % procs).collect();
                check(&Distribution::block_cyclic(n, nb, procs), &owners);
            }
        }
    }
}

#[test]
fn b_belongs_to_the_owner_of_column_n() {
    let layout = Layout::block_cyclic(6, 3, 2, 2);
    assert_eq!((layout.rows.blocks(), layout.cols.blocks()), (2, 3));
    assert_eq!((layout.cols.owner(6), layout.cols.local(6)), (0, 3));
    let layout = Layout::block_cyclic(7, 3, 2, 2);
    assert_eq!((layout.cols.owner(7), layout.cols.local(7)), (0, 4));
}

/// Reference implementation of the dealing rule: counts the whole table for every block.
fn dealt(blocks: usize, shares: &[f64]) -> Vec<usize> {
    let mut owners = vec![usize::MAX; blocks];
    for k in (0..blocks).rev() {
        let load = |j: usize| owners.iter().filter(|&&owner| owner == j).count() as f64 + 1.0;
        let q = shares.len();
        let order = |&i: &usize, &j: &usize| {
            let back = |j: usize| (k + q - j) % q;
            (load(i) * shares[j]).total_cmp(&(load(j) * shares[i])).then(back(i).cmp(&back(j)))
        };
        owners[k] = (0..q).filter(|&j| shares[j] > 0.0).min_by(order).unwrap();
    }
    owners
}

fn table(axis: &Distribution) -> Vec<usize> {
    (0..axis.blocks()).map(|block| axis.block_owner(block)).collect()
}

/// For each process, the largest deficit and surplus against its share of the blocks, over all suffixes.
fn imbalance(axis: &Distribution, shares: &[f64]) -> Vec<(f64, f64)> {
    let total: f64 = shares.iter().sum();
    let mut counts = vec![0.0; shares.len()];
    let mut worst = vec![(0.0_f64, 0.0_f64); shares.len()];
    for (dealt, &owner) in table(axis).iter().rev().enumerate() {
        counts[owner] += 1.0;
        for (j, worst) in worst.iter_mut().enumerate() {
            let difference = counts[j] - shares[j] / total * (dealt + 1) as f64;
            *worst = (worst.0.max(-difference), worst.1.max(difference));
        }
    }
    worst
}

fn check_balance(axis: &Distribution, shares: &[f64]) {
    let total: f64 = shares.iter().sum();
    let positive = shares.iter().filter(|&&share| share > 0.0).count() as f64;
    for (j, (deficit, surplus)) in imbalance(axis, shares).into_iter().enumerate() {
        let bound = shares[j] / total * (positive - 1.0);
        assert!(deficit < 1.0 + 1e-9 && surplus < bound + 1e-9, "{j} of {shares:?}: −{deficit} +{surplus}");
        assert!(shares[j] > 0.0 || axis.local_len(j) == 0);
    }
}

#[test]
fn known_shares() {
    let of = |blocks: usize, shares: &[f64]| table(&Distribution::weighted(8 * blocks, 8, shares));
    // By hand, from the right: 0 first, then 0 again by the tie-break (6 mod 3), 2 and 1, …
    assert_eq!(of(8, &[0.5, 0.25, 0.25]), [0, 1, 2, 0, 1, 2, 0, 0]);
    assert_eq!(of(6, &[1.0, 0.0]), [0; 6]);
    assert_eq!(of(6, &[0.0, 3.0, 0.0]), [1; 6]);
    // One block in a hundred, the first one after 99 blocks of the other process.
    let rare = of(300, &[0.99, 0.01]);
    assert_eq!(rare.iter().filter(|&&owner| owner == 1).count(), 3);
    // Scales that are powers of two and others, tiny and huge: only ratios matter.
    let ratios = [1.0, 2.0, 3.0];
    for scale in [1e-320, 1e-300, 0.25, 1e300, 5e307] {
        let scaled = ratios.map(|ratio| ratio * scale);
        assert_eq!(of(60, &scaled).len(), 60);
        check_balance(&Distribution::weighted(60, 1, &scaled), &scaled.map(|share| share / scale));
    }
}

#[test]
fn layouts_follow_their_weights() {
    let hpl = HplParams { nb: 16, ..HplParams::baseline(317, 2, 3) };
    let speeds = |list: &[f64]| list.iter().map(|&speed| Share::new(speed).unwrap()).collect::<Vec<_>>();
    assert_eq!(Layout::of(&hpl, &Weights::default()), Layout::block_cyclic(317, 16, 2, 3));
    let equal = Weights { rows: speeds(&[7.0, 7.0]), columns: speeds(&[0.1, 0.1, 0.1]) };
    assert_eq!(Layout::of(&hpl, &equal), Layout::block_cyclic(317, 16, 2, 3));
    let weights = Weights { rows: Vec::new(), columns: speeds(&[3.0, 0.0, 1.0]) };
    let layout = Layout::of(&hpl, &weights);
    assert_eq!(layout.rows, Distribution::block_cyclic(317, 16, 2));
    assert_eq!([0, 1, 2].map(|col| layout.cols.local_len(col)), [318 - 5 * 16, 0, 5 * 16]);
}

proptest! {
    #[test]
    fn equal_weights_are_block_cyclic(blocks in 0_usize..200, tail in 0_usize..8, procs in 1_usize..12, weight in 1e-9_f64..1e9) {
        let len = (8 * blocks).saturating_sub(tail);
        prop_assert_eq!(Distribution::weighted(len, 8, &vec![weight; procs]), Distribution::block_cyclic(len, 8, procs));
    }

    #[test]
    fn every_suffix_is_balanced(
        blocks in 0_usize..300,
        shares in prop::collection::vec(prop_oneof![Just(0.0), Just(1.0), 1e-3_f64..1.0, 0.0_f64..100.0], 0..8),
        one in 0.1_f64..2.0,
    ) {
        let shares: Vec<f64> = shares.into_iter().chain([one]).collect();
        check_balance(&Distribution::weighted(blocks, 1, &shares), &shares);
    }

    /// The weights are small integers: their products are exact, and so are ties.
    #[test]
    fn ties_go_to_the_nearest_below(blocks in 0_usize..60, shares in prop::collection::vec(0_u8..5, 1..6)) {
        let shares: Vec<f64> = shares.into_iter().map(f64::from).collect();
        if shares.iter().any(|&share| share > 0.0) {
            prop_assert_eq!(table(&Distribution::weighted(blocks, 1, &shares)), dealt(blocks, &shares));
        }
    }

    #[test]
    fn any_table(nb in 1_usize..9, procs in 1_usize..6, tail in 0_usize..8, table in prop::collection::vec(0_usize..100, 0..30)) {
        let owners: Vec<usize> = table.into_iter().map(|o| o % procs).collect();
        let len = if owners.is_empty() { 0 } else { owners.len() * nb - tail % nb };
        check(&Distribution::new(len, nb, procs, owners.clone()), &owners);
    }
}
