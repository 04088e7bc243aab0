//! The description of the nodes of a session: this node's calibration, and a survey of all.

use std::path::Path;
use std::time::Duration;

use hpl::survey::RankSurvey;
use objectives::launcher::MpiJob;
use objectives::links::Links;
use space::machine::{Layer, Machine};
use space::stats::summary;
use space::{Candidate, EngineParams, HplParams, KernelChoice};

use super::survey::{slow, surveyed};
use crate::budget::Budget;
use crate::folder::replace_file;
use crate::machines::read_machine;
use crate::progress::Progress;
use crate::store::Store;

/// Order and NB of the short runs.
const SHORT: (usize, usize) = (1500, 128);
/// Measurements of each kind.
const REPEATS: u64 = 3;
/// Part of the budget that the survey may take.
const SHARE: f64 = 0.05;

/// Writes the session's `machine.toml`: the rates of `of_this_node`, the nodes of the session, and the layer of their network as
/// a survey with a rank on each of them finds it. Where it fails the network is unknown, which is told.
///
/// # Errors
/// A calibration that cannot be read, or a file that cannot be written.
pub(crate) fn describe(
    job: &MpiJob,
    of_this_node: &Path,
    store: &Store,
    budget: &Budget,
    progress: &Progress,
) -> anyhow::Result<()> {
    let (calibrated, _) = read_machine(of_this_node)?;
    let nodes = store.session().nodes.clone();
    let ranks = store.session().hosts.len();
    let threads = nodes.iter().map(|node| node.cores).min().unwrap_or(1);
    let mut layers = calibrated.layers.clone();
    if ranks > 1 {
        let kernels = KernelChoice::from(calibrated.host.kernels.clone());
        let hpl = HplParams { nb: SHORT.1, ..HplParams::baseline(SHORT.0, 1, ranks) };
        let candidate = Candidate { hpl, engine: EngineParams { threads, kernels, ..EngineParams::default() } };
        let limit = Duration::from_secs_f64(SHARE * budget.total_s());
        match surveyed(job, &store.folder().calibration(), &candidate, REPEATS, limit) {
            Ok(found) => {
                let network = Links::new(&found.ranks, threads, |rank| rank.host.clone()).layers;
                say(&found.ranks, &network, progress);
                layers.extend(network);
            }
            Err(error) => progress.warn(&format!("the nodes were not surveyed, so their network is unknown: {error}")),
        }
    }
    let machine = Machine { nodes, layers, ..calibrated };
    let path = store.folder().machine_toml();
    Ok(replace_file(&path, machine.to_toml()?.as_bytes())?)
}

/// What the nodes reach, which are slow, and what joins them.
fn say(found: &[RankSurvey], network: &[Layer], progress: &Progress) {
    let rates = || found.iter().map(|rank| summary(&rank.hpl_gflops).median);
    let (low, high) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let links = network.iter().map(|layer| {
        let gbytes_per_s = 8e-9 / layer.beta_s_per_word;
        let latency = layer.alpha_s.map_or(String::new(), |alpha_s| format!(", {:.1} µs", 1e6 * alpha_s));
        format!("; {} {gbytes_per_s:.2} GB/s{latency}", layer.name)
    });
    progress.line(&format!(
        "survey: HPL of N={} on {} nodes at once, {low:.1} … {high:.1} GFLOP/s each{}",
        SHORT.0,
        found.len(),
        links.collect::<String>()
    ));
    for outlier in slow(found) {
        let host = &found[outlier.index].host;
        progress.warn(&format!(
            "{host} is {:.1} % slower than typical: equal shares wait for it; leave it out, or search weights (hpl-tune survey, \
             weights)",
            100.0 * (1.0 - outlier.ratio)
        ));
    }
}
