//! Windows of a run on one rank.

use super::RankRun;
use crate::Error;
use crate::backend::Backend;
use crate::comm::Comm;
use crate::comm::reduce;
use crate::lu::residual;
use crate::lu::trsv;
use crate::observe::trace::Trace;
use crate::plan::windows::{Window, WindowTimes, WindowsReport};

impl<C: Comm> RankRun<'_, C> {
    /// Runs the windows one after the other, each on a newly generated trailing matrix.
    pub(super) fn windows(&self, backend: &mut impl Backend, windows: &[Window]) -> Result<WindowsReport, Error> {
        let (trace, hpl) = (Trace::new(0), &self.candidate.hpl);
        // All panels that the largest window has at a time: in the middle of a run their memory is there.
        let largest = windows.iter().map(|window| window.begin(hpl)).min().unwrap_or(0);
        let mut lu = self.lu(&trace, largest);
        let mut report =
            WindowsReport { windows: Vec::new(), trsv_s: 0.0, generate_s: 0.0, check_s: 0.0, phases: Vec::new() };
        self.if_all_fit(backend.load_kernels(hpl))?;
        for window in windows {
            let (begin, end) = (window.begin(hpl), window.first + window.steps);
            let start = self.start()?;
            self.generate_trailing(backend, begin)?;
            report.generate_s += self.seconds_since(start)?;
            self.warm_up(begin, backend)?;

            // [A' | b'] with A'·1 = b' → the trailing matrix after the window
            self.start()?;
            // Another window may have made some of these steps, untimed or after its last one.
            lu.phases.reset();
            lu.timed = window.first;
            lu.factor(begin..end, backend, None)?;
            let mut ends = lu.phases.ends(begin..end);
            report.phases.extend_from_slice(lu.phases.times(window.first..end));
            lu.quiesce(end, backend)?;
            // What a device has done since is of no window.
            drop(backend.stream_spans());
            reduce::all(self.comm, &mut ends, reduce::max)?;

            let start = self.start()?;
            let residual = self.check_window(backend, window)?;
            report.check_s += self.seconds_since(start)?;
            let step_s = ends[window.first - begin..].windows(2).map(|pair| pair[1] - pair[0]).collect();
            report.windows.push(WindowTimes { window: *window, prologue_s: ends[0], step_s, residual });
        }
        report.trsv_s = self.substitution(backend, windows)?;
        Ok(report)
    }

    /// Fills the trailing matrix of step `first` with random numbers, and b with the sums of its rows.
    fn generate_trailing(&self, backend: &mut impl Backend, first: usize) -> Result<(), Error> {
        let (layout, grid) = (&self.plan.layout, self.grid);
        let from = layout.rows.block(first).start;
        let mut sums = self.if_all_fit(backend.generate_trailing(layout, (grid.row, grid.col), from))?;
        reduce::all(&grid.row_comm, &mut sums, |a, b| a + b)?;
        if layout.cols.owner(layout.n()) == grid.col {
            let b = layout.cols.local(layout.n());
            backend.set_column(layout.rows.local_from(grid.row, from), b, &sums)?;
        }
        Ok(())
    }

    /// Scaled ‖A'·1 − b'‖ of the trailing matrix after a window; `None` when the window ends with the last steps.
    fn check_window(&self, backend: &mut impl Backend, window: &Window) -> Result<Option<f64>, Error> {
        let (plan, steps) = (&self.plan, self.plan.steps());
        let end = window.first + window.steps;
        // The last panel in flight is factored, but its update is not done where it keeps its columns: below its diagonal block
        // they are unchanged in the matrix; the rows of its diagonal block are lost.
        let row = end + plan.depth;
        let col = row - usize::from(plan.depth > 0 && backend.panels_unchanged());
        if row >= steps {
            return Ok(None);
        }
        let order = plan.layout.n() - plan.layout.rows.block(window.begin(&self.candidate.hpl)).start;
        let corner = (plan.layout.rows.block(row).start, plan.layout.rows.block(col).start);
        residual::check_ones(&plan.layout, self.grid, self.comm, backend, corner, order).map(Some)
    }

    /// Time of the back substitution of the whole run, measured on the largest trailing matrix and scaled.
    fn substitution(&self, backend: &mut impl Backend, windows: &[Window]) -> Result<f64, Error> {
        let Some(first) = windows.iter().map(|window| window.first).min() else { return Ok(0.0) };
        let (n, from) = (self.plan.layout.n(), self.plan.layout.rows.block(first).start);
        let start = self.start()?;
        trsv::solve(&self.plan, first, self.grid, backend)?;
        let scale = n as f64 / (n - from) as f64;
        Ok(self.seconds_since(start)? * scale * scale)
    }
}

#[cfg(test)]
mod tests;
