//! The final run beside what the windows before it predict.

use serde::Serialize;
use space::stats::median;

use super::score::{Estimate, estimate};
use crate::record::Row;
use crate::search::history::RUN_SD;

/// Standard deviations of the estimate beyond which a final run is reported as slower.
const BEYOND: f64 = 2.0;

/// The final run by its estimate: the estimate uses neither that run nor any after it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FinalByEstimate {
    /// Rate of the final run by the estimated one.
    pub ratio: f64,
    /// The estimate before the final run.
    pub estimate: Estimate,
    /// Wall-clock seconds of the final run.
    pub final_s: f64,
    /// Median of the wall-clock seconds of the windows.
    pub windows_s: f64,
    /// Median clock during the windows, and the clock during the final run, in Hz; `None` where the machine does not report it.
    pub clock_hz: Option<[f64; 2]>,
}

impl FinalByEstimate {
    /// Of the passed final run `last`; `None` where no windows of its candidate and N came before it.
    pub(super) fn new(last: &Row, rows: &[Row]) -> Option<Self> {
        let rate_gflops = last.rate_gflops.filter(|_| last.passed)?;
        let before: Vec<Row> = rows.iter().filter(|row| row.trial < last.trial).cloned().collect();
        let estimate = estimate(&last.candidate(), &before)?;
        let of_windows = |figure: fn(&Row) -> Option<f64>| {
            let windows = before.iter().filter(|row| estimate.trials.contains(&row.trial));
            median(&windows.filter_map(figure).collect::<Vec<_>>())
        };
        Some(Self {
            ratio: rate_gflops / estimate.estimated_rate_gflops,
            final_s: last.wall_s,
            windows_s: of_windows(|row| Some(row.wall_s))?,
            clock_hz: of_windows(|row| row.clock_hz).zip(last.clock_hz).map(|(windows, last)| [windows, last]),
            estimate,
        })
    }

    /// Whether the whole run is slower than the doubt of the estimate and the scatter of single runs explain.
    pub fn is_slower(&self) -> bool {
        self.ratio.ln() < -BEYOND * self.estimate.estimated_sd.hypot(RUN_SD)
    }
}
