//! The search on groups of nodes, before the one on all of them: each group runs another trial at the same time, first single nodes, then
//! larger groups where they are worth their time.
//!
//! [`group`] makes the groups, [`worth`] says by [`shifts`] how large they are, [`batch`] what they run next, all pure functions of the record and the model;
//! [`speed`] says which groups can take a trial, and how fast each is, so that its speed cancels. What the trials of a stage show is prior
//! for those of larger groups and of all nodes ([`crate::earlier::nodes`]); they are never compared with those.

pub mod batch;
pub mod group;
pub mod shifts;
pub mod speed;
pub mod worth;

use self::batch::{NodeSetup, NodesView};
use self::group::{of_size, on_nodes};
use crate::error::RecordError;
use crate::record::parquet;
use crate::search::cost::CostEstimate;
use crate::search::drive::TrialRunner;
use crate::search::model::SessionModel;

/// The search on groups of one size.
pub struct NodeSearch<'a> {
    /// What is searched.
    pub setup: NodeSetup<'a>,
    /// Nodes of a group.
    pub size: usize,
    /// The model of a group with its predictions of the points.
    pub model: SessionModel<'a>,
    /// Starts and records trials.
    pub runner: TrialRunner<'a>,
}

impl NodeSearch<'_> {
    /// Runs batches of trials until the share of the budget for them is used; `false` when a signal asked to stop.
    ///
    /// # Errors
    /// [`RecordError`] when a trial could not be recorded; everything before it is.
    pub fn run(&mut self) -> Result<bool, RecordError> {
        self.runner.progress.phase(&format!("searching on {}", on_nodes(self.size)));
        loop {
            let store = &*self.runner.store;
            let ended = of_size(store.on_some_nodes(), self.size);
            let rows = speed::cancelled(&ended, self.setup.reference);
            let phases = |trial| parquet::read(&store.folder().phases(trial)).ok();
            self.model.learn(&rows, phases);
            let view = NodesView {
                setup: self.setup,
                prior: self.model.prior.as_ref(),
                rows: &ended,
                interrupted: store.interrupted(),
                cost: &CostEstimate::new(&rows, &self.model.predictor),
                next_trial: store.next_trial(),
                left_s: self.runner.budget.left_s(),
                total_s: self.runner.budget.total_s(),
            };
            let batch = view.next();
            if batch.is_empty() {
                return Ok(true);
            }
            if !self.runner.together(&batch, None, &self.model.predictor)? {
                return Ok(false);
            }
        }
    }
}
