//! Panel factorization by one process column: the operations of the [recursion](crate::plan::recursion), carried out.
//!
//! The rows of a panel are dealt to some threads of the rank. Each does every operation on its own rows
//! ([`PanelThread`]); at every column they wait for each other at a barrier and choose the pivot. The first has the diagonal
//! block and the messages.
//!
//! L1 is held by every process row and every thread, so that the triangular solves need no message. It lies in the panel as
//! L1 of HPL.dat says, as it is or transposed; the recursion does not see which.

mod panel_thread;
mod pivot;
mod pivot_candidate;
mod slots;

pub(crate) use self::panel_thread::{Ended, MainThread, PanelThread, Shared};

use crate::lu::panel::PanelMut;
use crate::plan::PanelShape;
use crate::plan::layout::Axis;
use crate::plan::recursion::Recipe;

/// A panel factorization on one rank.
pub(crate) struct Fact<'a, C> {
    /// How the recursion goes.
    pub(crate) recipe: Recipe,
    /// The process column.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Axis,
    /// Size and owners of the panel.
    pub(crate) shape: PanelShape,
    /// First local column of the panel.
    pub(crate) col: usize,
    /// The panel's parts, of any content.
    pub(crate) panel: PanelMut<'a>,
}

#[cfg(test)]
mod tests;
