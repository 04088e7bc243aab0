//! How the nodes of a run fared, and which of them stood apart from the others.

use std::fmt;

use hpl::machine::host::HostVitals;
use serde::{Deserialize, Serialize};
use space::stats::median;

/// A node of which fewer looks were taken during a run is not compared.
const LEAST_LOOKS: usize = 3;
/// Clocks below this part of the others' median stand apart.
const LOW_CLOCK: f64 = 0.95;
/// Shares of the time that are so much above the others' median stand apart: held back by heat or power, or taken by the hypervisor.
const LOST_SHARE: f64 = 0.02;
/// The same of the time in which a thread waited for a CPU, which short work of the system has as well.
const WAITED_SHARE: f64 = 0.1;
/// Nodes that are named; of more their number is told.
const NAMED: usize = 6;

/// How a node fared during a run; each is `None` where the system does not say, or too little was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeVitals {
    /// Its name.
    pub node: String,
    /// How often it was looked at, once before the run.
    pub looks: usize,
    /// Median of its clock, in Hz.
    pub clock_hz: Option<f64>,
    /// The highest temperature of its processors, in °C.
    pub temperature_c: Option<f64>,
    /// Share of the time for which a processor was held back by its heat or power.
    pub throttled_share: Option<f64>,
    /// Share of the time in which a thread that could run waited for a CPU.
    pub waited_share: Option<f64>,
    /// Share of the processor time that the hypervisor gave to others.
    pub steal_share: Option<f64>,
}

/// Of the nodes of a trial, as `vitals.json` in its folder.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VitalsRecord {
    /// Version of this format.
    pub schema_version: u32,
    /// Each node.
    pub nodes: Vec<NodeVitals>,
}

impl VitalsRecord {
    /// Name of the file.
    pub const NAME: &str = "vitals.json";

    /// A record of `nodes`.
    pub fn new(nodes: Vec<NodeVitals>) -> Self {
        Self { schema_version: 1, nodes }
    }
}

impl NodeVitals {
    /// Of `node`, by looks with their times in seconds, the first one from before the run.
    pub fn new(node: &str, looks: &[(f64, HostVitals)]) -> Self {
        let ends = looks.first().zip(looks.last()).filter(|((begun_s, _), (ended_s, _))| ended_s > begun_s);
        let share = |of: fn(&HostVitals) -> Option<f64>| {
            let ((begun_s, first), (ended_s, last)) = ends?;
            Some(((of(last)? - of(first)?) / (ended_s - begun_s)).clamp(0.0, 1.0))
        };
        // The first look is from before the run.
        let during = looks.get(1..).unwrap_or_default();
        let clocks: Vec<f64> = during.iter().filter_map(|(_, vitals)| vitals.clock_hz).collect();
        Self {
            node: node.to_owned(),
            looks: looks.len(),
            clock_hz: median(&clocks),
            temperature_c: during.iter().filter_map(|(_, vitals)| vitals.temperature_c).reduce(f64::max),
            throttled_share: share(|vitals| vitals.throttled_s),
            waited_share: share(|vitals| vitals.waited_s),
            steal_share: ends.and_then(|((_, first), (_, last))| last.cpu_times?.stolen_since(&first.cpu_times?)),
        }
    }

    /// Whether and why it stands apart from `others`.
    fn apart(&self, others: &[&Self]) -> Option<NodeApart> {
        // Its value, and the median of those of the others.
        let beside = |of: fn(&Self) -> Option<f64>| {
            let values: Vec<f64> = others.iter().filter_map(|other| of(other)).collect();
            Some((of(self)?, median(&values)?))
        };
        let more = |of: fn(&Self) -> Option<f64>, least: f64| {
            beside(of).filter(|(own, usual)| own - usual > least).map(|(own, usual)| (100.0 * own, 100.0 * usual))
        };
        let clock = beside(|node| node.clock_hz).filter(|(own, usual)| *own < LOW_CLOCK * usual);
        let clock =
            clock.map(|(own, usual)| format!("clock {:.2} GHz, of the others {:.2} GHz", own / 1e9, usual / 1e9));
        let throttled = more(|node| node.throttled_share, LOST_SHARE).map(|(own, _)| {
            let heat = self.temperature_c.map(|degrees| format!(" at up to {degrees:.0} °C")).unwrap_or_default();
            format!("held back by heat or power {own:.0} % of the time{heat}")
        });
        let waited = more(|node| node.waited_share, WAITED_SHARE).map(|(own, usual)| {
            format!(
                "threads waited for a CPU {own:.0} % of the time, on the others {usual:.0} %: other work runs there"
            )
        });
        let stolen = more(|node| node.steal_share, LOST_SHARE)
            .map(|(own, usual)| format!("the hypervisor took {own:.0} %, of the others {usual:.0} %"));
        let why: Vec<String> = [clock, throttled, waited, stolen].into_iter().flatten().collect();
        (!why.is_empty()).then(|| NodeApart { node: self.node.clone(), why: why.join(", ") })
    }
}

/// A node that stood apart from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeApart {
    /// Its name.
    pub node: String,
    /// What it lacked, in words.
    pub why: String,
}

impl fmt::Display for NodeApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.node, self.why)
    }
}

/// The nodes that stood apart; none where all were alike, or there are no two to compare.
pub fn apart(nodes: &[NodeVitals]) -> Vec<NodeApart> {
    let seen: Vec<&NodeVitals> = nodes.iter().filter(|node| node.looks >= LEAST_LOOKS).collect();
    let of = |at: usize| {
        let others: Vec<&NodeVitals> =
            seen.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, n)| *n).collect();
        seen[at].apart(&others)
    };
    (0..seen.len()).filter_map(of).collect()
}

/// The nodes that stood apart, as [`Row::nodes_apart`](crate::record::Row::nodes_apart).
pub fn in_words(apart: &[NodeApart]) -> Option<String> {
    let more = apart.len().saturating_sub(NAMED);
    let named = apart.iter().take(NAMED).map(ToString::to_string);
    let words: Vec<String> = named.chain((more > 0).then(|| format!("{more} more"))).collect();
    (!words.is_empty()).then(|| words.join("; "))
}

#[cfg(test)]
mod tests {
    use hpl::machine::host::CpuTimes;

    use super::*;

    /// A node after `looks` seconds of 2.6 GHz and 60 °C.
    fn node(name: &str, looks: usize) -> NodeVitals {
        let look = |second: usize| HostVitals {
            cpu_times: Some(CpuTimes { total: 1000 * second as u64, steal: second as u64 }),
            clock_hz: Some(if second == 0 { 1e9 } else { 2.6e9 }),
            temperature_c: Some(60.0),
            throttled_s: Some(7.0),
            waited_s: Some(0.01 * second as f64),
        };
        let looks: Vec<(f64, HostVitals)> = (0..looks).map(|second| (100.0 + second as f64, look(second))).collect();
        NodeVitals::new(name, &looks)
    }

    #[test]
    fn looks_become_shares_of_the_time() {
        let found = node("n1", 11);
        assert_eq!((found.clock_hz, found.temperature_c, found.looks), (Some(2.6e9), Some(60.0), 11));
        assert_eq!((found.throttled_share, found.steal_share), (Some(0.0), Some(0.001)));
        assert!((found.waited_share.unwrap() - 0.01).abs() < 1e-12);
        let (none, one) = (node("n1", 0), node("n1", 1));
        for few in [none, one] {
            assert_eq!(
                (few.clock_hz, few.throttled_share, few.waited_share, few.steal_share),
                (None, None, None, None)
            );
        }
        // A counter that was set back.
        let back = [(0.0, Some(5.0)), (1.0, Some(1.0))];
        let back = back.map(|(at_s, throttled_s)| (at_s, HostVitals { throttled_s, ..HostVitals::default() }));
        assert_eq!(NodeVitals::new("n1", &back).throttled_share, Some(0.0));
    }

    #[test]
    fn a_node_stands_apart_for_each_reason() {
        let usual = || vec![node("n1", 11), node("n2", 11), node("n4", 11)];
        assert_eq!(apart(&usual()), []);
        let with = |change: fn(&mut NodeVitals)| {
            let mut odd = node("n3", 11);
            change(&mut odd);
            let mut all = usual();
            all.insert(2, odd);
            in_words(&apart(&all)).unwrap_or_default()
        };
        assert_eq!(with(|node| node.clock_hz = Some(1.9e9)), "n3: clock 1.90 GHz, of the others 2.60 GHz");
        let hot = with(|node| (node.throttled_share, node.temperature_c) = (Some(0.31), Some(97.2)));
        assert_eq!(hot, "n3: held back by heat or power 31 % of the time at up to 97 °C");
        let busy = with(|node| node.waited_share = Some(0.4));
        assert_eq!(busy, "n3: threads waited for a CPU 40 % of the time, on the others 1 %: other work runs there");
        assert_eq!(with(|node| node.steal_share = Some(0.12)), "n3: the hypervisor took 12 %, of the others 0 %");
        assert_eq!(with(|node| node.clock_hz = Some(2.55e9)), "", "as much differs without a reason");
        assert_eq!(with(|node| (node.clock_hz, node.looks) = (Some(1.9e9), 2)), "", "too short");
    }

    #[test]
    fn no_node_is_apart_without_others_and_many_are_counted() {
        let slow = |name: &str| NodeVitals { clock_hz: Some(1e9), ..node(name, 11) };
        assert_eq!((apart(&[slow("n1")]), apart(&[])), (Vec::new(), Vec::new()));
        let silent = NodeVitals::new("n2", &[(0.0, HostVitals::default()); 5]);
        assert_eq!(apart(&[slow("n1"), silent]), []);
        let usual = (0..20).map(|at| node(&format!("a{at}"), 11));
        let all: Vec<NodeVitals> = usual.chain((0..9).map(|at| slow(&format!("b{at}")))).collect();
        assert!(in_words(&apart(&all)).unwrap().ends_with("; 3 more"));
    }
}
