//! Progress of a run.

/// Receives the progress of a factorization.
pub trait Watch: Sync {
    /// Called by rank 0 between steps, from its first thread:
    /// `done` of `n` columns are factored; `rate_gflops` is the mean rate of the whole run until now.
    fn column(&self, done: usize, n: usize, rate_gflops: f64);

    /// Called by rank 0 just before the timer of a run starts, from its first thread; the threads of all ranks exist at this
    /// time.
    fn starts(&self) {}

    /// Called by rank 0 just after the timer has stopped, from its first thread.
    fn ends(&self) {}

    /// Whether the run records its time spans, see [`crate::observe::trace`].
    fn wants_spans(&self) -> bool {
        false
    }

    /// Whether the result of the run has the time of each phase, step and rank. Of many ranks and steps that is much memory, and under
    /// MPI all of it goes to rank 0.
    fn wants_phases(&self) -> bool {
        true
    }
}

/// Ignores the progress.
impl Watch for () {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}
}
