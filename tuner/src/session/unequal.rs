//! What is known of ranks that are not alike when a session starts: from flags, or from a survey of this machine's ranks.

use std::path::Path;

use space::machine::Machine;
use space::{EngineParams, KernelChoice, Share, Unequal, Weights};

use crate::exit::bad_input;
use crate::session::engine::Engine;
use crate::session::input::{read_params, read_weights};

/// What the user gives about the ranks.
#[derive(Debug, Clone, Copy, Default)]
pub struct RankInput<'a> {
    /// A file of weights.
    pub weights: Option<&'a Path>,
    /// A file of engine parameters.
    pub engine_params: Option<&'a Path>,
    /// Their number.
    pub ranks: Option<u64>,
}

impl RankInput<'_> {
    /// Speeds and kernels of the ranks, or the speeds of the nodes of `machine` where a survey took each of this host's
    /// `cores` as part of a rank. Empty where the ranks are alike, and with another engine, which has no weights.
    ///
    /// # Errors
    /// Files that cannot be read, that say what a search finds out, or that speak of different numbers of ranks.
    pub fn unequal(self, engine: &Engine, machine: Option<&Machine>, cores: usize) -> anyhow::Result<Unequal> {
        if matches!(engine, Engine::Foreign(_)) {
            return Ok(Unequal::default());
        }
        let EngineParams { rank_kernels: kernels, weights, .. } = params(self.engine_params)?;
        let weights = self.weights.map_or(Ok(weights), read_weights)?;
        let mut unequal = Unequal { speeds: speeds(&weights), node_cores: None, kernels };
        if unequal.speeds.is_empty() {
            unequal.speeds = machine.map(|machine| surveyed(machine, cores)).unwrap_or_default();
        }
        if let Some(rank) = unequal.speeds.iter().position(|&speed| speed == Share::ZERO) {
            return Err(bad_input(format!("the weights leave rank {rank} without work; search without it")));
        }
        if unequal.kernels.contains(&KernelChoice::Auto) {
            return Err(bad_input("rank_kernels: 'auto' is not possible; name the kernels of each rank"));
        }
        if let Some(name) = unequal.kernels.iter().find_map(unknown) {
            return Err(bad_input(format!(
                "rank_kernels: '{name}' is neither a kernel, as builtin, builtin-avx2 and builtin-portable, nor a library; a library is \
                 named by its path"
            )));
        }
        if !unequal.differs() {
            unequal.speeds.clear();
        }
        let (speeds, kernels) = (unequal.speeds.len(), unequal.kernels.len());
        if speeds > 0 && kernels > 0 && speeds != kernels {
            return Err(bad_input(format!(
                "weights of {speeds} ranks, rank_kernels of {kernels}; give those of each rank"
            )));
        }
        match (unequal.ranks(), self.ranks) {
            (Some(known), Some(ranks)) if known as u64 != ranks => Err(bad_input(format!(
                "--ranks {ranks}: weights or rank_kernels are those of {known} ranks; leave --ranks out, or give others"
            ))),
            _ => Ok(unequal),
        }
    }
}

/// The engine parameters that a search takes: all else it finds out.
fn params(path: Option<&Path>) -> anyhow::Result<EngineParams> {
    let params = read_params(path)?;
    let EngineParams { rank_kernels, weights, .. } = params.clone();
    if params != (EngineParams { rank_kernels, weights, ..EngineParams::default() }) {
        return Err(bad_input(
            "--engine-params: a search takes rank_kernels and [weights] only, and searches the rest",
        ));
    }
    Ok(params)
}

/// The name of kernels that are no built-in ones, and look like no file of a library.
fn unknown(kernels: &KernelChoice) -> Option<String> {
    let KernelChoice::Blas(path) = kernels else { return None };
    let is_file = path.components().count() > 1 || path.extension().is_some();
    (!is_file).then(|| path.display().to_string())
}

/// Speed of each rank of a grid with these weights, PMAP row-major; none without weights.
fn speeds(weights: &Weights) -> Vec<Share> {
    if weights.is_empty() {
        return Vec::new();
    }
    let of = |shares: &[Share]| if shares.is_empty() { vec![1.0] } else { shares.iter().map(|s| s.get()).collect() };
    let columns = of(&weights.columns);
    let rank = |row: f64| columns.iter().map(move |column| Share::new(row * column).unwrap_or_default());
    of(&weights.rows).into_iter().flat_map(rank).collect()
}

/// The speeds of a survey of this host's ranks: nodes of one rank each that together take no more than its cores.
fn surveyed(machine: &Machine, cores: usize) -> Vec<Share> {
    let nodes = &machine.nodes;
    let ranks = nodes.len() > 1 && nodes.iter().all(|node| node.count == 1 && node.rate_gflops > 0.0);
    if !ranks || nodes.iter().map(|node| node.cores).sum::<usize>() > cores {
        return Vec::new();
    }
    nodes.iter().map(|node| Share::new(node.rate_gflops).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use space::machine::Node;

    use super::*;

    fn shares(of: &[f64]) -> Vec<Share> {
        of.iter().map(|&share| Share::new(share).unwrap()).collect()
    }

    #[test]
    fn ranks_have_the_product_of_their_row_and_column() {
        let weights = |rows: &[f64], columns: &[f64]| Weights { rows: shares(rows), columns: shares(columns) };
        assert!(speeds(&weights(&[], &[])).is_empty());
        assert_eq!(speeds(&weights(&[], &[2.0, 1.0])), shares(&[2.0, 1.0]));
        assert_eq!(speeds(&weights(&[1.0, 0.5], &[2.0, 1.0])), shares(&[2.0, 1.0, 1.0, 0.5]));
    }

    /// The processes of an MPI job, a resume and `run.sh` work in other folders, and found no library there.
    #[test]
    fn libraries_of_ranks_are_found_from_any_folder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("engine-params.toml");
        std::fs::write(&path, "rank_kernels = [\"lib/libblas.so.3\", \"libblas.so.3\", \"builtin\"]\n").unwrap();
        let input = RankInput { engine_params: Some(&path), ..RankInput::default() };
        let found = input.unequal(&Engine::Ours, None, 4).unwrap().kernels;
        let blas = |path: &Path| KernelChoice::Blas(path.to_path_buf());
        let here = std::path::absolute("lib/libblas.so.3").unwrap();
        assert_eq!(found, [blas(&here), blas(Path::new("libblas.so.3")), KernelChoice::Builtin]);
    }

    #[test]
    fn a_survey_of_this_hosts_ranks_has_speeds_and_a_cluster_has_none() {
        let node = |rate_gflops, count| Node { count, cores: 1, rate_gflops, ..Node::default() };
        let machine = |nodes: &[Node]| Machine { nodes: nodes.to_vec(), ..Machine::default() };
        let two = machine(&[node(70.0, 1), node(35.0, 1)]);
        assert_eq!(surveyed(&two, 2), shares(&[70.0, 35.0]));
        assert!(surveyed(&two, 1).is_empty(), "more cores than here");
        assert!(surveyed(&machine(&[node(70.0, 1), node(35.0, 2)]), 4).is_empty(), "groups of nodes");
        assert!(surveyed(&machine(&[node(70.0, 1)]), 4).is_empty(), "one node");
    }
}
