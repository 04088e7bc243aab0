//! A trace of the work of each thread: time stamps recorded during a run, for the timeline picture.
//!
//! Each thread appends to its own list: a `Recorder` holds the list of its thread during one fork, so that the update
//! loop takes no lock. A trace that is off records nothing and reads no clock.

mod kind;
mod steps;
mod timeline;

use std::time::Instant;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::observe::phases::Phase;
use crate::plan::Part;

pub use self::steps::{NoSteps, NotInRun, StepRange};
pub use self::timeline::TracePicture;

/// Work of one thread from one time to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// Rank.
    pub rank: u32,
    /// Thread of the rank; thread 0 sends and receives the messages. From [`Span::STREAMS`] on, a stream of its device.
    pub thread: u32,
    /// Index of the panel that the work belongs to, from 0; the number of panels for the back substitution.
    pub step: u32,
    /// The phase of the work.
    pub phase: Phase,
    /// The updated or swapped columns; `None` for work on the panel itself.
    pub part: Option<Part>,
    /// Start in seconds since the start of the factorization.
    pub start_s: f64,
    /// End in seconds since the start of the factorization.
    pub end_s: f64,
}

impl Span {
    /// [`thread`](Self::thread) of the first stream of a device.
    pub const STREAMS: u32 = 1 << 16;
}

/// Work of a stream of a device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StreamSpan {
    /// Number of the stream.
    pub(crate) stream: usize,
    /// Index of the panel that the work belongs to.
    pub(crate) panel: usize,
    pub(crate) phase: Phase,
    pub(crate) part: Option<Part>,
    /// Start and end.
    pub(crate) times: (Instant, Instant),
}

/// A span with absolute times.
struct Stamp {
    step: u32,
    phase: Phase,
    part: Option<Part>,
    start: Instant,
    end: Instant,
}

/// Collects the spans of one rank.
pub(crate) struct Trace {
    /// The stamps of each thread; empty when the trace is off.
    threads: Vec<Mutex<Vec<Stamp>>>,
    streams: Mutex<Vec<StreamSpan>>,
}

impl Trace {
    /// A trace of `threads` threads; with `threads` = 0 it is off.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads: (0..threads).map(|_| Mutex::default()).collect(), streams: Mutex::default() }
    }

    /// Appends work of the streams of a device.
    pub(crate) fn streams(&self, spans: &[StreamSpan]) {
        if !self.threads.is_empty() {
            self.streams.lock().extend_from_slice(spans);
        }
    }

    /// Appends work of `thread` for panel `step` from `start` to `end`. Not for a thread that has a [`Recorder`].
    pub(crate) fn span(
        &self,
        thread: usize,
        step: usize,
        phase: Phase,
        part: Option<Part>,
        (start, end): (Instant, Instant),
    ) {
        if let Some(slot) = self.threads.get(thread) {
            slot.lock().push(Stamp { step: step as u32, phase, part, start, end });
        }
    }

    /// A recorder for one fork: work of `thread` for panel `step` on the columns `part`.
    pub(crate) fn recorder(&self, thread: usize, step: usize, part: Part) -> Recorder<'_> {
        let on = self.threads.get(thread).map(|slot| {
            let stamps = std::mem::take(&mut *slot.lock());
            RecorderState { step: step as u32, part, slot, stamps, clock: Instant::now() }
        });
        Recorder(on)
    }

    /// All spans of rank `rank`, those of each thread in order, with times since `origin`.
    pub(crate) fn into_spans(self, rank: usize, origin: Instant) -> Vec<Span> {
        let seconds = |at: Instant| at.saturating_duration_since(origin).as_secs_f64();
        let rank = rank as u32;
        let of_stream = |span: StreamSpan| Span {
            rank,
            thread: Span::STREAMS + span.stream as u32,
            step: span.panel as u32,
            phase: span.phase,
            part: span.part,
            start_s: seconds(span.times.0),
            end_s: seconds(span.times.1),
        };
        let mut spans: Vec<Span> = self.streams.into_inner().into_iter().map(of_stream).collect();
        for (thread, slot) in self.threads.into_iter().enumerate() {
            let stamps = slot.into_inner().into_iter();
            spans.extend(stamps.map(|Stamp { step, phase, part, start, end }| Span {
                rank,
                thread: thread as u32,
                step,
                phase,
                part,
                start_s: seconds(start),
                end_s: seconds(end),
            }));
        }
        spans
    }
}

/// Records the work of one thread between a fork and its join.
pub(crate) struct Recorder<'a>(Option<RecorderState<'a>>);

/// State of a recorder that is on.
struct RecorderState<'a> {
    step: u32,
    part: Part,
    slot: &'a Mutex<Vec<Stamp>>,
    /// All stamps of the thread so far.
    stamps: Vec<Stamp>,
    /// End of the last span.
    clock: Instant,
}

impl Recorder<'_> {
    /// Records that the thread was in `phase` since the last call, or since the fork.
    pub(crate) fn done(&mut self, phase: Phase) {
        if let Some(on) = &mut self.0 {
            let now = Instant::now();
            on.stamps.push(Stamp { step: on.step, phase, part: Some(on.part), start: on.clock, end: now });
            on.clock = now;
        }
    }
}

impl Drop for Recorder<'_> {
    fn drop(&mut self) {
        if let Some(on) = &mut self.0 {
            *on.slot.lock() = std::mem::take(&mut on.stamps);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn each_thread_keeps_its_own_order() {
        let (trace, origin) = (Trace::new(3), Instant::now());
        let clock = Instant::now();
        trace.span(0, 4, Phase::Fact, None, (clock, Instant::now()));
        for step in [4, 5] {
            thread::scope(|scope| {
                for index in 1..3 {
                    let trace = &trace;
                    scope.spawn(move || {
                        let mut recorder = trace.recorder(index, step, Part::Rest);
                        recorder.done(Phase::Rs);
                        recorder.done(Phase::Update);
                    });
                }
            });
        }
        let spans = trace.into_spans(7, origin);
        let what: Vec<_> = spans.iter().map(|span| (span.rank, span.thread, span.step, span.phase)).collect();
        let helper = |thread| [4, 5].map(|step| [Phase::Rs, Phase::Update].map(|phase| (7, thread, step, phase)));
        let expected: Vec<_> = helper(1).into_iter().chain(helper(2)).flatten().collect();
        assert_eq!(what, [vec![(7, 0, 4, Phase::Fact)], expected].concat());
        for thread in spans.chunk_by(|a, b| a.thread == b.thread) {
            assert!(thread.iter().all(|span| span.start_s <= span.end_s));
            assert!(thread.windows(2).all(|pair| pair[0].end_s <= pair[1].start_s));
        }
    }

    #[test]
    fn a_trace_that_is_off_records_nothing() {
        let (trace, clock) = (Trace::new(0), Instant::now());
        trace.span(0, 0, Phase::Fact, None, (clock, clock));
        trace.recorder(1, 0, Part::Rest).done(Phase::Update);
        assert!(trace.into_spans(0, clock).is_empty());
    }
}
