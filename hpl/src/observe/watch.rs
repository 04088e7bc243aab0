//! Progress of a run, told while it runs.

/// Receives the progress of a factorization.
pub trait Watch: Sync {
    /// Called by rank 0 between steps, from its first thread:
    /// `done` of `n` columns are factored; `rate_gflops` is the mean rate of the whole run until now.
    fn column(&self, done: usize, n: usize, rate_gflops: f64);

    /// Called by rank 0 just before the clock of a run starts, from its first thread, while the threads of all ranks are
    /// there.
    fn starts(&self) {}

    /// Likewise just after it has stopped.
    fn ends(&self) {}

    /// Whether the run shall record its time spans, see [`crate::observe::trace`].
    fn wants_spans(&self) -> bool {
        false
    }
}

/// Nobody watches.
impl Watch for () {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}
}
