//! Means of samples over the spans of a run.

use hpl::measure::power::{PowerSamples, SensorSet};

use super::super::log::{self, Reading};
use super::super::record::SensorMeans;
use super::super::spans::RunSpans;
use super::super::window::{Mean, mean};

/// The means of `readings` over the core phase and the whole run.
pub(super) fn means(readings: &[Reading], spans: &RunSpans) -> (Option<Mean>, Option<Mean>) {
    let interval_s = log::interval_s(readings);
    let over = |span| mean(readings, interval_s, span);
    (spans.core.and_then(|core| over(core.inside)), over(spans.job))
}

/// The sum of these sensors.
pub(super) fn readings_of(samples: &PowerSamples, sensors: &[usize]) -> Vec<Reading> {
    samples.sum(sensors).map(|(start_s, end_s, watts)| Reading { start_s, end_s, watts }).collect()
}

/// Each sensor of a node by itself, of which those `chosen` count; `node`: its name, where there are several.
pub(super) fn of_sensors(
    (set, samples): (&SensorSet, &PowerSamples),
    chosen: &[usize],
    spans: &RunSpans,
    node: Option<&str>,
) -> Vec<SensorMeans> {
    let of = |(index, sensor): (usize, &hpl::measure::power::SensorFacts)| {
        let (core, run) = means(&readings_of(samples, &[index]), spans);
        SensorMeans {
            node: node.map(str::to_owned),
            source: sensor.source.clone(),
            name: sensor.name.clone(),
            counted: chosen.contains(&index),
            moves: samples.moves(index),
            core,
            run,
        }
    };
    set.all().iter().enumerate().map(of).collect()
}
