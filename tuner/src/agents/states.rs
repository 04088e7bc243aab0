//! What the nodes have said so far.

use std::collections::BTreeMap;

use hpl::machine::host::HostVitals;
use hpl::measure::power::{PowerSamples, SampleMaker, SensorSet, SensorValue, Unreadable};

use super::line::{NodeLine, Parts};
use super::short;
use crate::agents::vitals::NodeVitals;

/// Samples of a node that are kept; of more every second one is dropped, in runs of many minutes.
const MOST_SAMPLES: usize = 2048;

/// Samples of a node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeReadings {
    /// What its sensors are.
    pub set: SensorSet,
    /// Those that cannot be read.
    pub unreadable: Vec<Unreadable>,
    /// What they gave, with times by the clock of this process.
    pub samples: PowerSamples,
    /// Seconds that were added to the times of its clock; `None` without a sample.
    pub clock_offset_s: Option<f64>,
}

/// All nodes, by their short names.
#[derive(Debug, Default)]
pub(super) struct NodeStates {
    known: BTreeMap<String, NodeState>,
    /// Parts of what nodes have said that they have, of which others are still to come.
    told: BTreeMap<String, Parts<NodeSensors>>,
}

/// What can be read on a node, and what cannot.
type NodeSensors = (SensorSet, Vec<Unreadable>);

/// The value of each sensor.
type SensorValues = Vec<Option<SensorValue>>;

/// A node.
#[derive(Debug)]
pub(super) struct NodeState {
    pub(super) set: SensorSet,
    pub(super) unreadable: Vec<Unreadable>,
    /// Whether there is anything to read.
    pub(super) has_more: bool,
    samples: Vec<NodeSample>,
    /// Parts of a sample of which others are still to come, with its time.
    sampled: (f64, Parts<SensorValues>),
    /// How it fared, with the times by its clock.
    looks: Vec<(f64, HostVitals)>,
    /// When the last line arrived.
    arrived_s: f64,
    cpu_s: f64,
    cpu_before_s: f64,
}

/// A sample, by the clock of its node and by that of this process.
#[derive(Debug)]
struct NodeSample {
    at_s: f64,
    arrived_s: f64,
    values: SensorValues,
}

impl NodeSample {
    /// Whether it has a value of a sensor that gives one now and then.
    fn has_rare_values(&self, set: &SensorSet) -> bool {
        set.all().iter().zip(&self.values).any(|(sensor, value)| sensor.apart_s.is_some() && value.is_some())
    }
}

impl NodeStates {
    /// Takes a line that arrives now, in seconds since 1970. What is no line of a node is left out: launchers print, too.
    pub(super) fn take(&mut self, text: &str, arrived_s: f64) {
        match serde_json::from_str(text) {
            Ok(NodeLine::Found { node, part, parts, sensors, unreadable, more }) => {
                let name = short(&node);
                if let Some((set, unreadable)) = self.whole(name, [part, parts], (sensors, unreadable)) {
                    self.has(name, set, unreadable, more, arrived_s);
                }
            }
            Ok(NodeLine::Sample { node, part, parts, at_s, cpu_s, values }) => {
                let Some(state) = self.known.get_mut(short(&node)) else { return };
                if let Some(values) = state.whole(at_s, [part, parts], values) {
                    state.take(NodeSample { at_s, arrived_s, values }, cpu_s);
                }
            }
            Ok(NodeLine::Vitals { node, at_s, vitals }) => {
                let Some(state) = self.known.get_mut(short(&node)) else { return };
                if state.looks.last().is_some_and(|last| at_s <= last.0) {
                    state.looks.clear();
                }
                state.looks.push((at_s, vitals));
                state.arrived_s = arrived_s;
                thin(&mut state.looks, |_| false);
            }
            Err(_) => {}
        }
    }

    /// What a node has, once all parts of it are there.
    fn whole(&mut self, name: &str, numbers: [usize; 2], said: NodeSensors) -> Option<NodeSensors> {
        let told = self.told.entry(name.to_owned()).or_default();
        let (sets, unreadable): (Vec<_>, Vec<_>) = told.take(numbers, said)?.into_iter().unzip();
        let sensors = sets.iter().flat_map(SensorSet::all).cloned().collect();
        Some((sensors, unreadable.concat()))
    }

    /// Takes what a node has. Where it says the same again, its samples stay.
    fn has(&mut self, name: &str, set: SensorSet, unreadable: Vec<Unreadable>, has_more: bool, arrived_s: f64) {
        let same =
            |state: &&mut NodeState| state.set == set && state.unreadable == unreadable && state.has_more == has_more;
        if let Some(state) = self.known.get_mut(name).filter(same) {
            state.arrived_s = arrived_s;
            return;
        }
        let state = NodeState {
            set,
            unreadable,
            has_more,
            samples: Vec::new(),
            sampled: (0.0, Parts::default()),
            looks: Vec::new(),
            arrived_s,
            cpu_s: 0.0,
            cpu_before_s: 0.0,
        };
        self.known.insert(name.to_owned(), state);
    }

    /// Forgets all samples and looks but the last of each node: a run begins.
    pub(super) fn begin(&mut self) {
        for state in self.known.values_mut() {
            let old = state.samples.len().saturating_sub(1);
            state.samples.drain(..old);
            let old = state.looks.len().saturating_sub(1);
            state.looks.drain(..old);
            state.cpu_before_s = state.cpu_s;
        }
    }

    pub(super) fn of(&self, node: &str) -> Option<&NodeState> {
        self.known.get(short(node))
    }
}

impl NodeState {
    /// The sample at `at_s`, by the clock of the node, once all parts of it are there. Parts of another one are forgotten: the rest of it was
    /// lost.
    fn whole(&mut self, at_s: f64, numbers: [usize; 2], values: SensorValues) -> Option<SensorValues> {
        if self.sampled.0.total_cmp(&at_s).is_ne() {
            self.sampled = (at_s, Parts::default());
        }
        Some(self.sampled.1.take(numbers, values)?.concat())
    }

    /// Takes a sample, and the processor seconds that all of its process have taken so far.
    fn take(&mut self, sample: NodeSample, cpu_s: f64) {
        if self.samples.last().is_some_and(|last| sample.at_s <= last.at_s) {
            // Its clock was set back.
            self.samples.clear();
        }
        if cpu_s < self.cpu_s {
            // Its process was started again.
            self.cpu_before_s = 0.0;
        }
        (self.cpu_s, self.arrived_s) = (cpu_s, sample.arrived_s);
        self.samples.push(sample);
        let set = &self.set;
        thin(&mut self.samples, |sample| sample.has_rare_values(set));
    }

    /// By how much the clock of this process is ahead of that of the node: no line arrives before it is written, and of many one arrives at once.
    fn clock_offset_s(&self) -> Option<f64> {
        self.samples.iter().map(|sample| sample.arrived_s - sample.at_s).min_by(f64::total_cmp)
    }

    /// When the last sample was taken, by the clock of this process.
    pub(super) fn last_s(&self) -> Option<f64> {
        Some(self.samples.last()?.at_s + self.clock_offset_s()?)
    }

    /// When the last line arrived; `None` where none are to come.
    pub(super) fn last_arrived_s(&self) -> Option<f64> {
        self.has_more.then_some(self.arrived_s)
    }

    /// How `node`, which this is, fared since the run began.
    pub(super) fn vitals(&self, node: &str) -> NodeVitals {
        NodeVitals::new(node, &self.looks)
    }

    pub(super) fn readings(&self) -> NodeReadings {
        let clock_offset_s = self.clock_offset_s();
        let mut made = SampleMaker::of(self.set.clone());
        for sample in &self.samples {
            made.add(sample.at_s + clock_offset_s.unwrap_or(0.0), &sample.values);
        }
        made.took(self.cpu_s - self.cpu_before_s);
        NodeReadings {
            set: self.set.clone(),
            unreadable: self.unreadable.clone(),
            samples: made.into_samples(),
            clock_offset_s,
        }
    }
}

/// Drops every second one of too many, but not the first; of those that `is_rare` names none, as long as these alone are not too many.
fn thin<T>(all: &mut Vec<T>, is_rare: impl Fn(&T) -> bool) {
    let drop_every_second = |all: &mut Vec<T>, is_kept: &dyn Fn(&T) -> bool| {
        let mut count = 0;
        all.retain(|one| {
            count += usize::from(!is_kept(one));
            is_kept(one) || count % 2 == 1
        });
    };
    if all.len() > MOST_SAMPLES {
        drop_every_second(all, &is_rare);
    }
    if all.len() > MOST_SAMPLES {
        drop_every_second(all, &|_| false);
    }
}

#[cfg(test)]
mod tests {
    use hpl::measure::power::{Covers, SensorFacts};

    use super::*;
    use crate::agents::line::{found, sampled};

    const FOUND: &str = r#"{"found":{"node":"n1.cluster","sensors":[{"source":"powercap","name":"package-0","covers":"package","range_j":1000.0,"apart_s":null}],"unreadable":[],"more":true}}"#;

    fn sample(at_s: f64, joules: f64) -> String {
        format!(
            r#"{{"sample":{{"node":"n1.cluster","at_s":{at_s},"cpu_s":{},"values":[{{"joules":{joules}}}]}}}}"#,
            at_s * 1e-5
        )
    }

    #[test]
    fn the_clock_of_a_node_is_set_by_the_line_that_arrives_first() {
        let mut states = NodeStates::default();
        states.take(FOUND, 5000.0);
        // Its clock is 3000 s late; lines take 0.01 s or more.
        for (second, delay_s) in [0.4, 0.01, 0.2, 0.03, 1.5].into_iter().enumerate() {
            states.take("srun: something else", 5000.0);
            // 200 W, of a counter that begins again at 1000 J.
            let at_s = 2000.0 + second as f64;
            states.take(&sample(at_s, (600.0 + 200.0 * second as f64) % 1000.0), at_s + 3000.0 + delay_s);
        }
        let found = states.of("n1").unwrap().readings();
        assert!((found.clock_offset_s.unwrap() - 3000.01).abs() < 1e-9);
        assert!((found.samples.times_s[0] - 5000.01).abs() < 1e-9 && found.samples.times_s.len() == 5);
        assert!(found.samples.watts[0].iter().all(|watts| *watts == Some(200.0)), "{found:?}");
        assert!((states.of("n1.other").unwrap().last_s().unwrap() - 5004.01).abs() < 1e-9);
        states.begin();
        states.take(&sample(2005.0, 600.0), 5005.02);
        let next = states.of("n1").unwrap().readings();
        assert_eq!((next.samples.times_s.len(), next.samples.watts[0][0]), (2, Some(200.0)));
        assert!((next.samples.cpu_s - 1e-5).abs() < 1e-9, "of this run alone");
    }

    #[test]
    fn what_a_node_says_again_costs_no_samples_and_what_was_lost_comes_again() {
        let part = |part: usize, name: &str| {
            let split = FOUND.replace(r#""sensors""#, &format!(r#""part":{part},"parts":2,"sensors""#));
            split.replace("package-0", name)
        };
        let both = |values: [f64; 2], at_s: f64| {
            let [a, b] = values;
            format!(
                r#"{{"sample":{{"node":"n1","at_s":{at_s},"cpu_s":0.0,"values":[{{"joules":{a}}},{{"joules":{b}}}]}}}}"#
            )
        };
        let mut states = NodeStates::default();
        states.take(&part(0, "package-0"), 0.0);
        states.take(&both([1.0, 2.0], 1.0), 1.0);
        assert!(states.of("n1").is_none(), "the launcher has lost the other part");
        states.take(&part(0, "package-0"), 10.0);
        states.take(&part(1, "package-1"), 10.0);
        assert_eq!(states.of("n1").unwrap().set.all().len(), 2);
        for second in [11.0, 12.0, 13.0] {
            states.take(&both([100.0 * second, 50.0 * second], second), second);
        }
        for (index, name) in ["package-0", "package-1"].into_iter().enumerate() {
            states.take(&part(index, name), 20.0);
        }
        let state = states.of("n1").unwrap();
        assert_eq!((state.readings().samples.times_s.len(), state.last_arrived_s()), (3, Some(20.0)));
        states.take(FOUND, 30.0);
        let state = states.of("n1").unwrap();
        assert_eq!((state.set.all().len(), state.readings().samples.times_s.len()), (1, 0), "other sensors");
    }

    /// Samples of more than 38 sensors were one line each, longer than what srun passes on at a time.
    #[test]
    fn samples_of_many_sensors_come_in_parts() {
        let node = "node-with-a-long-name.cluster.example.org";
        let facts = |index: usize| SensorFacts {
            source: "accelerator".to_owned(),
            name: format!("a-name-of-some-length-{index}").repeat(4),
            covers: Covers::Accelerator,
            range_j: None,
            apart_s: None,
        };
        let set: SensorSet = (0..100).map(facts).collect();
        let values: Vec<_> = (0..100).map(|index| Some(SensorValue::Watts(f64::from(index)))).collect();
        let mut states = NodeStates::default();
        let mut told = |lines: &[NodeLine]| {
            lines.iter().for_each(|line| states.take(&serde_json::to_string(line).unwrap(), 10.0));
        };
        told(&found(node, &set, &[], true));
        for (at_s, lost) in [(1.0, 0), (2.0, 0), (3.0, 1), (4.0, 0), (5.0, 0)] {
            let lines = sampled(node, at_s, 0.0, &values);
            told(&lines[..lines.len() - lost]);
        }
        let samples = states.of(node).unwrap().readings().samples;
        assert_eq!(samples.times_s, [10.0 - 4.0, 10.0 - 3.0, 10.0 - 1.0, 10.0], "a part of one was lost");
        for (index, watts) in samples.watts.iter().enumerate() {
            assert_eq!(watts, &[Some(index as f64); 3]);
        }
    }

    #[test]
    fn a_clock_that_is_set_back_begins_anew() {
        let mut states = NodeStates::default();
        states.take(&sample(1.0, 2.0), 1.0);
        assert!(states.of("n1").is_none(), "a node that has not said what it has");
        states.take(FOUND, 0.0);
        for (at_s, joules) in [(10.0, 100.0), (11.0, 200.0), (5.0, 300.0), (6.0, 400.0)] {
            states.take(&sample(at_s, joules), 50.0 + at_s);
        }
        assert_eq!(states.of("n1").unwrap().readings().samples.times_s, [55.0, 56.0]);
    }

    #[test]
    fn a_run_has_the_look_before_it_and_those_since() {
        let mut states = NodeStates::default();
        let look = |at_s: f64, hz: f64| {
            format!(r#"{{"vitals":{{"node":"n1","at_s":{at_s},"vitals":{{"cpu_times":null,"clock_hz":{hz}}}}}}}"#)
        };
        states.take(&look(1.0, 1e9), 1.0);
        assert!(states.of("n1").is_none(), "a node that has not said what it has");
        states.take(FOUND, 0.0);
        for second in 0..10 {
            states.take(&look(f64::from(second), 1e9), f64::from(second));
        }
        states.begin();
        for second in 10..20 {
            states.take(&look(f64::from(second), 2e9), f64::from(second));
        }
        let state = states.of("n1").unwrap();
        let found = state.vitals("n1");
        assert_eq!((found.looks, found.clock_hz, state.last_arrived_s()), (11, Some(2e9), Some(19.0)));
        states.take(&look(3.0, 2e9), 21.0);
        assert_eq!(states.of("n1").unwrap().vitals("n1").looks, 1, "its clock was set back");
    }

    /// A management controller that is asked each five seconds, beside a package: its few values are not dropped.
    #[test]
    fn long_runs_keep_what_comes_now_and_then() {
        let controller = r#"{"source":"dcmi","name":"node","covers":"node","range_j":null,"apart_s":20.0},"#;
        let mut states = NodeStates::default();
        states.take(&FOUND.replace(r#""sensors":["#, &format!(r#""sensors":[{controller}"#)), 0.0);
        for index in 0..20_000 {
            let at_s = 0.5 * f64::from(index);
            let slow = if index % 10 == 3 { r#"{"watts":300.0}"# } else { "null" };
            let values = format!(r#"[{slow},{{"joules":{}}}]"#, at_s % 1000.0);
            states.take(&format!(r#"{{"sample":{{"node":"n1","at_s":{at_s},"cpu_s":0.0,"values":{values}}}}}"#), at_s);
        }
        let found = states.of("n1").unwrap().readings().samples;
        assert!(found.times_s.len() <= MOST_SAMPLES, "{}", found.times_s.len());
        let covered: f64 = found.sum(&[0]).map(|(start_s, end_s, _)| end_s - start_s).sum();
        assert!(covered > 0.97 * 10_000.0, "{covered} s of 10 000");
    }

    #[test]
    fn long_runs_keep_fewer_samples() {
        let mut states = NodeStates::default();
        states.take(FOUND, 0.0);
        for second in 0..3 * MOST_SAMPLES {
            let at_s = second as f64;
            states.take(&sample(at_s, at_s % 1000.0), at_s);
        }
        let found = states.of("n1").unwrap().readings().samples;
        assert!(found.times_s.len() <= MOST_SAMPLES && found.times_s[0] == 0.0);
        assert!(found.watts[0].iter().flatten().all(|&watts| watts == 1.0));
    }
}
