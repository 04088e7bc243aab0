//! Backends: storage of the local matrix and computation on it.
//!
//! The factorization ([`lu`](crate::lu)) works in terms of panels, sections and rows. A `Backend` holds the local part of
//! [A | b] and executes the operations on it. There are two: the [`host`], where the matrix is in main memory and the threads of
//! the rank compute, and a [`device`], which has the matrix in its own memory and updates it while the threads factor panels.
//!
//! An update takes most of the time. During the update the rank factors the next panel, starts row exchanges and forwards
//! messages: the backend calls `Meanwhile` for that, with the columns that the update does not change as `Columns`.

pub mod device;
pub mod host;
mod storage;

use std::ops::Range;
use std::time::Instant;

pub(crate) use self::storage::Storage;
use crate::Error;
use crate::comm::{Comm, Completion};
use crate::lu::fact::Fact;
use crate::lu::laswp::{LaswpResult, RowBufferMut, RowSource};
use crate::lu::panel::Panel;
use crate::observe::phases::Phase;
use crate::observe::trace::{StreamSpan, Trace};
use crate::plan::{PanelShape, Part};

/// Local columns that may be read and factored.
pub(crate) trait Columns {
    /// Panel ← L\U. U of the diagonal block is also stored in the matrix, for the back substitution. Returns the number of
    /// threads that took part.
    ///
    /// # Errors
    /// When another rank of the process column or a thread fails.
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error>;

    /// For each pair (i, k): row k of `to` ← row i of `from`.
    ///
    /// # Errors
    /// When a thread fails.
    fn copy_rows(&mut self, from: RowSource<'_>, pairs: &[(usize, usize)], to: &mut RowBufferMut) -> Result<(), Error>;
}

/// The local part of [A | b] with the operations on it.
pub(crate) trait Backend: Columns + Storage {
    /// L1 and L2 of a panel in the storage that the updates use.
    type L;

    /// Prepares L1 and L2 for all sections of the panel's update. If this makes a copy, the panel releases L.
    ///
    /// # Errors
    /// When a thread fails.
    fn load(&mut self, panel: &mut Panel) -> Result<Self::L, Error>;

    /// Keeps the memory of L1 and L2 for the next panel.
    fn unload(&mut self, l: Self::L);

    /// [U; C] ← P·[U; C], U ← L1⁻¹ U, C ← C − L2 U. Returns the time at which this thread had finished its work.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn update<M: Meanwhile>(&mut self, l: &Self::L, update: &Update<'_>, meanwhile: &mut M) -> Result<Instant, Error>;

    /// [`update`](Self::update) of the columns of one panel, with L1 and L2 as stored in `panel` and without tasks meanwhile. Returns
    /// the time at which the row swap was complete.
    ///
    /// # Errors
    /// When a thread fails.
    fn update_lookahead(&mut self, panel: &Panel, update: &Update<'_>) -> Result<Instant, Error>;

    /// Waits until the matrix has all updates.
    ///
    /// # Errors
    /// When an operation failed.
    fn finish(&mut self) -> Result<(), Error>;

    /// What the streams of a device have done since the last call, all of which is complete, and the factorizations of the host between
    /// their operations; empty in main memory.
    fn stream_spans(&mut self) -> Vec<StreamSpan> {
        Vec::new()
    }
}

/// The update of one section by one panel.
pub(crate) struct Update<'a> {
    /// The panel.
    pub(crate) panel: &'a PanelShape,
    /// Which part of the trailing matrix, for the trace.
    pub(crate) part: Part,
    /// The local columns of the section.
    pub(crate) cols: Range<usize>,
    /// The row swap of the section.
    pub(crate) rows: SectionSwap<'a>,
    /// The panel that is factored during the update.
    pub(crate) next: Option<&'a PanelShape>,
    /// Records the times of each thread.
    pub(crate) trace: &'a Trace,
}

/// The row swap of a section.
pub(crate) enum SectionSwap<'a> {
    /// With one process row: row j of the diagonal block is swapped with row `.0[j]`, counted from the block's first row.
    Local(Vec<usize>),
    /// With several: the rows that the process column has exchanged.
    Exchanged {
        /// The rows.
        result: &'a LaswpResult,
        /// Index of the section's first column among the exchanged columns.
        first: usize,
    },
}

/// Tasks of this rank during the update of a section, on the thread that sends and receives messages.
pub(crate) trait Meanwhile {
    /// Factors the next panel, if there is one. Called once, before anything else.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn fact(&mut self, columns: &mut impl Columns) -> Result<(), Error>;

    /// Starts broadcasts and row exchanges: with [`Completion::Test`] those that can start without waiting, else all of them.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn start(&mut self, columns: &mut impl Columns, completion: Completion) -> Result<(), Error>;

    /// Forwards the messages that have arrived.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error>;

    /// Columns to update before the next poll.
    fn cols_to_poll(&self) -> usize;

    /// Records that this thread was in `phase` since `start`; returns the current time.
    fn record(&mut self, phase: Phase, start: Instant) -> Instant;
}
