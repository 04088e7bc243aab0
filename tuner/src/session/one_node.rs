//! One node of a session on several: what is searched on single nodes before all of them.

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::domain::{DomainSpec, Limits};
use space::machine::{Machine, Node};
use space::{Candidate, Candidates, Unequal};

use crate::record::session::Session;
use crate::session::engine::Engine;
use crate::session::prepare::{SMALLEST_N, rounded};

/// Nodes from which on trials on single ones are worth their time.
const FEWEST: usize = 4;

/// One of the equal nodes of a session.
pub struct OneNode {
    /// Its candidates, at an order by which a node holds as much of the matrix as in a run on all nodes.
    pub domain: Box<dyn Candidates>,
    /// The usual configuration.
    pub reference: Candidate,
    /// The machine with this node alone.
    pub machine: Machine,
}

impl OneNode {
    /// A node of `session`, whose runs on all nodes are those of `spec` on `machine`; `None` where single nodes are not searched:
    /// there are too few, the launcher reaches them by no names, the objective is not the rate, or settings are varied.
    ///
    /// # Errors
    /// Why nodes that are enough cannot be searched one by one, as a clause.
    pub fn of(
        session: &Session,
        engine: &Engine,
        machine: &Machine,
        spec: &DomainSpec,
        limits: &Limits,
    ) -> Result<Option<Self>, String> {
        let count = session.hosts.len();
        let Some(job) =
            engine.mpi_job().filter(|_| count >= FEWEST && session.objective.is_rate() && session.settings.is_empty())
        else {
            return Ok(None);
        };
        if !job.chooses_nodes() {
            return Err(format!("it is not known how --launcher {} is told the nodes of its ranks", job.launcher));
        }
        let cores = session.nodes.first().map_or(0, |node| node.cores);
        if session.nodes.iter().any(|node| node.cores != cores) {
            return Err("the nodes have unequal numbers of cores".to_owned());
        }
        let ranks = session.ranks.map(|ranks| if ranks.is_multiple_of(count) { Ok(ranks / count) } else { Err(ranks) });
        let ranks = ranks.transpose().map_err(|ranks| format!("{ranks} ranks are no multiple of {count} nodes"))?;
        let spec = DomainSpec {
            n: rounded((spec.n as f64 / (count as f64).sqrt()) as usize).max(SMALLEST_N),
            cores,
            memory_bytes: spec.memory_bytes / count as u64,
            ranks,
            unequal: Unequal::default(),
            ..spec.clone()
        };
        let (domain, reference) = engine.domain_within(&spec, limits).map_err(|error| error.to_string())?;
        let layers = machine.layers.iter().filter(|layer| layer.ranks <= cores).cloned().collect();
        let node = session.nodes.first().map(|node| Node { count: 1, ..node.clone() });
        let machine = Machine { nodes: node.into_iter().collect(), layers, ..machine.clone() };
        Ok(Some(Self { domain, reference, machine }))
    }

    /// Predicts its runs.
    ///
    /// # Errors
    /// What is missing in the description of the machine.
    pub fn predictor(&self) -> Result<Predictor, String> {
        Predictor::new(&self.machine).map_err(|error| error.to_string())
    }

    /// What is done, in a clause.
    pub fn sentence(&self, nodes: usize, extent: Extent) -> String {
        let what = if extent == Extent::Windows { "windows of runs" } else { "whole runs" };
        format!("{what} on single nodes at N = {}, on {nodes} of them at the same time", self.domain.spec().n)
    }
}
