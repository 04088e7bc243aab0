//! Rows under way along the process column while something else is done.

use std::sync::Arc;
use std::time::Instant;

use super::Lu;
use crate::Error;
use crate::backend::host::kernels::Kernels;
use crate::backend::host::team::Team;
use crate::backend::host::update::Rows;
use crate::comm::Comm;
use crate::lu::laswp::{Exchange, Exchanged, Hands, Moves, RowTags};
use crate::lu::panel::Panel;
use crate::mat::Mat;
use crate::observe::phases::Phase;
use crate::plan::{Part, Section};

/// The rows of a section that a panel moves.
pub(super) struct Travel<T> {
    pub(super) panel: usize,
    pub(super) section: Section,
    pub(super) rows: T,
}

/// Takes the rows of section `part` that panel `panel` moves.
pub(super) fn take_rows<T>(list: &mut Vec<Travel<T>>, panel: usize, part: Part) -> Option<Travel<T>> {
    let at = list.iter().position(|rows| rows.panel == panel && rows.section.part == part);
    at.map(|at| list.swap_remove(at))
}

impl<C: Comm, K: Kernels> Lu<'_, C, K> {
    /// The rows of a section set out; `a` has at least its columns, U has `u_cols`.
    pub(super) fn start_rows(
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
        let moves = match self.moves.take_if(|(of, _)| *of == k) {
            Some((_, moves)) => moves,
            None => Arc::new(Moves::new(rows, panel.shape().ia, panel.pivots())),
        };
        self.moves = Some((k, Arc::clone(&moves)));
        let cols = a.sub(0, section.cols.start, a.rows(), section.cols.len());
        let column = &self.grid.col_comm;
        let exchange = Exchange { column, rows, swap: params.swap, equil: params.equil, u: params.u };
        let rows = exchange.start(moves, cols, u_cols, RowTags::of(section.part), hands)?;
        self.record(k, Phase::Rs, Some(section.part), start);
        self.moving.push(Travel { panel: k, section, rows });
        Ok(())
    }

    /// Waits for the rows of a section.
    pub(super) fn wait_rows(&mut self, k: usize, part: Part, team: &mut Team<'_>) -> Result<(), Error> {
        let travel = take_rows(&mut self.moving, k, part).expect("the plan starts what it waits for");
        let start = Instant::now();
        let (rows, sends) = travel.rows.finish(Hands::All(team))?;
        self.sends.extend(sends);
        self.moved.push(Travel { panel: k, section: travel.section, rows });
        self.record(k, Phase::Rs, Some(part), start);
        Ok(())
    }

    /// How the rows of a section come to their places.
    pub(super) fn rows<'r>(&self, panel: &Panel, moved: Option<&'r Travel<Exchanged>>) -> Rows<'r> {
        let local = |&pivot: &usize| self.plan.layout.rows.local(pivot) - panel.shape().ii;
        match moved {
            Some(moved) => Rows::Exchanged(&moved.rows),
            None => Rows::Here(panel.pivots().iter().map(local).collect()),
        }
    }

    /// Rows of columns that are updated later than `section` stay.
    pub(super) fn keep_rows(&mut self, moved: Option<Travel<Exchanged>>, section: &Section) {
        self.moved.extend(moved.filter(|moved| moved.section.cols.end > section.cols.end));
    }
}
