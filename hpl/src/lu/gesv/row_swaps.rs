//! Row exchanges of sections, from their start until all rows are copied to their destination.

use std::sync::Arc;

use space::HplParams;

use crate::Error;
use crate::backend::{Columns, SectionSwap};
use crate::comm::{Comm, Request};
use crate::lu::laswp::{Laswp, LaswpOp, LaswpResult, RowPermutation, RowTags};
use crate::lu::panel::Panel;
use crate::plan::layout::Distribution;
use crate::plan::{Part, Section};

/// The row exchange of one section for one panel.
pub(super) struct RowSwap<T> {
    panel: usize,
    section: Section,
    rows: T,
}

/// The row exchanges of one rank.
pub(super) struct RowSwaps<'a, C: Comm> {
    laswp: Laswp<'a, C>,
    /// The row permutation of the last panel, for all its sections.
    permutation: Option<(usize, Arc<RowPermutation>)>,
    in_flight: Vec<RowSwap<LaswpOp<'a, C>>>,
    /// Complete exchanges with rows that are not all copied to their destination.
    done: Vec<RowSwap<LaswpResult>>,
    /// Sends in flight of exchanges that are complete on this rank.
    sends: Vec<C::Send>,
}

impl<'a, C: Comm> RowSwaps<'a, C> {
    /// No exchange yet; `rows` is the owner table of the rows.
    pub(super) fn new(column: &'a C, rows: &'a Distribution, params: &HplParams) -> Self {
        let laswp = Laswp { column, rows, swap: params.swap, equil: params.equil, u: params.u };
        Self { laswp, permutation: None, in_flight: Vec::new(), done: Vec::new(), sends: Vec::new() }
    }

    /// Starts the row exchange of a section by the pivots of a panel; `u_cols`: columns of U.
    pub(super) fn start(
        &mut self,
        panel: &Panel,
        section: &Section,
        u_cols: usize,
        columns: &mut impl Columns,
    ) -> Result<(), Error> {
        let k = panel.shape().k;
        let permutation = match self.permutation.take_if(|(of, _)| *of == k) {
            Some((_, permutation)) => permutation,
            None => Arc::new(RowPermutation::new(self.laswp.rows, panel.shape().ia, panel.pivots())),
        };
        self.permutation = Some((k, Arc::clone(&permutation)));
        let rows = self.laswp.start(permutation, &section.cols, u_cols, RowTags::of(section.part), columns)?;
        self.in_flight.push(RowSwap { panel: k, section: section.clone(), rows });
        Ok(())
    }

    /// Waits until the row exchange of section `part` by panel `k` is complete.
    pub(super) fn finish(&mut self, k: usize, part: Part, columns: &mut impl Columns) -> Result<(), Error> {
        let swap = take(&mut self.in_flight, k, part).expect("the plan starts every row exchange it waits for");
        let (rows, sends) = swap.rows.finish(columns)?;
        self.sends.extend(sends);
        self.done.push(RowSwap { panel: k, section: swap.section, rows });
        Ok(())
    }

    /// Takes the exchanged rows of section `part` and panel `k`; `None` with one process row.
    pub(super) fn take(&mut self, k: usize, part: Part) -> Option<RowSwap<LaswpResult>> {
        take(&mut self.done, k, part)
    }

    /// The source of the swapped rows of `section`: messages of the process column, or local rows.
    pub(super) fn rows<'r>(
        &self,
        panel: &Panel,
        swap: Option<&'r RowSwap<LaswpResult>>,
        section: &Section,
    ) -> SectionSwap<'r> {
        let local = |&pivot: &usize| self.laswp.rows.local(pivot) - panel.shape().ii;
        match swap {
            Some(swap) => {
                SectionSwap::Exchanged { result: &swap.rows, first: section.cols.start - swap.section.cols.start }
            }
            None => SectionSwap::Local(panel.pivots().iter().map(local).collect()),
        }
    }

    /// Keeps rows of columns that are updated later than `section`.
    pub(super) fn keep(&mut self, swap: Option<RowSwap<LaswpResult>>, section: &Section) {
        self.done.extend(swap.filter(|swap| swap.section.cols.end > section.cols.end));
    }

    /// Forwards the messages that have arrived.
    pub(super) fn poll(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        self.in_flight.iter_mut().try_for_each(|swap| swap.rows.poll(columns))?;
        self.sends.retain_mut(|send| !send.ready());
        Ok(())
    }

    /// Whether messages are in flight.
    pub(super) fn in_flight(&self) -> bool {
        !(self.in_flight.is_empty() && self.sends.is_empty())
    }

    /// Completes the exchanges in flight and discards their rows: for a step that is not executed.
    pub(super) fn abandon(&mut self, columns: &mut impl Columns) -> Result<(), Error> {
        for swap in std::mem::take(&mut self.in_flight) {
            let (_, sends) = swap.rows.finish(columns)?;
            self.sends.extend(sends);
        }
        self.done.clear();
        self.permutation = None;
        Ok(())
    }

    /// Waits for the sends in flight.
    pub(super) fn finish_sends(&mut self) -> Result<(), Error> {
        Ok(self.sends.drain(..).try_for_each(Request::wait)?)
    }
}

/// Takes the exchange of section `part` for panel `panel` from `list`.
fn take<T>(list: &mut Vec<RowSwap<T>>, panel: usize, part: Part) -> Option<RowSwap<T>> {
    let at = list.iter().position(|swap| swap.panel == panel && swap.section.part == part);
    at.map(|at| list.swap_remove(at))
}
