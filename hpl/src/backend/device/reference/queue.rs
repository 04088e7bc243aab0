//! The streams of the reference device.

use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::backend::device::Stream;
use crate::backend::host::kernels::random::Jump;

/// One operation of a stream.
pub(super) enum StreamOp<'k> {
    /// Work on memory.
    Work(Box<dyn FnOnce() + 'k>),
    /// The event becomes complete.
    Record(Event),
    /// The stream waits for the event.
    Wait(Event),
}

/// An event; complete or not.
pub(crate) type Event = Rc<Cell<bool>>;

/// The streams with the operations that are not executed yet.
pub(super) struct Queues<'k> {
    streams: [VecDeque<StreamOp<'k>>; Stream::ALL.len()],
    random: Generator,
    /// After how many of 4 new operations one is executed at once.
    early: usize,
    /// The stream that goes on as long as it can, for a random time.
    favourite: usize,
}

impl<'k> Queues<'k> {
    /// Empty streams.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Generator(Jump::by(seed).apply(seed));
        // Half of the seeds execute only when the host waits.
        let early = random.below(8).saturating_sub(4);
        let favourite = random.below(Stream::ALL.len());
        Self { streams: Default::default(), random, early, favourite }
    }

    /// Queues an operation, and may execute one.
    pub(super) fn push(&mut self, stream: Stream, operation: StreamOp<'k>) {
        self.streams[stream as usize].push_back(operation);
        if self.random.below(4) < self.early {
            self.step();
        }
    }

    /// Whether all operations are executed.
    pub(super) fn idle(&self) -> bool {
        self.streams.iter().all(VecDeque::is_empty)
    }

    /// Executes the next operation of a random stream; `false` when none can start.
    pub(super) fn step(&mut self) -> bool {
        let can_start = |stream: &VecDeque<StreamOp<'k>>| match stream.front() {
            None => false,
            Some(StreamOp::Wait(event)) => event.get(),
            Some(_) => true,
        };
        let ready: Vec<usize> = (0..self.streams.len()).filter(|&at| can_start(&self.streams[at])).collect();
        if ready.is_empty() {
            return false;
        }
        // A change of stream every four operations lets one stream get far ahead of the others.
        if self.random.below(4) == 0 || !ready.contains(&self.favourite) {
            self.favourite = ready[self.random.below(ready.len())];
        }
        match self.streams[self.favourite].pop_front() {
            Some(StreamOp::Work(work)) => work(),
            Some(StreamOp::Record(event)) => event.set(true),
            Some(StreamOp::Wait(_)) | None => {}
        }
        true
    }
}

/// A random number generator: that of HPL's matrix.
struct Generator(u64);

impl Generator {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        const NEXT: Jump = Jump::by(1);
        self.0 = NEXT.apply(self.0);
        (self.0 >> 33) as usize % end
    }
}
