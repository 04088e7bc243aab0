//! The search on single nodes before that on all of them, and what it leaves.

use objectives::predict::Predictor;
use space::dims::Point;
use space::domain::{DomainSpec, Limits};
use space::machine::Machine;
use space::{Candidate, Candidates};

use crate::cluster::launched::bindings::bindings;
use crate::earlier::nodes::{beyond, corrected};
use crate::exit::bad_input;
use crate::record::parquet;
use crate::record::store::Store;
use crate::search::drive::TrialRunner;
use crate::search::model::SessionModel;
use crate::search::nodes::NodeSearch;
use crate::search::nodes::batch::NodeSetup;
use crate::search::nodes::speed::{cancelled, speeds};
use crate::search::strategy::Strategy;
use crate::session::engine::Engine;
use crate::session::one_node::OneNode;

/// What trials on single nodes say of the machine and of the points of all nodes.
#[derive(Default)]
pub(super) struct FromNodes {
    /// The machine with corrected phases; `None` where no trial says anything.
    pub(super) machine: Option<Machine>,
    /// Logarithms of rates over what is expected, at these points.
    pub(super) beyond: Vec<(Point, f64)>,
}

/// Searches on single nodes where there are enough of them, and nothing has run on all of them; `None` when a signal asked to stop.
/// What was found there before is taken up.
///
/// # Errors
/// Records that could not be written, or a description of the machine in which something is missing.
pub(super) fn from_nodes(
    engine: &Engine,
    (machine, spec, limits): (&Machine, &DomainSpec, &Limits),
    (domain, strategy): (&dyn Candidates, &dyn Strategy),
    runner: TrialRunner<'_>,
) -> anyhow::Result<Option<FromNodes>> {
    let hosts = runner.store.session().hosts.clone();
    let is_over = !runner.store.rows().is_empty();
    let found = OneNode::of(runner.store.session(), engine, machine, spec, limits);
    let reached = found.and_then(|node| {
        let Some(node) = node.filter(|_| !is_over || !runner.store.on_some_nodes().is_empty()) else { return Ok(None) };
        if !is_over {
            reaches(engine, &hosts, &node.reference)?;
        }
        Ok(Some(node))
    });
    let node = match reached {
        Ok(Some(node)) => node,
        Ok(None) => return Ok(Some(FromNodes::default())),
        Err(why) => {
            runner.progress.line(&format!("no trials on single nodes: {why}"));
            return Ok(Some(FromNodes::default()));
        }
    };
    let folder = runner.store.folder().clone();
    let phases = |trial| parquet::read(&folder.phases(trial)).ok();
    let session = runner.store.session();
    let (extent, seed) = (session.extent, session.seed);
    let predictor = node.predictor().map_err(bad_input)?;
    let store = if is_over {
        runner.store
    } else {
        runner.progress.line(&node.sentence(hosts.len(), extent));
        let setup = NodeSetup {
            hosts: &hosts,
            domain: node.domain.as_ref(),
            reference: &node.reference,
            strategy,
            extent,
            seed,
        };
        let model = SessionModel::new(node.domain.as_ref(), &node.machine, predictor, Default::default(), true);
        let mut search = NodeSearch { setup, model, runner };
        if !search.run()? {
            return Ok(None);
        }
        search.runner.progress.line(&said(search.runner.store, hosts.len()));
        search.runner.store
    };
    let (rows, reference) = (store.on_some_nodes(), &node.reference);
    let one_node = corrected(&node.machine, rows, &speeds(rows, reference), phases);
    let rows = cancelled(rows, reference);
    if rows.is_empty() {
        return Ok(Some(FromNodes::default()));
    }
    let predictor = Predictor::new(&one_node).map_err(bad_input)?;
    let beyond = beyond(domain, &rows, &predictor, node.domain.spec().cores);
    Ok(Some(FromNodes { machine: Some(Machine { phases: one_node.phases, ..machine.clone() }), beyond }))
}

/// Whether the launcher starts the ranks of `reference` on one node, here the last one.
///
/// # Errors
/// Where they are instead, or what it says.
fn reaches(engine: &Engine, hosts: &[String], reference: &Candidate) -> Result<(), String> {
    let (Some(job), Some(last)) = (engine.mpi_job(), hosts.last()) else { return Ok(()) };
    let job = job.on(std::slice::from_ref(last));
    let found = bindings(&job, reference.hpl.ranks(), reference.engine.threads).map_err(|error| error.to_string())?;
    let others: Vec<&str> = found.hosts().into_iter().map(|(host, _)| host).filter(|host| host != last).collect();
    if others.is_empty() {
        return Ok(());
    }
    Err(format!("--launcher {} starts ranks that are meant for {last} on {}", job.launcher, others.join(" ")))
}

/// What was done, in a line.
fn said(store: &Store, nodes: usize) -> String {
    let rows = store.on_some_nodes();
    let passed = rows.iter().filter(|row| row.passed).count();
    format!(
        "{passed} of {} trials on {nodes} single nodes passed: they correct what is expected of all nodes",
        rows.len()
    )
}
