//! The description of the nodes of a session: this node's calibration, and a survey of all.

use std::path::Path;
use std::time::Duration;

use objectives::launcher::MpiJob;
use objectives::links::Links;
use objectives::predict::Predictor;
use space::machine::{Layer, Machine};
use space::{Candidate, EngineParams, HplParams, KernelChoice, Unequal};

use super::survey::{order, surveyed};
use crate::cluster::acceptance::{Acceptance, SURVEY_NB, page};
use crate::record::folder::replace_file;
use crate::record::store::Store;
use crate::search::budget::Budget;
use crate::search::progress::Progress;
use crate::session::input::read_machine;

/// Order of the short runs on a node of one core.
const ORDER: f64 = 2000.0;
/// Measurements of each kind, at least and at most; in between one for so many seconds of the budget, as they take some seconds: what
/// the speeds of slow nodes are wrong by, the shares by weights are wrong by.
const REPEATS: [u64; 2] = [3, 31];
const BUDGET_OF_A_REPEAT_S: f64 = 240.0;
/// Share by which a node may be slower than the typical one without being named.
const TOLERANCE: f64 = 0.05;
/// Factor by which the short runs of the survey may differ from what the calibration says of them: it fits other sizes.
const MODEL_ERROR: f64 = 1.1;

/// Writes the session's `machine.toml`: the rates of `of_this_node`, the nodes of the session, and the layer of their network as
/// a survey with a rank of `job` on each of them finds it. Where it fails the network is unknown, and a line says so. The rates become
/// those of the typical node while all work, where that is another speed: the speeds of slow nodes are parts of it.
///
/// # Errors
/// A calibration that cannot be read, or a file that cannot be written.
pub(crate) fn describe(
    job: Option<&MpiJob>,
    of_this_node: &Path,
    store: &mut Store,
    budget: &Budget,
    progress: &Progress,
) -> anyhow::Result<()> {
    let (calibrated, _) = read_machine(of_this_node)?;
    let nodes = store.session().nodes.clone();
    let ranks = store.session().hosts.len();
    let threads = nodes.iter().map(|node| node.cores).min().unwrap_or(1);
    let mut layers = calibrated.layers.clone();
    let mut machine = calibrated;
    if let Some(job) = job.filter(|_| ranks > 1) {
        let kernels = KernelChoice::from(machine.host.kernels.clone());
        let n = order(&nodes, ORDER);
        let hpl = HplParams { nb: SURVEY_NB, ..HplParams::baseline(n, 1, ranks) };
        // With one rank on each node these are the kernels of the nodes.
        let named = store.session().unequal.kernels.clone();
        let of_nodes = named.is_empty() || named.len() == ranks;
        let rank_kernels = if of_nodes { named.clone() } else { Vec::new() };
        let engine = EngineParams { threads, kernels, rank_kernels, ..EngineParams::default() };
        let candidate = Candidate { hpl, engine };
        let limit = Duration::from_secs_f64(budget.survey_s());
        let repeats = ((budget.shared_s() / BUDGET_OF_A_REPEAT_S) as u64).clamp(REPEATS[0], REPEATS[1]);
        match surveyed(job, &store.folder().calibration(), &candidate, repeats, limit) {
            Ok(found) => {
                let network = Links::new(&found.ranks, threads, |rank| rank.host.clone()).layers;
                let acceptance = Acceptance::new(&found.ranks, n, threads, TOLERANCE);
                say(&acceptance, &network, progress);
                let json = serde_json::to_string_pretty(&acceptance)?;
                replace_file(&store.folder().nodes("json"), json.as_bytes())?;
                replace_file(&store.folder().nodes("html"), page(&acceptance).as_bytes())?;
                layers.extend(network);
                if named.is_empty()
                    && let Some(times) = slower_together(&machine, &candidate, acceptance.typical_gflops)
                {
                    progress.warn(&format!(
                        "all nodes at once: the typical one reaches {:.2} of what the calibration of this node says; the rates of the \
                         model are brought to that",
                        times.recip()
                    ));
                    machine = machine.slower(times, "HPL on all nodes at once");
                }
                let are_alike = acceptance.are_cores_alike() && nodes.iter().all(|node| node.cores == threads);
                if acceptance.has_slow() && !are_alike {
                    progress.warn("weights are not searched: the nodes have unequal numbers of cores");
                }
                // The user's speeds of the ranks are used.
                let is_open = of_nodes && store.session().unequal.speeds.is_empty();
                if is_open && store.session().ranks.is_none_or(|of| of >= ranks) {
                    let speeds = if are_alike { acceptance.unequal(threads) } else { Unequal::default() };
                    let found = Unequal { kernels: named, ..speeds };
                    store.update_session(|session| session.unequal = found)?;
                }
            }
            Err(error) => progress.warn(&format!("the nodes were not surveyed, so their network is unknown: {error}")),
        }
    }
    let machine = Machine { nodes, layers, ..machine };
    let path = store.folder().machine_toml();
    Ok(replace_file(&path, machine.to_toml()?.as_bytes())?)
}

/// How many times as long as `machine` says the short HPL of a rank of `candidate` takes on a node that reaches `gflops`; `None` where that
/// is within the model's error.
fn slower_together(machine: &Machine, candidate: &Candidate, gflops: f64) -> Option<f64> {
    let hpl = HplParams { p: 1, q: 1, ..candidate.hpl };
    let alone = Candidate { hpl, ..candidate.clone() };
    let predicted = Predictor::new(machine).ok()?.rate_gflops(&alone);
    let times = predicted / gflops;
    (times.is_finite() && times.ln().abs() > MODEL_ERROR.ln()).then_some(times)
}

/// What the nodes reach, which have a fault, and what joins them.
fn say(found: &Acceptance, network: &[Layer], progress: &Progress) {
    let rates = || found.nodes.iter().map(|node| node.hpl_gflops);
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let links = network.iter().map(|layer| {
        let gbytes_per_s = 8e-9 / layer.beta_s_per_word;
        let latency = layer.alpha_s.map_or(String::new(), |alpha_s| format!(", {:.1} µs", 1e6 * alpha_s));
        format!("; {} {gbytes_per_s:.2} GB/s{latency}", layer.name)
    });
    progress.line(&format!(
        "survey: HPL of N={} on {} nodes at once, {low:.1} … {high:.1} GFLOP/s each{}",
        found.n,
        found.nodes.len(),
        links.collect::<String>()
    ));
    for node in found.nodes.iter().filter(|node| !node.faults.is_empty()) {
        let said: Vec<&str> = node.faults.iter().chain(&node.causes).map(String::as_str).collect();
        progress.warn(&format!("{}: {}; with equal shares all ranks wait for it", node.host, said.join("; ")));
    }
}

#[cfg(test)]
mod tests {
    use objectives::simulated::{Clock, SimulatedCluster};

    use super::*;

    #[test]
    fn rates_of_a_node_alone_are_brought_to_those_of_all_at_once() {
        let cluster = SimulatedCluster::parse(include_str!("../../../../datasets/simulated/four-nodes.toml")).unwrap();
        let threads = cluster.node().cores;
        let hpl = HplParams { nb: SURVEY_NB, ..HplParams::baseline(4000, 1, 4) };
        let candidate = Candidate { hpl, engine: EngineParams { threads, ..EngineParams::default() } };
        let found = cluster.survey(&candidate, 9, Clock::default()).unwrap().ranks;
        let typical_gflops = Acceptance::new(&found, 4000, threads, TOLERANCE).typical_gflops;
        let times = |machine: &Machine| slower_together(machine, &candidate, typical_gflops);
        assert_eq!(times(&cluster.machine), None, "the truth");
        // Alone this node seemed to be twice as fast, or it is itself the slow one.
        for wrong in [0.5, 1.3] {
            let machine = cluster.machine.clone().slower(wrong, "a test");
            let found = times(&machine).unwrap();
            assert!((found * wrong - 1.0).abs() < 0.05, "{found}");
            let mended = machine.slower(found, "all at once");
            assert_eq!(times(&mended), None);
            assert!(mended.phases.iter().all(|phase| phase.origin.ends_with(": all at once")));
        }
        assert_eq!(slower_together(&cluster.machine, &candidate, 0.0), None);
    }
}
