//! The output of an engine: results, residuals and verdicts by the patterns of its profile.

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::error::ProfileError;

/// The patterns of a profile: regular expressions that are searched in each line of the output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternTexts {
    /// The line of a result, with the group `gflops`, and `n` and `time` where the line has them.
    pub result: String,
    /// The line of its check, with the groups `residual` and `verdict`.
    pub residual: String,
    /// The verdict of a correct solution.
    #[serde(default = "passed")]
    pub passed: String,
    /// A line of progress, with `gflops` (the mean since the start) and one of `columns` and `flops`, both in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
}

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
}

/// One result with its check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PrintedResult {
    /// Order N, if the line contains it.
    pub n: Option<usize>,
    /// Seconds, if the line contains them.
    pub time_s: Option<f64>,
    /// GFLOP/s; may be printed as not finite.
    pub rate_gflops: f64,
    /// The largest scaled residual of its checks; `None` without a check, or when it is no finite number.
    pub residual: Option<f64>,
    /// Whether there was a check, and all of them passed.
    pub passed: bool,
}

impl Patterns {
    pub(super) fn new(texts: &PatternTexts) -> Result<Self, ProfileError> {
        let progress = texts.progress.as_ref().map(|text| compile("progress", text, &["gflops"])).transpose()?;
        let shares = |regex: &Regex| regex.capture_names().flatten().any(|name| ["columns", "flops"].contains(&name));
        if progress.as_ref().is_some_and(|regex| !shares(regex)) {
            return Err(ProfileError::Group { key: "progress", group: "columns|flops" });
        }
        Ok(Self {
            result: compile("result", &texts.result, &["gflops"])?,
            residual: compile("residual", &texts.residual, &["residual", "verdict"])?,
            passed: texts.passed.clone(),
            progress,
        })
    }

    /// All results in the text, each with the checks that follow it.
    pub(super) fn read(&self, text: &str) -> Vec<PrintedResult> {
        let mut readings: Vec<PrintedResult> = Vec::new();
        let mut checked = false;
        for line in text.lines() {
            if let Some(found) = self.result.captures(line) {
                let rate_gflops = number(&found, "gflops").unwrap_or(f64::NAN);
                let n = found.name("n").and_then(|n| n.as_str().parse().ok());
                readings.push(PrintedResult {
                    n,
                    time_s: number(&found, "time"),
                    rate_gflops,
                    residual: None,
                    passed: false,
                });
                checked = false;
            } else if let (Some(found), Some(last)) = (self.residual.captures(line), readings.last_mut()) {
                let residual = number(&found, "residual").filter(|residual| residual.is_finite());
                let good = residual.is_some() && found["verdict"] == self.passed;
                last.passed = good && (last.passed || !checked);
                last.residual = if checked { last.residual.zip(residual).map(|(a, b)| a.max(b)) } else { residual };
                checked = true;
            }
        }
        readings
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
pub(super) fn number(found: &Captures<'_>, group: &str) -> Option<f64> {
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
            (Some(100), Some(2e-3), true),
            (Some(200), Some(20.0), false),
            (Some(300), None, false),
            (Some(400), None, false),
        ];
        assert_eq!(verdicts, expected);
        assert!(readings[2].rate_gflops.is_nan());
    }

    #[test]
    fn patterns_without_their_groups_are_refused() {
        let of = |result: &str, progress: Option<&str>| {
            let texts = PatternTexts {
                result: result.into(),
                residual: r"(?<residual>\S+) (?<verdict>\S+)".into(),
                passed: passed(),
                progress: progress.map(str::to_owned),
            };
            Patterns::new(&texts).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(of("W", None), "patterns.result needs the group (?<gflops>…)");
        assert_eq!(of("(?<gflops>.)", Some("(?<gflops>.)")), "patterns.progress needs the group (?<columns|flops>…)");
        assert!(of("(", None).starts_with("patterns.result: "));
    }
}
