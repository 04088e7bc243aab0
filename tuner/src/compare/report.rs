//! What a comparison says, as one value; this is its JSON.

use serde::Serialize;

use super::run::{Known, Run};
use super::sides::Side;
use super::source::Source;
use super::verdict::{Difference, Verdict};
use crate::exit;
use crate::report::counted;

/// Version of the JSON of a comparison; raised by every release that changes a key.
pub const COMPARE_SCHEMA: u32 = 1;

/// Two sides with their difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// [`COMPARE_SCHEMA`].
    pub schema_version: u32,
    /// The reference.
    pub a: SideReport,
    /// What is judged.
    pub b: SideReport,
    /// B by A.
    pub ratio: RatioReport,
    /// The tolerance, a share.
    pub tolerance: f64,
    /// The judgement.
    pub verdict: Verdict,
    /// The exit code that follows.
    pub exit_code: u8,
    /// In what the sides differ, as far as both report.
    pub differs: Vec<Differs>,
    /// What else is to be known, a sentence each.
    pub notes: Vec<String>,
}

/// What a ratio is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Pairs of runs that were made in turn.
    Pairs,
    /// The medians of all runs.
    Medians,
}

/// B by A.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatioReport {
    /// What it is the ratio of.
    pub by: By,
    /// The median of the pairs' ratios, or the ratio of the medians.
    pub ratio: f64,
    /// Its exact interval; `None` where there are too few runs.
    pub interval: Option<[f64; 2]>,
    /// Probability that such an interval holds the true ratio; of medians it is at least this.
    pub level: Option<f64>,
    /// Runs of A and of B behind it.
    pub runs: [usize; 2],
}

impl From<&Difference> for RatioReport {
    fn from(difference: &Difference) -> Self {
        let (by, runs) = match difference {
            Difference::Pairs(found) => (By::Pairs, [found.pairs; 2]),
            Difference::Medians(found) => (By::Medians, found.runs),
        };
        let (interval, level) = difference.interval().unzip();
        Self { by, ratio: difference.ratio(), interval, level, runs }
    }
}

/// One side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SideReport {
    /// Its path.
    pub source: String,
    /// What is there: a run folder, HPL.out or result.json.
    pub kind: &'static str,
    /// `whole` or `windows`; the rates of windows are estimates.
    pub extent: objectives::real::Extent,
    /// Order N.
    pub n: usize,
    /// The configuration in words, as far as it is known.
    pub configuration: String,
    /// Rates of the passed runs in GFLOP/s, as they were made.
    pub rates_gflops: Vec<f64>,
    /// Median of them.
    pub median_gflops: f64,
    /// Largest of their scaled residuals.
    pub residual: Option<f64>,
    /// Runs of this configuration whose residual failed.
    pub residual_failed: usize,
    /// Runs of it that are left out: without a check, or without a rate.
    pub left_out: usize,
    /// Host, or the nodes of the job; of several all, with commas, as of what follows.
    pub host: Option<String>,
    /// Engine.
    pub engine: Option<String>,
    /// Kernels with their version.
    pub kernel: Option<String>,
    /// Programs with their versions.
    pub versions: Option<String>,
    /// The command of the first of the runs.
    pub command: Option<String>,
    /// The command that started the session.
    pub session_command: Option<String>,
}

/// A difference between the sides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Differs {
    /// What differs.
    pub what: String,
    /// As A has it.
    pub a: String,
    /// As B has it.
    pub b: String,
}

impl Report {
    /// The comparison of two sides; `None` where one has no passed run.
    pub fn new(a: &Side<'_>, b: &Side<'_>, tolerance: f64) -> Option<Self> {
        let difference = Difference::new(a, b)?;
        let verdict = Verdict::new(&difference, a, b, tolerance);
        let wrong = [a, b].iter().any(|side| side.wrong + side.wrong_of_other > 0);
        let exit_code = match verdict {
            _ if wrong => exit::RESIDUAL,
            Verdict::Slower => exit::CHECK_FAILED,
            Verdict::Faster | Verdict::Alike | Verdict::Open => exit::DONE,
        };
        let as_first = |side: &Side<'_>| Some(Run { origin: side.origin(), ..side.first()?.clone() });
        let (as_a, as_b) = (as_first(a)?, as_first(b)?);
        Some(Self {
            schema_version: COMPARE_SCHEMA,
            a: side(a, &as_a),
            b: side(b, &as_b),
            ratio: RatioReport::from(&difference),
            tolerance,
            verdict,
            exit_code,
            differs: differs(&as_a, &as_b),
            notes: notes(a, b),
        })
    }

    /// This value as JSON, one line feed at its end.
    ///
    /// # Errors
    /// None that a value of numbers and words can have.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|text| text + "\n")
    }
}

/// One side, whose runs are as `run` but for their rates.
fn side(side: &Side<'_>, run: &Run) -> SideReport {
    let Source { path, kind, session_command, .. } = side.source;
    let words = run.words().into_iter().filter(|(name, _)| name != "N").map(|(name, value)| format!("{name} {value}"));
    let origin = run.origin.clone();
    SideReport {
        source: path.display().to_string(),
        kind,
        extent: run.extent,
        n: run.candidate.hpl.n,
        configuration: words.collect::<Vec<_>>().join("  "),
        rates_gflops: side.rates(),
        median_gflops: side.median(),
        residual: side.residual(),
        residual_failed: side.wrong,
        left_out: side.unchecked + side.lost,
        host: origin.host,
        engine: origin.engine,
        kernel: origin.kernel,
        versions: origin.versions,
        command: origin.command,
        session_command: session_command.clone(),
    }
}

/// A value that one side alone has, as the other has it.
const NOT_SET: &str = "not set";

/// What both sides report, and report differently; a setting of the node or of an engine that one alone has is not set in the other, where
/// both sources tell of such.
fn differs(a: &Run, b: &Run) -> Vec<Differs> {
    let (of_a, of_b) = (a.words(), b.words());
    let tell_alike = a.known == b.known && a.known != Known::Output;
    let mut found = Vec::new();
    let mut add = |what: &str, a: &str, b: &str| {
        if a != b {
            found.push(Differs { what: what.to_owned(), a: a.to_owned(), b: b.to_owned() });
        }
    };
    let facts = [
        ("host", &a.origin.host, &b.origin.host),
        ("engine", &a.origin.engine, &b.origin.engine),
        ("kernel", &a.origin.kernel, &b.origin.kernel),
        ("versions", &a.origin.versions, &b.origin.versions),
    ];
    for (what, a, b) in facts {
        if let (Some(a), Some(b)) = (a, b) {
            add(what, a, b);
        }
    }
    for (name, value) in &of_a {
        match of_b.iter().find(|(known, _)| known == name) {
            Some((_, other)) => add(name, value, other),
            None if tell_alike => add(name, value, NOT_SET),
            None => {}
        }
    }
    for (name, value) in of_b.iter().filter(|(name, _)| tell_alike && of_a.iter().all(|(known, _)| known != name)) {
        add(name, NOT_SET, value);
    }
    found
}

/// What takes from the worth of the comparison.
fn notes(a: &Side<'_>, b: &Side<'_>) -> Vec<String> {
    let mut notes = Vec::new();
    for (name, side) in [("A", a), ("B", b)] {
        let Side { source, wrong, wrong_of_other, unchecked, lost, others, .. } = side;
        notes.extend(source.notes.iter().map(|note| format!("{name}: {note}")));
        if *wrong > 0 {
            notes.push(format!(
                "{name}: the residual of {} of this configuration FAILED: its rates are not to be trusted",
                counted(*wrong, "more run")
            ));
        }
        if *wrong_of_other > 0 {
            notes.push(format!(
                "{name}: the residual of {} of the other side's configuration FAILED here: another one is compared",
                counted(*wrong_of_other, "run")
            ));
        }
        if *unchecked > 0 {
            notes.push(format!("{name}: left out {} without a residual check", counted(*unchecked, "run")));
        }
        if *lost > 0 {
            notes.push(format!("{name}: {} of this configuration gave no rate", counted(*lost, "run")));
        }
        if side.chosen_here() {
            notes.push(format!(
                "{name}: the best of {} configurations by these same runs, so that the luck of the choice is in its rate",
                others + 1
            ));
        }
        if source.simulated {
            notes.push(format!("{name}: simulated, nothing is measured"));
        }
    }
    if a.source.path.canonicalize().is_ok_and(|path| b.source.path.canonicalize().is_ok_and(|other| other == path)) {
        notes.push("A and B are the same".to_owned());
    }
    let unknown = |side: &Side<'_>| side.first().is_some_and(|run| run.origin.host.is_none());
    if unknown(a) || unknown(b) {
        notes.push("HPL.out reports neither host nor threads: whether these differ is not known".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::super::run::RunOrigin;
    use super::super::sides::sides;
    use super::super::sides::tests::{run, source};
    use super::*;

    /// Only what the first of them says was told.
    #[test]
    fn what_all_runs_of_a_file_say_is_told() {
        let on = |host: &str, version: &str| {
            let origin = RunOrigin {
                host: Some(host.to_owned()),
                versions: Some(version.to_owned()),
                command: Some(format!("run on {host}")),
                ..RunOrigin::default()
            };
            Run { origin, ..run(1000, 128, 10.0) }
        };
        let mixed = source("a", vec![on("n2", "hpl 1"), on("n1", "hpl 2"), on("n2", "hpl 1")]);
        let plain = source("b", vec![on("n2", "hpl 1")]);
        let [a, b] = sides(&mixed, &plain).unwrap();
        let report = Report::new(&a, &b, 0.01).unwrap();
        let told = [&report.a.host, &report.a.versions, &report.a.command].map(|told| told.as_deref().unwrap());
        assert_eq!(told, ["n1, n2", "hpl 1, hpl 2", "run on n2"]);
        assert_eq!((report.a.kernel, report.b.host.as_deref()), (None, Some("n2")));
        let differs: Vec<&str> = report.differs.iter().map(|found| found.what.as_str()).collect();
        assert_eq!(differs, ["host", "versions"]);
    }

    #[test]
    fn a_setting_that_one_side_alone_has_is_a_difference() {
        let plain = run(1000, 128, 10.0);
        let mut slow = plain.clone();
        slow.candidate.engine.settings.max_clock_mhz = Some(2100);
        let of = |a: &Run, b: &Run| -> Vec<String> {
            differs(a, b).into_iter().map(|found| format!("{} {} → {}", found.what, found.a, found.b)).collect()
        };
        assert_eq!(of(&slow, &plain), ["max_clock_mhz 2100 → not set"]);
        assert_eq!(of(&plain, &slow), ["max_clock_mhz not set → 2100"]);
        // What HPL prints says nothing of it.
        assert!(of(&slow, &Run { known: Known::Output, ..plain }).is_empty());
    }
}
