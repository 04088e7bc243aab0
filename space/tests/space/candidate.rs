//! Canonical form and hard rules.

use proptest::prelude::*;
use space::candidate::EngineProfile;
use space::rules::RuleError;
use space::{Bcast, Candidate, EngineParams, Form, HplParams, Looking, Swap};

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
            prop_assert_eq!(&new.engine, &candidate.engine);
            let new = new.hpl;
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
            prop_assert!(new.depth == old.depth || old.q == 1);
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
fn forms_matter_to_netlib_only() {
    let odd =
        HplParams { l1: Form::NotTransposed, u: Form::NotTransposed, equil: false, ..HplParams::baseline(1000, 2, 2) };
    assert_eq!(of(odd, 1).canonical(EngineProfile::Ours).hpl, HplParams::baseline(1000, 2, 2));
    assert_eq!(of(odd, 1).canonical(EngineProfile::Netlib).hpl, odd);
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
            of(HplParams { p: 200, q: 100, ..base }, 1),
            "P=200 Q=100 with 1 threads per rank is more than 16384 threads in one process; lower P, Q or the threads",
        ),
    ];
    for (candidate, expected) in cases {
        assert_eq!(candidate.check().unwrap_err().to_string(), expected);
    }
    let huge = of(HplParams { p: usize::MAX, q: usize::MAX, ..base }, usize::MAX);
    assert!(matches!(huge.check(), Err(RuleError::TooManyThreads { .. })));
    assert_eq!(of(base, 1).check(), Ok(()));
    // Netlib's sample has NBMIN 4 with NB 1.
    assert_eq!(of(HplParams { nb: 1, nbmin: 4, ..base }, 1).check(), Ok(()));
}
