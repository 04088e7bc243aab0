//! Mean power over a span of time, by the readings that lie wholly in it.

use serde::{Deserialize, Serialize};

use super::log::Reading;

/// Readings that touch within this time, in seconds, leave no gap.
const TOUCH_S: f64 = 1e-3;

/// At each end of a span readings that lie partly outside are dropped: less than this many usual ones is no gap.
const EDGE: f64 = 1.5;

/// What the readings say of a span.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mean {
    /// Length of the span in seconds.
    pub span_s: f64,
    /// Seconds of it that the readings cover.
    pub covered_s: f64,
    /// Readings that lie wholly in it; those partly outside are dropped.
    pub values: usize,
    /// Mean power over what they cover, in watts.
    pub mean_watts: f64,
    /// Lowest of them, in watts.
    pub lowest_watts: f64,
    /// Highest of them, in watts.
    pub highest_watts: f64,
    /// Stretches without readings, in seconds since the start of the span.
    pub gaps: Vec<[f64; 2]>,
}

impl Mean {
    /// Share of the span that the readings cover.
    pub fn coverage(&self) -> f64 {
        self.covered_s / self.span_s
    }
}

/// The mean over the span from `start_s` to `end_s`; `None` where no reading lies in it. `interval_s`: usual length of a reading.
pub fn mean(readings: &[Reading], interval_s: f64, [start_s, end_s]: [f64; 2]) -> Option<Mean> {
    let inside = |reading: &&Reading| reading.start_s >= start_s && reading.end_s <= end_s;
    let inside: Vec<&Reading> = readings.iter().filter(inside).collect();
    let (first, last) = (inside.first()?, inside.last()?);
    let covered_s: f64 = inside.iter().map(|reading| reading.end_s - reading.start_s).sum();
    let joules: f64 = inside.iter().map(|reading| reading.watts * (reading.end_s - reading.start_s)).sum();
    let watts = || inside.iter().map(|reading| reading.watts);
    let edge_s = EDGE * interval_s;
    let mut gaps = Vec::new();
    if first.start_s - start_s > edge_s {
        gaps.push([0.0, first.start_s - start_s]);
    }
    for pair in inside.windows(2) {
        if pair[1].start_s - pair[0].end_s > TOUCH_S {
            gaps.push([pair[0].end_s - start_s, pair[1].start_s - start_s]);
        }
    }
    if end_s - last.end_s > edge_s {
        gaps.push([last.end_s - start_s, end_s - start_s]);
    }
    Some(Mean {
        span_s: end_s - start_s,
        covered_s,
        values: inside.len(),
        mean_watts: joules / covered_s,
        lowest_watts: watts().fold(f64::INFINITY, f64::min),
        highest_watts: watts().fold(0.0, f64::max),
        gaps,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of one second each, from `from` on.
    fn each_second(from: f64, watts: &[f64]) -> Vec<Reading> {
        let reading =
            |(i, &watts): (usize, &f64)| Reading { start_s: from + i as f64, end_s: from + i as f64 + 1.0, watts };
        watts.iter().enumerate().map(reading).collect()
    }

    #[test]
    fn readings_partly_outside_are_dropped() {
        let readings = each_second(0.0, &[50.0, 100.0, 110.0, 120.0, 60.0]);
        let found = mean(&readings, 1.0, [0.5, 4.5]).unwrap();
        assert_eq!((found.values, found.covered_s, found.mean_watts), (3, 3.0, 110.0));
        assert_eq!((found.coverage(), found.gaps.len()), (0.75, 0));
        assert_eq!((found.lowest_watts, found.highest_watts), (100.0, 120.0));
        assert_eq!(mean(&readings, 1.0, [0.5, 1.4]), None);
    }

    #[test]
    fn gaps_are_told_and_not_filled() {
        let mut readings = each_second(10.0, &[100.0; 5]);
        readings.extend(each_second(20.0, &[200.0; 5]));
        let found = mean(&readings, 1.0, [5.0, 25.5]).unwrap();
        assert_eq!(found.gaps, [[0.0, 5.0], [10.0, 15.0]]);
        assert_eq!((found.covered_s, found.mean_watts), (10.0, 150.0));
    }

    #[test]
    fn readings_of_unequal_length_count_by_it() {
        let readings =
            [Reading { start_s: 0.0, end_s: 3.0, watts: 100.0 }, Reading { start_s: 3.0, end_s: 4.0, watts: 200.0 }];
        assert_eq!(mean(&readings, 1.0, [0.0, 4.0]).unwrap().mean_watts, 125.0);
    }
}
