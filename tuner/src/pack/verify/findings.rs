//! What was looked at, and what does not hold.

use std::fmt;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The file, relative to what was verified.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to do about it.
    pub way_out: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.file, self.problem, self.way_out)
    }
}

/// What was looked at, and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checked {
    /// What was verified: `pack for top500` or `run folder`.
    pub what: String,
    /// What was compared, a clause each.
    pub looked_at: Vec<String>,
    /// What does not hold, none where all does.
    pub findings: Vec<Finding>,
}

impl Checked {
    pub(super) fn find(&mut self, file: impl Into<String>, problem: impl Into<String>, way_out: impl Into<String>) {
        self.findings.push(Finding { file: file.into(), problem: problem.into(), way_out: way_out.into() });
    }

    pub(super) fn looked(&mut self, what: impl Into<String>) {
        self.looked_at.push(what.into());
    }
}
