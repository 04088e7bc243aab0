//! Panel factorization by one process column: executes the operations of the [recursion](crate::plan::recursion).
//!
//! The rows of a panel are divided among some threads of the rank. Each executes every operation on its own rows
//! ([`PanelThread`]); at every column they wait for each other at a barrier and choose the pivot. The first thread has the
//! diagonal block and sends and receives the messages.
//!
//! Every process row and every thread has a copy of L1, so that the triangular solves need no message. Of large solves each thread
//! does some columns and copies the others. It is stored in the
//! panel according to L1 of HPL.dat, transposed or not; the recursion works on either form.

#[cfg(loom)]
pub mod models;
mod panel_thread;
mod pivot;
mod pivot_candidate;
mod slots;
mod solved_parts;

pub(crate) use self::panel_thread::{FactShared, FactStopped, MainThread, PanelThread};

use crate::lu::panel::PanelMut;
use crate::plan::PanelShape;
use crate::plan::layout::Distribution;
use crate::plan::recursion::Recipe;

/// A panel factorization on one rank.
pub(crate) struct Fact<'a, C> {
    /// Parameters of the recursion.
    pub(crate) recipe: Recipe,
    /// The process column.
    pub(crate) column: &'a C,
    /// Owner table of the rows.
    pub(crate) rows: &'a Distribution,
    /// Size and owners of the panel.
    pub(crate) shape: PanelShape,
    /// First local column of the panel.
    pub(crate) col: usize,
    /// The panel's parts, to be overwritten.
    pub(crate) panel: PanelMut<'a>,
}

#[cfg(test)]
mod tests;
