//! The highest clock of the nodes of a session where Slurm sets it: `srun --cpu-freq`.
//!
//! Slurm takes that for a request: what a node does not have is logged there, and the step runs on. So before the first trial processes of this
//! program, started as its ranks are, say on every node what the clocks are as found, at the lowest clock that is to be tried, and
//! after that.

mod permitted;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use hpl::machine::controls::NodeClocks;
use hpl::machine::host;
use objectives::real::slurm;
use objectives::slurm_clock::SlurmClock;
use serde::{Deserialize, Serialize};
use space::{Candidate, EngineParams, HplParams, NodeSettings};

use self::permitted::Permitted;
use super::launched::answer;
use crate::agents::root_of;
use crate::session::engine::{Engine, EngineCommand};

/// The hidden verb of a process that says the clocks of its node, as the program must dispatch it to [`main`].
pub const VERB: &str = "__clocks";

/// Time that a job has to start and say it.
const STARTS: Duration = Duration::from_secs(60);
/// Share of its speed at least that a chain of multiplications loses at half of the clock; less, and the clock was not lower.
const SLOWER: f64 = 0.05;

/// What one process says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct NodeSays {
    node: String,
    /// `None` without cpufreq.
    clocks: Option<NodeClocks>,
}

/// How the clock is asked of Slurm, and what of it is tried.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ClockBySlurm {
    /// How.
    pub(crate) clock: SlurmClock,
    /// Clocks in MHz, rising; the last is as the nodes were found.
    pub(crate) levels: Vec<u32>,
    /// What was seen of it, a sentence each.
    pub(crate) said: Vec<String>,
}

/// Prints the clocks of the processors of this process, in one line of JSON. The argument is the root of their files.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Some(root) = arguments.into_iter().next() else { return ExitCode::from(2) };
    let node = host::facts().hostname;
    let clocks = NodeClocks::read(&root_of(Path::new(&root), &node));
    match serde_json::to_string(&NodeSays { node, clocks }) {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    }
}

/// How Slurm sets the clock of the nodes on which `engine` runs `ranks` ranks of `threads` threads; their files are below `root`, `program` is
/// the path of this program.
///
/// # Errors
/// Why it does not, and the way out, in words.
pub(crate) fn found(
    engine: &Engine,
    (ranks, threads): (usize, usize),
    root: &Path,
    program: &Path,
) -> Result<ClockBySlurm, String> {
    let at = |engine: &Engine, max_clock_mhz: Option<u32>| {
        let settings = NodeSettings { max_clock_mhz, ..NodeSettings::default() };
        let params = EngineParams { threads, settings, ..EngineParams::default() };
        let (line, nodes) =
            said(engine, &Candidate { hpl: HplParams::baseline(1, 1, ranks), engine: params }, root, program)?;
        if nodes.len() < ranks {
            let names: Vec<&str> = nodes.iter().map(|node| node.node.as_str()).collect();
            return Err(format!("{line}: its {ranks} ranks are on {} alone, of {ranks} nodes", names.join(", ")));
        }
        Ok((line, nodes))
    };
    let (_, before) = at(engine, None)?;
    let found = known(&before)?;
    let levels = NodeClocks::levels(&found);
    let [lowest_mhz, .., found_mhz] = levels[..] else {
        return Err(format!("the nodes are at their lowest clock, {} MHz: nothing below it can be tried", levels[0]));
    };
    let permitted = Permitted::read();
    let least_mhz = found.iter().map(|node| node.least_mhz).max().unwrap_or(0);
    let set = found[0].governor.as_deref().filter(|set| found.iter().all(|node| node.governor.as_deref() == Some(set)));
    let available: Vec<&[String]> = found.iter().map(|node| node.governors.as_slice()).collect();
    let governor = permitted.governor(set, &available)?;
    let clock = SlurmClock { least_mhz, found_mhz, governor };
    let (line, during) = at(&engine.clone().clocked_by(Some(clock.clone())), Some(lowest_mhz))?;
    if let Some(not) = not_at(&during, lowest_mhz) {
        let why = permitted.ignored.unwrap_or_else(|| "the logs of slurmd on that node say why".to_owned());
        return Err(format!("{not} under {line}: Slurm has ignored it; {why}"));
    }
    let (_, after) = at(engine, None)?;
    let back = |(before, after): (&NodeSays, &NodeSays)| {
        let max = |node: &NodeSays| node.clocks.as_ref().map(|clocks| clocks.max_mhz);
        (max(before) != max(after)).then(|| after.node.clone())
    };
    if let Some(node) = before.iter().zip(&after).find_map(back) {
        return Err(format!("the clock of {node} is not as it was after {line}: Slurm does not put it back there"));
    }
    let by_word = clock.word(&NodeSettings { max_clock_mhz: Some(lowest_mhz), ..NodeSettings::default() });
    let mut sentences = vec![format!(
        "clock: Slurm sets it, seen on {} by srun {}: limits of {lowest_mhz} MHz, put back to {found_mhz} MHz after the step",
        if let [alone] = &during[..] { alone.node.clone() } else { format!("all {} nodes", during.len()) },
        by_word.unwrap_or_default()
    )];
    sentences.extend(no_slower(&before, &during));
    Ok(ClockBySlurm { clock, levels, said: sentences })
}

/// The command that started the ranks of `candidate`, and what one of each node said, by their names.
fn said(
    engine: &Engine,
    candidate: &Candidate,
    root: &Path,
    program: &Path,
) -> Result<(String, Vec<NodeSays>), String> {
    let root = std::path::absolute(root).unwrap_or(root.to_owned());
    let words = [OsString::from(program), OsString::from(VERB), root.into()];
    let started = engine.started_in_its_place(candidate, &words);
    let EngineCommand { words, variables } =
        started.ok_or("its command has no word {program} alone, in whose place the clocks are read")?;
    let way_out = "is the job waiting for nodes?";
    let cancel = |begun| slurm::cancel_steps(program, &[], Some(begun));
    let (line, said) =
        answer(&words, &variables, Path::new("."), STARTS, way_out, cancel).map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&said);
    let mut nodes: Vec<NodeSays> = text.lines().filter_map(|line| serde_json::from_str(line.trim()).ok()).collect();
    nodes.sort_by(|a, b| a.node.cmp(&b.node));
    nodes.dedup_by(|a, b| a.node == b.node);
    if nodes.is_empty() {
        Err(format!("{line}: no process has said the clocks of its node"))
    } else {
        Ok((line, nodes))
    }
}

/// The clocks of all nodes.
fn known(nodes: &[NodeSays]) -> Result<Vec<NodeClocks>, String> {
    let of = |node: &NodeSays| {
        node.clocks.clone().ok_or_else(|| {
            format!(
                "{} has no cpufreq for the processors of the job, so that Slurm can set nothing there: no driver of the kernel, or a virtual \
                 machine",
                node.node
            )
        })
    };
    nodes.iter().map(of).collect()
}

/// The first node whose limits are not `asked_mhz`, in words.
fn not_at(nodes: &[NodeSays], asked_mhz: u32) -> Option<String> {
    let limits = |node: &NodeSays| node.clocks.as_ref().map_or([0, 0], |clocks| clocks.max_mhz);
    let not = nodes.iter().find(|node| !node.clocks.as_ref().is_some_and(|clocks| clocks.are_at(asked_mhz)))?;
    let [low, high] = limits(not);
    let found = if low == high { format!("{low} MHz") } else { format!("{low} to {high} MHz") };
    Some(format!("the highest clock of {} is {found} where {asked_mhz} MHz was asked", not.node))
}

/// A doubt where a processor was no slower at the lower clock.
fn no_slower(before: &[NodeSays], during: &[NodeSays]) -> Option<String> {
    let ratio = |(before, during): (&NodeSays, &NodeSays)| {
        let [before_per_s, during_per_s] = [before.clocks.as_ref()?.chain_per_s, during.clocks.as_ref()?.chain_per_s];
        Some((during.node.clone(), during_per_s / before_per_s))
    };
    let (node, ratio) = before.iter().zip(during).filter_map(ratio).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (ratio > 1.0 - SLOWER).then(|| {
        format!(
            "warning: clock: at the lower limit a processor of {node} computed at {ratio:.2} of its speed before: the limit is set, but its \
             clock does not follow"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, max_mhz: [u32; 2], chain_per_s: f64) -> NodeSays {
        let governors = Vec::new();
        NodeSays {
            node: name.into(),
            clocks: Some(NodeClocks { max_mhz, least_mhz: 800, governor: None, governors, chain_per_s }),
        }
    }

    #[test]
    fn a_node_that_did_not_obey_is_named() {
        let nodes = [node("n1", [1300, 1300], 1e9), node("n2", [1300, 2600], 1e9)];
        assert_eq!(not_at(&nodes[..1], 1300), None);
        let said = not_at(&nodes, 1300).unwrap();
        assert_eq!(said, "the highest clock of n2 is 1300 to 2600 MHz where 1300 MHz was asked");
        let without = NodeSays { clocks: None, ..nodes[0].clone() };
        assert!(known(&[nodes[1].clone(), without]).unwrap_err().starts_with("n1 has no cpufreq"));
    }

    #[test]
    fn a_clock_that_does_not_follow_its_limit_is_told() {
        let before = [node("n1", [2600; 2], 1e9), node("n2", [2600; 2], 1e9)];
        let at = |second: f64| no_slower(&before, &[node("n1", [1300; 2], 5e8), node("n2", [1300; 2], second)]);
        assert_eq!(at(6e8), None);
        assert!(at(9.9e8).unwrap().contains("n2 computed at 0.99 of its speed"), "{:?}", at(9.9e8));
    }
}
