//! What trials on groups of nodes say of runs on larger ones and on all: the phases that they correct, and what they show beyond the model.
//!
//! A rate on a group is of another task and compares with none on other numbers of nodes. What carries over is by how much a run of a group
//! differs from what the model expects of it: of each phase, and of the points of more nodes that it stands for.

use std::collections::BTreeMap;

use objectives::predict::Predictor;
use objectives::timeline::own::{Observed, refined};
use space::dims::Point;
use space::machine::Machine;
use space::result::PhaseTime;
use space::{Candidates, Unequal};

use super::place::place;
use crate::record::Row;

/// The phases of `rows`, each on a group of this log speed (by name) relative to the typical one, as the typical group has them.
fn observed(
    rows: &[Row],
    speeds: &BTreeMap<&str, f64>,
    phases: impl Fn(u64) -> Option<Vec<PhaseTime>>,
) -> Vec<Observed> {
    let of = |row: &Row| {
        let speed = speeds.get(row.nodes.as_deref()?)?.exp();
        let phases = phases(row.trial)?.into_iter().map(|time| time.scaled(speed)).collect();
        Some(Observed { candidate: row.candidate(), phases })
    };
    rows.iter().filter(|row| row.passed).filter_map(of).collect()
}

/// The machine of a group with its phases corrected by the passed ones of `rows`.
pub fn corrected(
    group: &Machine,
    rows: &[Row],
    speeds: &BTreeMap<&str, f64>,
    phases: impl Fn(u64) -> Option<Vec<PhaseTime>>,
) -> Machine {
    refined(group, &observed(rows, speeds, phases), &Unequal::default())
}

/// Logarithm of what each of `rows`, on groups of `cores` cores at the rates of the typical one, reached over what the predictor of a
/// `group` expects of it, at the point of `space` that it stands for.
pub fn beyond(space: &dyn Candidates, rows: &[Row], group: &Predictor, cores: usize) -> Vec<(Point, f64)> {
    let of = |row: &Row| {
        let candidate = row.candidate();
        let log = row.comparable_rate_gflops()?.ln() - group.rate_gflops(&candidate).ln();
        Some((place(space, &candidate, Some(cores))?, log)).filter(|_| log.is_finite())
    };
    rows.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use objectives::simulated::{Asked, Clock, SimulatedCluster, SimulatedRun};
    use space::domain::{DomainSpec, HplDomain};
    use space::machine::Node;
    use space::{Candidate, EngineParams, HplParams, KernelChoice};

    use super::*;
    use crate::record::arbitrary::row_of;

    fn cluster() -> SimulatedCluster {
        let text = include_str!("../../../datasets/simulated/four-nodes.toml");
        let cluster = SimulatedCluster::parse(text).unwrap();
        SimulatedCluster { noise: 0.0, hangs: 0.0, breaks_off: 0.0, change: Vec::new(), ..cluster }
    }

    fn candidate((p, q): (usize, usize), nb: usize) -> Candidate {
        let hpl = HplParams { nb, ..HplParams::baseline(20_000, p, q) };
        Candidate { hpl, engine: EngineParams { threads: 4 / (p * q), ..EngineParams::default() } }
    }

    /// The tuner is told wrong rates; runs on nodes of which the third is slow say what the typical one has.
    #[test]
    fn runs_on_single_nodes_correct_the_model_whatever_their_node() {
        let cluster = cluster();
        let hosts = cluster.hosts();
        let runs: Vec<Candidate> = [(1, 1), (1, 2), (2, 2), (1, 4), (2, 1), (4, 1)]
            .into_iter()
            .flat_map(|grid| [96, 192].map(|nb| candidate(grid, nb)))
            .collect();
        let node = |trial: usize| hosts[trial % 4].as_str();
        let found =
            |trial: usize| match cluster.run_on(&hosts[trial % 4..][..1], &runs[trial], Asked::Whole, Clock::default())
            {
                Ok(SimulatedRun::Whole(result, _)) => *result,
                other => panic!("{other:?}"),
            };
        let speed = |name: &str| if name == hosts[2] { 0.8_f64.ln() } else { 0.0 };
        let speeds: BTreeMap<&str, f64> = hosts.iter().map(|name| (name.as_str(), speed(name))).collect();
        let row = |trial: usize| {
            let rate = found(trial).rate_gflops / speed(node(trial)).exp();
            Row { rate_gflops: Some(rate), nodes: Some(node(trial).to_owned()), ..row_of(trial as u64, &runs[trial]) }
        };
        let rows: Vec<Row> = (0..runs.len()).map(row).collect();
        let told = cluster.description();
        let one_node = Machine { nodes: vec![Node { count: 1, ..told.nodes[0].clone() }], ..told };
        let phases = |trial: u64| Some(found(trial as usize).phases);
        let corrected = corrected(&one_node, &rows, &speeds, phases);
        let spec = DomainSpec {
            n: 40_000,
            cores: 16,
            memory_bytes: u64::MAX,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
            most_threads: Some(4),
            common_cores: None,
            unequal: Unequal::default(),
        };
        let domain = HplDomain::new(&spec).unwrap();
        let beyond = |machine: &Machine| beyond(&domain, &rows, &Predictor::new(machine).unwrap(), 4);
        let worst = |found: &[(Point, f64)]| found.iter().map(|(_, log)| log.abs()).fold(0.0, f64::max);
        let (before, after) = (beyond(&one_node), beyond(&corrected));
        assert!(before.len() == rows.len() && worst(&before) > 0.05, "{before:?}");
        // One factor for a phase and number of threads does not correct all of what is told wrong.
        assert!(worst(&after) < 0.85 * worst(&before), "{} {}", worst(&before), worst(&after));
        // A run on one node stands for one with as many ranks on each of four.
        let ranks: Vec<usize> = after.iter().map(|(point, _)| domain.candidate(point).hpl.ranks()).collect();
        assert_eq!(ranks, runs.iter().map(|run| 4 * run.hpl.ranks()).collect::<Vec<_>>());
    }
}
