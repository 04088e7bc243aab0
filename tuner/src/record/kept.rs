//! What is kept in memory of the trials that have ended.

use super::row::KILLED_WITH_SESSION;
use super::session::{RanOn, Session};
use super::{Finished, Outcome, Row, ShortRow, Shortener};

/// The trials of a session that have ended, by where they ran, each in the order in which they ended.
#[derive(Debug, Default)]
pub(super) struct KeptRows {
    /// On all nodes of the session: without their texts, as there may be thousands.
    pub(super) on_all: Vec<ShortRow>,
    /// On some of them.
    pub(super) on_some: Vec<Row>,
    /// On the nodes that the session had before.
    pub(super) elsewhere: Vec<Row>,
    /// The last one on all nodes.
    pub(super) last: Option<Row>,
    /// What went wrong in the last one of them that failed.
    pub(super) last_failure: Option<String>,
    /// How many of the last ones on all nodes were killed with the session each time that they ran.
    pub(super) killed_last: usize,
    /// The number after all of theirs.
    pub(super) next: u64,
    shortener: Shortener,
}

impl KeptRows {
    /// Takes in a row that is in the journal of `session`.
    pub(super) fn take(&mut self, row: Row, session: &Session) {
        self.next = self.next.max(row.trial + 1);
        match session.place_of(&row) {
            RanOn::SomeNodes => self.on_some.push(row),
            RanOn::OtherNodes => self.elsewhere.push(row),
            RanOn::AllNodes => {
                self.killed_last = if is_killed_with_session(&row) { self.killed_last + 1 } else { 0 };
                self.on_all.push(self.shortener.short(&row));
                if row.failure_detail.is_some() {
                    self.last_failure.clone_from(&row.failure_detail);
                }
                self.last = Some(row);
            }
        }
    }

    /// Their numbers.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        let of_others = self.on_some.iter().chain(&self.elsewhere).map(|row| row.trial);
        self.on_all.iter().map(Finished::trial).chain(of_others)
    }
}

/// Whether the session was ended at once each time that the trial of `row` ran.
fn is_killed_with_session(row: &Row) -> bool {
    let detail = row.failure_detail.as_deref().unwrap_or_default();
    row.outcome == Outcome::Killed && detail.ends_with(KILLED_WITH_SESSION)
}
