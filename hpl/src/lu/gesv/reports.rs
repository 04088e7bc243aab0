//! Reports of progress, now and then.

use std::time::{Duration, Instant};

use crate::observe::Watch;

/// Time between two reports.
const EVERY: Duration = Duration::from_millis(50);

/// Tells a watch how many columns are factored.
pub(super) struct Reports<'w> {
    watch: Option<&'w dyn Watch>,
    n: usize,
    start: Instant,
    due: Instant,
}

impl<'w> Reports<'w> {
    /// Of a factorization of order `n` that began at `start`.
    pub(super) fn new(watch: Option<&'w dyn Watch>, n: usize, start: Instant) -> Self {
        Self { watch, n, start, due: start + EVERY }
    }

    /// Reports that `done` columns are factored, if it is time to.
    pub(super) fn column(&mut self, done: usize) {
        if let Some(watch) = self.watch.filter(|_| Instant::now() >= self.due) {
            watch.column(done, self.n, rate_gflops(self.n, done, self.start.elapsed()));
            self.due = Instant::now() + EVERY;
        }
    }
}

/// Mean rate in GFLOP/s when `done` of `n` columns are factored: 2/3·(n³ − (n − done)³) flops.
fn rate_gflops(n: usize, done: usize, time: Duration) -> f64 {
    let cube = |n: usize| (n as f64).powi(3);
    2.0 / 3.0 * (cube(n) - cube(n - done)) / time.as_secs_f64() * 1e-9
}
