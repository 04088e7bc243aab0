//! What a rank does while a section is updated.

use std::iter::Peekable;
use std::slice;
use std::time::Instant;

use super::Lu;
use crate::Error;
use crate::backend::{Columns, Meanwhile};
use crate::comm::{Comm, Msg};
use crate::observe::phases::Phase;
use crate::plan::{PanelShape, Part, Task};

/// Columns that are updated between two polls of messages that make no progress by themselves: a fraction of a millisecond up to
/// thousands of rows, in which a fast link moves no more than it buffers.
const POLL_COLS: usize = 32;

/// The tasks beside the update of a section by panel `k`.
pub(super) struct Beside<'l, 'a, C: Comm> {
    lu: &'l mut Lu<'a, C>,
    k: usize,
    part: Part,
    next: Option<&'l PanelShape>,
    /// The next panel, once it is factored and until its broadcast starts.
    factored: Option<Msg>,
    /// All other tasks.
    tasks: Peekable<slice::Iter<'l, Task>>,
}

impl<'l, 'a, C: Comm> Beside<'l, 'a, C> {
    /// The factorization of `next`, then `tasks`.
    pub(super) fn new(
        lu: &'l mut Lu<'a, C>,
        k: usize,
        part: Part,
        next: Option<&'l PanelShape>,
        tasks: &'l [Task],
    ) -> Self {
        Self { lu, k, part, next, factored: None, tasks: tasks.iter().peekable() }
    }
}

impl<C: Comm> Meanwhile for Beside<'_, '_, C> {
    fn fact(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.factored = self.next.map(|next| self.lu.fact(next, columns)).transpose()?;
        Ok(())
    }

    fn start(&mut self, columns: &mut impl Columns, wait: bool) -> Result<(), Error> {
        let Self { lu, factored, tasks, .. } = self;
        while let Some(task) = tasks.peek().copied() {
            let can_start = match task {
                Task::RsStart { panel, .. } => lu.panels.has(*panel),
                _ => true,
            };
            if !(wait || can_start) {
                break;
            }
            tasks.next();
            match task {
                Task::Lbcast(shape) => lu.start_bcast(shape, factored.take()),
                Task::RsStart { panel, section, u_cols } => lu.start_laswp(*panel, section, *u_cols, columns)?,
                Task::Fact(_) | Task::RsWait { .. } | Task::Update { .. } => {
                    unreachable!("the plan puts nothing else beside an update, and a factorization first")
                }
            }
        }
        Ok(())
    }

    fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.lu.poll(columns)
    }

    fn cols_to_poll(&self) -> usize {
        if !C::ASYNC_PROGRESS && self.lu.messages_in_flight() { POLL_COLS } else { usize::MAX }
    }

    fn record(&mut self, phase: Phase, start: Instant) -> Instant {
        self.lu.record(self.k, phase, Some(self.part), start)
    }
}
