//! Time that the threads of a run waited for a core during its timed part.
//!
//! The system counts for each thread the time in which it was ready to run and another thread had its core. Counts of context
//! switches do not show this time: on an idle virtual machine of two cores there are tens of them a second, which together
//! take less than a hundredth of the time.

use std::fs;
use std::sync::Mutex;
use std::sync::PoisonError;

use hpl::Watch;

/// The wait of one run.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Seen>);

#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    before_s: Option<f64>,
    waited_s: Option<f64>,
}

impl Waiting {
    /// Seconds that all threads together waited; `None` where the system does not count them.
    pub(super) fn waited_s(&self) -> Option<f64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).waited_s
    }
}

impl Watch for Waiting {
    fn column(&self, _done: usize, _n: usize, _rate_gflops: f64) {}

    fn starts(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).before_s = of_all_threads();
    }

    fn ends(&self) {
        let after_s = of_all_threads();
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.waited_s = seen.before_s.zip(after_s).map(|(before_s, after_s)| (after_s - before_s).max(0.0));
    }
}

/// Seconds that the current threads of this process have waited for a core so far.
fn of_all_threads() -> Option<f64> {
    let threads = fs::read_dir("/proc/self/task").ok()?;
    // A thread may end during the loop.
    let texts = threads.filter_map(|thread| fs::read_to_string(thread.ok()?.path().join("schedstat")).ok());
    texts.map(|text| of_thread(&text)).sum()
}

/// Seconds of waiting in a thread's `schedstat`: nanoseconds on a core, nanoseconds of waiting for one, turns.
fn of_thread(text: &str) -> Option<f64> {
    let nanoseconds: u64 = text.split_whitespace().nth(1)?.parse().ok()?;
    Some(nanoseconds as f64 * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_waiting() {
        assert_eq!(of_thread("1024837 3476084000 6\n"), Some(3.476_084));
        assert_eq!(of_thread("1024837\n"), None);
        assert_eq!(of_thread("1 x 2"), None);
    }

    #[test]
    fn a_run_without_a_clock_has_not_waited() {
        let watch = Waiting::default();
        assert_eq!(watch.waited_s(), None);
        watch.starts();
        assert_eq!(watch.waited_s(), None);
    }
}
