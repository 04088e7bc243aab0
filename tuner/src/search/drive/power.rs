//! The power that a run took, as far as it counts for the objective.

use std::path::Path;

use hpl::measure::power::PowerSamples;
use objectives::real::GuardRecord;
use objectives::{Failure, Observation};

use crate::power::record::LEAST_TO_COMPARE;
use crate::power::{PowerReader, PowerRecord, RunPower, RunSpans};
use crate::record::Objective;
use crate::record::folder::replace_file;
use crate::search::progress::Progress;

/// The power of the run that left `results` and ended with `outcome`, which is kept beside these as well. What is said of it is said once.
pub(super) fn power_of_run(
    (reader, samples): (&PowerReader, &PowerSamples),
    (results, outcome): (&Path, &Result<Observation, Failure>),
    objective: Objective,
    progress: &mut Progress,
) -> RunPower {
    let Some(folder) = results.parent() else { return RunPower::default() };
    let measured = match outcome {
        Ok(Observation::Whole(measured)) => Some(measured),
        _ => None,
    };
    // Only a run of another engine says by its output when its core phase was.
    let printed = measured.filter(|measured| measured.result.is_none());
    let output = printed.and_then(|_| std::fs::read(results).ok()).unwrap_or_default();
    let spans = GuardRecord::read(folder).ok();
    let spans = spans.and_then(|guard| RunSpans::new(&guard, measured, &String::from_utf8_lossy(&output)));
    let record = spans.map_or(Ok(None), |spans| reader.of_run(samples, &spans));
    let record = record.unwrap_or_else(|problem| {
        progress.warn_once(&problem);
        None
    });
    if let Some(still) = reader.still(samples) {
        progress.warn_once(&still);
    }
    let Some(record) = record else { return RunPower::default() };
    if let Ok(json) = serde_json::to_vec(&record) {
        // The row has what counts; a full disk is seen when that is written.
        let _ = replace_file(&folder.join(PowerRecord::NAME), &json);
    }
    let columns = record.columns(measured.map(|measured| measured.rate_gflops));
    if objective.is_rate() {
        return columns;
    }
    // Less power than it took would make it look better than it is.
    let nothing = RunPower { power_source: Some(record.source.clone()), ..RunPower::default() };
    if !record.of_all {
        progress.warn_once(&format!("power: not of all that a run uses, which does not count then: {}", record.source));
        return nothing;
    }
    let covered = columns.coverage(objective.power_limit_w().is_some()).unwrap_or(0.0);
    if covered < LEAST_TO_COMPARE {
        if outcome.is_ok() && progress.is_first("power: coverage") {
            let [covered, least] = [covered, LEAST_TO_COMPARE].map(|share| 100.0 * share);
            let said = format!("readings cover {covered:.0} % of a run, which does not count below {least:.0} %");
            progress.warn(&format!("power: {said}: {}", record.source));
        }
        return nothing;
    }
    columns
}
