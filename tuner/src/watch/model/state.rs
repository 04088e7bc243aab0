//! What a session does, and its time.

use std::path::Path;

use objectives::real::{Extent, quoted};

use crate::record::now::human;
use crate::record::session::Session;
use crate::record::{Identity, Row};
use crate::report::summary::is_over;
use crate::watch::look::Tone;
use crate::watch::reading::Record;
use crate::watch::work::Work;

/// What a session does.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionState {
    /// In a word or two.
    pub stage: &'static str,
    /// What is known of its process.
    pub work: String,
    /// Whether that is good.
    pub tone: Tone,
    /// How it goes on, where the user has to do that.
    pub way_on: Option<String>,
}

impl SessionState {
    pub(super) fn new(record: &Record) -> Self {
        let final_passed = record.rows.iter().any(|row| row.strategy == Identity::FINAL && row.passed);
        match record.work {
            Work::AtWork => Self { stage: stage(record), work: "at work".to_owned(), tone: Tone::Good, way_on: None },
            Work::Silent { since_s } => Self {
                stage: stage(record),
                work: format!("no sign of life for {}", human(since_s)),
                tone: Tone::Doubt,
                way_on: None,
            },
            Work::Over if final_passed => {
                let work = match record.summary.verified_run() {
                    Some(_) => "with a verified run",
                    None => "the choice was taken back",
                };
                Self { stage: "ended", work: work.to_owned(), tone: Tone::Plain, way_on: None }
            }
            Work::Over => {
                let is_over = is_over(&record.session, &record.rows);
                Self {
                    stage: if is_over { "ended" } else { "stopped" },
                    work: "without a verified run".to_owned(),
                    tone: Tone::Doubt,
                    way_on: (!is_over).then(|| way_on(&record.folder)),
                }
            }
        }
    }
}

/// The command that continues a session.
fn way_on(folder: &Path) -> String {
    format!("continue with: hpl-tune --resume {}", quoted([folder]).join(""))
}

/// What a session at work does: by the trial under way, else by what there is.
fn stage(record: &Record) -> &'static str {
    let strategy = record.running.as_ref().map(|running| running.now.strategy.as_str());
    let final_tried = record.rows.iter().any(|row| row.strategy == Identity::FINAL);
    match strategy {
        Some(Identity::FINAL) => "final run",
        Some(Identity::PROMOTE) => "whole runs of the leaders",
        _ if final_tried => "pairs of best and default",
        Some(_) => "searching",
        None if !record.rows.is_empty() => "searching",
        None if !record.calibrated => "calibrating",
        None => "preparing the search",
    }
}

/// The time of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Clock {
    /// Part of the budget that is used, from 0 to 1.
    pub used: f64,
    /// In words, `1 min 15 s left of 2 min`.
    pub words: String,
}

impl Clock {
    pub(super) fn new(record: &Record) -> Self {
        let budget_s = record.session.budget_s;
        let mut used_s = record.session.used_s(&record.rows);
        if record.work == Work::AtWork {
            used_s += record.clock_age_s;
            if let Some(running) = &record.running {
                used_s = used_s.max(budget_s - running.now.left_s + running.told_s);
            }
        }
        let words = match record.work {
            Work::Over => format!("{} of {} used", human(used_s), human(budget_s)),
            _ => format!("{} left of {}", human(budget_s - used_s), human(budget_s)),
        };
        Self { used: if budget_s > 0.0 { (used_s / budget_s).clamp(0.0, 1.0) } else { 1.0 }, words }
    }
}

/// Machine, engine and N of a session, and by what it searches once there are trials: that is settled right before.
pub(super) fn about(session: &Session, rows: &[Row]) -> String {
    let place = match session.hosts.len() {
        0 | 1 => session.host.clone(),
        nodes => format!("{nodes} nodes"),
    };
    let engine = match (&session.kernels, session.engine.as_str()) {
        (Some(kernels), Session::OURS) => format!("kernels {kernels}"),
        (_, engine) => format!("engine {engine}"),
    };
    let n = session.n.map(|n| {
        let by = if session.extent == Extent::Windows { " by windows" } else { " by whole runs" };
        format!("N {n}{}", if rows.is_empty() { "" } else { by })
    });
    [Some(place), Some(engine), n].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
