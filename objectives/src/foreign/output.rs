//! The output of an engine: results, residuals and verdicts by the patterns of its profile.

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};
use space::HplParams;

use super::error::ProfileError;
use crate::progress::ProgressPoint;

/// The patterns of a profile: regular expressions that are searched in each line of the output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternTexts {
    /// The line of a result, with the group `gflops`, and `n`, `nb`, `p`, `q` and `time` where the line has them.
    pub result: String,
    /// The line of its check, with the groups `residual` and `verdict`.
    pub residual: String,
    /// The verdict of a correct solution.
    #[serde(default = "passed")]
    pub passed: String,
    /// A line of progress, with `gflops` (the mean since the start) and one of `columns` and `flops`, both in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// Whether the checks of a result are printed before it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub check_first: bool,
    /// The ε by which the program scales its residuals, where that is another one than 2⁻⁵³. With this key residuals are brought to 2⁻⁵³ and
    /// must be no larger than 16, whatever the program says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub residual_eps: Option<f64>,
}

/// The ε of HPL's rules, and the largest residual scaled by it.
const EPS: f64 = 1.0 / (1u64 << 53) as f64;
const THRESHOLD: f64 = 16.0;

fn passed() -> String {
    "PASSED".to_owned()
}

/// The compiled patterns.
#[derive(Debug, Clone)]
pub(super) struct Patterns {
    result: Regex,
    residual: Regex,
    passed: String,
    pub(super) progress: Option<Regex>,
    check_first: bool,
    residual_eps: Option<f64>,
}

/// The checks of a result.
#[derive(Debug, Clone, Copy, Default)]
struct Checks {
    /// Largest residual; `None` where one is no finite number.
    residual: Option<f64>,
    /// Whether all have passed; `None` where there is none.
    passed: Option<bool>,
}

/// One result with its check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedResult {
    /// Order N, if the line contains it.
    pub n: Option<usize>,
    /// Block size NB, if the line contains it.
    pub nb: Option<usize>,
    /// Process rows P and columns Q, if the line contains them.
    pub grid: [Option<usize>; 2],
    /// Seconds, if the line contains them.
    pub time_s: Option<f64>,
    /// GFLOP/s; may be printed as not finite.
    pub rate_gflops: f64,
    /// The largest scaled residual of its checks; `None` without a check, or when it is no finite number.
    pub residual: Option<f64>,
    /// Whether all of its checks passed; `None` where none was printed.
    pub passed: Option<bool>,
}

impl PrintedResult {
    /// What it has another value of than `asked`: its name, the value printed, and that asked for.
    pub fn other_than(&self, asked: &HplParams) -> Option<(&'static str, usize, usize)> {
        let [p, q] = self.grid;
        let printed = [("N", self.n, asked.n), ("NB", self.nb, asked.nb), ("P", p, asked.p), ("Q", q, asked.q)];
        printed
            .into_iter()
            .find_map(|(name, printed, asked)| Some((name, printed.filter(|value| *value != asked)?, asked)))
    }
}

impl Patterns {
    pub(super) fn new(texts: &PatternTexts) -> Result<Self, ProfileError> {
        let progress = texts.progress.as_ref().map(|text| compile("progress", text, &["gflops"])).transpose()?;
        let shares = |regex: &Regex| regex.capture_names().flatten().any(|name| ["columns", "flops"].contains(&name));
        if progress.as_ref().is_some_and(|regex| !shares(regex)) {
            return Err(ProfileError::Group { key: "progress", group: "columns|flops" });
        }
        if texts.residual_eps.is_some_and(|eps| !(eps.is_finite() && eps > 0.0)) {
            let problem = "must be a number above 0; leave it out where the program scales by 2⁻⁵³".to_owned();
            return Err(ProfileError::Value { key: "patterns.residual_eps", problem });
        }
        Ok(Self {
            result: compile("result", &texts.result, &["gflops"])?,
            residual: compile("residual", &texts.residual, &["residual", "verdict"])?,
            passed: texts.passed.clone(),
            progress,
            check_first: texts.check_first,
            residual_eps: texts.residual_eps,
        })
    }

    /// All results in the text, each with the checks that follow it, or that precede it where these are printed first.
    pub(super) fn read(&self, text: &str) -> Vec<PrintedResult> {
        let mut readings: Vec<PrintedResult> = Vec::new();
        let mut checks = Checks::default();
        for line in text.lines() {
            if let Some(found) = self.result.captures(line) {
                let rate_gflops = number(&found, "gflops").unwrap_or(f64::NAN);
                let count = |group: &str| found.name(group).and_then(|digits| digits.as_str().parse().ok());
                let (n, nb, grid) = (count("n"), count("nb"), ["p", "q"].map(count));
                let time_s = number(&found, "time");
                let Checks { residual, passed } = if self.check_first { checks } else { Checks::default() };
                readings.push(PrintedResult { n, nb, grid, time_s, rate_gflops, residual, passed });
                checks = Checks::default();
            } else if let Some(found) = self.residual.captures(line) {
                checks = self.checked(checks, &found);
                if let Some(last) = readings.last_mut().filter(|_| !self.check_first) {
                    (last.residual, last.passed) = (checks.residual, checks.passed);
                }
            }
        }
        readings
    }

    /// `checks` with one more.
    fn checked(&self, checks: Checks, found: &Captures<'_>) -> Checks {
        let scale = self.residual_eps.map_or(1.0, |eps| eps / EPS);
        let residual =
            number(found, "residual").map(|residual| scale * residual).filter(|residual| residual.is_finite());
        let by_rule = self.residual_eps.is_none() || residual.is_some_and(|residual| residual <= THRESHOLD);
        // A group of a pattern may take no part in a match.
        let said = found.name("verdict").is_some_and(|verdict| verdict.as_str() == self.passed);
        let good = residual.is_some() && said && by_rule;
        Checks {
            residual: if checks.passed.is_some() {
                checks.residual.zip(residual).map(|(a, b)| a.max(b))
            } else {
                residual
            },
            passed: Some(good && checks.passed != Some(false)),
        }
    }

    /// The progress that a line reports.
    pub(super) fn progress_of(&self, line: &str) -> Option<ProgressPoint> {
        let found = self.progress.as_ref()?.captures(line)?;
        let rate = number(&found, "gflops")?;
        match number(&found, "columns") {
            Some(columns) => ProgressPoint::of_columns(columns, rate),
            None => ProgressPoint::of_flops(number(&found, "flops")?, rate),
        }
    }

    /// The pattern of results, for messages.
    pub(super) fn result(&self) -> &str {
        self.result.as_str()
    }
}

/// Compiles a pattern and checks that it has its groups.
fn compile(key: &'static str, text: &str, groups: &[&'static str]) -> Result<Regex, ProfileError> {
    let regex = Regex::new(text).map_err(|error| ProfileError::Pattern { key, reason: error.to_string() })?;
    match groups.iter().find(|group| !regex.capture_names().flatten().any(|name| name == **group)) {
        Some(group) => Err(ProfileError::Group { key, group }),
        None => Ok(regex),
    }
}

/// The number in a group, also with Fortran's D exponent.
fn number(found: &Captures<'_>, group: &str) -> Option<f64> {
    found.name(group)?.as_str().trim().replace(['D', 'd'], "e").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns() -> Patterns {
        let texts = PatternTexts {
            result: r"^W\S+ +(?<n>\d+) +(?<time>\S+) +(?<gflops>\S+)".into(),
            residual: r"r= *(?<residual>\S+) \.* (?<verdict>\w+)".into(),
            passed: passed(),
            progress: None,
            check_first: false,
            residual_eps: None,
        };
        Patterns::new(&texts).unwrap()
    }

    #[test]
    fn each_result_has_the_checks_that_follow_it() {
        let text = "r= 9 ... PASSED\nW1 100 0.5 2e1\nr= 1e-3 ... PASSED\nr= 2D-3 ... PASSED\n\
                    W2 200 0.5 3e1\nr= 20 ... FAILED\nr= 1 ... PASSED\nW3 300 0.5 nan\nr= nan ... PASSED\nW4 400 1 4e1";
        let readings = patterns().read(text);
        let verdicts: Vec<_> = readings.iter().map(|r| (r.n, r.residual, r.passed)).collect();
        let expected = [
            (Some(100), Some(2e-3), Some(true)),
            (Some(200), Some(20.0), Some(false)),
            (Some(300), None, Some(false)),
            (Some(400), None, None),
        ];
        assert_eq!(verdicts, expected);
        assert!(readings[2].rate_gflops.is_nan());
    }

    #[test]
    fn a_check_without_a_verdict_has_not_passed() {
        let texts = PatternTexts {
            result: r"^W +(?<gflops>\S+)".into(),
            residual: r"r=(?: *(?<residual>\S+))?(?: \.* (?<verdict>\w+))?".into(),
            passed: passed(),
            progress: None,
            check_first: false,
            residual_eps: None,
        };
        let readings = Patterns::new(&texts).unwrap().read("W 5\nr= 1 ... PASSED\nW 6\nr= 1\nW 7\nr=\n");
        let found: Vec<_> = readings.iter().map(|r| (r.residual, r.passed)).collect();
        assert_eq!(found, [(Some(1.0), Some(true)), (Some(1.0), Some(false)), (None, Some(false))]);
    }

    /// By the rules ε is 2⁻⁵³: what a program with another one lets pass may be too large.
    #[test]
    fn checks_may_come_first_and_residuals_have_the_eps_of_the_rules() {
        let texts = PatternTexts {
            result: r"^W +(?<gflops>\S+)".into(),
            residual: r"r= *(?<residual>\S+) \.* (?<verdict>\w+)".into(),
            passed: passed(),
            progress: None,
            check_first: true,
            residual_eps: Some(2.0 * EPS),
        };
        let text =
            "r= 1 ... PASSED\nW 5\nW 6\nr= 9 ... PASSED\nW 7\nr= 1 ... FAILED\nr= 1 ... PASSED\nW 8\nr= 1 ... PASSED\n";
        let readings = Patterns::new(&texts).unwrap().read(text);
        let found: Vec<_> = readings.iter().map(|r| (r.rate_gflops, r.residual, r.passed)).collect();
        let (none, failed) = ((6.0, None, None), Some(false));
        assert_eq!(found, [(5.0, Some(2.0), Some(true)), none, (7.0, Some(18.0), failed), (8.0, Some(2.0), failed)]);
    }

    #[test]
    fn patterns_without_their_groups_are_refused() {
        let of = |result: &str, progress: Option<&str>| {
            let texts = PatternTexts {
                result: result.into(),
                residual: r"(?<residual>\S+) (?<verdict>\S+)".into(),
                passed: passed(),
                check_first: false,
                residual_eps: None,
                progress: progress.map(str::to_owned),
            };
            Patterns::new(&texts).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(of("W", None), "patterns.result needs the group (?<gflops>…)");
        assert_eq!(of("(?<gflops>.)", Some("(?<gflops>.)")), "patterns.progress needs the group (?<columns|flops>…)");
        assert!(of("(", None).starts_with("patterns.result: "));
    }
}
