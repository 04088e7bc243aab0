//! Models of the queue of a section, which loom runs in all orders (`tests/loom`).

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::division::Division;
use super::queue::{Queue, QueueTask};
use super::slab::{Slab, SolvedSlab};
use crate::mat::MatMut;
use crate::sync::thread;
use crate::sync::watched::Handed;

const THREADS: usize = 2;
/// Two tiles.
const ROWS: usize = 100;
/// One slab, of which each thread prepares a part.
const COLS: usize = 48;

/// Calls `work` on two threads with the queue of one tiled slab in two parts and two tiles.
fn on_queue(work: impl Fn(&Queue<'_>) + Sync) {
    let mut a = vec![0.0; (ROWS + 1) * COLS];
    let (diag, c) = MatMut::new(&mut a, ROWS + 1, COLS, ROWS + 1).split_rows(1);
    let queue = &Queue::new(Slab { first: 0, diag, c }, Division::of(COLS, THREADS, COLS), 1, 1);
    let work = &work;
    thread::scope(|scope| {
        scope.spawn(move || work(queue));
        work(queue);
    });
}

/// A tile is taken once, and after both parts of U have been prepared.
pub fn tiles_follow_their_u() {
    let (prepared, updated) = (Handed::zeros(2), Handed::zeros(2));
    on_queue(|queue| {
        while let Some(task) = queue.next() {
            match task {
                QueueTask::Whole(_) => unreachable!("too few columns"),
                QueueTask::Prepare(at, slab) => queue.prepare(at, || {
                    prepared[usize::from(slab.first > 0)].set(1);
                    (SolvedSlab::new(slab.diag, None), slab.c)
                }),
                QueueTask::Tile(at) => {
                    let tile = queue.tile(at).expect("no thread fails");
                    assert_eq!(tile.columns.len(), 2);
                    assert!(prepared.iter().all(|part| part.get() == 1));
                    let index = usize::from(tile.first > 0);
                    assert_eq!(updated[index].get(), 0);
                    updated[index].set(1);
                }
            }
        }
    });
    assert!(updated.iter().all(|tile| tile.get() == 1));
}

/// No thread waits for U of a thread that panicked.
pub fn preparing_panics() {
    on_queue(|queue| {
        let work = || {
            while let Some(task) = queue.next() {
                match task {
                    QueueTask::Whole(_) => unreachable!("too few columns"),
                    QueueTask::Prepare(at, slab) => queue.prepare(at, || {
                        assert!(slab.first > 0, "on purpose");
                        (SolvedSlab::new(slab.diag, None), slab.c)
                    }),
                    QueueTask::Tile(at) => assert!(queue.tile(at).is_none()),
                }
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(work));
    });
}
