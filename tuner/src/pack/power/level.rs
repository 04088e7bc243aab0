//! Which level of the power methodology a measurement reaches, and what is missing for the next.
//!
//! Source: \[Green500\], aspects 1, 2 and 4; for level 1 the consensus of 2023 on one reading in 60 s.

use serde::{Deserialize, Serialize};

use super::Power;
use crate::pack::site::{POINTS, Site, find};
use crate::power::window::Mean;

/// Shortest core phase, in seconds.
const CORE_S: f64 = 60.0;
/// Values that the core phase needs for levels 2 and 3.
const CORE_VALUES: usize = 10;
/// Longest distance of two readings by level, in seconds: at level 1 by the consensus of 2023, before it was 1.
const INTERVAL_S: [f64; 3] = [60.0, 1.0, 1.0];
/// A meter that reads once in a second is late by less than this share.
const JITTER: f64 = 0.05;
/// Accuracy of the meter by level, in per cent.
const ACCURACY: [f64; 3] = [5.0, 2.0, 1.0];
/// One node of so many has to be measured, by level 1 and 2; level 3 has all.
const PART: [usize; 2] = [10, 8];
/// Watts that have to be measured where not all nodes are, by level 1 and 2.
const LEAST_WATTS: [f64; 2] = [2e3, 10e3];
/// Nodes that have to be measured where not all are.
const LEAST_NODES: usize = 15;
/// Watts that are enough for level 1 whatever part of the machine they are.
const ENOUGH_WATTS: f64 = 40e3;

/// What people say of a measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Statement {
    /// Nodes of the run.
    pub nodes: Option<usize>,
    /// Nodes behind the meter.
    pub nodes_measured: Option<usize>,
    /// Whether they were chosen at random.
    pub random_nodes: Option<bool>,
    /// Accuracy of the meter in per cent.
    pub accuracy_percent: Option<f64>,
    /// Whether it integrates all the time.
    pub integrating: Option<bool>,
    /// One of [`POINTS`].
    pub point: Option<String>,
    /// Mean power when idle, in watts.
    pub idle_watts: Option<f64>,
    /// Whether the network is behind the meter.
    pub network_measured: Option<bool>,
}

impl Statement {
    /// That of a site file, for a run on `nodes` nodes.
    pub fn new(site: &Site, nodes: Option<usize>) -> Self {
        let count = |path: &str| site.number(path).map(|count| count as usize);
        Self {
            nodes,
            nodes_measured: count("power.nodes_measured"),
            random_nodes: site.flag("power.random_nodes"),
            accuracy_percent: site.number("power.accuracy_percent"),
            integrating: site.flag("power.integrating"),
            point: site.text("power.point").map(str::to_owned),
            idle_watts: site.number("power.idle_watts"),
            network_measured: site.flag("power.network_measured"),
        }
    }

    /// How many times the power behind the meter the nodes of the run take, as far as equal nodes take equal power.
    pub fn scale(&self) -> Option<f64> {
        let (nodes, measured) = (self.nodes?, self.nodes_measured?);
        (measured > 0 && measured <= nodes).then(|| nodes as f64 / measured as f64)
    }
}

/// The level that is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judged {
    /// 0 for none, else 1 to 3.
    pub level: u8,
    /// What is missing for the next level, a sentence each; none at level 3.
    pub missing_for_next: Vec<String>,
}

impl Judged {
    /// The highest level whose demands, and those of all below, are met.
    pub fn new(power: Option<&Power>, said: &Statement) -> Self {
        for level in 1..=3 {
            let missing = missing(level, power, said);
            if !missing.is_empty() {
                return Self { level: level - 1, missing_for_next: missing };
            }
        }
        Self { level: 3, missing_for_next: Vec::new() }
    }

    /// The level in words.
    pub fn words(&self) -> String {
        if self.level == 0 { "none".to_owned() } else { format!("L{}", self.level) }
    }
}

/// What a level demands and the measurement does not show.
fn missing(level: u8, power: Option<&Power>, said: &Statement) -> Vec<String> {
    let at = usize::from(level - 1);
    let Some(power) = power else {
        return vec!["readings of the power: give them with --power-log FILE.csv".to_owned()];
    };
    let mut all = of_core(level, power);
    if level >= 2 {
        all.extend(of_run(power));
        all.extend(said.idle_watts.is_none().then(|| given("power.idle_watts", "the idle power")));
    }
    if level == 3 && said.integrating != Some(true) {
        all.push(given("power.integrating", "a meter that integrates energy all the time"));
    }
    match said.accuracy_percent {
        None => all.push(given("power.accuracy_percent", "the accuracy of the meter")),
        Some(percent) if percent > ACCURACY[at] => {
            all.push(format!("a meter of {} % accuracy or better, it has {percent} %", ACCURACY[at]));
        }
        Some(_) => {}
    }
    all.extend(of_machine(level, power, said));
    match said.point.as_deref() {
        None => all.push(given("power.point", "where the meter is")),
        Some(point) if point == POINTS[2] => all.push(
            "a meter upstream of power conversion, or the losses modelled (point = \"downstream-modelled\")".to_owned(),
        ),
        Some(_) => {}
    }
    if said.network_measured.is_none() {
        all.push(given("power.network_measured", "whether the network is measured"));
    } else if level == 3 && said.network_measured == Some(false) {
        all.push("the network measured, too: level 3 allows no estimates".to_owned());
    }
    all
}

/// What is missing that a key of the site file gives.
fn given(path: &str, what: &str) -> String {
    format!("{what}: {}", find(path).map_or(String::new(), super::super::site::Key::how))
}

/// Of the core phase.
fn of_core(level: u8, power: &Power) -> Vec<String> {
    let at = usize::from(level - 1);
    let mut all = Vec::new();
    let Some(core) = &power.core else {
        return vec![
            "readings in the core phase: none lies wholly in it; is --power-offset right, and are both in UTC?"
                .to_owned(),
        ];
    };
    if core.span_s < CORE_S {
        all.push(format!("a core phase of at least {CORE_S} s, it took {:.1} s: tune for a larger N", core.span_s));
    }
    if power.interval_s > INTERVAL_S[at] * (1.0 + JITTER) {
        all.push(format!("a reading each {} s, there is one each {:.2} s", INTERVAL_S[at], power.interval_s));
    }
    if level >= 2 && core.values < CORE_VALUES {
        all.push(format!("{CORE_VALUES} values in the core phase, there are {}", core.values));
    }
    all.extend(gaps("core phase", core));
    all
}

/// Of the run from its start to its end.
fn of_run(power: &Power) -> Vec<String> {
    match &power.run {
        Some(run) => gaps("whole run", run),
        None => vec!["readings over the whole run".to_owned()],
    }
}

fn gaps(span: &str, mean: &Mean) -> Vec<String> {
    let gap = |[from, to]: &[f64; 2]| format!("readings from {from:.1} s to {to:.1} s of the {span}");
    mean.gaps.iter().map(gap).collect()
}

/// Of the part of the machine that is measured.
fn of_machine(level: u8, power: &Power, said: &Statement) -> Vec<String> {
    let (Some(nodes), Some(measured)) = (said.nodes, said.nodes_measured) else {
        let path = if said.nodes.is_none() { "system.nodes" } else { "power.nodes_measured" };
        return vec![given(path, "which part of the machine is measured")];
    };
    if measured > nodes || measured == 0 {
        return vec![format!("nodes_measured between 1 and the {nodes} nodes of the run, it is {measured}")];
    }
    if measured == nodes {
        return Vec::new();
    }
    if level == 3 {
        return vec![format!("all {nodes} nodes behind the meter, {measured} are")];
    }
    let at = usize::from(level - 1);
    let watts = power.core.as_ref().map_or(0.0, |core| core.mean_watts);
    let least = nodes.div_ceil(PART[at]).max(LEAST_NODES).min(nodes);
    let mut all = Vec::new();
    let enough = level == 1 && watts >= ENOUGH_WATTS;
    if !enough && measured < least {
        all.push(format!("{least} of {nodes} nodes behind the meter, {measured} are"));
    }
    if !enough && watts < LEAST_WATTS[at] {
        all.push(format!("{} W behind the meter, or all nodes; it is {watts:.0} W", LEAST_WATTS[at]));
    }
    if said.random_nodes != Some(true) {
        all.push(given("power.random_nodes", "the measured nodes chosen at random"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn power(span_s: f64, interval_s: f64, watts: f64) -> Power {
        let mean = |span_s: f64| Mean {
            span_s,
            covered_s: span_s,
            values: (span_s / interval_s) as usize,
            mean_watts: watts,
            lowest_watts: watts,
            highest_watts: watts,
            gaps: Vec::new(),
        };
        Power {
            schema_version: super::super::POWER_SCHEMA,
            offset_s: 0.0,
            readings: 1000,
            interval_s,
            core: Some(mean(span_s)),
            run: Some(mean(span_s + 10.0)),
            peak_watts: Some(watts),
        }
    }

    fn said(nodes: usize, measured: usize) -> Statement {
        Statement {
            nodes: Some(nodes),
            nodes_measured: Some(measured),
            random_nodes: Some(true),
            accuracy_percent: Some(1.0),
            integrating: Some(true),
            point: Some(POINTS[0].to_owned()),
            idle_watts: Some(100.0),
            network_measured: Some(true),
        }
    }

    fn level(power: &Power, said: &Statement) -> u8 {
        Judged::new(Some(power), said).level
    }

    #[test]
    fn a_whole_machine_with_a_good_meter_reaches_level_3() {
        let full = said(4, 4);
        assert_eq!(Judged::new(Some(&power(100.0, 1.0, 500.0)), &full), Judged { level: 3, missing_for_next: vec![] });
        assert_eq!(level(&power(59.0, 1.0, 500.0), &full), 0, "a minute is the least");
        assert_eq!(level(&power(1200.0, 60.0, 500.0), &full), 1, "one reading in 60 s is level 1");
        assert_eq!(level(&power(1200.0, 70.0, 500.0), &full), 0);
        for (statement, reached) in [
            (Statement { integrating: None, ..full.clone() }, 2),
            (Statement { accuracy_percent: Some(1.5), ..full.clone() }, 2),
            (Statement { idle_watts: None, ..full.clone() }, 1),
            (Statement { accuracy_percent: Some(5.0), ..full.clone() }, 1),
            (Statement { accuracy_percent: Some(5.1), ..full.clone() }, 0),
            (Statement { accuracy_percent: None, ..full.clone() }, 0),
            (Statement { point: Some(POINTS[2].to_owned()), ..full.clone() }, 0),
            (Statement { point: Some(POINTS[1].to_owned()), ..full.clone() }, 3),
            (Statement { network_measured: Some(false), ..full.clone() }, 2),
        ] {
            assert_eq!(level(&power(100.0, 1.0, 500.0), &statement), reached, "{statement:?}");
        }
        assert_eq!(Judged::new(None, &full).missing_for_next.len(), 1);
    }

    /// Level 1: the largest of a tenth, 2 kW and 15 nodes, or 40 kW; level 2: the largest of an eighth, 10 kW and 15 nodes.
    #[test]
    fn a_part_of_the_machine_has_to_be_large_enough() {
        for (nodes, measured, watts, reached) in [
            (1000, 100, 30e3, 1),
            (1000, 99, 30e3, 0),
            (1000, 99, 40e3, 1),
            (1000, 125, 50e3, 2),
            (1000, 124, 50e3, 1),
            (100, 15, 10e3, 2),
            (100, 14, 10e3, 0),
            (100, 15, 9e3, 1),
            (100, 15, 1.9e3, 0),
            (10, 9, 10e3, 0),
            (10, 10, 1e3, 3),
        ] {
            assert_eq!(
                level(&power(100.0, 1.0, watts), &said(nodes, measured)),
                reached,
                "{measured} of {nodes}, {watts} W"
            );
        }
        let chosen = Statement { random_nodes: Some(false), ..said(100, 20) };
        let judged = Judged::new(Some(&power(100.0, 1.0, 20e3)), &chosen);
        assert!(judged.level == 0 && judged.missing_for_next[0].contains("random_nodes"), "{judged:?}");
        assert_eq!(said(100, 20).scale(), Some(5.0));
        assert_eq!((said(100, 0).scale(), said(4, 5).scale()), (None, None));
    }

    #[test]
    fn a_gap_costs_the_level_and_is_named() {
        let mut holed = power(100.0, 1.0, 500.0);
        holed.core.as_mut().unwrap().gaps.push([20.0, 25.0]);
        let judged = Judged::new(Some(&holed), &said(4, 4));
        assert_eq!((judged.level, judged.missing_for_next.len()), (0, 1));
        assert!(judged.missing_for_next[0].contains("20.0 s to 25.0 s of the core phase"), "{judged:?}");
    }
}
