//! What is to be seen of a session at one moment: words, numbers and lists, and nothing of a terminal.
//!
//! [`WatchModel::new`] makes it of a [`Record`]. Figures are those of the report ([`crate::report::Summary`]); no statistics are made here.

mod curve;
mod figures;
mod machine;
mod state;
mod trials;

pub use curve::Curve;
pub use figures::Figure;
pub use state::{Clock, SessionState};
pub use trials::{TrialLine, TrialList, TrialUnderWay};

use crate::report::importance::Importance;
use crate::report::nodes::{self, NodeSpeed};
use crate::report::sentences;
use crate::watch::reading::Record;
use crate::watch::work::Work;

/// What is to be seen of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct WatchModel {
    /// Name of the session.
    pub name: String,
    /// Its machine, engine and N.
    pub about: String,
    /// Whether nothing of it is measured.
    pub simulated: bool,
    /// What it does.
    pub state: SessionState,
    /// Its time.
    pub clock: Clock,
    /// What a stop at this moment leaves, or what the session has left.
    pub outcome: Figure,
    /// Best, default, and how they compare; the most important first.
    pub figures: Vec<Figure>,
    /// Rates of the search, trial by trial.
    pub curve: Option<Curve>,
    /// The trial under way.
    pub running: Option<TrialUnderWay>,
    /// The trials that have ended.
    pub trials: TrialList,
    /// Dimensions that made a difference, where a permutation test shows it.
    pub importance: Vec<Importance>,
    /// Dimensions that made a difference in one clause, or why that is not judged.
    pub differences: Option<String>,
    /// Clock, steal and drift.
    pub machine: Option<String>,
    /// The nodes, where there are several.
    pub nodes: Vec<NodeSpeed>,
    /// What is wrong with the record, or was assumed.
    pub doubts: Vec<String>,
}

impl WatchModel {
    /// What is to be seen of this record.
    pub fn new(record: &Record) -> Self {
        let Record { session, summary, rows, work, .. } = record;
        let running = record.running.as_ref().filter(|_| *work != Work::Over);
        let behind = rows.len().saturating_sub(summary.trials);
        let doubts = record.doubts.iter().cloned().chain(
            // Where the next summary of a long record is not due yet.
            (behind > 0 && summary.trials > 0)
                .then(|| format!("best, default and differences are those of the first {} trials", summary.trials)),
        );
        let curve = Curve::new(session, rows, summary);
        let raised = curve.as_ref().map_or(&[][..], |curve| &curve.raised);
        let trials = TrialList::new(session, rows, summary, raised);
        Self {
            name: session.name.clone(),
            about: state::about(session, rows),
            simulated: session.is_simulated(),
            state: SessionState::new(record),
            clock: Clock::new(record),
            outcome: figures::outcome(summary, *work),
            figures: figures::figures(summary, *work),
            curve,
            running: running.map(|running| TrialUnderWay::new(running, session)),
            trials,
            importance: summary.importance.iter().filter(|dim| dim.is_shown()).cloned().collect(),
            differences: sentences::importances(summary),
            machine: machine::machine(rows, summary),
            nodes: nodes::speeds(session),
            doubts: doubts.collect(),
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
