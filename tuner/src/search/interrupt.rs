//! SIGINT, SIGTERM, SIGHUP and SIGQUIT as a flag that the driver looks at.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::exit;
use crate::signals::is_ignored;

/// Signals closer together are one: `timeout` and batch systems send theirs to the process and to its group.
const ONE_SIGNAL: Duration = Duration::from_millis(500);

/// Between looks at whether one came.
const LOOK: Duration = Duration::from_millis(50);

/// Whether the user or the batch system asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    asked: Arc<AtomicBool>,
}

impl Interrupt {
    /// Listens from now on to SIGINT and SIGTERM, and to SIGHUP and SIGQUIT where they are not ignored, as `nohup` has it. One that
    /// comes half a second after the first ends the program at once, but for SIGHUP: of a connection that is lost several come, and
    /// nobody waits.
    ///
    /// # Errors
    /// When the system refuses the handlers, or a thread to wait for them.
    pub fn listen() -> std::io::Result<Self> {
        let interrupt = Self::default();
        let asked = Arc::clone(&interrupt.asked);
        let others = [SIGHUP, SIGQUIT].into_iter().filter(|signal| !is_ignored(*signal));
        let mut signals = Signals::new([SIGINT, SIGTERM].into_iter().chain(others))?;
        std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut first = None;
            for signal in signals.forever() {
                asked.store(true, Ordering::Relaxed);
                if signal != SIGHUP && first.get_or_insert_with(Instant::now).elapsed() > ONE_SIGNAL {
                    signal_hook::low_level::exit(exit::INTERRUPTED.into());
                }
            }
        })?;
        Ok(interrupt)
    }

    /// Waits for a signal for at most `time`: whether one came.
    pub fn asked_within(&self, time: Duration) -> bool {
        let started = Instant::now();
        while !self.asked() && started.elapsed() < time {
            std::thread::sleep(LOOK);
        }
        self.asked()
    }

    /// Whether a signal came.
    pub fn asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
impl Interrupt {
    /// One by which a signal has come.
    pub(crate) fn already_asked() -> Self {
        Self { asked: Arc::new(AtomicBool::new(true)) }
    }
}
