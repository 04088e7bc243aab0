//! Watching: the screen follows the folder until the user, a signal or the loss of the terminal ends it.
//!
//! A thread of its own reads the folder and makes a [`WatchModel`] every second, so that a file server that does not answer leaves keys and
//! signals alone.

use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::bail;
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::iterator::Signals;

use super::draw::draw;
use super::look::Look;
use super::model::WatchModel;
use super::reading::Reader;
use super::terminal::{Before, Input, Screen, UserKey, Waited};
use super::work::Work;
use crate::exit;

/// How often the folder of a session at work is read, and one that is over.
const EVERY: Duration = Duration::from_secs(1);
const EVERY_WHEN_OVER: Duration = Duration::from_secs(3);

/// Time without an answer of the folder that is told.
const LATE: Duration = Duration::from_secs(10);

/// Time after a signal in which the program ends by itself; a terminal that takes no output can hold it up.
const PATIENCE: Duration = Duration::from_secs(1);

/// Shows what `reader` reads until it is ended; the exit code.
///
/// # Errors
/// Where the system gives no thread or signal handler, or no terminal.
pub fn live(mut reader: Reader, look: Look) -> anyhow::Result<u8> {
    let (waker, notifier) = UnixStream::pair()?;
    notifier.set_nonblocking(true)?;
    let mut input = Input::open(waker)?;
    let before = Before::new()?;
    let asked = SignalRequests::listen(notifier.try_clone()?, before.clone())?;
    let mut model = WatchModel::new(reader.look());
    let models = follow(reader, notifier)?;
    // From here on an error of the terminal means that it is gone, and nobody is there to be told.
    let Ok(mut screen) = Screen::enter(before) else { return Ok(exit::INTERRUPTED) };
    let mut answered = Instant::now();
    let mut changed = true;
    loop {
        loop {
            match models.try_recv() {
                Ok(next) => {
                    answered = Instant::now();
                    changed |= next != model;
                    model = next;
                }
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => {
                    drop(screen);
                    bail!("the run folder is not read any more");
                }
            }
        }
        let late_s = Some(answered.elapsed()).filter(|late| *late > LATE).map(|late| late.as_secs_f64());
        if (changed || late_s.is_some()) && screen.draw(|buffer| draw(buffer, &model, look, late_s)).is_err() {
            return Ok(exit::INTERRUPTED);
        }
        let was_late = late_s.is_some();
        let keys = match input.wait(EVERY) {
            Waited::Gone => return Ok(exit::INTERRUPTED),
            Waited::Keys(keys) => keys,
            Waited::Woken => Vec::new(),
        };
        if asked.to_end.load(Ordering::Relaxed) || keys.contains(&UserKey::Interrupt) {
            return Ok(exit::INTERRUPTED);
        }
        if keys.contains(&UserKey::Quit) {
            return Ok(exit::DONE);
        }
        let suspended = keys.contains(&UserKey::Suspend) && screen.suspend().is_err();
        let anew = asked.to_begin_anew.swap(false, Ordering::Relaxed) || keys.contains(&UserKey::Redraw);
        if suspended || (anew && screen.again().is_err()) {
            return Ok(exit::INTERRUPTED);
        }
        changed = anew || was_late || asked.to_resize.swap(false, Ordering::Relaxed) || !keys.is_empty();
    }
}

/// Reads the folder in a thread, which ends with the receiver of its models.
fn follow(mut reader: Reader, notifier: UnixStream) -> io::Result<Receiver<WatchModel>> {
    let (sender, models) = mpsc::channel();
    thread::Builder::new().name("reading".to_owned()).spawn(move || {
        loop {
            let record = reader.look();
            let every = if record.work == Work::Over { EVERY_WHEN_OVER } else { EVERY };
            if sender.send(WatchModel::new(record)).is_err() {
                return;
            }
            wake(&notifier);
            thread::sleep(every);
        }
    })?;
    Ok(models)
}

/// Wakes the one who waits; a full pipe has woken it already.
fn wake(mut notifier: &UnixStream) {
    let _ = notifier.write(&[0]);
}

/// What signals ask for.
#[derive(Debug, Clone, Default)]
struct SignalRequests {
    to_end: Arc<AtomicBool>,
    to_resize: Arc<AtomicBool>,
    to_begin_anew: Arc<AtomicBool>,
}

impl SignalRequests {
    fn listen(notifier: UnixStream, before: Before) -> io::Result<Self> {
        let asked = Self::default();
        let to = asked.clone();
        let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGWINCH, SIGCONT])?;
        thread::Builder::new().name("signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                let flag = match signal {
                    SIGWINCH => &to.to_resize,
                    SIGCONT => &to.to_begin_anew,
                    _ => &to.to_end,
                };
                flag.store(true, Ordering::Relaxed);
                wake(&notifier);
                if to.to_end.load(Ordering::Relaxed) {
                    thread::sleep(PATIENCE);
                    before.restore();
                    signal_hook::low_level::exit(exit::INTERRUPTED.into());
                }
            }
        })?;
        Ok(asked)
    }
}
