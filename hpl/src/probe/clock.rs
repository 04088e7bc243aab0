//! Timing work on all cores at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use nix::time::{ClockId, clock_gettime};

use crate::team::{HelperPanicked, Team};

/// Share of its time that a core may be away without the measurement being called disturbed.
const TOLERATED: f64 = 0.02;

/// What reading the clocks costs, in seconds.
const CLOCK_S: f64 = 2e-6;

/// Time of a measurement, or of one core's part in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Time {
    pub(super) wall_s: f64,
    /// Whether something else ran on the core meanwhile.
    pub(super) disturbed: bool,
}

/// Lets all cores start together and takes their times.
pub(super) struct Clock {
    cores: usize,
    ready: AtomicUsize,
}

/// CPU time of the calling thread in seconds; `None` where the system does not count it.
fn cpu_s() -> Option<f64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    Some(time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

impl Clock {
    /// Time of `work` on this core, started when every core is ready.
    pub(super) fn time(&self, work: impl FnOnce()) -> Time {
        self.ready.fetch_add(1, Ordering::AcqRel);
        let mut looks = 0_u32;
        while self.ready.load(Ordering::Acquire) < self.cores {
            std::hint::spin_loop();
            looks += 1;
            // The core that others wait for may be this one.
            if looks.is_multiple_of(10_000) {
                std::thread::yield_now();
            }
        }
        let (start, cpu_start_s) = (Instant::now(), cpu_s());
        work();
        let (wall_s, cpu_end_s) = (start.elapsed().as_secs_f64(), cpu_s());
        let away_s = cpu_start_s.zip(cpu_end_s).map_or(0.0, |(start, end)| wall_s - (end - start));
        Time { wall_s, disturbed: away_s > TOLERATED * wall_s + CLOCK_S }
    }
}

/// Runs `part(core, clock)` on every core, each calling [`Clock::time`] once; the longest of their times.
pub(super) fn timed(crew: &mut Team<'_>, part: impl Fn(usize, &Clock) -> Time + Sync) -> Result<Time, HelperPanicked> {
    let clock = Clock { cores: crew.threads(), ready: AtomicUsize::new(0) };
    let times = Mutex::new(Vec::with_capacity(crew.threads()));
    let run = |core: usize| {
        let time = part(core, &clock);
        times.lock().unwrap_or_else(PoisonError::into_inner).push(time);
    };
    crew.fork(&run, || run(0))?;
    let times = times.into_inner().unwrap_or_else(PoisonError::into_inner);
    let longest = |longest: f64, time: &Time| longest.max(time.wall_s);
    Ok(Time { wall_s: times.iter().fold(0.0, longest), disturbed: times.iter().any(|time| time.disturbed) })
}
