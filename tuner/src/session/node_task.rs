//! Some nodes of a session: what is searched on groups of so many, before all of them.

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::domain::{DomainSpec, Limits};
use space::machine::{Machine, Node};
use space::{Candidate, Candidates, Unequal};

use crate::record::session::Session;
use crate::search::nodes::group::on_nodes;
use crate::session::engine::Engine;
use crate::session::prepare::{SMALLEST_N, rounded};

/// Nodes from which on trials on some of them are worth their time.
pub const FEWEST: usize = 4;

/// Runs on some equal nodes of a session, at an order by which each holds as much of the matrix as in a run on all of them.
pub struct NodeTask {
    /// Nodes of a run.
    pub size: usize,
    /// The candidates.
    pub domain: Box<dyn Candidates>,
    /// The usual configuration.
    pub reference: Candidate,
    /// The machine with these nodes alone.
    pub machine: Machine,
}

impl NodeTask {
    /// Whether trials on some nodes of `session` are made at all: there are enough of them, the objective is the rate, and no settings are
    /// varied.
    ///
    /// # Errors
    /// Why nodes that are enough cannot be searched in groups, as a clause.
    pub fn are_made(session: &Session, engine: &Engine) -> Result<bool, String> {
        let is_asked = session.hosts.len() >= FEWEST && session.objective.is_rate() && session.settings.is_empty();
        let Some(job) = engine.mpi_job().filter(|_| is_asked) else { return Ok(false) };
        if !job.chooses_nodes() {
            return Err(format!("it is not known how --launcher {} is told the nodes of its ranks", job.launcher));
        }
        let cores = session.nodes.first().map_or(0, |node| node.cores);
        if session.nodes.iter().any(|node| node.cores != cores) {
            return Err("the nodes have unequal numbers of cores".to_owned());
        }
        Ok(true)
    }

    /// Runs on `size` nodes of `session`, whose runs on all nodes are those of `spec` on `machine`.
    ///
    /// # Errors
    /// Why so many nodes cannot be searched, as a clause.
    pub fn of(
        session: &Session,
        engine: &Engine,
        machine: &Machine,
        spec: &DomainSpec,
        limits: &Limits,
        size: usize,
    ) -> Result<Self, String> {
        let count = session.hosts.len();
        let cores = size * session.nodes.first().map_or(0, |node| node.cores);
        let ranks =
            session.ranks.map(|ranks| if ranks.is_multiple_of(count) { Ok(ranks / count * size) } else { Err(ranks) });
        let ranks = ranks.transpose().map_err(|ranks| format!("{ranks} ranks are no multiple of {count} nodes"))?;
        let part = size as f64 / count as f64;
        let spec = DomainSpec {
            n: rounded((spec.n as f64 * part.sqrt()) as usize).max(SMALLEST_N),
            cores,
            memory_bytes: spec.memory_bytes / count as u64 * size as u64,
            ranks,
            unequal: Unequal::default(),
            ..spec.clone()
        };
        let (domain, reference) = engine.domain_within(&spec, limits).map_err(|error| error.to_string())?;
        // The layers within these nodes, and the next one where these do not join them.
        let within = machine.layers.iter().filter(|layer| layer.ranks <= cores).count();
        let is_joined = size == 1 || machine.layers[..within].last().is_some_and(|layer| layer.ranks == cores);
        let layers = machine.layers.iter().take(within + usize::from(!is_joined)).cloned().collect();
        let node = session.nodes.first().map(|node| Node { count: size, ..node.clone() });
        let machine = Machine { nodes: node.into_iter().collect(), layers, ..machine.clone() };
        Ok(Self { size, domain, reference, machine })
    }

    /// Predicts its runs.
    ///
    /// # Errors
    /// What is missing in the description of the machine.
    pub fn predictor(&self) -> Result<Predictor, String> {
        Predictor::new(&self.machine).map_err(|error| error.to_string())
    }

    /// What is done on so many groups, in a clause.
    pub fn sentence(&self, groups: usize, extent: Extent) -> String {
        let what = if extent == Extent::Windows { "windows of runs" } else { "whole runs" };
        let n = self.domain.spec().n;
        let on = on_nodes(self.size);
        format!("{what} on {on} at N = {n}, on {groups} of them at the same time")
    }
}
