//! Updates of no more columns than a panel has: what look-ahead of more than one panel adds.

use std::sync::Arc;
use std::time::Instant;

use super::Lu;
use super::row_swaps::take_swap;
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::Team;
use crate::backend::host::update::{Slab, Update};
use crate::comm::Comm;
use crate::mat::MatMut;
use crate::observe::phases::Phase;
use crate::plan::{Part, Section};

impl<C: Comm, K: Kernels> Lu<'_, C, K> {
    /// Updates the columns of a panel that is to be factored, by all threads.
    pub(super) fn update_lookahead(
        &mut self,
        k: usize,
        section: &Section,
        rows_of: Part,
        team: &mut Team<'_>,
        a: MatMut<'_>,
    ) -> Result<(), Error> {
        let (kernels, scratch) = (self.kernels, Arc::clone(&self.scratch));
        let update = Update::of_few(kernels, self.panel(k)?, scratch);
        let (start, shape) = (Instant::now(), update.panel().shape());
        let from = a.split_cols(section.cols.start).1;
        let (top, c) = from.sub(shape.ii, 0, shape.mp, section.cols.len()).split_rows(shape.diag_rows);
        let swap = take_swap(&mut self.swaps_done, k, rows_of);
        let first = swap.as_ref().map_or(0, |swap| section.cols.start - swap.section.cols.start);
        let placed = update.apply(Slab { first, top, c }, &self.rows(update.panel(), swap.as_ref()), team)?;
        self.phases.add_until(self.step, Phase::Rs, (start, placed));
        self.trace.span(0, k, Phase::Rs, Some(section.part), (start, placed));
        self.record(k, Phase::Update, Some(section.part), placed);
        self.keep_swap(swap, section);
        self.poll()
    }
}
