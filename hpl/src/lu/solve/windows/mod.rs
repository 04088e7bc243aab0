//! Windows of a run on one rank.

use super::{LocalMatrix, RankRun};
use crate::Error;
use crate::backend::host::team::Team;
use crate::backend::host::{Host, Workspace};
use crate::comm::Comm;
use crate::comm::reduce;
use crate::lu::matgen;
use crate::lu::residual;
use crate::lu::trsv;
use crate::mat::MatMut;
use crate::observe::trace::Trace;
use crate::plan::windows::{Window, WindowTimes, WindowsReport};

impl<C: Comm> RankRun<'_, C> {
    /// Runs the windows one after the other, each on a newly generated trailing matrix.
    pub(super) fn windows(&self, team: &mut Team<'_>, windows: &[Window]) -> Result<WindowsReport, Error> {
        let mut local = self.local()?;
        let trace = Trace::new(0);
        let mut lu = self.lu(&trace);
        let mut workspace = Workspace::default();
        let mut report =
            WindowsReport { windows: Vec::new(), trsv_s: 0.0, generate_s: 0.0, check_s: 0.0, phases: Vec::new() };
        for window in windows {
            let start = self.start()?;
            self.generate_trailing(team, &mut local, window.first)?;
            report.generate_s += self.seconds_since(start)?;
            self.warm_up(window.first, &mut workspace, team, local.view().as_ref())?;

            // [A' | b'] with A'·1 = b' → the trailing matrix after the window
            let end = window.first + window.steps;
            self.start()?;
            let mut host = Host::new(self.kernels, team, local.view(), &mut workspace);
            lu.factor(window.first..end, &mut host, None)?;
            let mut ends = lu.phases.ends(window.first..end);
            lu.quiesce(end, &mut host)?;
            reduce::all(self.comm, &mut ends, reduce::max)?;

            let start = self.start()?;
            let residual = self.check_window(team, &mut local, window)?;
            report.check_s += self.seconds_since(start)?;
            let step_s = ends.windows(2).map(|pair| pair[1] - pair[0]).collect();
            report.windows.push(WindowTimes { window: *window, prologue_s: ends[0], step_s, residual });
        }
        report.trsv_s = self.substitution(team, &mut local, windows)?;
        self.comm.buffers().matrices.give(local.data);
        report.phases = lu.phases.into_steps();
        report
            .phases
            .retain(|phase| windows.iter().any(|w| (w.first..w.first + w.steps).contains(&(phase.step as usize))));
        Ok(report)
    }

    /// Fills the trailing matrix of step `first` with random numbers, and b with the sums of its rows.
    fn generate_trailing(&self, team: &mut Team<'_>, local: &mut LocalMatrix, first: usize) -> Result<(), Error> {
        let (layout, grid) = (&self.plan.layout, self.grid);
        let from = layout.rows.block(first).start;
        let (row, n) = (layout.rows.local_from(grid.row, from), layout.n());
        let (rows, coords) = (local.rows, (grid.row, grid.col));
        let mut a = local.view();
        let share = a.cols().div_ceil(team.threads()).max(1);
        let firsts = (0..a.cols()).step_by(share);
        let parts = firsts.zip(a.reborrow().chunks_cols(share)).collect();
        let partial_sums = team.map(parts, |(at, part): (usize, MatMut<'_>)| {
            let mut sums = vec![0.0; rows - row];
            matgen::generate_trailing(layout, coords, from, at..at + part.cols(), part, &mut sums);
            sums
        })?;
        let mut sums = vec![0.0; rows - row];
        for partial in &partial_sums {
            sums.iter_mut().zip(partial).for_each(|(sum, value)| *sum += value);
        }
        reduce::all(&grid.row_comm, &mut sums, |a, b| a + b)?;
        if layout.cols.owner(n) == grid.col {
            a.col_mut(layout.cols.local(n))[row..].copy_from_slice(&sums);
        }
        Ok(())
    }

    /// Scaled ‖A'·1 − b'‖ of the trailing matrix after a window; `None` when the window ends with the last steps.
    fn check_window(
        &self,
        team: &mut Team<'_>,
        local: &mut LocalMatrix,
        window: &Window,
    ) -> Result<Option<f64>, Error> {
        let (plan, steps) = (&self.plan, self.plan.steps());
        let end = window.first + window.steps;
        // The last panel in flight is factored, but its update is not done: below its diagonal block, its columns are
        // unchanged in the matrix; the rows of its diagonal block are lost.
        let (col, row) = match plan.depth {
            0 => (end, end),
            depth => (end + depth - 1, end + depth),
        };
        if row >= steps {
            return Ok(None);
        }
        let order = plan.layout.n() - plan.layout.rows.block(window.first).start;
        let corner = (plan.layout.rows.block(row).start, plan.layout.rows.block(col).start);
        residual::check_ones(&plan.layout, self.grid, self.comm, team, local.view().as_ref(), corner, order).map(Some)
    }

    /// Time of the back substitution of the whole run, measured on the largest trailing matrix and scaled.
    fn substitution(&self, team: &mut Team<'_>, local: &mut LocalMatrix, windows: &[Window]) -> Result<f64, Error> {
        let Some(first) = windows.iter().map(|window| window.first).min() else { return Ok(0.0) };
        let (n, from) = (self.plan.layout.n(), self.plan.layout.rows.block(first).start);
        let start = self.start()?;
        trsv::solve(&self.plan, first, self.grid, self.kernels.isa(), team, local.view().as_ref())?;
        let scale = n as f64 / (n - from) as f64;
        Ok(self.seconds_since(start)? * scale * scale)
    }
}

#[cfg(test)]
mod tests;
