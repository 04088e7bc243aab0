use std::thread;

use space::{Bcast, EngineParams, HplParams, Looking, Pmap, Swap};

use super::*;
use crate::comm::threads;
use crate::kernels::Builtin;

/// Runs a candidate on in-process ranks; the reports by rank.
fn run(candidate: &Candidate) -> Vec<Result<Report, Error>> {
    thread::scope(|scope| {
        let ranks = threads::world(candidate.hpl.ranks(), false).into_iter();
        let ranks: Vec<_> =
            ranks.map(|comm| scope.spawn(move || solve(candidate, &comm, &[], &Builtin, &()))).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    })
}

fn candidate(n: usize, nb: usize, p: usize, q: usize, threads: usize) -> Candidate {
    let hpl = HplParams { nb, ..HplParams::baseline(n, p, q) };
    Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } }
}

fn passes(candidate: &Candidate) -> Report {
    let mut reports: Vec<Report> = run(candidate).into_iter().map(|report| report.unwrap()).collect();
    for report in &reports {
        let residual = report.residual.unwrap();
        assert!(residual.scaled < 16.0, "{residual:?} of {candidate:?}");
        assert_eq!((report.x.len(), report.info), (candidate.hpl.n, 0));
        assert_eq!(report.x, reports[0].x, "x is the same on all ranks");
        assert_eq!(report.residual, reports[0].residual);
    }
    reports.swap_remove(0)
}

const LOOKING: [Looking; 3] = [Looking::Left, Looking::Crout, Looking::Right];
const RINGS: [Bcast; 4] = [Bcast::OneRing, Bcast::OneRingM, Bcast::TwoRing, Bcast::TwoRingM];
const SWAPS: [Swap; 3] = [Swap::BinExch, Swap::Long, Swap::Mix { threshold: 20 }];
const SIZES: [usize; 8] = [1, 2, 7, 63, 64, 65, 500, 1000];
const BLOCKS: [usize; 3] = [1, 8, 64];
const GRIDS: [(usize, usize); 6] = [(1, 1), (1, 2), (2, 1), (2, 2), (3, 2), (1, 5)];

/// A sample that takes every value of every parameter many times.
#[test]
fn a_sample_of_all_shapes_passes() {
    let mut draw = 12345_usize;
    let mut pick = |count: usize| {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (draw >> 33) % count
    };
    for round in 0..300 {
        let (p, q) = GRIDS[round % GRIDS.len()];
        let (n, nb) = (SIZES[pick(if round % 10 == 0 { 8 } else { 7 })], BLOCKS[pick(3)]);
        let mut candidate = candidate(n, if n == 1000 { 64 } else { nb }, p, q, 1 + pick(3));
        let hpl = &mut candidate.hpl;
        (hpl.pfact, hpl.rfact) = (LOOKING[pick(3)], LOOKING[pick(3)]);
        (hpl.nbmin, hpl.ndiv) = (1 + pick(8), 2 + pick(3));
        (hpl.bcast, hpl.swap, hpl.depth) = (RINGS[pick(4)], SWAPS[pick(3)], pick(2));
        hpl.pmap = [Pmap::Row, Pmap::Column][pick(2)];
        hpl.align = [1, 4, 8, 512][pick(4)];
        passes(&candidate);
    }
}
