//! What several nodes give together, and what is said of them.

use hpl::measure::power::Unreadable;

use super::super::log::Reading;
use super::super::record::{GRADE, NodeMeans, PowerRecord, RECORD_SCHEMA};
use super::super::spans::RunSpans;
use super::lacking;
use super::means::{means, of_sensors, readings_of};
use super::total::total;
use crate::agents::{NodeAgents, NodeReadings};

/// Nodes are named up to this number.
const NAMED: usize = 6;

/// Whether each node has said that it has sensors of all of it.
pub(super) fn all_can_be_read(nodes: &NodeAgents) -> bool {
    nodes.nodes().iter().all(|node| {
        nodes.found(node).is_some_and(|(set, closed)| lacking(&set, &set.of_node(|_| true), &closed).is_none())
    })
}

/// Whether any node has a sensor.
pub(super) fn any_can_be_read(nodes: &NodeAgents) -> bool {
    nodes.nodes().iter().any(|node| nodes.found(node).is_some_and(|(set, _)| !set.all().is_empty()))
}

/// What was read of `nodes` in these spans; `None` where it is nothing.
pub(super) fn of_run(nodes: &NodeAgents, spans: &RunSpans) -> Option<PowerRecord> {
    let read = nodes.readings(spans.core.map(|core| core.inside[1]));
    record(nodes.nodes(), &read, spans)
}

/// The same of the readings of each node.
fn record(nodes: &[String], read: &[Option<NodeReadings>], spans: &RunSpans) -> Option<PowerRecord> {
    let (mut each, mut words, mut sensors, mut of_all) = (Vec::new(), Vec::new(), Vec::new(), true);
    let (mut samples, mut sampled_s, mut sampler_cpu_s) = (0, 0.0_f64, 0.0);
    let of_node = |(node, found): (&String, &Option<NodeReadings>)| {
        let absent = NodeMeans { node: node.clone(), core: None, run: None, clock_offset_s: None };
        let found = found.as_ref().map(|found| (found, found.set.of_node(|sensor| found.samples.moves(sensor))));
        let Some((found, chosen)) = found.filter(|(_, chosen)| !chosen.is_empty()) else {
            of_all = false;
            return absent;
        };
        let readings = readings_of(&found.samples, &chosen);
        let (core, run) = means(&readings, spans);
        let part = lacking(&found.set, &chosen, &found.unreadable);
        of_all &= part.is_none();
        let part = part.map_or(String::new(), |part| format!(", {part}"));
        words.push((node.clone(), format!("{}{part}", found.set.words(&chosen))));
        sensors.extend(of_sensors((&found.set, &found.samples), &chosen, spans, Some(node)));
        samples = samples.max(found.samples.times_s.len());
        sampled_s = sampled_s.max(found.samples.span().as_secs_f64());
        sampler_cpu_s += found.samples.cpu_s;
        each.push(readings);
        NodeMeans { core, run, clock_offset_s: found.clock_offset_s, ..absent }
    };
    let of_nodes: Vec<NodeMeans> = nodes.iter().zip(read).map(of_node).collect();
    if each.is_empty() {
        return None;
    }
    let readings: Vec<Reading> = total(&each);
    let (core, run) = means(&readings, spans);
    Some(PowerRecord {
        schema_version: RECORD_SCHEMA,
        source: source(&words, nodes),
        of_all,
        core_s: spans.core.map(|core| core.length_s),
        core,
        run,
        sensors,
        nodes: of_nodes,
        node_share: each.len() as f64 / nodes.len() as f64,
        samples,
        sampled_s,
        sampler_cpu_s,
    })
}

/// Sensors and nodes that are part of a power.
fn source(read: &[(String, String)], nodes: &[String]) -> String {
    let mut kinds: Vec<(&str, Vec<&str>)> = Vec::new();
    for (node, words) in read {
        match kinds.iter_mut().find(|(kind, _)| kind == words) {
            Some((_, of)) => of.push(node),
            None => kinds.push((words, vec![node])),
        }
    }
    let sensors = match &kinds[..] {
        [(words, _)] => (*words).to_owned(),
        kinds => kinds.iter().map(|(words, of)| format!("{words} ({})", named(of))).collect::<Vec<_>>().join(", "),
    };
    let of = if read.len() == nodes.len() {
        format!("all {} nodes", nodes.len())
    } else {
        let lacking = nodes.iter().filter(|node| !read.iter().any(|(name, _)| name == *node)).map(String::as_str);
        format!("{} of {} nodes, not of {}", read.len(), nodes.len(), named(&lacking.collect::<Vec<_>>()))
    };
    format!("{sensors}; {GRADE}; of {of}")
}

fn named(nodes: &[&str]) -> String {
    if nodes.len() <= NAMED { nodes.join(" ") } else { format!("{} nodes", nodes.len()) }
}

/// What is read of the nodes and what is not, a sentence each.
pub(super) fn sentences(nodes: &NodeAgents) -> Vec<String> {
    let found = nodes.nodes().iter().map(|node| Some((node.clone(), nodes.found(node)?)));
    let found: Vec<_> = found.collect();
    let silent: Vec<&str> =
        nodes.nodes().iter().zip(&found).filter(|(_, found)| found.is_none()).map(|(node, _)| node.as_str()).collect();
    let mut read = Vec::new();
    let mut closed: Vec<(&Unreadable, Vec<&str>)> = Vec::new();
    let mut without = Vec::new();
    for (node, (set, unreadable)) in found.iter().flatten() {
        let chosen = set.of_node(|_| true);
        if !chosen.is_empty() {
            read.push((node.clone(), set.words(&chosen)));
        } else if unreadable.is_empty() {
            without.push(node.as_str());
        }
        for sensor in unreadable {
            match closed.iter_mut().find(|(known, _)| *known == sensor) {
                Some((_, of)) => of.push(node),
                None => closed.push((sensor, vec![node])),
            }
        }
    }
    let mut said = Vec::new();
    if !read.is_empty() {
        said.push(format!("power: of each run, by {}", source(&read, nodes.nodes())));
    }
    if !silent.is_empty() {
        let problem = nodes.problem();
        let why = if problem.is_empty() { "no answer".to_owned() } else { problem };
        said.push(format!("power: {} cannot be asked for sensors: {why}", named(&silent)));
    }
    if !without.is_empty() {
        said.push(format!("power: no sensor was found on {}", named(&without)));
    }
    said.extend(
        closed.iter().map(|(sensor, of)| {
            format!("power: not read on {}: {sensor}. To change that: {}", named(of), sensor.way_out)
        }),
    );
    said
}

#[cfg(test)]
mod tests {
    use hpl::measure::power::{PowerSamples, SensorSet};

    use super::super::super::spans::CoreSpan;
    use super::*;

    fn set(names: &[&str]) -> SensorSet {
        let sensors: Vec<String> = names
            .iter()
            .map(|name| {
                format!(r#"{{"source":"powercap","name":"{name}","covers":"package","range_j":null,"apart_s":null}}"#)
            })
            .collect();
        serde_json::from_str(&format!("[{}]", sensors.join(","))).unwrap()
    }

    /// A node of one package that takes 100 W, and `busy` in the core phase; samples of a second from `start_s` on.
    fn node(start_s: f64, busy: f64, seconds: usize) -> Option<NodeReadings> {
        let times_s: Vec<f64> = (0..=seconds).map(|second| start_s + second as f64).collect();
        let watts = |start_s: f64| if (1010.0..1090.0).contains(&(start_s + 0.5)) { busy } else { 100.0 };
        let watts = vec![times_s[..seconds].iter().map(|&start_s| Some(watts(start_s))).collect()];
        let samples = PowerSamples { times_s, watts, cpu_s: 1e-3 };
        Some(NodeReadings { set: set(&["package-0"]), unreadable: Vec::new(), samples, clock_offset_s: Some(0.25) })
    }

    fn spans() -> RunSpans {
        RunSpans { job: [1000.0, 1100.0], core: Some(CoreSpan { inside: [1010.0, 1090.0], length_s: 80.0 }) }
    }

    fn names(count: usize) -> Vec<String> {
        (1..=count).map(|index| format!("n{index}")).collect()
    }

    #[test]
    fn the_energies_of_nodes_are_added() {
        let read = [node(999.5, 300.0, 102), node(999.5, 500.0, 102)];
        let found = record(&names(2), &read, &spans()).unwrap();
        assert_eq!(found.source, "powercap package-0; not Green500 grade; of all 2 nodes");
        let columns = found.columns(Some(1600.0));
        let watts = columns.power_w.unwrap();
        assert!((watts - 800.0).abs() < 8.0, "{watts}");
        assert!(columns.power_coverage.unwrap() > 0.97 && columns.gflops_per_w.unwrap() > 1.98);
        assert!((columns.energy_j.unwrap() / watts - 80.0).abs() < 1.5);
        let of: Vec<f64> = found.nodes.iter().map(|node| node.core.as_ref().unwrap().mean_watts).collect();
        assert!((of[0] - 300.0).abs() < 4.0 && (of[1] - 500.0).abs() < 6.0, "{of:?}");
        assert_eq!(
            found.sensors.iter().map(|sensor| sensor.node.as_deref().unwrap()).collect::<Vec<_>>(),
            ["n1", "n2"]
        );
        assert_eq!((found.node_share, found.sampler_cpu_s), (1.0, 2e-3));
        let text = serde_json::to_string(&found).unwrap();
        assert_eq!(serde_json::from_str::<PowerRecord>(&text).unwrap(), found);
    }

    #[test]
    fn a_node_that_is_not_read_is_named_and_counts_in_the_coverage() {
        let still = node(999.5, 0.0, 102).map(|found| {
            let watts = vec![vec![Some(0.0); 102]];
            NodeReadings { samples: PowerSamples { watts, ..found.samples }, ..found }
        });
        let read = [node(999.5, 300.0, 102), None, node(999.5, 300.0, 102), still];
        let found = record(&names(4), &read, &spans()).unwrap();
        assert_eq!(found.source, "powercap package-0; not Green500 grade; of 2 of 4 nodes, not of n2 n4");
        let columns = found.columns(Some(1600.0));
        assert!((columns.power_w.unwrap() - 600.0).abs() < 6.0 && columns.gflops_per_w.is_none());
        assert!((columns.power_coverage.unwrap() - 0.5).abs() < 0.02, "half of the nodes");
        assert!(found.nodes[1].core.is_none() && found.nodes[3].run.is_none());
        assert_eq!(record(&names(1), &[None], &spans()), None);
    }

    #[test]
    fn nodes_of_several_kinds_and_many_nodes_are_told_in_short() {
        let read: Vec<(String, String)> = names(9)
            .into_iter()
            .map(|node| {
                let words = if node == "n3" { "hwmon power_meter" } else { "powercap package-0" };
                (node, words.to_owned())
            })
            .collect();
        let said = source(&read, &names(9));
        assert_eq!(said, "powercap package-0 (8 nodes), hwmon power_meter (n3); not Green500 grade; of all 9 nodes");
        let said = source(&read[..2], &names(9));
        assert!(said.ends_with("of 2 of 9 nodes, not of 7 nodes"), "{said}");
    }
}
