//! Messages compared with the published patterns.

use super::*;
use crate::comm::grid::{position, rank_at};
use crate::comm::recording::{Recording, Sent};

/// The messages of all ranks in a row exchange.
fn sent(case: &Case) -> Vec<Sent> {
    sent_of(case, case.cols)
}

/// The same where U has `u_cols` columns.
fn sent_of(case: &Case, u_cols: usize) -> Vec<Sent> {
    let rank = |column: ThreadComm| {
        let column = Recording::new(column);
        let me = column.rank();
        let mut data = case.local(me, 0);
        case.with_columns(&mut data, me, |columns| {
            let laswp = case.laswp(&column);
            let start =
                laswp.start(case.permutation(), &(0..case.cols), u_cols, RowTags::of(Part::Rest), columns).unwrap();
            start.finish(columns).unwrap();
        });
        column.sent()
    };
    thread::scope(|scope| {
        let columns = threads::world(case.rows.procs(), false).into_iter();
        let ranks: Vec<_> = columns.map(|column| scope.spawn(move || rank(column))).collect();
        ranks.into_iter().flat_map(|rank| rank.join().unwrap()).collect()
    })
}

/// A panel whose pivots lie in all process rows, in unequal numbers.
fn case(p: usize, swap: Swap, equil: bool) -> Case {
    let (m, nb, ia) = (40 * p, 20, 20);
    let block = |j: usize| p + if j < p { j } else { (j * j) % p / 2 };
    let pivots: Vec<usize> = (0..nb).map(|j| block(j) * nb + j).collect();
    let u = FORMS[p % 2];
    let case = Case {
        rows: Distribution::block_cyclic(m, nb, p),
        ia,
        pivots,
        cols: 7,
        swap,
        equil,
        u,
        drive: Drive::Finish,
        threads: 1,
    };
    assert!(case.permutation().gathered.iter().all(|found| !found.is_empty()), "{:?}", case.permutation().gathered);
    case
}

fn tagged(all: &[Sent], tag: Tag) -> Vec<Sent> {
    all.iter().copied().filter(|sent| sent.tag == tag).collect()
}

const TAGS: RowTags = RowTags::of(Part::Rest);

/// SWAP mix: a strip uses the same pattern as the whole U that it is a part of.
#[test]
fn mix_compares_its_threshold_with_the_columns_of_u() {
    let spreads = |u_cols: usize| {
        let case = case(4, Swap::Mix { threshold: 64 }, false);
        let all = sent_of(&case, u_cols);
        !tagged(&all, TAGS.spread).is_empty()
    };
    assert!(!spreads(7) && !spreads(64) && spreads(65));
}

/// log2 P rounds in which every position sends one message, whose size doubles from round to round; a folded position
/// sends its rows before the rounds and receives all of U after them.
#[test]
fn bin_exch_has_log_p_rounds() {
    for p in 2..=9 {
        let case = case(p, Swap::BinExch, true);
        let (permutation, all) = (case.permutation(), sent(&case));
        let half = crate::comm::reduce::power_of_two(p);
        assert_eq!(all.len(), half * half.ilog2() as usize + 2 * (p - half));
        assert!(all.iter().all(|sent| sent.tag == TAGS.rows));
        let at = |rank| position(rank, permutation.owner, p);
        let found = |at: usize| permutation.gathered[rank_at(at, permutation.owner, p)].len();
        let displaced = |at: usize| permutation.scattered[rank_at(at, permutation.owner, p)].len();
        for me in 0..p {
            let mine: Vec<Sent> = all.iter().copied().filter(|sent| at(sent.from) == me).collect();
            let to: Vec<usize> = mine.iter().map(|sent| at(sent.to)).collect();
            let mut partners: Vec<usize> = (0..half.ilog2()).map(|round| me ^ (1 << round)).collect();
            if me >= half {
                partners = vec![me - half];
            } else if me + half < p {
                partners.push(me + half);
            }
            assert_eq!(to, partners, "{me} of {p}");
            for (round, sent) in mine.into_iter().enumerate() {
                let rows = if me >= half {
                    found(me)
                } else if me + half < p && round == half.ilog2() as usize {
                    case.pivots.len() + displaced(me + half)
                } else {
                    let (mask, partner) = (1_usize << round, me ^ (1 << round));
                    let known = (0..p).filter(|&other| (other % half) / mask == me / mask).map(found);
                    let below = (0..p).filter(|&other| (other % half) % (2 * mask) == partner).map(displaced);
                    known.sum::<usize>() + if me < mask { below.sum() } else { 0 }
                };
                assert_eq!(sent.len, rows * case.cols, "round {round} of {me} of {p}");
            }
        }
    }
}

/// P − 1 pieces from every position, of its gathered rows or, with EQUIL, within one row of jb/P; P − 1 messages of
/// displaced rows, along a tree of ⌈log2 P⌉ levels.
#[test]
fn long_spreads_and_rolls() {
    for (p, equil) in (2..=9).flat_map(|p| [false, true].map(|equil| (p, equil))) {
        let case = case(p, Swap::Long, equil);
        let (permutation, all, jb) = (case.permutation(), sent(&case), case.pivots.len());
        let (rolled, spread, balanced) = (tagged(&all, TAGS.rows), tagged(&all, TAGS.spread), tagged(&all, TAGS.equil));
        assert_eq!(rolled.len() + spread.len() + balanced.len(), all.len());

        for rank in 0..p {
            let mine = rolled.iter().filter(|sent| sent.from == rank);
            assert_eq!(mine.count(), p - 1);
            // A rank receives all pieces except its own: its own piece has the remaining rows.
            let received: usize = rolled.iter().filter(|sent| sent.to == rank).map(|sent| sent.len).sum();
            let own_rows = jb - received / case.cols;
            if equil && p > 2 {
                assert!((jb / p..=jb.div_ceil(p)).contains(&own_rows), "{own_rows} of {jb} rows, P={p}");
            } else {
                assert_eq!(own_rows, permutation.gathered[rank].len());
            }
        }
        let unequal = permutation.gathered.iter().any(|found| !(jb / p..=jb.div_ceil(p)).contains(&found.len()));
        assert_eq!(!balanced.is_empty(), equil && p > 2 && unequal, "P={p}: {:?}", permutation.gathered);
        assert!(balanced.len() < p, "each boundary is crossed once");

        let receivers: Vec<usize> =
            (0..p).filter(|&r| r != permutation.owner && !permutation.scattered[r].is_empty()).collect();
        assert_eq!(spread.len(), receivers.len());
        for &rank in &receivers {
            let (mut hops, mut at) = (0, rank);
            while at != permutation.owner {
                at = spread.iter().find(|sent| sent.to == at).unwrap().from;
                hops += 1;
            }
            assert!(hops <= p.next_power_of_two().ilog2(), "{hops} hops of {p}");
            // The rows that a rank receives and does not forward are its own.
            let sum = |of: &dyn Fn(&&Sent) -> bool| spread.iter().filter(of).map(|sent| sent.len).sum::<usize>();
            let kept = sum(&|sent| sent.to == rank) - sum(&|sent| sent.from == rank);
            assert_eq!(kept, permutation.scattered[rank].len() * case.cols);
        }
    }
}

#[test]
fn mix_uses_long_above_its_threshold() {
    for (threshold, long) in [(6, true), (7, false), (8, false)] {
        let all = sent(&case(4, Swap::Mix { threshold }, false));
        assert_eq!(tagged(&all, TAGS.spread).is_empty(), !long);
    }
}
