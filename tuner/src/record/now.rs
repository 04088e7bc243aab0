//! `now.json`: what runs at this moment; the file exists only while something runs.

use std::time::Duration;

use jiff::Timestamp;
use objectives::real::Extent;
use serde::{Deserialize, Serialize};
use space::{Candidate, Share};

use crate::record::folder::{RunFolder, replace_file};
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::{Identity, PlannedTrial};

const NOW_SCHEMA: u32 = 1;

/// A trial under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Now {
    schema_version: u32,
    /// Its number.
    pub trial: u64,
    /// What chose it.
    pub strategy: String,
    /// Why, in one clause.
    pub why: String,
    /// A whole run or windows of one.
    pub extent: Extent,
    /// What runs.
    pub candidate: Candidate,
    /// On which nodes; `None` on this one alone.
    pub nodes: Option<String>,
    /// The command that runs it.
    pub command: String,
    /// Start in UTC, RFC 3339.
    pub started_utc: String,
    /// Seconds that it is expected to take.
    pub expected_s: f64,
    /// Seconds after which it is ended.
    pub limit_s: f64,
    /// Seconds of the budget that were left when it started.
    pub left_s: f64,
    /// The trials that run at the same time, on other nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<Now>,
}

impl Now {
    /// A trial that starts with `left_s` seconds of the budget left.
    pub fn running(identity: &Identity, plan: &PlannedTrial, limit_s: f64, left_s: f64) -> Self {
        Self {
            schema_version: NOW_SCHEMA,
            trial: identity.trial,
            strategy: identity.strategy.clone(),
            why: identity.why.clone(),
            extent: plan.extent,
            candidate: plan.candidate.clone(),
            nodes: identity.nodes.clone(),
            command: identity.command.clone(),
            started_utc: identity.started_utc.clone(),
            expected_s: plan.expected_s,
            limit_s,
            left_s,
            beside: Vec::new(),
        }
    }

    /// Those that run at the same time; `None` where none does.
    pub fn together(mut all: impl Iterator<Item = Self>) -> Option<Self> {
        let first = all.next()?;
        Some(Self { beside: all.collect(), ..first })
    }

    /// Writes it. If the disk is full, the trial itself reports that.
    pub fn write(&self, folder: &RunFolder) {
        let json = serde_json::to_vec_pretty(self).expect("has no keys but names");
        let _ = replace_file(&folder.now(), &json);
    }

    /// Nothing runs.
    pub fn ended(folder: &RunFolder) {
        let _ = std::fs::remove_file(folder.now());
    }

    /// What runs in a folder whose session works; `None` between trials, and where the file is damaged.
    pub fn read(folder: &RunFolder) -> Option<Self> {
        serde_json::from_slice(&plain::read(&folder.now(), TEXT_BYTES).ok()?).ok()
    }

    /// On one line, at the time `now`.
    pub fn line(&self, now: Timestamp) -> String {
        let since =
            self.started_utc.parse().map_or(0.0, |started: Timestamp| now.duration_since(started).as_secs_f64());
        let what = match self.extent {
            Extent::Windows => "windows",
            _ => "run",
        };
        format!(
            "trial {} ({}: {}), {what} of {} for {} of about {}{}",
            self.trial,
            self.strategy,
            self.why,
            on_one_line(&self.candidate),
            human(since),
            human(self.expected_s),
            self.others()
        )
    }

    /// How many run at the same time, as the end of a sentence; nothing where none does.
    pub fn others(&self) -> String {
        match self.beside.len() {
            0 => String::new(),
            others => format!(", and {others} more on other nodes"),
        }
    }
}

/// A candidate on one line, as a user reads it.
pub fn on_one_line(candidate: &Candidate) -> String {
    use space::params::Coded;
    let (h, e) = (&candidate.hpl, &candidate.engine);
    let mut extra: String = e.extra.iter().map(|(name, value)| format!(" {name} {value}")).collect();
    extra.extend(e.settings.named().map(|(name, value)| format!(" {name} {value}")));
    if e.split != Share::ZERO {
        extra += &format!(" split {}", e.split);
    }
    if !e.weights.is_empty() {
        extra += &format!(" weights {}", e.weights);
    }
    format!(
        "N {} NB {} {}×{}×{}t DEPTH {} {} PFACT {} RFACT {} NBMIN {} NDIV {}{extra}",
        h.n,
        h.nb,
        h.p,
        h.q,
        e.threads,
        h.depth,
        h.bcast.name(),
        h.pfact.name(),
        h.rfact.name(),
        h.nbmin,
        h.ndiv
    )
}

/// A time as people say it: `45 s`, `3 min 20 s`, `2 h 5 min`.
pub fn human(seconds: f64) -> String {
    let s = Duration::try_from_secs_f64(seconds.max(0.0)).map_or(0, |d| d.as_secs());
    match s {
        0..60 => format!("{s} s"),
        60..3600 if s.is_multiple_of(60) => format!("{} min", s / 60),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ if s % 3600 < 60 => format!("{} h", s / 3600),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    #[test]
    fn what_runs_is_there_while_it_runs() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        assert_eq!(Now::read(&folder), None);
        let now = Now {
            schema_version: NOW_SCHEMA,
            trial: 7,
            strategy: "bayes".to_owned(),
            why: "expected to be best".to_owned(),
            extent: Extent::Windows,
            candidate: Candidate { hpl: HplParams::baseline(3000, 1, 2), engine: EngineParams::default() },
            nodes: None,
            command: "xhpl".to_owned(),
            started_utc: "2026-11-23T08:00:00Z".to_owned(),
            expected_s: 90.0,
            limit_s: 300.0,
            left_s: 3600.0,
            beside: Vec::new(),
        };
        now.write(&folder);
        assert_eq!(Now::read(&folder).as_ref(), Some(&now));
        let line = now.line("2026-11-23T08:00:12Z".parse().unwrap());
        assert!(line.starts_with("trial 7 (bayes: expected to be best), windows of N 3000 NB "), "{line}");
        assert!(line.ends_with("for 12 s of about 1 min 30 s"), "{line}");
        let on = |nodes: &str| Now { nodes: Some(nodes.to_owned()), ..now.clone() };
        let several = Now::together([on("n1"), on("n2"), on("n3")].into_iter()).unwrap();
        several.write(&folder);
        assert_eq!(Now::read(&folder).as_ref(), Some(&several));
        let line = several.line("2026-11-23T08:00:12Z".parse().unwrap());
        assert!(line.ends_with("about 1 min 30 s, and 2 more on other nodes"), "{line}");
        std::fs::write(folder.now(), "{").unwrap();
        assert_eq!(Now::read(&folder), None);
        Now::ended(&folder);
        assert!(!folder.now().exists());
    }

    #[test]
    fn times_are_shown_as_people_say_them() {
        assert_eq!(human(45.9), "45 s");
        assert_eq!(human(200.0), "3 min 20 s");
        assert_eq!(human(7500.0), "2 h 5 min");
        assert_eq!(human(14400.0), "4 h");
        assert_eq!(human(f64::NAN), "0 s");
    }
}
