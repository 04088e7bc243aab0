//! When the nodes of a run are asked whether they are still there: a run that one of them was lost to may go on for ever.

use std::time::{Duration, Instant};

/// A run is silent when it has shown no progress for so many times the longest time that it had shown none before, or where it shows none,
/// for so many times what it was expected to take.
const TIMES: u32 = 2;

/// Time for which a run is never called silent, and in which its nodes are asked once.
const LEAST: Duration = Duration::from_secs(30);

/// How long a run has been silent.
pub(super) struct Silence {
    expected: Duration,
    /// Steps of progress so far, the time of the last one, and the longest between two.
    steps: usize,
    last: Instant,
    longest: Duration,
    asked: Instant,
}

impl Silence {
    /// Of a run that is started `now` and expected to take so many seconds.
    pub(super) fn new(expected_s: f64, now: Instant) -> Self {
        let expected = Duration::try_from_secs_f64(expected_s).unwrap_or(Duration::MAX);
        Self { expected, steps: 0, last: now, longest: Duration::ZERO, asked: now }
    }

    /// Whether its nodes are to be asked, where it has made so many steps until `now`.
    pub(super) fn asks(&mut self, steps: usize, now: Instant) -> bool {
        if steps > self.steps {
            self.longest = self.longest.max(now.saturating_duration_since(self.last));
            (self.steps, self.last) = (steps, now);
        }
        let usual = if self.steps > 0 { self.longest } else { self.expected };
        let silent = now.saturating_duration_since(self.last) >= usual.saturating_mul(TIMES).max(LEAST);
        let asks = silent && now.saturating_duration_since(self.asked) >= LEAST;
        if asks {
            self.asked = now;
        }
        asks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The seconds after which the nodes of a run are asked, where it makes its steps at these.
    fn asked(expected_s: f64, steps_s: &[u64], until_s: u64) -> Vec<u64> {
        let begun = Instant::now();
        let mut silence = Silence::new(expected_s, begun);
        let is_asked = |second: &u64| {
            let steps = steps_s.iter().filter(|step| *step <= second).count();
            silence.asks(steps, begun + Duration::from_secs(*second))
        };
        (0..until_s).filter(is_asked).collect()
    }

    #[test]
    fn a_run_is_silent_after_twice_what_it_was_before() {
        let steps: Vec<u64> = (1..=30).map(|step| 40 * step).collect();
        assert!(asked(5000.0, &steps, 1200).is_empty());
        assert_eq!(asked(5000.0, &steps[..10], 600), [480, 510, 540, 570]);
    }

    #[test]
    fn one_without_progress_is_silent_after_twice_its_expected_time_and_never_at_once() {
        assert_eq!(asked(100.0, &[], 240), [200, 230]);
        assert_eq!(asked(1.0, &[], 40), [30]);
        assert!(asked(f64::INFINITY, &[], 1000).is_empty());
    }
}
