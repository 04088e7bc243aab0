//! Model of the rows that the threads of a panel factorization exchange, which loom runs in all orders (`tests/loom`).

use super::slots::PivotSlots;
use crate::backend::host::team::Barrier;
use crate::sync::thread;

const THREADS: usize = 2;

/// In each column, each thread posts a row and reads that of the thread with the pivot, with one barrier in between.
pub fn rows_are_posted_and_read() {
    let (slots, barrier) = (&PivotSlots::new(THREADS, 1), &Barrier::new(THREADS, false));
    let work = |thread: usize| {
        for column in 0..3 {
            let value = |thread: usize| (10 * column + thread) as f64;
            slots.post((thread, column), 0, &[value(thread)]);
            let size = if thread == column % THREADS { 1.0 } else { 0.0 };
            let pivot = barrier.largest(thread, size).expect("no thread fails");
            assert_eq!(pivot, column % THREADS);
            let mut row = [0.0];
            slots.read((pivot, column), 0, &mut row);
            assert_eq!(row, [value(pivot)]);
        }
    };
    thread::scope(|scope| {
        scope.spawn(move || work(1));
        work(0);
    });
}
