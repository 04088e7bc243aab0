//! Rows under way along the process column while something else is done.

use std::sync::Arc;
use std::time::Instant;

use super::Lu;
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::Team;
use crate::backend::host::update::Rows;
use crate::comm::Comm;
use crate::lu::laswp::{Hands, Laswp, LaswpResult, RowPermutation, RowTags};
use crate::lu::panel::Panel;
use crate::mat::Mat;
use crate::observe::phases::Phase;
use crate::plan::{Part, Section};

/// The rows of a section that a panel moves.
pub(super) struct RowSwap<T> {
    pub(super) panel: usize,
    pub(super) section: Section,
    pub(super) rows: T,
}

/// Takes the rows of section `part` that panel `panel` moves.
pub(super) fn take_swap<T>(list: &mut Vec<RowSwap<T>>, panel: usize, part: Part) -> Option<RowSwap<T>> {
    let at = list.iter().position(|rows| rows.panel == panel && rows.section.part == part);
    at.map(|at| list.swap_remove(at))
}

impl<C: Comm, K: Kernels> Lu<'_, C, K> {
    /// The rows of a section set out; `a` has at least its columns, U has `u_cols`.
    pub(super) fn start_laswp(
        &mut self,
        k: usize,
        section: &Section,
        u_cols: usize,
        hands: Hands<'_, '_>,
        a: Mat<'_>,
    ) -> Result<(), Error> {
        let panel = self.panel(k)?.clone();
        let start = Instant::now();
        let (rows, params, section) = (&self.plan.layout.rows, self.params, section.clone());
        let permutation = match self.permutation.take_if(|(of, _)| *of == k) {
            Some((_, permutation)) => permutation,
            None => Arc::new(RowPermutation::new(rows, panel.shape().ia, panel.pivots())),
        };
        self.permutation = Some((k, Arc::clone(&permutation)));
        let cols = a.sub(0, section.cols.start, a.rows(), section.cols.len());
        let column = &self.grid.col_comm;
        let exchange = Laswp { column, rows, swap: params.swap, equil: params.equil, u: params.u };
        let rows = exchange.start(permutation, cols, u_cols, RowTags::of(section.part), hands)?;
        self.record(k, Phase::Rs, Some(section.part), start);
        self.swaps_in_flight.push(RowSwap { panel: k, section, rows });
        Ok(())
    }

    /// Waits for the rows of a section.
    pub(super) fn finish_laswp(&mut self, k: usize, part: Part, team: &mut Team<'_>) -> Result<(), Error> {
        let swap = take_swap(&mut self.swaps_in_flight, k, part).expect("the plan starts what it waits for");
        let start = Instant::now();
        let (rows, sends) = swap.rows.finish(Hands::All(team))?;
        self.sends.extend(sends);
        self.swaps_done.push(RowSwap { panel: k, section: swap.section, rows });
        self.record(k, Phase::Rs, Some(part), start);
        Ok(())
    }

    /// How the rows of a section come to their places.
    pub(super) fn rows<'r>(&self, panel: &Panel, swap: Option<&'r RowSwap<LaswpResult>>) -> Rows<'r> {
        let local = |&pivot: &usize| self.plan.layout.rows.local(pivot) - panel.shape().ii;
        match swap {
            Some(swap) => Rows::LaswpResult(&swap.rows),
            None => Rows::Here(panel.pivots().iter().map(local).collect()),
        }
    }

    /// Rows of columns that are updated later than `section` stay.
    pub(super) fn keep_swap(&mut self, swap: Option<RowSwap<LaswpResult>>, section: &Section) {
        self.swaps_done.extend(swap.filter(|swap| swap.section.cols.end > section.cols.end));
    }
}
