//! What the process on a node prints: a line of JSON each.

use hpl::machine::host::HostVitals;
use hpl::measure::power::{SensorFacts, SensorSet, SensorValue, Unreadable};
use serde::{Deserialize, Serialize};

/// A line has fewer bytes, its end included: srun passes on 1024 at a time, and mixes those of several nodes between them.
const LINE_BYTES: usize = 1000;

/// Values of a sample in a line at most: also the longest ones of a node with the longest name leave it short.
const LINE_VALUES: usize = 20;

/// More parts than any node says.
const MOST_PARTS: usize = 1000;

/// A line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum NodeLine {
    /// The first ones, which come again now and then: a part of what can be read there.
    Found {
        /// The node.
        node: String,
        /// Its number among the parts, from 0.
        #[serde(default)]
        part: usize,
        /// How many parts there are.
        #[serde(default = "one")]
        parts: usize,
        /// Its sensors.
        sensors: SensorSet,
        /// Those that cannot be read.
        unreadable: Vec<Unreadable>,
        /// Whether more lines follow: there is a sensor, or the system says how the node fares.
        more: bool,
    },
    /// A part of a sample of the sensors.
    Sample {
        /// The node.
        node: String,
        /// Its number among the parts, from 0.
        #[serde(default)]
        part: usize,
        /// How many parts there are.
        #[serde(default = "one")]
        parts: usize,
        /// When, in seconds since 1970 by its clock.
        at_s: f64,
        /// Processor seconds that this process has taken for samples so far.
        cpu_s: f64,
        /// The value of each sensor of this part.
        values: Vec<Option<SensorValue>>,
    },
    /// How the node fares.
    Vitals {
        /// The node.
        node: String,
        /// When, in seconds since 1970 by its clock.
        at_s: f64,
        /// What was seen.
        vitals: HostVitals,
    },
}

fn one() -> usize {
    1
}

/// What can be read on a node, in as many lines as keep each of them short.
pub(super) fn found(node: &str, sensors: &SensorSet, unreadable: &[Unreadable], more: bool) -> Vec<NodeLine> {
    const READ: &[SensorFacts] = &[];
    const NOT_READ: &[Unreadable] = &[];
    let line = |sensors: &[SensorFacts], unreadable: &[Unreadable], [part, parts]: [usize; 2]| NodeLine::Found {
        node: node.to_owned(),
        part,
        parts,
        sensors: sensors.iter().cloned().collect(),
        unreadable: unreadable.to_vec(),
        more,
    };
    // As long as any number of parts makes it.
    let fits = |sensors: &[SensorFacts], unreadable: &[Unreadable]| {
        let text = serde_json::to_vec(&line(sensors, unreadable, [9999; 2]));
        text.is_ok_and(|text| text.len() + 1 < LINE_BYTES)
    };
    let of_sensors = split(sensors.all(), |some| fits(some, NOT_READ)).into_iter().map(|some| (some, NOT_READ));
    let of_unreadable = split(unreadable, |some| fits(READ, some)).into_iter().map(|some| (READ, some));
    let mut all: Vec<(&[SensorFacts], &[Unreadable])> = of_sensors.chain(of_unreadable).collect();
    if all.is_empty() {
        all.push((READ, NOT_READ));
    }
    let parts = all.len();
    let numbered = all.into_iter().enumerate();
    numbered.map(|(part, (sensors, unreadable))| line(sensors, unreadable, [part, parts])).collect()
}

/// A sample of the sensors of a node, in as many lines as keep each of them short.
pub(super) fn sampled(node: &str, at_s: f64, cpu_s: f64, values: &[Option<SensorValue>]) -> Vec<NodeLine> {
    let parts = values.len().div_ceil(LINE_VALUES);
    let line = |(part, values): (usize, &[Option<SensorValue>])| NodeLine::Sample {
        node: node.to_owned(),
        part,
        parts,
        at_s,
        cpu_s,
        values: values.to_vec(),
    };
    values.chunks(LINE_VALUES).enumerate().map(line).collect()
}

/// Parts of what comes in several lines, of which others are still to come.
#[derive(Debug, Default)]
pub(super) struct Parts<T>(Vec<Option<T>>);

impl<T> Parts<T> {
    /// Takes a part with its number among so many; gives all of them once none is missing. Of another number of
    /// parts than before it begins anew.
    pub(super) fn take(&mut self, [part, parts]: [usize; 2], said: T) -> Option<Vec<T>> {
        if part >= parts || parts > MOST_PARTS {
            return None;
        }
        if self.0.len() != parts {
            self.0.clear();
            self.0.resize_with(parts, || None);
        }
        self.0[part] = Some(said);
        if self.0.iter().any(Option::is_none) {
            return None;
        }
        Some(std::mem::take(&mut self.0).into_iter().flatten().collect())
    }
}

/// `all` in runs that fit, as long as possible; one that does not fit alone is a run of its own.
fn split<T>(all: &[T], fits: impl Fn(&[T]) -> bool) -> Vec<&[T]> {
    let (mut runs, mut left) = (Vec::new(), all);
    while !left.is_empty() {
        let most = (1..=left.len()).take_while(|&count| fits(&left[..count])).last().unwrap_or(1);
        let (run, rest) = left.split_at(most);
        runs.push(run);
        left = rest;
    }
    runs
}

#[cfg(test)]
mod tests {
    use hpl::measure::power::Covers;

    use super::*;

    /// A node with eight accelerators and 16 sensors that nobody may read, each with a way out.
    #[test]
    fn no_line_of_a_node_with_many_sensors_is_split_on_its_way() {
        let facts = |index: usize| SensorFacts {
            source: "accelerator".to_owned(),
            name: format!("a-name-of-some-length-{index}"),
            covers: Covers::Accelerator,
            range_j: Some(262_143.328_850),
            apart_s: None,
        };
        let closed = |index: usize| Unreadable {
            source: "powercap".to_owned(),
            name: format!("package-{index}"),
            covers: Covers::Package,
            why: "permission denied".to_owned(),
            way_out: "chmod ".repeat(40),
        };
        let sensors: SensorSet = (0..24).map(facts).collect();
        let unreadable: Vec<Unreadable> = (0..16).map(closed).collect();
        let lines = found("node-with-a-long-name.cluster.example.org", &sensors, &unreadable, true);
        assert!(lines.len() > 2, "{}", lines.len());
        let lengths: Vec<usize> = lines.iter().map(|line| serde_json::to_string(line).unwrap().len() + 1).collect();
        assert!(lengths.iter().all(|length| *length < LINE_BYTES), "{lengths:?}");
        let (mut all, mut none) = (Vec::new(), Vec::new());
        for (index, line) in lines.iter().enumerate() {
            let NodeLine::Found { part, parts, sensors, unreadable, .. } = line else { panic!("{line:?}") };
            assert_eq!((*part, *parts), (index, lines.len()));
            all.extend(sensors.all().to_vec());
            none.extend(unreadable.clone());
        }
        assert_eq!((all.into_iter().collect::<SensorSet>(), none), (sensors, unreadable));
        assert_eq!(found("n1", &SensorSet::default(), &[], false).len(), 1, "a node without anything says so");
    }

    /// A sample of more than 38 sensors was longer than what srun passes on at a time.
    #[test]
    fn no_line_of_a_sample_is_split_on_its_way() {
        let longest = Some(SensorValue::Joules(-f64::MIN_POSITIVE));
        let lines = sampled(&"n".repeat(64), -f64::MIN_POSITIVE, -f64::MIN_POSITIVE, &[longest; 1000]);
        assert_eq!(lines.len(), 50);
        let longest = lines.iter().map(|line| serde_json::to_string(line).unwrap().len() + 1).max();
        assert!(longest.is_some_and(|longest| (800..LINE_BYTES).contains(&longest)), "{longest:?}");
        assert_eq!(sampled("n1", 1.0, 0.0, &[None; 8]).len(), 1);
    }
}
