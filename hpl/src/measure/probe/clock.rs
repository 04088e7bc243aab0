//! Timing work on all cores at once.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};
use parking_lot::Mutex;

use crate::backend::host::team::{HelperPanicked, Team};

/// Part of a measurement's time that other processes may take before it is marked as disturbed.
const TOLERATED: f64 = 0.02;

/// Time to read the clocks, in seconds.
const CLOCK_S: f64 = 2e-6;

/// Time of a measurement, or of one core's part in it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Time {
    /// Wall clock, in seconds.
    pub(super) wall_s: f64,
    /// CPU time of the measuring thread: the wall clock minus waiting and the time that other processes had the core.
    pub(super) cpu_s: f64,
}

/// One round of a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Round {
    /// The measured time in seconds.
    pub(super) time_s: f64,
    /// Whether other processes ran on the cores during the measurement.
    pub(super) disturbed: bool,
}

impl Time {
    /// The round of work without waits: its CPU time, which equals the wall clock on an undisturbed core.
    pub(super) fn of_work(self) -> Round {
        let disturbed = self.wall_s - self.cpu_s > TOLERATED * self.wall_s + CLOCK_S;
        Round { time_s: self.cpu_s, disturbed }
    }
}

/// Starts all cores at the same time and measures their times.
pub(super) struct CommonStart {
    cores: usize,
    ready: AtomicUsize,
}

/// Readings of the clock in succession, and how many of them at least differ from the one before where it has no ticks. A reading takes
/// some tenths of a microsecond: the ticks are then shorter than ten readings.
const READINGS: [usize; 2] = [1000, 100];

/// CPU time of the calling thread in seconds; `None` where the system does not count it, or by ticks that are longer than kernels take.
/// Systems that count ticks of 10 ms say of this clock that it has nanoseconds, so it is looked at once.
fn cpu_s() -> Option<f64> {
    static HAS_NO_TICKS: LazyLock<bool> = LazyLock::new(|| has_no_ticks(thread_s));
    if *HAS_NO_TICKS { thread_s() } else { None }
}

/// Whether a clock goes on with nearly each reading. Where the thread loses its core meanwhile, it does too.
fn has_no_ticks(mut clock_s: impl FnMut() -> Option<f64>) -> bool {
    let [all, least] = READINGS;
    let readings: Vec<Option<f64>> = (0..all).map(|_| clock_s()).collect();
    readings.windows(2).filter(|pair| pair[0] != pair[1]).count() >= least
}

/// The clock of the calling thread's CPU time in seconds.
fn thread_s() -> Option<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

impl CommonStart {
    /// Time of `work` on this core, started when every core is ready.
    pub(super) fn time(&self, work: impl FnOnce()) -> Time {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let mut polls = 0_u32;
        while self.ready.load(Ordering::Acquire) < self.cores {
            std::hint::spin_loop();
            polls += 1;
            // The thread that others wait for may need this core.
            if polls.is_multiple_of(10_000) {
                std::thread::yield_now();
            }
        }
        let (start, cpu_start_s) = (Instant::now(), cpu_s());
        work();
        let (wall_s, cpu_end_s) = (start.elapsed().as_secs_f64(), cpu_s());
        Time { wall_s, cpu_s: cpu_start_s.zip(cpu_end_s).map_or(wall_s, |(start, end)| end - start) }
    }
}

/// Runs `part(core, clock)` on every core, each calling [`CommonStart::time`] once; returns the longest of their times.
pub(super) fn timed(
    team: &mut Team<'_>,
    part: impl Fn(usize, &CommonStart) -> Time + Sync,
) -> Result<Time, HelperPanicked> {
    let clock = CommonStart { cores: team.threads(), ready: AtomicUsize::new(0) };
    let longest = Mutex::new(Time::default());
    let run = |core: usize| {
        let time = part(core, &clock);
        let mut longest = longest.lock();
        *longest = Time { wall_s: longest.wall_s.max(time.wall_s), cpu_s: longest.cpu_s.max(time.cpu_s) };
    };
    team.fork(&run, || run(0))?;
    Ok(longest.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that goes on by 0.2 µs with each reading, in ticks of this many seconds.
    fn clock(tick_s: f64) -> impl FnMut() -> Option<f64> {
        let mut readings = 0_u32;
        move || {
            readings += 1;
            Some((f64::from(readings) * 2e-7 / tick_s).floor() * tick_s)
        }
    }

    #[test]
    fn a_clock_of_long_ticks_times_no_kernel() {
        assert!(has_no_ticks(clock(1e-9)) && has_no_ticks(clock(1e-6)));
        assert!(!has_no_ticks(clock(1e-5)) && !has_no_ticks(clock(1e-2)));
        assert!(!has_no_ticks(|| None));
    }
}
