//! The search on single nodes, before the one on all of them: each node runs another trial at the same time.
//!
//! [`batch`] says what the nodes run next, a pure function of the record; [`speed`] which nodes can take a trial, and how fast
//! each is, so that the speed of a node cancels. What the trials show is prior for the runs on all nodes
//! ([`crate::earlier::nodes`]); they are never compared with those.

pub mod batch;
pub mod speed;

use self::batch::{NodeSetup, NodesView};
use crate::error::RecordError;
use crate::record::parquet;
use crate::search::cost::CostEstimate;
use crate::search::drive::TrialRunner;
use crate::search::model::SessionModel;

/// The search on single nodes.
pub struct NodeSearch<'a> {
    /// What is searched.
    pub setup: NodeSetup<'a>,
    /// The model of one node with its predictions of the points.
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
        self.runner.progress.phase("searching on single nodes");
        loop {
            let store = &*self.runner.store;
            let rows = speed::cancelled(store.on_some_nodes(), self.setup.reference);
            let phases = |trial| parquet::read(&store.folder().phases(trial)).ok();
            self.model.learn(&rows, self.runner.budget.left_s(), phases);
            let view = NodesView {
                setup: self.setup,
                prior: self.model.prior.as_ref(),
                rows: store.on_some_nodes(),
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
            if !self.runner.together(&batch, None)? {
                return Ok(false);
            }
        }
    }
}
