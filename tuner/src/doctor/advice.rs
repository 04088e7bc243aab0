//! A line of the doctor.

use std::fmt::Write;

use serde::Serialize;

/// Version of the JSON of `hpl-tune doctor`; raised by every release that changes a key.
pub const DOCTOR_SCHEMA: u32 = 1;

/// Whether what was found is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckState {
    /// It is as a run wants it.
    Good,
    /// It costs speed or room; there is something to change.
    Change,
    /// It is not judged, or the system does not report it.
    Fact,
}

/// What was found of one thing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// What was looked at.
    pub topic: &'static str,
    /// Whether it is good.
    pub state: CheckState,
    /// What is there.
    pub found: String,
    /// What to do, a command where there is one.
    pub change: Option<String>,
    /// What that is worth, where it was measured here or follows from the numbers; never a guess.
    pub worth: Option<String>,
}

impl Advice {
    /// Something that is good.
    pub fn good(topic: &'static str, found: impl Into<String>) -> Self {
        Self { topic, state: CheckState::Good, found: found.into(), change: None, worth: None }
    }

    /// Something that is not judged.
    pub fn fact(topic: &'static str, found: impl Into<String>) -> Self {
        Self { state: CheckState::Fact, ..Self::good(topic, found) }
    }

    /// Something to change.
    pub fn change(topic: &'static str, found: impl Into<String>, change: impl Into<String>) -> Self {
        Self { state: CheckState::Change, change: Some(change.into()), ..Self::good(topic, found) }
    }

    /// This advice with its worth.
    #[must_use]
    pub fn worth(self, worth: impl Into<String>) -> Self {
        Self { worth: Some(worth.into()), ..self }
    }
}

/// All lines as JSON.
#[derive(Debug, Serialize)]
pub struct DoctorReport<'a> {
    /// [`DOCTOR_SCHEMA`].
    pub schema_version: u32,
    /// Host name.
    pub host: &'a str,
    /// The lines.
    pub checks: &'a [Advice],
}

/// The lines for people, and how many there are to change.
pub fn text(checks: &[Advice]) -> String {
    let mut text = String::new();
    for Advice { topic, state, found, change, worth } in checks {
        let mark = match state {
            CheckState::Good => "good",
            CheckState::Change => "CHANGE",
            CheckState::Fact => "-",
        };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{mark:<8}{topic:<16}{found}");
        for (name, what) in [("do: ", change), ("worth: ", worth)] {
            if let Some(what) = what {
                let _ = writeln!(text, "{:<24}{name}{what}", "");
            }
        }
    }
    let count = checks.iter().filter(|advice| advice.state == CheckState::Change).count();
    let _ = match count {
        0 => writeln!(text, "\nnothing to change; start with: hpl-tune --budget 10m"),
        1 => writeln!(text, "\n1 thing to change; a session runs without that, too"),
        _ => writeln!(text, "\n{count} things to change; a session runs without that, too"),
    };
    text
}
