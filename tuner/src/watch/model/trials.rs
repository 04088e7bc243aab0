//! The trial under way, and those that have ended.

use objectives::real::Extent;
use space::Candidate;
use space::params::Coded;

use crate::record::now::human;
use crate::record::now::on_one_line;
use crate::record::session::Session;
use crate::record::{Identity, Row};
use crate::report::sentences::failures;
use crate::report::{Summary, digits};
use crate::watch::look::Tone;
use crate::watch::reading::Running;

/// Trials that are listed.
const LISTED: usize = 100;

/// The trial under way.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialUnderWay {
    /// Which one, how long it runs, and on which nodes where these are not all of the session.
    pub time: String,
    /// How much of it is done, 0 to 1: by the engine's own words, else by the time that is expected.
    pub done: f64,
    /// What is predicted of it, and why it was chosen.
    pub why: String,
    /// What runs.
    pub candidate: String,
}

impl TrialUnderWay {
    pub(super) fn new(running: &Running, session: &Session) -> Self {
        let Running { now, since_s, predicted, progress, .. } = running;
        let what = if now.extent == Extent::Windows { "windows" } else { "whole run" };
        let (since, expected) = (short(*since_s), short(now.expected_s));
        let time = format!("trial {}, {what} for {since} of about {expected}", now.trial);
        let time = match progress {
            Some(at) => {
                let rate = digits(at.rate_gflops);
                format!("{time}; {:.0} % of the flops done at {rate} GFLOP/s", 100.0 * at.flops)
            }
            None if now.limit_s.is_finite() => format!("{time}, at most {}", short(now.limit_s)),
            None => time,
        };
        let some = now.nodes.as_ref().filter(|_| now.nodes != session.node_names());
        let on = some.map_or(String::new(), |nodes| format!("; on {nodes}"));
        let done = progress.map_or(since_s / now.expected_s.max(1e-3), |at| at.flops);
        let predicted = predicted.map_or(String::new(), |of| {
            format!("predicted {} ± {} GFLOP/s; ", digits(of.rate_gflops), digits(of.rate_gflops * of.sd))
        });
        Self {
            time: format!("{time}{on}{}", now.others()),
            done: if done.is_finite() { done.clamp(0.0, 1.0) } else { 0.0 },
            why: format!("{predicted}{}: {}", now.strategy, now.why),
            candidate: on_one_line(&now.candidate),
        }
    }
}

/// A time in words, with its tenths where it is short.
fn short(seconds: f64) -> String {
    if (0.0..9.95).contains(&seconds) { format!("{seconds:.1} s") } else { human(seconds) }
}

/// One trial that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialLine {
    /// Its number.
    pub trial: u64,
    /// Its rate, or how it failed.
    pub result: String,
    /// What that is: windows, a whole run, the final one.
    pub kind: &'static str,
    /// Whether it is worth a look.
    pub tone: Tone,
    /// The parameters under [`TrialList::names`].
    pub parameters: Vec<String>,
    /// Why it failed, or why it was chosen.
    pub why: String,
}

/// The trials that have ended, the latest first.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialList {
    /// How many there are, and how many failed.
    pub words: String,
    /// The columns of parameters.
    pub names: Vec<&'static str>,
    /// The trials.
    pub lines: Vec<TrialLine>,
}

impl TrialList {
    /// `raised`: the trials that raised the best so far.
    pub(super) fn new(session: &Session, rows: &[Row], summary: &Summary, raised: &[u64]) -> Self {
        let names = ["NB", "P×Q×t", "DEPTH", "BCAST", "PFACT", "RFACT", "NBMIN", "NDIV", ""];
        let latest = rows.iter().rev().take(LISTED);
        let lines = latest.map(|row| line(row, raised.contains(&row.trial), session));
        let failed = rows.iter().filter(|row| !row.passed).count();
        let kinds = failures(summary);
        let words = match (rows.len(), failed) {
            (0, _) => "none yet".to_owned(),
            (all, 0) => format!("{all}, none failed"),
            (all, _) if summary.trials == all => format!("{all}, failed: {kinds}"),
            (all, failed) => format!("{all}, {failed} failed"),
        };
        Self { words, names: names.to_vec(), lines: lines.collect() }
    }
}

fn line(row: &Row, raised: bool, session: &Session) -> TrialLine {
    let rate = row.comparable_rate_gflops();
    let kind = match (row.strategy.as_str(), row.extent) {
        (Identity::FINAL, _) => "final",
        (_, Extent::Windows) => "windows",
        (_, Extent::Whole) => "whole",
    };
    let reason = row.failure_detail.as_deref().and_then(|detail| detail.lines().next());
    let mut parameters = parameters(&row.candidate());
    if let Some(last) = parameters.last_mut().filter(|_| session.n != Some(row.n)) {
        *last = format!("N {} {last}", row.n).trim_end().to_owned();
    }
    TrialLine {
        trial: row.trial,
        result: rate.map_or_else(|| row.outcome.name().to_owned(), |rate| format!("{rate:.2}")),
        kind,
        tone: match rate {
            None => Tone::Bad,
            Some(_) if kind == "final" || raised => Tone::Good,
            Some(_) => Tone::Plain,
        },
        parameters,
        why: match reason {
            Some(reason) if !row.passed => reason.to_owned(),
            _ => format!("{}: {}", row.strategy, row.why),
        },
    }
}

/// The parameters of a candidate that a search changes most, in the order of [`TrialList::names`].
fn parameters(candidate: &Candidate) -> Vec<String> {
    let (hpl, engine) = (&candidate.hpl, &candidate.engine);
    let mut more: Vec<String> = engine.extra.iter().map(|(name, value)| format!("{name} {value}")).collect();
    more.extend(engine.settings.named().map(|(name, value)| format!("{name} {value}")));
    if engine.split != space::Share::ZERO {
        more.push(format!("split {}", engine.split));
    }
    if !engine.weights.is_empty() {
        more.push(format!("weights {}", engine.weights));
    }
    vec![
        hpl.nb.to_string(),
        format!("{}×{}×{}t", hpl.p, hpl.q, engine.threads),
        hpl.depth.to_string(),
        hpl.bcast.name().to_owned(),
        hpl.pfact.name().to_owned(),
        hpl.rfact.name().to_owned(),
        hpl.nbmin.to_string(),
        hpl.ndiv.to_string(),
        more.join(" "),
    ]
}
