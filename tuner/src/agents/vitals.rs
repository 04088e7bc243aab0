//! How the nodes of a run fared, and which of them stood apart from the others.

use std::fmt;

use hpl::machine::host::HostVitals;
use serde::{Deserialize, Serialize};
use space::stats::median;

/// A node of which fewer looks were taken during a run is not compared: the launcher's start and end are among them.
const LEAST_LOOKS: usize = 5;
/// Of the clocks that were seen this quantile counts, so that the launcher's time does not.
const CLOCK_QUANTILE: f64 = 0.75;
/// Clocks below this part of the others' median stand apart.
const LOW_CLOCK: f64 = 0.95;
/// Shares of the time that are so much above the others' median stand apart: held back by heat, or taken by the hypervisor.
const LOST_SHARE: f64 = 0.02;
/// The same of the CPUs on which a thread waited, in their mean number: short work of the system waits as well.
const WAITED_CPUS: f64 = 0.3;
/// Nodes that are named; of more their number is told.
const NAMED: usize = 6;

/// How a node fared during a run; each is `None` where the system does not say, or too little was seen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeVitals {
    /// Its name.
    pub node: String,
    /// How often it was looked at, once before the run.
    pub looks: usize,
    /// Its clock in Hz: the upper quartile of what was seen.
    pub clock_hz: Option<f64>,
    /// The highest clock that its processor may have, in Hz.
    pub most_clock_hz: Option<f64>,
    /// The highest temperature of its processors, in °C.
    pub temperature_c: Option<f64>,
    /// Share of the time for which its processors were held back by heat, as far as it had ended when the run did.
    pub throttled_share: Option<f64>,
    /// CPUs on which a thread that could run waited, their mean number.
    pub waited_cpus: Option<f64>,
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
        let per_second = |of: fn(&HostVitals) -> Option<f64>| {
            let ((begun_s, first), (ended_s, last)) = ends?;
            Some(((of(last)? - of(first)?) / (ended_s - begun_s)).max(0.0))
        };
        // The first look is from before the run.
        let during = looks.get(1..).unwrap_or_default();
        let mut clocks: Vec<f64> = during.iter().filter_map(|(_, vitals)| vitals.clock_hz).collect();
        clocks.sort_by(f64::total_cmp);
        let upper = (CLOCK_QUANTILE * clocks.len().saturating_sub(1) as f64).round() as usize;
        Self {
            node: node.to_owned(),
            looks: looks.len(),
            clock_hz: clocks.get(upper).copied(),
            most_clock_hz: looks.last().and_then(|(_, vitals)| vitals.most_clock_hz),
            temperature_c: during.iter().filter_map(|(_, vitals)| vitals.temperature_c).reduce(f64::max),
            throttled_share: per_second(|vitals| vitals.throttled_s).map(|share| share.min(1.0)),
            waited_cpus: per_second(|vitals| vitals.waited_cpu_s),
            steal_share: ends.and_then(|((_, first), (_, last))| last.cpu_times?.stolen_since(&first.cpu_times?)),
        }
    }

    /// Whether and why it stands apart from `others`.
    fn apart(&self, others: &[&Self]) -> Option<NodeApart> {
        // Its value, and the median of those of some of the others.
        let beside = |of: fn(&Self) -> Option<f64>, others: &mut dyn Iterator<Item = &&Self>| {
            let values: Vec<f64> = others.filter_map(|other| of(other)).collect();
            Some((of(self)?, median(&values)?))
        };
        let more = |of: fn(&Self) -> Option<f64>, least: f64| {
            beside(of, &mut others.iter()).filter(|(own, usual)| own - usual > least)
        };
        // Processors of another kind may have another clock.
        let mut alike = others.iter().filter(|other| other.most_clock_hz == self.most_clock_hz);
        let clock = beside(|node| node.clock_hz, &mut alike).filter(|(own, usual)| *own < LOW_CLOCK * usual);
        let clock = clock.map(|(own, usual)| {
            (Reason::Clock, format!("clock {:.2} GHz, of the others {:.2} GHz", own / 1e9, usual / 1e9))
        });
        let throttled = more(|node| node.throttled_share, LOST_SHARE).map(|(own, _)| {
            let heat = self.temperature_c.map(|degrees| format!(", up to {degrees:.0} °C")).unwrap_or_default();
            (Reason::Heat, format!("held back by heat {:.0} % of the time{heat}", 100.0 * own))
        });
        let waited = more(|node| node.waited_cpus, WAITED_CPUS).map(|(own, usual)| {
            (
                Reason::OtherWork,
                format!("threads waited on {own:.1} CPUs, on the others on {usual:.1}: other work runs there"),
            )
        });
        let stolen = more(|node| node.steal_share, LOST_SHARE).map(|(own, usual)| {
            (Reason::Steal, format!("the hypervisor took {:.0} %, of the others {:.0} %", 100.0 * own, 100.0 * usual))
        });
        let why: Vec<(Reason, String)> = [clock, throttled, waited, stolen].into_iter().flatten().collect();
        (!why.is_empty()).then(|| NodeApart { node: self.node.clone(), why })
    }
}

/// Why a node stood apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// Its clock is low.
    Clock,
    /// Heat holds it back.
    Heat,
    /// Something else runs on it.
    OtherWork,
    /// The hypervisor takes time.
    Steal,
}

/// A node that stood apart from the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeApart {
    /// Its name.
    pub node: String,
    /// What it lacked, each with its figures in words.
    pub why: Vec<(Reason, String)>,
}

impl fmt::Display for NodeApart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why: Vec<&str> = self.why.iter().map(|(_, words)| words.as_str()).collect();
        write!(f, "{}: {}", self.node, why.join(", "))
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

    /// A node after `looks` seconds of 2.6 GHz and 60 °C, but for a launcher's look at the end.
    fn node(name: &str, looks: usize) -> NodeVitals {
        let look = |second: usize| HostVitals {
            cpu_times: Some(CpuTimes { total: 1000 * second as u64, steal: second as u64 }),
            clock_hz: Some(if second == 0 || second + 1 == looks { 1e9 } else { 2.6e9 }),
            most_clock_hz: Some(3e9),
            temperature_c: Some(60.0),
            throttled_s: Some(7.0),
            waited_cpu_s: Some(0.01 * second as f64),
        };
        let looks: Vec<(f64, HostVitals)> = (0..looks).map(|second| (100.0 + second as f64, look(second))).collect();
        NodeVitals::new(name, &looks)
    }

    #[test]
    fn looks_become_shares_of_the_time() {
        let found = node("n1", 11);
        assert_eq!((found.clock_hz, found.temperature_c, found.looks), (Some(2.6e9), Some(60.0), 11));
        assert_eq!((found.throttled_share, found.steal_share), (Some(0.0), Some(0.001)));
        assert!((found.waited_cpus.unwrap() - 0.01).abs() < 1e-12);
        assert_eq!(node("n1", LEAST_LOOKS).clock_hz, Some(2.6e9));
        for few in [node("n1", 0), node("n1", 1)] {
            assert_eq!((few.clock_hz, few.throttled_share, few.waited_cpus, few.steal_share), (None, None, None, None));
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
        assert_eq!(hot, "n3: held back by heat 31 % of the time, up to 97 °C");
        let busy = with(|node| node.waited_cpus = Some(1.2));
        assert_eq!(busy, "n3: threads waited on 1.2 CPUs, on the others on 0.0: other work runs there");
        assert_eq!(with(|node| node.steal_share = Some(0.12)), "n3: the hypervisor took 12 %, of the others 0 %");
        assert_eq!(with(|node| node.clock_hz = Some(2.55e9)), "", "as much differs without a reason");
        let short = with(|node| (node.clock_hz, node.looks) = (Some(1.9e9), LEAST_LOOKS - 1));
        assert_eq!(short, "");
        let of_another_kind = with(|node| (node.clock_hz, node.most_clock_hz) = (Some(1.9e9), Some(2.2e9)));
        assert_eq!(of_another_kind, "");
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
