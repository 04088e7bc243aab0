//! The candidates that a summary is about: the best, the baseline and the expert's configuration.

use space::Candidate;

use super::score::Score;
use crate::record::lead::Lead;
use crate::record::session::Session;
use crate::record::{Identity, Row};
use crate::search::rounds::{self, TakesBack};

/// The candidates that a summary is about.
pub(super) struct Chosen {
    pub(super) baseline: Option<Candidate>,
    /// As [`super::Summary::lead`].
    pub(super) lead: Option<Lead>,
    /// Why the baseline is the best, where it has taken the place of the choice.
    pub(super) taken_back: Option<TakesBack>,
    /// Whole runs of the best.
    pub(super) best: Option<Score>,
    /// The best at the N of the search.
    pub(super) found: Option<Candidate>,
    /// The expert's configuration.
    pub(super) expert: Option<Candidate>,
}

impl Chosen {
    /// Those of a session with these rows, whose whole runs have these scores.
    pub(super) fn new(session: &Session, rows: &[Row], scores: &[Score]) -> Self {
        let (objective, search) = (session.objective, session.lead_of_search);
        let baseline = rounds::baseline(rows);
        let usual = baseline.as_ref();
        let lead = usual.and_then(|usual| rounds::lead(rows, usual, objective, search));
        let taken_back = usual.and_then(|usual| rounds::takes_back(rows, usual, objective, search));
        let best = best(session, rows, scores, usual.filter(|_| taken_back.is_some()));
        let found = best.as_ref().map(|best| at_target_n(&best.candidate, session));
        let choice = session.expert.as_ref();
        let expert = choice.zip(usual).and_then(|(choice, usual)| choice.candidate(usual, session.profile()));
        Self { baseline, lead, taken_back, best, found, expert }
    }
}

/// Whole runs of the best; see [`super::Summary::best`]. `instead`: what takes the place of the choice.
fn best(session: &Session, rows: &[Row], scores: &[Score], instead: Option<&Candidate>) -> Option<Score> {
    let score_of = |candidate: &Candidate| scores.iter().find(|score| score.candidate == *candidate).cloned();
    // At the target N, else at that of its final run.
    let whole = |candidate: Candidate| {
        let passed = rows.iter().rfind(|row| {
            row.strategy == Identity::FINAL && row.passed && at_target_n(&row.candidate(), session) == candidate
        });
        score_of(&candidate).or_else(|| score_of(&passed?.candidate()))
    };
    let first = rows.iter().find(|row| row.strategy == Identity::FINAL && row.passed);
    let chosen = || whole(at_target_n(&first?.candidate(), session));
    let instead = instead.cloned().and_then(whole);
    let at_n = || scores.iter().find(|score| Some(score.candidate.hpl.n) == session.n).cloned();
    instead.or_else(chosen).or_else(at_n).or_else(|| scores.first().cloned())
}

/// The candidate at the N that is searched.
pub(super) fn at_target_n(candidate: &Candidate, session: &Session) -> Candidate {
    candidate.at_n(session.n.unwrap_or(candidate.hpl.n))
}
