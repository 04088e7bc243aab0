//! Time that a thread of a run waited for a core during its timed part.
//!
//! The system counts for each thread the time in which it was ready to run and another thread had its core. Counts of context
//! switches do not show this time: on an idle virtual machine of two cores there are tens of them a second, which together
//! take less than a hundredth of the time. The thread that waited longest counts: all others wait for it, and the sum over many
//! threads, each of which waits a little when it is woken, says nothing of other programs.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::sync::Mutex;
use std::sync::PoisonError;

use hpl::Watch;

/// The wait of one run.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    before_s: Option<HashMap<OsString, f64>>,
    waited_s: Option<f64>,
}

impl Waiting {
    /// Seconds that the thread waited which waited longest; `None` where the system does not count them.
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
        seen.waited_s = seen.before_s.as_ref().zip(after_s).map(|(before_s, after_s)| longest_s(before_s, &after_s));
    }
}

/// The longest wait of a thread between two readings of all; those that began in between had not waited before.
fn longest_s(before_s: &HashMap<OsString, f64>, after_s: &HashMap<OsString, f64>) -> f64 {
    let waits = after_s.iter().map(|(thread, waited_s)| waited_s - before_s.get(thread).unwrap_or(&0.0));
    waits.fold(0.0, f64::max)
}

/// Seconds that each of the current threads of this process has waited for a core so far, by its number.
fn of_all_threads() -> Option<HashMap<OsString, f64>> {
    let threads = fs::read_dir("/proc/self/task").ok()?.filter_map(Result::ok);
    // A thread may end during the loop.
    let texts = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        Some((thread.file_name(), text))
    });
    texts.map(|(thread, text)| Some((thread, of_thread(&text)?))).collect()
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

    /// On 128 cores threads that wait for 0.1 ms each do not wait for 13 ms.
    #[test]
    fn the_thread_that_waits_longest_counts() {
        let threads = |all: &[(usize, f64)]| -> HashMap<OsString, f64> {
            all.iter().map(|(thread, waited_s)| (thread.to_string().into(), *waited_s)).collect()
        };
        let [before, after] =
            [1.0, 1.0001].map(|waited_s| threads(&(0..128).map(|t| (t, waited_s)).collect::<Vec<_>>()));
        assert!((longest_s(&before, &after) - 1e-4).abs() < 1e-12);
        // Of two threads one waits, as does one that has begun since; one that has ended is not counted.
        let before = threads(&[(1, 5.0), (2, 0.0), (9, 7.0)]);
        assert_eq!(longest_s(&before, &threads(&[(1, 5.0), (2, 0.5), (3, 0.25)])), 0.5);
        assert_eq!(longest_s(&before, &threads(&[])), 0.0);
    }

    #[test]
    fn a_run_without_a_clock_has_not_waited() {
        let watch = Waiting::default();
        assert_eq!(watch.waited_s(), None);
        watch.starts();
        assert_eq!(watch.waited_s(), None);
    }
}
