//! The search on groups of nodes before that on all of them, stage by stage, and what it leaves.

use std::collections::BTreeSet;

use objectives::predict::Predictor;
use space::dims::Point;
use space::domain::{DomainSpec, Limits};
use space::machine::Machine;
use space::{Candidate, Candidates};

use crate::cluster::launched::bindings::bindings;
use crate::earlier::nodes::{beyond, corrected};
use crate::exit::bad_input;
use crate::record::{Row, parquet};
use crate::search::cost::model_s;
use crate::search::drive::TrialRunner;
use crate::search::model::SessionModel;
use crate::search::nodes::NodeSearch;
use crate::search::nodes::batch::{MOST, NodeSetup};
use crate::search::nodes::group::{NodeGroup, alike, groups, of_size, on_nodes, sizes};
use crate::search::nodes::shifts::{ArmShift, RateDoubts, Star};
use crate::search::nodes::speed::{cancelled, fit, speeds};
use crate::search::nodes::worth::{AllNodes, NodeStage, Worthwhile, worthwhile};
use crate::search::strategy::Strategy;
use crate::session::engine::Engine;
use crate::session::node_task::{FEWEST, NodeTask};

/// What a session on all nodes is made of, parts of which are searched before.
pub(super) struct Parts<'a> {
    pub(super) engine: &'a Engine,
    pub(super) machine: &'a Machine,
    pub(super) spec: &'a DomainSpec,
    pub(super) limits: &'a Limits,
    pub(super) domain: &'a dyn Candidates,
    pub(super) strategy: &'a dyn Strategy,
}

/// What trials on groups of nodes say of the machine and of the points of all nodes.
#[derive(Default)]
pub(super) struct FromNodes {
    /// The machine with corrected phases; `None` where no trial says anything.
    pub(super) machine: Option<Machine>,
    /// For each size of groups, rising, logarithms of rates over what is expected, at these points.
    pub(super) beyond: Vec<Vec<(Point, f64)>>,
}

/// A size of groups that has been searched.
struct SearchedStage {
    task: NodeTask,
    /// Its rows, without the speeds of the groups.
    rows: Vec<Row>,
}

/// Searches on groups of nodes, stage by stage, where there are enough nodes and nothing has run on all of them; `None` when a signal asked to
/// stop. What was found there before is taken up.
///
/// # Errors
/// Records that could not be written, or a description of the machine in which something is missing.
pub(super) fn from_nodes(parts: &Parts<'_>, runner: &mut TrialRunner<'_>) -> anyhow::Result<Option<FromNodes>> {
    let asked = runner.store.session().groups.clone();
    match NodeTask::are_made(runner.store.session(), parts.engine) {
        Ok(true) => {}
        Ok(false) => {
            if asked.is_some_and(|sizes| !sizes.0.is_empty()) {
                let said = format!(
                    "no trials on groups of nodes: they need {FEWEST} nodes or more, and the rate alone to be searched"
                );
                runner.progress.line(&said);
            }
            return Ok(Some(FromNodes::default()));
        }
        Err(why) => {
            runner.progress.line(&format!("no trials on single nodes: {why}"));
            return Ok(Some(FromNodes::default()));
        }
    }
    let mut stages = Stages { parts, machine: parts.machine.clone(), searched: Vec::new(), corrected: false };
    if !runner.store.rows().is_empty() {
        for size in sizes(runner.store.on_some_nodes()) {
            stages.take_up(size, runner)?;
        }
        return stages.found().map(Some);
    }
    let wanted = match &asked {
        Some(sizes) => sizes.0.iter().map(|&nodes| Worthwhile { nodes, trials: MOST }).collect(),
        None => vec![Worthwhile { nodes: 1, trials: MOST }],
    };
    for size in wanted {
        if !stages.search(size, runner)? {
            return Ok(None);
        }
    }
    if asked.is_none() && !stages.searched.is_empty() {
        for size in stages.worthwhile(runner)? {
            if !stages.search(size, runner)? {
                return Ok(None);
            }
        }
    }
    stages.found().map(Some)
}

/// The stages of a session before its runs on all nodes.
struct Stages<'a> {
    parts: &'a Parts<'a>,
    /// The machine with its phases as the stages so far correct them.
    machine: Machine,
    /// Whether they did.
    corrected: bool,
    searched: Vec<SearchedStage>,
}

impl Stages<'_> {
    fn task(&self, size: usize, runner: &TrialRunner<'_>) -> Result<NodeTask, String> {
        let Parts { engine, spec, limits, .. } = self.parts;
        NodeTask::of(runner.store.session(), engine, &self.machine, spec, limits, size)
    }

    /// The groups of `size` nodes: of single ones the first, of several those that are alike.
    fn groups(&self, size: usize, runner: &TrialRunner<'_>) -> Vec<NodeGroup> {
        let session = runner.store.session();
        if size == 1 {
            return groups(&session.hosts, 1);
        }
        let single = of_size(runner.store.on_some_nodes(), 1);
        let reference = self.searched.iter().find(|of| of.task.size == 1).map(|of| &of.task.reference);
        let logs = reference.map(|reference| speeds(&single, reference)).unwrap_or_default();
        let each: Vec<NodeGroup> = session.hosts.chunks(1).map(NodeGroup::new).collect();
        let can: BTreeSet<&str> = fit(&each, &single).into_iter().map(|node| node.name.as_str()).collect();
        let relative = if session.unequal.node_cores.is_some() { session.unequal.relative() } else { Vec::new() };
        let tried: BTreeSet<&str> = single.iter().filter_map(|row| row.nodes.as_deref()).collect();
        let alike = alike(&session.hosts, &relative, &logs, &tried);
        groups(&alike.into_iter().filter(|host| can.contains(host.as_str())).collect::<Vec<_>>(), size)
    }

    /// The larger sizes that are worth their time after the stages so far.
    fn worthwhile(&self, runner: &TrialRunner<'_>) -> anyhow::Result<Vec<Worthwhile>> {
        let extent = runner.store.session().extent;
        let doubts = RateDoubts::of(&self.machine);
        let look = |task: &NodeTask| -> anyhow::Result<(f64, Vec<ArmShift>)> {
            let predictor = task.predictor().map_err(bad_input)?;
            let star = Star::new(task.domain.as_ref(), &task.reference, &predictor);
            let arms = doubts.shifts(&task.machine, &star).map_err(bad_input)?;
            Ok((model_s(&predictor, &task.reference, extent), arms))
        };
        let nodes = runner.store.session().hosts.len();
        // What does not fit a part of the nodes is not searched there.
        let Ok(all) = self.task(nodes, runner) else { return Ok(Vec::new()) };
        let (trial_s, arms) = look(&all)?;
        let all = AllNodes { trial_s, arms: &arms };
        let stage = |task: &NodeTask, groups: usize| -> anyhow::Result<NodeStage> {
            let (trial_s, arms) = look(task)?;
            Ok(NodeStage::new(task.size, groups, trial_s, &arms, &all))
        };
        let mut seen = Vec::new();
        for SearchedStage { task, rows } in &self.searched {
            let passed = rows.iter().filter(|row| row.passed).count();
            seen.push((stage(task, self.groups(task.size, runner).len())?, passed));
        }
        let mut larger = Vec::new();
        for size in (1..).map(|power| 1 << power).take_while(|size| 2 * size <= nodes) {
            let count = self.groups(size, runner).len();
            if let Some(task) = self.task(size, runner).ok().filter(|_| count >= 2) {
                larger.push(stage(&task, count)?);
            }
        }
        Ok(worthwhile(&seen, &larger, &all, runner.budget.total_s()))
    }

    /// Searches on groups of a size, unless what was found there is to be taken up only; `false` when a signal asked to stop.
    fn search(&mut self, size: Worthwhile, runner: &mut TrialRunner<'_>) -> anyhow::Result<bool> {
        let on = on_nodes(size.nodes);
        let groups = self.groups(size.nodes, runner);
        let task = if groups.len() < 2 {
            Err(format!("the nodes that are alike make {} of them", groups.len()))
        } else {
            let task = self.task(size.nodes, runner);
            task.and_then(|task| reaches(self.parts.engine, &groups, &task.reference).map(|()| task))
        };
        let task = match task {
            Ok(task) => task,
            Err(why) => {
                runner.progress.line(&format!("no trials on {on}: {why}"));
                return Ok(true);
            }
        };
        // A later stage has begun.
        if sizes(runner.store.on_some_nodes()).last().is_none_or(|last| *last <= size.nodes) {
            let session = runner.store.session();
            let (extent, seed) = (session.extent, session.seed);
            runner.progress.line(&task.sentence(groups.len(), extent));
            let setup = NodeSetup {
                groups: &groups,
                domain: task.domain.as_ref(),
                reference: &task.reference,
                most: size.trials,
                strategy: self.parts.strategy,
                extent,
                seed,
            };
            let predictor = task.predictor().map_err(bad_input)?;
            let beyond = self.beyond(task.domain.as_ref())?;
            let known = (Vec::new(), beyond);
            let model = SessionModel::new(task.domain.as_ref(), &task.machine, predictor, known, true, extent);
            if !(NodeSearch { setup, size: size.nodes, model, runner: runner.reborrowed() }).run()? {
                return Ok(false);
            }
            let rows = of_size(runner.store.on_some_nodes(), size.nodes);
            let passed = rows.iter().filter(|row| row.passed).count();
            let so =
                if passed > 0 { "they correct what is expected of all nodes" } else { "nothing is learned from them" };
            runner.progress.line(&format!("{passed} of {} trials on {} {on} passed: {so}", rows.len(), groups.len()));
        }
        self.take_up(size.nodes, runner)?;
        Ok(true)
    }

    /// Corrects the machine by the rows on groups of `size` nodes, and keeps them.
    fn take_up(&mut self, size: usize, runner: &TrialRunner<'_>) -> anyhow::Result<()> {
        let Ok(task) = self.task(size, runner) else { return Ok(()) };
        let folder = runner.store.folder();
        let phases = |trial| parquet::read(&folder.phases(trial)).ok();
        let rows = of_size(runner.store.on_some_nodes(), size);
        let reference = &task.reference;
        let machine = corrected(&task.machine, &rows, &speeds(&rows, reference), phases);
        let rows = cancelled(&rows, reference);
        if !rows.is_empty() {
            self.machine.phases = machine.phases;
            self.corrected = true;
            self.searched.push(SearchedStage { task, rows });
        }
        Ok(())
    }

    /// What each stage shows beyond the model, at the points of `domain` that its rows stand for.
    fn beyond(&self, domain: &dyn Candidates) -> anyhow::Result<Vec<Vec<(Point, f64)>>> {
        let of = |stage: &SearchedStage| {
            let machine = Machine { phases: self.machine.phases.clone(), ..stage.task.machine.clone() };
            let predictor = Predictor::new(&machine).map_err(bad_input)?;
            Ok(beyond(domain, &stage.rows, &predictor, stage.task.domain.spec().cores))
        };
        self.searched.iter().map(of).collect()
    }

    fn found(self) -> anyhow::Result<FromNodes> {
        let beyond = self.beyond(self.parts.domain)?;
        Ok(FromNodes { machine: Some(self.machine).filter(|_| self.corrected), beyond })
    }
}

/// Whether the launcher starts the ranks of `reference` on the nodes of a group, here the last one, and on all of these.
///
/// # Errors
/// Where they are instead, or what it says.
fn reaches(engine: &Engine, groups: &[NodeGroup], reference: &Candidate) -> Result<(), String> {
    let (Some(job), Some(last)) = (engine.mpi_job(), groups.last()) else { return Ok(()) };
    let job = job.on(&last.hosts);
    let found = bindings(&job, reference.hpl.ranks(), reference.engine.threads).map_err(|error| error.to_string())?;
    let hosts: Vec<&str> = found.hosts().into_iter().map(|(host, _)| host).collect();
    let others: Vec<&str> = hosts.iter().copied().filter(|host| last.hosts.iter().all(|of| of != host)).collect();
    let named = last.hosts.join(" ");
    if !others.is_empty() {
        return Err(format!(
            "--launcher {} starts ranks that are meant for {named} on {}",
            job.launcher,
            others.join(" ")
        ));
    }
    if hosts.len() < last.hosts.len() {
        return Err(format!(
            "--launcher {} starts the ranks that are meant for {named} on {} alone",
            job.launcher,
            hosts.join(" ")
        ));
    }
    Ok(())
}
