//! Where the local matrix lies and who computes on it.
//!
//! The factorization ([`lu`](crate::lu)) speaks of panels, sections and rows. A [`Backend`] has the local part of [A | b] and
//! carries out what these need. There is one, the [`host`]: the matrix lies in main memory and the threads of the rank compute.
//!
//! An update takes most of the time. Meanwhile the rank factors the next panel, starts row exchanges and passes messages on:
//! the backend calls [`Meanwhile`] for that, with those columns that the update leaves alone as [`Columns`].

pub mod host;

use std::ops::Range;
use std::time::Instant;

use crate::Error;
use crate::backend::host::team::HelperPanicked;
use crate::comm::Comm;
use crate::lu::fact::Fact;
use crate::lu::laswp::{LaswpResult, RowBuffer, RowBufferMut};
use crate::lu::panel::Panel;
use crate::observe::phases::Phase;
use crate::observe::trace::Trace;
use crate::plan::{PanelShape, Part};

/// Local columns that may be read and factored.
pub(crate) trait Columns {
    /// Panel ← L\U. U of the diagonal block goes back to the matrix, as the back substitution reads it. Returns how many
    /// threads took part.
    ///
    /// # Errors
    /// When the process column breaks or a thread fails.
    fn fact<C: Comm>(&mut self, fact: Fact<'_, C>) -> Result<usize, Error>;

    /// Row `second` of `to` ← local row `first` of the columns `cols`, for each pair.
    ///
    /// # Errors
    /// When a thread fails.
    fn gather(
        &mut self,
        cols: &Range<usize>,
        pairs: &[(usize, usize)],
        to: &mut RowBufferMut,
    ) -> Result<(), HelperPanicked>;

    /// Row `second` of `to` ← row `first` of `from`, for each pair.
    ///
    /// # Errors
    /// When a thread fails.
    fn copy_rows(
        &mut self,
        from: &RowBuffer,
        pairs: &[(usize, usize)],
        to: &mut RowBufferMut,
    ) -> Result<(), HelperPanicked>;
}

/// The local part of [A | b], and who computes on it.
pub(crate) trait Backend: Columns {
    /// L1 and L2 of a panel as the updates by it read them.
    type L;

    /// Prepares L1 and L2 for all sections of the panel's update. The panel lets go of L where that makes a copy.
    ///
    /// # Errors
    /// When a thread fails.
    fn load(&mut self, panel: &mut Panel) -> Result<Self::L, HelperPanicked>;

    /// Takes the memory of L1 and L2 back, for the next panel.
    fn unload(&mut self, l: Self::L);

    /// [U; C] ← P·[U; C], U ← L1⁻¹ U, C ← C − L2 U. Returns when this thread had nothing left to do.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn update<M: Meanwhile>(&mut self, l: &Self::L, update: &Update<'_>, meanwhile: &mut M) -> Result<Instant, Error>;

    /// The same for no more columns than a panel has, with L1 and L2 as they lie in `panel`; nothing is done meanwhile. Returns
    /// when the rows were at their places.
    ///
    /// # Errors
    /// When a thread fails.
    fn update_lookahead(&mut self, panel: &Panel, update: &Update<'_>) -> Result<Instant, HelperPanicked>;
}

/// What one panel does to one section.
pub(crate) struct Update<'a> {
    /// The panel.
    pub(crate) panel: &'a PanelShape,
    /// Which part of the trailing matrix, for the trace.
    pub(crate) part: Part,
    /// Its local columns.
    pub(crate) cols: Range<usize>,
    /// How their rows come to their places.
    pub(crate) rows: Rows<'a>,
    /// The panel that is factored meanwhile.
    pub(crate) next: Option<&'a PanelShape>,
    /// Who wants to know when each thread did what.
    pub(crate) trace: &'a Trace,
}

/// How the rows of a section come to their places.
pub(crate) enum Rows<'a> {
    /// With one process row: row j of the diagonal block is interchanged with this row, counted from the block's first.
    Local(Vec<usize>),
    /// From what the process column has exchanged.
    Exchanged {
        /// The rows.
        result: &'a LaswpResult,
        /// Index of the section's first column among those that were exchanged.
        first: usize,
    },
}

/// What this rank does while a section is updated, on the thread that exchanges messages.
pub(crate) trait Meanwhile {
    /// Factors the next panel, if there is one. Called once, before anything else.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn fact(&mut self, columns: &mut impl Columns) -> Result<(), Error>;

    /// Starts broadcasts and row exchanges: those that can start at once, or with `wait` all.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn start(&mut self, columns: &mut impl Columns, wait: bool) -> Result<(), Error>;

    /// Passes on what has arrived.
    ///
    /// # Errors
    /// When a rank or a thread fails.
    fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error>;

    /// Columns to update before the next poll.
    fn cols_to_poll(&self) -> usize;

    /// This thread was in `phase` since `start`; returns the present.
    fn record(&mut self, phase: Phase, start: Instant) -> Instant;
}
