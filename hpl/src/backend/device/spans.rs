//! When the streams have done what.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use super::{Device, Stream, Wait};
use crate::Error;
use crate::observe::phases::Phase;
use crate::observe::trace::StreamSpan;
use crate::plan::Part;

/// Work of a stream: its phase, the panel that it belongs to, and the columns.
type StreamWork = (Stream, Phase, usize, Option<Part>);

/// The work that has been queued, between two marks each, and when the clock was started.
pub(super) struct StreamSpans<D: Device> {
    start: Option<(Instant, D::Mark)>,
    work: RefCell<Vec<(StreamWork, [D::Mark; 2])>>,
    /// What the host has done between operations of a stream.
    by_host: Vec<StreamSpan>,
}

impl<D: Device> Default for StreamSpans<D> {
    fn default() -> Self {
        Self { start: None, work: RefCell::default(), by_host: Vec::new() }
    }
}

impl<D: Device> StreamSpans<D> {
    /// Starts the clock, once the device has nothing to do.
    ///
    /// # Errors
    /// When an operation failed.
    pub(super) fn start(&mut self, device: &D) -> Result<(), Error> {
        device.synchronize(Wait::Finished)?;
        let mark = device.mark(Stream::Main);
        device.synchronize(Wait::Finished)?;
        self.start = Some((Instant::now(), mark));
        Ok(())
    }

    /// Calls `queue`, which queues the work.
    pub(super) fn timed(&self, device: &D, work: StreamWork, queue: impl FnOnce()) {
        let from = device.mark(work.0);
        queue();
        self.work.borrow_mut().push((work, [from, device.mark(work.0)]));
    }

    /// The host has done the work since `start`.
    pub(super) fn done_by_host(&mut self, (stream, phase, panel, part): StreamWork, start: Instant) {
        let times = (start, Instant::now());
        self.by_host.push(StreamSpan { stream: stream as usize, panel, phase, part, times });
    }

    /// What has been queued since the last call and is complete, and what the host has done, if the clock runs.
    pub(super) fn take(&mut self, device: &D) -> Vec<StreamSpan> {
        let by_host = std::mem::take(&mut self.by_host);
        let (work, Some((start, zero))) = (std::mem::take(self.work.get_mut()), &self.start) else { return Vec::new() };
        let between =
            |from: &D::Mark, to: &D::Mark| Duration::try_from_secs_f64(device.seconds(from, to)?.max(0.0)).ok();
        let span = |((stream, phase, panel, part), [from, to]): (StreamWork, [D::Mark; 2])| {
            // The time since the start has seven digits: milliseconds after some hours.
            let begun = *start + between(zero, &from)?;
            let times = (begun, begun + between(&from, &to)?);
            Some(StreamSpan { stream: stream as usize, panel, phase, part, times })
        };
        work.into_iter().filter_map(span).chain(by_host).collect()
    }
}
