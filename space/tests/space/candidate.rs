//! Canonical form and hard rules.

use proptest::prelude::*;
use space::candidate::EngineProfile;
use space::rules::RuleError;
use space::{Bcast, Candidate, EngineParams, Form, HplParams, Looking, Share, Swap, Weights};

use crate::strategies::candidate;

fn of(hpl: HplParams, threads: usize) -> Candidate {
    Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
}

/// The splits that the panel recursion makes: (columns, width of the first part) of every level, in order.
fn recursion(n: usize, nbmin: usize, ndiv: usize, splits: &mut Vec<(usize, usize)>) {
    if n <= nbmin {
        return splits.push((n, n));
    }
    let jb = n.div_ceil(nbmin).div_ceil(ndiv) * nbmin;
    splits.push((n, jb));
    let mut done = 0;
    while done < n {
        recursion(jb.min(n - done), nbmin, ndiv, splits);
        done += jb;
    }
}

proptest! {
    #[test]
    fn canonical_is_idempotent(candidate in candidate()) {
        for profile in [EngineProfile::Ours, EngineProfile::Netlib] {
            let once = candidate.canonical(profile);
            prop_assert_eq!(once.canonical(profile), once);
        }
    }

    #[test]
    fn canonical_keeps_what_matters(candidate in candidate()) {
        for profile in [EngineProfile::Ours, EngineProfile::Netlib] {
            let (old, new) = (candidate.hpl, candidate.canonical(profile));
            let engine = EngineParams { split: Share::ZERO, weights: Weights::default(), ..candidate.engine.clone() };
            let kept = EngineParams { split: Share::ZERO, weights: Weights::default(), ..new.engine.clone() };
            prop_assert_eq!(kept, engine);
            let ours = profile == EngineProfile::Ours;
            let (split, few) = (candidate.engine.split, old.n / new.hpl.nb.max(1) < 2.max(old.q + 1));
            prop_assert!(!ours || new.engine.split == split || old.p == 1 || few);
            let new = new.hpl;
            prop_assert!(!ours || new.l1 == old.l1 || new.nb <= 1);
            prop_assert!(new.u == old.u || old.p == 1);
            prop_assert!(new.equil == old.equil || old.p == 1 || !is_long(new.swap, old.n + 1));
            prop_assert_eq!((new.n, new.p, new.q, new.align), (old.n, old.p, old.q, old.align));
            // Panels start at the same columns and are split alike.
            prop_assert!(new.nb == old.nb || old.nb > old.n.max(1));
            for width in 1..=new.nb {
                let (mut before, mut after) = (Vec::new(), Vec::new());
                recursion(width, old.nbmin, old.ndiv, &mut before);
                recursion(width, new.nbmin, new.ndiv, &mut after);
                prop_assert_eq!(before, after);
            }
            // Where a variant is dropped, there is nothing for it to act on.
            prop_assert!(new.bcast == old.bcast || old.q <= 4);
            prop_assert!(new.rfact == old.rfact || old.nbmin >= new.nb);
            prop_assert!(new.pfact == old.pfact || new.nbmin == 1);
            prop_assert!(new.pmap == old.pmap || old.p == 1 || old.q == 1);
            prop_assert!(new.depth == old.depth || old.q == 1 || new.depth >= old.n.div_ceil(new.nb.max(1)) || old.n <= new.nb);
            for columns in 1..=old.n + 1 {
                prop_assert!(old.p == 1 || is_long(new.swap, columns) == is_long(old.swap, columns));
            }
        }
    }

    #[test]
    fn canonical_keeps_the_rules(candidate in candidate()) {
        prop_assert!(candidate.check().is_err() || candidate.canonical(EngineProfile::Ours).check().is_ok());
    }
}

/// Which exchange takes `columns` local columns ([HPL] `HPL_pdupdateTT.c`).
fn is_long(swap: Swap, columns: usize) -> bool {
    match swap {
        Swap::BinExch => false,
        Swap::Long => true,
        Swap::Mix { threshold } => columns > threshold,
    }
}

#[test]
fn depth_at_one_column_is_for_threads() {
    let deep = HplParams { depth: 1, ..HplParams::baseline(1000, 1, 1) };
    assert_eq!(of(deep, 2).canonical(EngineProfile::Ours).hpl.depth, 1);
    assert_eq!(of(deep, 1).canonical(EngineProfile::Ours).hpl.depth, 0);
    assert_eq!(of(deep, 2).canonical(EngineProfile::Netlib).hpl.depth, 0);
    let rows = HplParams { depth: 1, ..HplParams::baseline(1000, 2, 1) };
    assert_eq!(of(rows, 1).canonical(EngineProfile::Ours).hpl.depth, 1);
}

#[test]
fn u_and_equil_need_an_exchange_to_matter() {
    let odd =
        HplParams { l1: Form::NotTransposed, u: Form::NotTransposed, equil: false, ..HplParams::baseline(1000, 2, 2) };
    for profile in [EngineProfile::Ours, EngineProfile::Netlib] {
        let canonical = |hpl| of(hpl, 1).canonical(profile).hpl;
        assert_eq!(canonical(odd), odd);
        let flat = HplParams { p: 1, ..odd };
        assert_eq!(canonical(flat), HplParams { l1: Form::NotTransposed, ..HplParams::baseline(1000, 1, 2) });
        // Binary exchange, be it called mix, has no lengths to balance.
        for swap in [Swap::BinExch, Swap::Mix { threshold: 1001 }] {
            let exchanged = canonical(HplParams { swap, ..odd });
            assert!(exchanged.equil && exchanged.u == Form::NotTransposed);
        }
        assert!(!canonical(HplParams { swap: Swap::Mix { threshold: 1000 }, ..odd }).equil);
    }
}

#[test]
fn no_more_than_all_panels_are_in_flight() {
    for (n, nb, depth, expected) in
        [(1000, 128, 9, 8), (1000, 128, 7, 7), (128, 128, 3, 0), (129, 128, 3, 2), (0, 8, 2, 0)]
    {
        let deep = HplParams { nb, depth, ..HplParams::baseline(n, 2, 2) };
        assert_eq!(of(deep, 1).canonical(EngineProfile::Ours).hpl.depth, expected);
    }
}

/// Split and weights of a canonical run with two process rows of equal speed.
fn canonical_engine(n: usize, split: f64, columns: &[f64]) -> (f64, usize) {
    let speeds = |list: &[f64]| list.iter().map(|&speed| Share::new(speed).unwrap()).collect();
    let mut candidate = of(HplParams { nb: 100, ..HplParams::baseline(n, 2, columns.len()) }, 1);
    candidate.engine.split = Share::new(split).unwrap();
    candidate.engine.weights = Weights { rows: speeds(&[3.0, 3.0]), columns: speeds(columns) };
    let engine = candidate.canonical(EngineProfile::Ours).engine;
    assert!(engine.weights.rows.is_empty());
    (engine.split.get(), engine.weights.columns.len())
}

#[test]
fn a_split_needs_two_blocks_and_equal_weights_are_none() {
    // Behind the first panel, process column 1 of 2 has blocks 1 and 3, the latter with b.
    assert_eq!(canonical_engine(300, 0.5, &[2.0, 2.0]), (0.5, 0));
    assert_eq!(canonical_engine(299, 0.5, &[2.0, 2.0]), (0.0, 0));
    assert_eq!(canonical_engine(299, 0.5, &[2.0, 1.0]), (0.5, 2));
    assert_eq!(canonical_engine(199, 0.5, &[2.0, 1.0]), (0.0, 2));
    let mut flat = of(HplParams::baseline(1000, 1, 2), 1);
    flat.engine.split = Share::new(0.5).unwrap();
    assert_eq!(flat.canonical(EngineProfile::Ours).engine.split, Share::ZERO);
    flat.hpl.p = 2;
    assert_eq!(flat.canonical(EngineProfile::Netlib).engine.split, Share::ZERO);
}

/// The senders of the panel to positions 1, 2, … behind the root (engine.md, section 4).
fn senders(bcast: Bcast, q: usize) -> Vec<usize> {
    let second_ring = q.div_ceil(2);
    let sender = |position: usize| match bcast {
        _ if position == 1 => 0,
        Bcast::OneRingM | Bcast::TwoRingM if position == 2 => 0,
        Bcast::TwoRing | Bcast::TwoRingM if position == second_ring => 0,
        _ => position - 1,
    };
    (1..q).map(sender).collect()
}

#[test]
fn rings_are_one_exactly_when_their_messages_are() {
    let rings = [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM];
    for q in 1..20 {
        let canonical =
            |bcast| of(HplParams { bcast, ..HplParams::baseline(1000, 2, q) }, 1).canonical(EngineProfile::Ours);
        for (one, other) in rings.into_iter().flat_map(|one| rings.map(|other| (one, other))) {
            assert_eq!(
                canonical(one) == canonical(other),
                senders(one, q) == senders(other, q),
                "{one:?} {other:?} {q}"
            );
            assert_eq!(senders(canonical(one).hpl.bcast, q), senders(one, q));
        }
        // The long ones cut the panel in as many pieces as members, Q or without position 1 one less.
        for bcast in [Bcast::Long, Bcast::LongM] {
            assert_eq!(canonical(bcast).hpl.bcast, if q <= 2 { Bcast::OneRingM } else { bcast });
        }
    }
}

#[test]
fn one_column_at_a_time_has_no_pfact() {
    let single = HplParams { nbmin: 1, pfact: Looking::Left, ..HplParams::baseline(1000, 1, 2) };
    assert_eq!(of(single, 1).canonical(EngineProfile::Ours).hpl.pfact, Looking::Right);
}

#[test]
fn rules_name_value_and_way_out() {
    let base = HplParams::baseline(1000, 1, 2);
    let cases = [
        (of(HplParams { nb: 0, ..base }, 1), "NB must be at least 1, found 0"),
        (of(HplParams { ndiv: 1, ..base }, 1), "NDIV must be at least 2, found 1"),
        (of(base, 0), "threads must be at least 1, found 0"),
        (
            of(base, 16_385),
            "P=1 Q=2 with 16385 threads per rank is more than 16384 threads in one process; lower P, Q or the threads",
        ),
        (
            of(HplParams { p: 5000, q: 5000, ..base }, 1),
            "P=5000 Q=5000 with 1 threads per rank is more than 16777216 threads; lower P, Q or the threads",
        ),
    ];
    for (candidate, expected) in cases {
        assert_eq!(candidate.check().unwrap_err().to_string(), expected);
    }
    // Of a job with many processes.
    let of_nodes = of(HplParams { p: 200, q: 100, ..base }, 1);
    assert_eq!(of_nodes.check(), Ok(()));
    assert!(of_nodes.check_in_one_process().unwrap_err().to_string().contains("16384 threads in one process"));
    let huge = of(HplParams { p: usize::MAX, q: usize::MAX, ..base }, usize::MAX);
    assert!(matches!(huge.check(), Err(RuleError::TooManyThreads { .. })));
    let deep = |n, q, depth| {
        let hpl = HplParams { nb: 1, depth, ..HplParams::baseline(n, 1, q) };
        Candidate { hpl, engine: EngineParams::default() }.check()
    };
    assert!(matches!(deep(5000, 2, 4096), Err(RuleError::TooDeep { max: 4095, found: 4096, .. })));
    assert_eq!([deep(5000, 2, 4095), deep(5000, 1, 4096), deep(4096, 2, usize::MAX)], [Ok(()), Ok(()), Ok(())]);
    assert_eq!(of(base, 1).check(), Ok(()));
    // Netlib's sample has NBMIN 4 with NB 1.
    assert_eq!(of(HplParams { nb: 1, nbmin: 4, ..base }, 1).check(), Ok(()));
}
