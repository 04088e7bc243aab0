//! The kernel's call that starts to count an event.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{FromRawFd, OwnedFd};

use perf_event_open_sys::bindings::{PERF_FLAG_FD_CLOEXEC, perf_event_attr};
use perf_event_open_sys::perf_event_open;

/// No group of events.
const ALONE: i32 = -1;
/// Of all processes.
const ALL: i32 = -1;

/// What is counted, and on which processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CountedEvent {
    /// The kernel's number of the unit that counts.
    pub(super) unit: u32,
    /// Its number of the event.
    pub(super) config: u64,
    /// The processor.
    pub(super) cpu: usize,
}

/// An event that is counted.
#[derive(Debug)]
pub(super) struct EnergyEvent {
    counter: File,
    /// Joules of a unit.
    scale: f64,
}

impl EnergyEvent {
    /// A counter with the joules of its unit.
    pub(super) fn new(counter: File, scale: f64) -> Self {
        Self { counter, scale }
    }

    /// Joules since it was opened.
    pub(super) fn joules(&self) -> Option<f64> {
        let mut value = [0; 8];
        (&self.counter).read_exact(&mut value).ok()?;
        Some(u64::from_ne_bytes(value) as f64 * self.scale)
    }
}

/// Counts `event` from now on; each reading of the file gives its value in eight bytes.
///
/// # Errors
/// What the kernel says; without the right to count what others do it denies the permission.
pub(super) fn open(event: CountedEvent) -> io::Result<File> {
    let mut attributes = perf_event_attr {
        type_: event.unit,
        size: size_of::<perf_event_attr>() as u32,
        config: event.config,
        ..perf_event_attr::default()
    };
    let cpu = i32::try_from(event.cpu).map_err(io::Error::other)?;
    let flags = u64::from(PERF_FLAG_FD_CLOEXEC);
    // SAFETY: the pointer is that of a variable, whose size it says; the event only counts.
    let opened = unsafe { perf_event_open(&raw mut attributes, ALL, cpu, ALONE, flags) };
    if opened < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just opened it, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(opened) }.into())
}
