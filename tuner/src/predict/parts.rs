//! A predicted run in parts: time and phases over its course.

use std::fmt::Write;

use objectives::timeline::{StepTimes, Timeline};
use serde::Serialize;

use crate::report::digits;

/// Parts into which a run is divided.
const PARTS: usize = 10;

/// Some successive steps of a run, in seconds; phases are means over all processes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepGroup {
    /// Its first step.
    pub first_step: usize,
    /// Number of steps.
    pub steps: usize,
    /// From the end of the steps before to the end of these.
    pub time_s: f64,
    /// Panel factorization.
    pub fact_s: f64,
    /// Panel broadcast, waiting included.
    pub lbcast_s: f64,
    /// Row exchange, waiting included.
    pub rs_s: f64,
    /// Triangular solves and products.
    pub update_s: f64,
}

/// The steps in at most ten parts of as many steps.
pub fn parts(timeline: &Timeline) -> Vec<StepGroup> {
    let size = timeline.steps.len().div_ceil(PARTS).max(1);
    let mut before_s = 0.0;
    let part = |(at, steps): (usize, &[StepTimes])| {
        let sum = |of: fn(&StepTimes) -> f64| steps.iter().map(of).sum();
        let end_s = steps.last().map_or(before_s, |step| step.end_s);
        let time_s = end_s - before_s;
        before_s = end_s;
        StepGroup {
            first_step: at * size,
            steps: steps.len(),
            time_s,
            fact_s: sum(|step| step.fact_s),
            lbcast_s: sum(|step| step.lbcast_s),
            rs_s: sum(|step| step.rs_s),
            update_s: sum(|step| step.update_s),
        }
    };
    timeline.steps.chunks(size).enumerate().map(part).collect()
}

/// A table: mean milliseconds of a step, and where they go.
pub fn table(parts: &[StepGroup]) -> String {
    let mut text =
        format!("{:>15}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}\n", "steps", "ms a step", "FACT", "LBCAST", "RS", "UPDATE");
    for part in parts {
        let each = |time_s: f64| digits(1e3 * time_s / part.steps as f64);
        let steps = format!("{}-{}", part.first_step, part.first_step + part.steps - 1);
        let [fact, lbcast, rs, update] = [part.fact_s, part.lbcast_s, part.rs_s, part.update_s].map(each);
        let time = each(part.time_s);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{steps:>15}  {time:>9}  {fact:>9}  {lbcast:>9}  {rs:>9}  {update:>9}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_all_steps_and_their_time() {
        for count in [0, 1, 9, 10, 11, 95] {
            let step = |k: usize| StepTimes {
                fact_s: 1.0,
                rs_s: 0.5,
                update_s: 2.0,
                lbcast_s: 0.25,
                end_s: 4.0 * (k + 1) as f64,
            };
            let steps: Vec<StepTimes> = (0..count).map(step).collect();
            let parts = parts(&Timeline { total_s: 0.0, steps, trsv_s: 0.0 });
            assert!(parts.len() <= PARTS);
            assert_eq!(parts.iter().map(|part| part.steps).sum::<usize>(), count);
            assert_eq!(parts.iter().map(|part| part.time_s).sum::<f64>(), 4.0 * count as f64);
            assert!(parts.iter().all(|part| part.fact_s == part.steps as f64 && part.rs_s == 0.5 * part.fact_s));
            assert_eq!(table(&parts).lines().count(), parts.len() + 1);
        }
    }
}
