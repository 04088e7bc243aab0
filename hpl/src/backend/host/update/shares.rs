//! How evenly the work of one step is divided among many threads: measured on one core, one share after the other, so that it says
//! nothing of caches, memory and cores that many threads share.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use nix::time::{ClockId, clock_gettime};
use space::Form;

use super::*;
use crate::backend::SectionSwap;
use crate::backend::host::kernels::Builtin;
use crate::backend::host::team::{TeamParams, with_team};
use crate::comm::Msg;
use crate::mat::{Buffer, Mat};
use crate::plan::PanelShape;

const ONE: TeamParams<'static> = TeamParams { threads: 1, cores: &[], spin: true };

/// A panel of `m + jb` rows, of which the first `jb` are the diagonal block, with pivots in place.
pub(super) fn panel(m: usize, jb: usize) -> Panel {
    let shape = PanelShape { k: 0, ia: 0, jb, row: 0, col: 0, ii: 0, mp: m + jb, diag_rows: jb };
    let data: Vec<f64> = (0..shape.words()).map(|i| ((i * 7919) % 1009) as f64 / 1e6).collect();
    let length = data.len();
    Panel::new(shape, Form::NotTransposed, Msg::new(Arc::new(Buffer::from(&data[..])), 0..length))
}

/// Times that each task or share is measured; the shortest counts, as others may take the core in between.
const TRIES: usize = 5;

/// A section whose tasks are all done by this thread.
struct OwnSection<'a> {
    work: &'a SlabUpdate<'a>,
    group: usize,
    height: usize,
}

/// A task of the queue.
struct Timed {
    /// The tiled slab of which it prepares a part.
    prepares: Option<usize>,
    /// The tiled slab that must be prepared before it.
    waits_for: Option<usize>,
    nanoseconds: u64,
}

impl OwnSection<'_> {
    /// The tasks of a section for `threads` threads in the order of the queue. `a` has `rows` rows, of which the first `jb` are the
    /// diagonal block.
    fn tasks(&self, a: &mut [f64], rows: usize, jb: usize, threads: usize) -> Vec<Timed> {
        let mut shortest: Vec<Timed> = Vec::new();
        for attempt in 0..TRIES {
            let cols = a.len() / rows;
            let (diag, c) = MatMut::new(a, rows, cols, rows).split_rows(jb);
            let division = Division::of(cols, threads, self.work.kernels.widest_slab());
            let queue = Queue::new(Slab { first: 0, diag, c }, division, self.group, self.height);
            for index in 0.. {
                let Some(task) = queue.next() else { break };
                let (prepares, waits_for) = (task.prepares(), task.waits_for());
                let nanoseconds = nanoseconds(|| self.work.run(task, &queue, &mut |_| ()));
                match attempt {
                    0 => shortest.push(Timed { prepares, waits_for, nanoseconds }),
                    _ => shortest[index].nanoseconds = shortest[index].nanoseconds.min(nanoseconds),
                }
            }
        }
        shortest
    }
}

/// Time of the processor that `work` takes on this thread.
fn nanoseconds(work: impl FnOnce()) -> u64 {
    let now = || {
        let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("Linux has this clock");
        time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64
    };
    let begun = now();
    work();
    now() - begun
}

/// Nanoseconds until the last of `threads` threads ends, if each takes the next task as soon as it is free and waits for U of its tile.
fn end(tasks: &[Timed], threads: usize) -> u64 {
    let mut free: BinaryHeap<Reverse<u64>> = (0..threads).map(|_| Reverse(0)).collect();
    let (mut prepared, mut last) = (HashMap::new(), 0);
    for task in tasks {
        let Reverse(free_at) = free.pop().expect("as many as threads");
        let ready = task.waits_for.and_then(|slab| prepared.get(&slab).copied()).unwrap_or(0);
        let end = free_at.max(ready) + task.nanoseconds;
        if let Some(slab) = task.prepares {
            let ready: &mut u64 = prepared.entry(slab).or_default();
            *ready = end.max(*ready);
        }
        free.push(Reverse(end));
        last = last.max(end);
    }
    last
}

/// Nanoseconds of the longest of `threads` shares of packing `l2` in strips of `height` rows.
fn longest_packing(kernels: &dyn Kernels, l2: Mat<'_>, height: usize, threads: usize) -> u64 {
    let (m, jb) = (l2.rows(), l2.cols());
    let share = m.div_ceil(height).div_ceil(threads) * height;
    let mut strips = vec![0.0; m.next_multiple_of(height) * jb];
    let pack = |(i, part): (usize, &mut [f64])| {
        let rows = l2.sub(i * share, 0, share.min(m - i * share), jb);
        (0..TRIES).map(|_| nanoseconds(|| kernels.pack_l(rows, part))).min().expect("several tries")
    };
    strips.chunks_mut(share * jb).enumerate().map(pack).max().expect("rows")
}

/// Longest share × `threads` ÷ undivided work, of the update of `n` columns by `m` rows of L2 and of the packing of L2.
fn shares(m: usize, jb: usize, n: usize, threads: usize) -> (f64, f64) {
    with_team(ONE, |team| {
        let kernels = Builtin::best();
        let l = HostL::new(&kernels, team, &mut panel(m, jb), UpdateMemory::default()).unwrap();
        let rows = SectionSwap::Local((0..jb).collect());
        let scratch = ScratchPool::default();
        let work = &SlabUpdate { kernels: &kernels, scratch: &scratch, l: &l, rows: &rows };
        let height = kernels.strip_rows().expect("packed");
        let section = OwnSection { work, group: kernels.group_cols(), height };
        let mut a: Vec<f64> = (0..(m + jb) * n).map(|i| (i % 1013) as f64).collect();
        let update = |threads| end(&section.tasks(&mut a, m + jb, jb, threads), threads);
        let panel = panel(m, jb);
        let packing = |threads| longest_packing(&kernels, panel.l2(), height, threads);
        (excess(threads, update), excess(threads, packing))
    })
    .unwrap()
}

/// `longest(threads)` × `threads` ÷ `longest(1)`.
fn excess(threads: usize, mut longest: impl FnMut(usize) -> u64) -> f64 {
    longest(threads) as f64 * threads as f64 / longest(1) as f64
}

#[test]
fn a_few_threads_have_equal_shares() {
    // What else runs on the machine acts on times: one of a few measurements without it is enough.
    let measured: Vec<(f64, f64)> = (0..5).map(|_| shares(3000, 64, 512, 4)).collect();
    // A share that fits a cache which the whole does not is packed in less than its part of the time: 0.3 with a cache of 2 MiB.
    let equal = |&(update, packing): &(f64, f64)| (0.8..1.5).contains(&update) && packing < 2.0;
    assert!(measured.iter().any(equal), "update and packing: {measured:?}");
}

#[test]
#[ignore = "a measurement of minutes on a quiet core"]
fn shares_of_many_threads() {
    println!("longest share × threads ÷ undivided work, shares run one after the other on one core");
    println!("{:>6} {:>4} {:>6} {:>8} {:>8} {:>8}", "m", "NB", "n", "threads", "update", "packing");
    for (m, jb) in [(5000, 128), (5000, 256), (5000, 384), (20_000, 128), (20_000, 256), (20_000, 384), (50_000, 256)] {
        for n in [4 * jb, 16 * jb].into_iter().filter(|n| n * m < 250_000_000) {
            for threads in [16, 64, 192] {
                let (update, packing) = shares(m, jb, n, threads);
                println!("{m:>6} {jb:>4} {n:>6} {threads:>8} {update:>8.3} {packing:>8.3}");
            }
        }
    }
}
