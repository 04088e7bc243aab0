use proptest::prelude::*;
use space::machine::{Machine, published};
use space::{Bcast, HplParams, Pmap, Share, Swap, Weights};

use super::*;

/// Equal ranks, `ranks_per_node` of them on a node.
pub(super) fn small_cluster(ranks_per_node: usize) -> Platform {
    let rate = |near: f64, far: f64| Cached { near: 1.0 / near, far: 1.0 / far };
    Platform {
        ranks_per_node,
        ranks_per_cpu: ranks_per_node,
        multiply_add_s: vec![7e-11],
        spread: 0.0,
        gemm: GemmTerms { mn_s: 0.0, mk_s: 1.4e-9, nk_s: 2.7e-9, call_s: 0.0 },
        cache_bytes: 16e6,
        panel_s: rate(10e9, 5e9),
        copy_s: rate(8e9, 2.5e9),
        inside: LinkCosts { latency_s: 1e-6, s_per_byte: rate(2e9, 1e9) },
        between: LinkCosts { latency_s: 13e-6, s_per_byte: rate(12.3e9, 12.3e9) },
        pivot_s: 12e-6,
        pivot_s_per_byte: 1.0 / 5.9e9,
    }
}

const BCASTS: [Bcast; 6] =
    [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM, Bcast::Long, Bcast::LongM];

fn small(p: usize, q: usize) -> HplParams {
    HplParams { nb: 64, ..HplParams::baseline(6400, p, q) }
}

/// All combinations of BCAST, DEPTH and SWAP on a small run.
fn configurations(p: usize, q: usize) -> impl Iterator<Item = HplParams> {
    let each = BCASTS.into_iter().flat_map(|bcast| [0, 1].map(move |depth| (bcast, depth)));
    let each = each.flat_map(|(bcast, depth)| [Swap::BinExch, Swap::Long].map(move |swap| (bcast, depth, swap)));
    each.map(move |(bcast, depth, swap)| HplParams { bcast, depth, swap, ..small(p, q) })
}

/// The recursion has one clock for the rows of a column; its times must be close to the simulation of all ranks.
#[test]
fn the_recursion_follows_the_events() {
    let mut platform = small_cluster(8);
    platform.ranks_per_cpu = 4;
    platform.multiply_add_s = vec![7.2e-11, 7.0e-11, 7.5e-11, 6.9e-11];
    let (mut sum, mut count, mut worst) = (0.0, 0.0, (0.0, String::new()));
    for (p, q) in [(4, 4), (2, 8), (8, 2), (3, 5), (1, 4), (4, 1)] {
        for hpl in configurations(p, q) {
            let time_s = [recursion::time_s, events::time_s].map(|level| level(&hpl, &platform, Schedule::Netlib));
            let off = (time_s[0] / time_s[1]).ln().abs();
            (sum, count) = (sum + off, count + 1.0);
            if off > worst.0 {
                worst = (off, format!("{p}×{q} {:?} DEPTH {} {:?}: {time_s:?}", hpl.bcast, hpl.depth, hpl.swap));
            }
        }
    }
    assert!(sum / count < 0.03 && worst.0 < 0.12, "mean {}, worst {worst:?}", sum / count);
}

/// The same with rows and columns dealt by weights that match the speeds of the ranks: rows of unequal speed cost nothing
/// beyond their products if their numbers of rows are in proportion.
#[test]
fn the_recursion_follows_the_events_on_unequal_shares() {
    let shares = |speeds: &[f64]| speeds.iter().map(|&speed| Share::new(speed).unwrap()).collect::<Vec<_>>();
    let speeds = [1.0, 0.6, 1.0, 0.8];
    // A node is a process row.
    let mut platform = small_cluster(4);
    platform.ranks_per_cpu = 4;
    platform.multiply_add_s = speeds.map(|speed| 7e-11 / speed).to_vec();
    let dealt = [(shares(&speeds), Vec::new()), (shares(&speeds), shares(&[1.0, 1.0, 0.9, 1.0]))];
    let (mut sum, mut count, mut worst, mut gained) = (0.0, 0.0, (0.0, String::new()), 0.0);
    for (rows, columns) in dealt {
        let weights = Weights { rows, columns };
        for hpl in configurations(4, 4) {
            let levels = [recursion::weighted_time_s, events::weighted_time_s];
            let time_s = levels.map(|level| level(&hpl, &weights, &platform, Schedule::Netlib));
            let equal_s = levels.map(|level| level(&hpl, &Weights::default(), &platform, Schedule::Netlib));
            let off = (time_s[0] / time_s[1]).ln().abs();
            (sum, count) = (sum + off, count + 1.0);
            gained += (equal_s[0] / time_s[0]).ln() - (equal_s[1] / time_s[1]).ln();
            if off > worst.0 {
                worst = (off, format!("{:?} DEPTH {} {:?}: {time_s:?}", hpl.bcast, hpl.depth, hpl.swap));
            }
        }
    }
    assert!(sum / count < 0.03 && worst.0 < 0.06, "mean {}, worst {worst:?}", sum / count);
    // On average both predict the same gain from weights.
    assert!((gained / count).abs() < 0.02, "gain off by {}", gained / count);
}

/// Equal weights change nothing; weights of unequal nodes recover a part of the loss from the slow ones.
#[test]
fn weights_recover_the_loss_from_slow_nodes() {
    let shares = |speeds: &[f64]| speeds.iter().map(|&speed| Share::new(speed).unwrap()).collect::<Vec<_>>();
    let equal = Weights { rows: shares(&[1.0; 4]), columns: shares(&[1.0; 4]) };
    for hpl in configurations(4, 4) {
        let (platform, profile) = (small_cluster(4), Schedule::Netlib);
        // Equal except for the owner of the last block, b alone, which the closed form counts as a full block.
        let plain_s = recursion::time_s(&hpl, &platform, profile);
        let equal_s = recursion::weighted_time_s(&hpl, &equal, &platform, profile);
        assert!((equal_s / plain_s - 1.0).abs() < 1e-2, "{hpl:?}: {equal_s} {plain_s}");
    }
    // A node is a process row. The products alone could recover four fifths of the loss.
    let hpl = HplParams { nb: 64, ..HplParams::baseline(20_000, 4, 4) };
    let (mut platform, fair_s) = (small_cluster(4), [7e-11, 7e-11, 7e-11, 10e-11]);
    let fast_s = recursion::time_s(&hpl, &platform, Schedule::Netlib);
    platform.multiply_add_s = fair_s.to_vec();
    let slow_s = recursion::time_s(&hpl, &platform, Schedule::Netlib);
    let weights = Weights { rows: shares(&fair_s.map(|s| 1e-11 / s)), columns: Vec::new() };
    let weighted_s = recursion::weighted_time_s(&hpl, &weights, &platform, Schedule::Netlib);
    let won = (slow_s - weighted_s) / (slow_s - fast_s);
    assert!((0.5..1.0).contains(&won), "{fast_s} {slow_s} {weighted_s}");
}

/// A run that is simulated whole, and the same by windows.
#[test]
fn windows_represent_the_run() {
    let platform = small_cluster(8);
    let hpl = HplParams { nb: 6, ..small(4, 4) };
    let (windows_s, whole_s) =
        (events::time_s(&hpl, &platform, Schedule::Netlib), events::whole_s(&hpl, &platform, Schedule::Netlib));
    assert!((windows_s / whole_s).ln().abs() < 0.05, "{windows_s} and {whole_s}");
}

/// One rank sends nothing: both levels are the sum of the parts.
#[test]
fn one_rank_is_the_sum_of_its_parts() {
    let platform = small_cluster(1);
    let hpl = HplParams { depth: 0, ..small(1, 1) };
    let timeline = recursion::timeline(&hpl, &platform, Schedule::Netlib);
    let sums = timeline.sums();
    let parts = sums.fact_s + sums.lbcast_s + sums.rs_s + sums.update_s + timeline.trsv_s;
    assert!((timeline.total_s / parts - 1.0).abs() < 1e-9 && sums.lbcast_s.abs() < 1e-9);
    let events_s = events::time_s(&hpl, &platform, Schedule::Netlib);
    assert!((timeline.total_s / events_s - 1.0).abs() < 1e-6, "{} and {events_s}", timeline.total_s);
    // DGEMM alone is 2/3·N³ flops at the rank's rate.
    let dgemm_s = 6400f64.powi(3) / 3.0 * platform.multiply_add_s[0];
    assert!(timeline.total_s > dgemm_s && timeline.total_s < 1.5 * dgemm_s);
}

#[test]
fn phases_are_what_columns_do_until_they_end() {
    let platform = small_cluster(8);
    for hpl in configurations(4, 6) {
        let timeline = recursion::timeline(&hpl, &platform, Schedule::Netlib);
        assert_eq!(timeline.steps.len(), 100);
        assert_eq!(timeline.total_s, recursion::time_s(&hpl, &platform, Schedule::Netlib));
        let mut begun_s = 0.0;
        for step in &timeline.steps {
            assert!(step.end_s >= begun_s, "{hpl:?}");
            for phase_s in [step.fact_s, step.lbcast_s, step.rs_s, step.update_s] {
                assert!(phase_s > -1e-9, "{hpl:?}: {step:?}");
            }
            begun_s = step.end_s;
        }
        let sums = timeline.sums();
        let mean_s = sums.fact_s + sums.lbcast_s + sums.rs_s + sums.update_s;
        // The mean of the columns ends with the last column or before it.
        assert!(
            mean_s <= sums.end_s * (1.0 + 1e-9) && mean_s > 0.8 * sums.end_s,
            "{hpl:?}: {mean_s} of {}",
            sums.end_s
        );
    }
}

#[test]
fn look_ahead_of_netlib_is_idle_on_one_column() {
    let platform = small_cluster(8);
    let time_s = |depth, profile| recursion::time_s(&HplParams { depth, ..small(4, 1) }, &platform, profile);
    assert_eq!(time_s(0, Schedule::Netlib), time_s(1, Schedule::Netlib));
    assert_ne!(time_s(0, Schedule::Ours), time_s(1, Schedule::Ours));
}

#[test]
fn mix_is_what_it_chooses() {
    let platform = small_cluster(8);
    let time_s = |swap| recursion::time_s(&HplParams { swap, ..small(4, 4) }, &platform, Schedule::Netlib);
    assert_eq!(time_s(Swap::Mix { threshold: 0 }), time_s(Swap::Long));
    assert_eq!(time_s(Swap::Mix { threshold: 1_000_000 }), time_s(Swap::BinExch));
}

/// Rings run along nodes with row-major ranks, row exchanges with column-major ones.
#[test]
fn placement_decides_what_is_cheap() {
    let mut platform = small_cluster(4);
    let s_per_byte = platform.between.s_per_byte.near * 50.0;
    platform.between.s_per_byte = [s_per_byte; 2].into();
    for level in [recursion::time_s, events::time_s] {
        let time_s = |pmap, p, q| level(&HplParams { pmap, ..small(p, q) }, &platform, Schedule::Netlib);
        // One process column per node: row exchanges stay within a node, the broadcast does not. Then the reverse.
        assert_ne!(time_s(Pmap::Row, 4, 4), time_s(Pmap::Column, 4, 4));
        assert_eq!(time_s(Pmap::Row, 2, 2), time_s(Pmap::Column, 2, 2), "all on one node");
    }
}

#[test]
fn platforms_are_checked() {
    let broken = |change: fn(&mut Platform)| {
        let mut platform = small_cluster(4);
        change(&mut platform);
        platform.check().unwrap_err().to_string()
    };
    assert!(broken(|p| p.multiply_add_s.clear()).contains("no seconds per multiply–add"));
    assert_eq!(broken(|p| p.ranks_per_node = 0), "platform: ranks_per_node must be at least 1, found 0");
    assert_eq!(broken(|p| p.pivot_s = -1.0), "platform: pivot_s must be a number from 0, found -1");
    assert!(broken(|p| p.multiply_add_s[0] = f64::NAN).contains("multiply_add_s must be a number above 0"));
}

#[test]
fn descriptions_that_lack_something_say_what() {
    let text = published::find("dahu").unwrap().text;
    let machine = Machine::parse(text).unwrap();
    let platform = Platform::new(&machine).unwrap();
    assert_eq!((platform.ranks_per_node, platform.ranks_per_cpu), (32, 16));
    let without = |change: fn(&mut Machine)| {
        let mut machine = machine.clone();
        change(&mut machine);
        Platform::new(&machine).unwrap_err().to_string()
    };
    assert!(without(|machine| machine.layers.clear()).contains("no [[layer]] of more than one rank"));
    assert!(without(|machine| machine.rates.clear()).contains("no [[rate]] of kernel Dgemm"));
    assert!(
        without(|machine| machine.layers[1].alpha_s = None).contains("[[layer]] network: the timeline needs alpha_s")
    );
    assert!(without(|machine| machine.timeline = None).contains("no [[rate]] of kernel Panel"));
    // A third layer was left out without a word.
    let third = without(|machine| {
        let islands = machine.layers[1].clone();
        machine.layers.push(space::machine::Layer { name: "islands".to_owned(), ranks: 4096, ..islands });
    });
    assert!(third.starts_with("[[layer]] islands: the timeline knows two layers"), "{third}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// A faster part never makes a run slower, except by a changed order of columns on a link.
    #[test]
    fn a_run_gains_when_a_part_gets_faster(
        n in 500..4000usize, nb in 16..100usize, p in 1..6usize, q in 1..6usize,
        depth in 0..2usize, bcast in 0..6usize, part in 0..5usize,
    ) {
        let hpl = HplParams { nb, depth, bcast: BCASTS[bcast], ..HplParams::baseline(n, p, q) };
        let slow = small_cluster(4);
        let mut fast = slow.clone();
        match part {
            0 => fast.multiply_add_s[0] *= 0.5,
            1 => fast.panel_s = [fast.panel_s.near * 0.5, fast.panel_s.far * 0.5].into(),
            2 => fast.between.s_per_byte = [fast.between.s_per_byte.near * 0.5; 2].into(),
            3 => fast.pivot_s *= 0.5,
            _ => fast.inside.s_per_byte = [fast.inside.s_per_byte.near * 0.5; 2].into(),
        }
        for level in [recursion::time_s, events::time_s] {
            let [slow_s, fast_s] = [&slow, &fast].map(|platform| level(&hpl, platform, Schedule::Netlib));
            prop_assert!(fast_s > 0.0 && fast_s <= slow_s * 1.02, "{} and {}", fast_s, slow_s);
        }
    }
}
