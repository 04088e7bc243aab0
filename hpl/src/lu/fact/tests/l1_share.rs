//! The part of a thread's work on a panel that every thread repeats, as each has an L1 of its own: counted, and measured on one core, one share
//! after the other, without barriers, caches and memory that many threads share.

use std::convert::Infallible;
use std::time::Instant;

use super::super::panel_thread::{FactShared, PanelThread};
use super::*;
use crate::backend::host::team::Barrier;
use crate::mat::StoredMut;
use crate::plan::recursion::Op;

/// As many threads as [`fact::factor`] takes of `threads`, with the elements that each has at least.
fn takes(threads: usize, m: usize, jb: usize) -> usize {
    (m * jb / 100_000).clamp(1, threads)
}

fn recipe() -> Recipe {
    Recipe { pfact: Looking::Right, rfact: Looking::Right, nbmin: 8, ndiv: 2 }
}

/// Operations on L1, and on the `m` rows of a thread.
fn flops(jb: usize, m: usize) -> (f64, f64) {
    let (mut on_l1, mut on_rows) = (0.0, 0.0);
    let mut count = |op: Op| -> Result<(), Infallible> {
        match op {
            Op::Pivot(_) => on_rows += m as f64,
            Op::Solve { k, cols } => on_l1 += ((k.len() - 1) * k.len() * cols.len()) as f64,
            Op::EliminateU { blk, done, rest } => on_l1 += 2.0 * (blk.len() * done.len() * rest.len()) as f64,
            Op::Eliminate { k, cols } => on_rows += 2.0 * (m * k.len() * cols.len()) as f64,
        }
        Ok(())
    };
    let Ok(()) = recipe().walk(0..jb, &mut count);
    (on_l1, on_rows)
}

/// The shortest of some times of `work` in seconds.
fn shortest_s(mut work: impl FnMut()) -> f64 {
    let time_s = |()| {
        let clock = Instant::now();
        work();
        clock.elapsed().as_secs_f64()
    };
    std::iter::repeat_n((), 9).map(time_s).fold(f64::INFINITY, f64::min)
}

/// Time of one thread that factors the panel of `a` with its first `m` rows.
fn alone_s(a: &[f64], m: usize, jb: usize) -> f64 {
    let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: m, diag_rows: jb };
    let (rows, comm) = (Distribution::block_cyclic(m, jb, 1), threads::world(1, false).pop().unwrap());
    let mut data = vec![0.0; shape.words()];
    shortest_s(|| {
        let panel = parts_mut(&shape, Form::Transposed, &mut data);
        let mut fact = Fact { recipe: recipe(), column: &comm, rows: &rows, shape, col: 0, panel };
        factor_alone(&mut fact, &Builtin::best(), Mat::new(a, m, jb, m)).unwrap();
    })
}

/// Time of all solves on L1 by a thread of `threads`; with several threads it solves its parts, posts and copies them.
fn solves_s(jb: usize, threads: usize) -> f64 {
    let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: jb, diag_rows: jb };
    let (rows, comm) = (Distribution::block_cyclic(jb, jb, 1), threads::world(1, false).pop().unwrap());
    let kernels = Builtin::best();
    let (mut rest, mut l1) = (vec![0.0; jb * jb], random(jb, jb));
    l1.iter_mut().for_each(|l| *l /= 64.0);
    // What is posted is set once, so each try has its own.
    let shared: Vec<FactShared<'_>> = (0..9)
        .map(|_| {
            let shared = FactShared::new(recipe(), &kernels, &rows, shape, &comm, Barrier::new(threads, false));
            let (mut solve, tile) = (0, random(jb, jb));
            let post = |op: Op| -> Result<(), Infallible> {
                let Op::Solve { k, cols } = op else { return Ok(()) };
                let count = shared.solved.count(k.len(), &cols);
                for part in (0..count).filter(|&part| count > 1 && part != 1) {
                    let of_part = shared.solved.part(&cols, part, count);
                    let u = Mat::new(&tile, of_part.len(), k.len(), jb);
                    shared.solved.post(solve, part, crate::mat::Stored::new(u, Form::Transposed));
                }
                solve += usize::from(count > 1);
                Ok(())
            };
            let Ok(()) = recipe().walk(0..jb, &mut { post });
            shared
        })
        .collect();
    let mut tries = shared.iter();
    shortest_s(|| {
        let shared = tries.next().expect("as many as tries");
        let tile = MatMut::new(&mut rest, jb, jb, jb);
        let l1 = StoredMut::new(MatMut::new(&mut l1, jb, jb, jb), Form::Transposed);
        let mut thread = PanelThread::<ThreadComm>::new(shared, 1, None, 0, tile, l1);
        let solve = |op: Op| -> Result<(), Infallible> {
            let Op::Solve { k, cols } = op else { return Ok(()) };
            let (own, count) = (thread.own_cols(&k, &cols), shared.solved.count(k.len(), &cols));
            thread.solve_own(&k, &own);
            if count > 1 {
                if !own.is_empty() {
                    let u = thread.l1.as_ref().sub(k.start, own.start, k.len(), own.len());
                    shared.solved.post(thread.divided, 1, u);
                }
                thread.read_parts(&k, &cols, count);
                thread.divided += 1;
            }
            Ok(())
        };
        let Ok(()) = recipe().walk(0..jb, &mut { solve });
    })
}

/// `cargo test --release -p hpl --lib -- --ignored --nocapture repeated_work_on_l1`
#[test]
#[ignore = "a measurement on a quiet core"]
fn repeated_work_on_l1() {
    println!("one thread's share of a panel, shares run one after the other on one core, without barriers");
    println!(
        "{:>6} {:>4} {:>4} {:>8} {:>10} {:>11} {:>10} {:>10}",
        "m", "NB", "T", "threads", "flops %", "repeated %", "divided %", "share ÷ before"
    );
    for (m, jb) in [5000, 20_000, 50_000].into_iter().flat_map(|m| [128, 256, 384].map(|jb| (m, jb))) {
        let a = random(m, jb);
        let mut last = 0;
        for threads in [2, 4, 16, 64] {
            let taken = takes(threads, m, jb);
            if std::mem::replace(&mut last, taken) == taken {
                continue;
            }
            let rows = lengths(m, jb, taken)[0];
            let (on_l1, on_rows) = flops(jb, rows - jb / 2);
            let (share_s, repeated_s, divided_s) = (alone_s(&a, rows, jb), solves_s(jb, 1), solves_s(jb, taken));
            println!(
                "{m:>6} {jb:>4} {threads:>4} {taken:>8} {:>10.1} {:>11.1} {:>10.1} {:>10.3}",
                100.0 * on_l1 / (on_l1 + on_rows),
                100.0 * repeated_s / share_s,
                100.0 * divided_s / share_s,
                (share_s - repeated_s + divided_s) / share_s
            );
        }
    }
}
