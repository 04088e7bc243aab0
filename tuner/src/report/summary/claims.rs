//! What a session claims of its best candidate, from runs one right after the other.

use objectives::real::Extent;
use serde::Serialize;
use space::Candidate;

use super::super::format::{digits, ratio_in_words, runs_in_words, watts_above};
use super::super::stats::{Ratio, paired_ratio};
use super::over::is_over;
use super::score::{Score, scores};
use crate::record::lead::Lead;
use crate::record::session::{ExpertChoice, Session};
use crate::record::{Finished, Identity, Objective, Row};
use crate::search::rounds::{self, TakesBack};

/// The best beside another configuration.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Comparison {
    /// Best by the other, from pairs.
    Measured {
        /// The ratio.
        #[serde(flatten)]
        ratio: Ratio,
    },
    /// The best is the other.
    Same {
        /// Which one that is.
        best_is: &'static str,
    },
    /// There are no pairs.
    NotMeasured {
        /// Why, as a clause.
        not_measured: String,
    },
}

impl Comparison {
    fn not_measured(why: &str) -> Self {
        Self::NotMeasured { not_measured: why.to_owned() }
    }

    /// The ratio of the pairs.
    pub fn ratio(&self) -> Option<&Ratio> {
        match self {
            Self::Measured { ratio, .. } => Some(ratio),
            _ => None,
        }
    }

    /// The comparison in one clause, `1.013 (0.998-1.024, 96.9 %, 6 pairs)`.
    pub fn words(&self) -> String {
        match self {
            Self::Measured { ratio } => ratio_in_words(ratio),
            Self::Same { best_is } => format!("1: the best is {best_is}"),
            Self::NotMeasured { not_measured } => format!("not measured: {not_measured}"),
        }
    }
}

/// Best by baseline, from the pairs after the choice.
pub(super) fn by_baseline(
    rows: &[Row],
    best: Option<&Candidate>,
    baseline: Option<&Candidate>,
    session: &Session,
) -> Comparison {
    let objective = session.objective;
    let (best, baseline) = match (best, baseline) {
        (None, _) => return Comparison::not_measured(no_best(rows)),
        (_, None) => return Comparison::not_measured("the default did not run"),
        (Some(best), Some(baseline)) if best == baseline => return Comparison::Same { best_is: "the default" },
        (Some(best), Some(baseline)) => (best, baseline),
    };
    if let Some(why) = above_limit(rows, [(best, "the best"), (baseline, "the default")], objective) {
        return Comparison::not_measured(&why);
    }
    match paired_ratio(&rounds::in_turn(rows, best, baseline, objective)) {
        Some(ratio) => Comparison::Measured { ratio },
        None => Comparison::not_measured(&never_passed(rows, |row| row.is_of(baseline)).map_or_else(
            || no_pairs(rows, [best, baseline], session, "no time was left for pairs of the two"),
            |why| format!("the default has failed in each run, the last time: {why}"),
        )),
    }
}

/// Why two are not compared although they ran: one of them is above the power limit.
fn above_limit(rows: &[Row], two: [(&Candidate, &str); 2], objective: Objective) -> Option<String> {
    let limit = objective.power_limit_w()?;
    two.into_iter().find_map(|(candidate, name)| {
        let (watts, extent) = rounds::above_limit_w(rows, candidate, objective)?;
        let takes = if extent == Extent::Whole { "takes" } else { "is predicted to take" };
        Some(format!("{name} {takes} {} W, above the power limit of {limit} W", watts_above(watts, limit)))
    })
}

/// Why two were not compared after the choice; `short` of time, where that is the reason.
fn no_pairs(rows: &[Row], [best, other]: [&Candidate; 2], session: &Session, short: &str) -> String {
    let ran = || !rounds::in_turn(rows, best, other, Objective::Gflops).is_empty();
    let is_final = |row: &Row| row.strategy == Identity::FINAL;
    let after = rounds::at_choice(rows).1;
    match session.objective {
        Objective::GflopsPerWatt if ran() => "the power of no pair was read".to_owned(),
        _ if !rows.iter().any(is_final) => "there was no final run, after which it is measured".to_owned(),
        _ => match never_passed(rows, is_final) {
            Some(why) => format!("the final run, after which it is measured, failed: {why}"),
            None if rounds::have_failed(after) => "the runs after the final run failed".to_owned(),
            None if !is_over(session, rows) => "the session has not come to it".to_owned(),
            None => short.to_owned(),
        },
    }
}

/// Why there is no best.
fn no_best(rows: &[Row]) -> &'static str {
    if rows.iter().any(|row| row.passed) { "no whole run has passed" } else { "no trial has passed" }
}

/// Why the last of these trials failed, where none has passed.
fn never_passed(rows: &[Row], is_own: impl Fn(&Row) -> bool) -> Option<String> {
    let mut own = rows.iter().filter(|row| is_own(row));
    let last = own.clone().next_back().filter(|_| own.all(|row| !row.passed))?;
    Some(last.failure_detail.clone().unwrap_or_else(|| last.outcome.name().to_owned()))
}

/// Best by the expert's configuration, from the rounds after the choice.
pub(super) fn by_expert(
    rows: &[Row],
    best: Option<&Candidate>,
    expert: Option<&Candidate>,
    session: &Session,
) -> Comparison {
    if let Some(ExpertChoice::None { reason }) = &session.expert {
        return Comparison::not_measured(reason);
    }
    let (best, expert) = match (best, expert) {
        (None, _) => return Comparison::not_measured(no_best(rows)),
        (_, None) => return Comparison::not_measured("the session chose no expert's configuration"),
        (Some(best), Some(expert)) if best == expert => return Comparison::Same { best_is: "the expert's" },
        (Some(best), Some(expert)) => (best, expert),
    };
    if let Some(why) = above_limit(rows, [(best, "the best"), (expert, "the expert's")], session.objective) {
        return Comparison::not_measured(&why);
    }
    if let Some(ratio) = paired_ratio(&rounds::in_turn(rows, best, expert, session.objective)) {
        return Comparison::Measured { ratio };
    }
    // Pairs in one process are of the expert's and what was verified, which gave way to the default.
    let ran_with = |other: &Candidate| !rounds::in_turn(rows, other, expert, Objective::Gflops).is_empty();
    if rounds::verified(rows, best.hpl.n).is_some_and(|verified| ran_with(&verified)) && !ran_with(best) {
        return Comparison::not_measured(
            "it ran in turn with the candidate that was chosen before, not with the default",
        );
    }
    let failed = rows.iter().find(|row| row.strategy == Identity::EXPERT && !row.passed);
    Comparison::not_measured(&failed.map_or_else(
        || no_pairs(rows, [best, expert], session, "no time was left after the final run"),
        |row| format!("its run failed, {}", row.failure_detail.as_deref().unwrap_or(row.outcome.name())),
    ))
}

/// A candidate with a higher median of its unpaired runs up to the choice than the best.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Higher {
    /// Its runs that are in no pair, at the N and extent of the search.
    pub score: Score,
    /// Those of the best.
    pub best: Score,
    /// Whether it is the baseline.
    pub is_baseline: bool,
    /// Its trials up to the choice that failed: a candidate that fails as often as it passes is not chosen where another one does not.
    pub failed: usize,
}

impl Higher {
    /// The candidate with the highest median, where that is not the best itself; `None` where the best has no such runs.
    pub(super) fn find(
        rows: &[Row],
        best: &Candidate,
        baseline: Option<&Candidate>,
        session: &Session,
    ) -> Option<Self> {
        let (before, _) = rounds::at_choice(rows);
        let is_paired = |row: &Row| row.reference_trial.is_some() || row.strategy == Identity::CONFIRM;
        let unpaired = before.iter().filter(|row| !is_paired(row));
        let scores = scores(unpaired, session.extent, session.objective);
        let first = scores.iter().find(|score| score.candidate.hpl.n == best.hpl.n)?;
        let own = scores.iter().find(|score| score.candidate == *best)?;
        if own.rate_gflops >= first.rate_gflops {
            return None;
        }
        let failed = before.iter().filter(|row| !row.passed && row.is_of(&first.candidate)).count();
        let is_baseline = Some(&first.candidate) == baseline;
        Some(Self { score: first.clone(), best: own.clone(), is_baseline, failed })
    }

    /// Why it is not the best, with the evidence. `by`: how the rates of pairs were found, where they are no measured ones.
    pub fn words(&self, by_baseline: &Comparison, by: &str) -> String {
        let who = if self.is_baseline { "the default" } else { "another candidate" };
        let figures = |score: &Score| format!("{}, {}", digits(score.rate_gflops), runs_in_words(score.runs));
        let own = format!("; the best {}", figures(&self.best));
        let failed = if self.failed > 0 { format!(", {} failed", self.failed) } else { String::new() };
        let unpaired = format!("{who} has the higher median of unpaired runs ({}{failed}{own})", figures(&self.score));
        match by_baseline {
            Comparison::Measured { ratio } => {
                format!("{unpaired}; in pairs{by}, run in turn, the best is {} of the default", ratio_in_words(ratio))
            }
            Comparison::Same { .. } => {
                format!("{unpaired}; no candidate was shown by pairs{by}, run in turn, to be above the default")
            }
            Comparison::NotMeasured { not_measured } => {
                format!("{unpaired}; the choice was not judged by pairs: {not_measured}")
            }
        }
    }
}

/// What the search had said of the best beside the default, and what it says with the pairs after the choice.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Leads {
    /// By the search alone.
    pub(crate) search: Option<Lead>,
    /// By both.
    pub(crate) all: Lead,
}

impl Leads {
    fn words(self) -> String {
        let search = self.search.map_or(String::new(), |lead| format!("the runs of the search had it {lead}; "));
        format!("{search}all in all it is {}", self.all)
    }
}

/// Why the best is not the default although pairs are in favour of that; `None` where they are not. `by` as of [`Higher::words`].
pub(crate) fn in_spite_of_pairs(by_baseline: &Comparison, leads: Leads, by: &str) -> Option<String> {
    let Comparison::Measured { ratio } = by_baseline else { return None };
    let against = || {
        let ratio = ratio_in_words(ratio);
        format!("in pairs{by} after the final run the best is {ratio} of the default; {}", leads.words())
    };
    (ratio.median < 1.0 && !leads.all.is_behind()).then(against)
}

/// A choice that was taken back after the final run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TakenBack {
    /// What the final run had verified.
    pub candidate: Candidate,
    /// It by the default in the pairs after that run; `None` without one.
    pub by_baseline: Option<Ratio>,
    /// Its watts, where these are above the power limit and those of the default are not.
    pub above_limit_w: Option<f64>,
    /// Whether the default is the best now; without a whole run of it there is nothing to show.
    pub default_is_best: bool,
}

impl TakenBack {
    /// The choice that was taken back for `baseline`; `best`: the candidate that is best now, at the N of the search.
    pub(super) fn new(
        rows: &[Row],
        baseline: &Candidate,
        why: TakesBack,
        best: Option<&Candidate>,
        objective: Objective,
    ) -> Option<Self> {
        let candidate = rounds::verified(rows, baseline.hpl.n)?;
        Some(Self {
            by_baseline: paired_ratio(&rounds::in_turn(rows, &candidate, baseline, objective)),
            candidate,
            above_limit_w: match why {
                TakesBack::WithinLimit(watts) => Some(watts),
                TakesBack::Ahead(_) => None,
            },
            default_is_best: best == Some(baseline),
        })
    }

    /// What happened, in one sentence. `by` as of [`Higher::words`].
    pub(crate) fn words(&self, leads: Option<Leads>, by: &str, objective: Objective) -> Option<String> {
        if let Some((watts, limit_w)) = self.above_limit_w.zip(objective.power_limit_w()) {
            let watts = watts_above(watts, limit_w);
            return Some(if self.default_is_best {
                format!(
                    "the candidate chosen before the final run takes {watts} W, more than the power limit, which the default keeps: the default is best"
                )
            } else {
                format!(
                    "the best takes {watts} W, more than the power limit, which the default keeps; no whole run of that was made in the time left"
                )
            });
        }
        let (ratio, leads) = (ratio_in_words(self.by_baseline.as_ref()?), leads?.words());
        Some(if self.default_is_best {
            format!(
                "the candidate chosen before the final run is {ratio} of the default in pairs{by} after it; {leads}: the default is best"
            )
        } else {
            format!(
                "in the pairs{by} after the final run the best is {ratio} of the default, of which no whole run was made in the time left; {leads}"
            )
        })
    }
}
