//! What the interfaces have found: sensors that can be read, and those that cannot.

use std::fmt::{self, Display};
use std::io::{self, ErrorKind};

use serde::{Deserialize, Serialize};

use super::sensor::{Access, Covers, SensorFacts};

/// A sensor that is there and cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unreadable {
    /// The interface that has it.
    pub source: String,
    /// Its name there.
    pub name: String,
    /// What it would measure.
    pub covers: Covers,
    /// Why, as a clause.
    pub why: String,
    /// What would make it readable.
    pub way_out: String,
}

impl Unreadable {
    pub(super) fn of((source, name): (&str, &str), covers: Covers, error: &io::Error, way_out: &str) -> Self {
        let why = match error.kind() {
            ErrorKind::PermissionDenied => "this user may not read it".to_owned(),
            _ => error.to_string(),
        };
        Self { source: source.to_owned(), name: name.to_owned(), covers, why, way_out: way_out.to_owned() }
    }
}

impl Display for Unreadable {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{} {}: {}", self.source, self.name, self.why)
    }
}

/// What the interfaces have found.
#[derive(Debug, Default)]
pub(super) struct FoundSensors {
    pub(super) sensors: Vec<(SensorFacts, Access)>,
    pub(super) unreadable: Vec<Unreadable>,
}

impl FoundSensors {
    pub(super) fn push(&mut self, facts: SensorFacts, access: Access) {
        self.sensors.push((facts, access));
    }

    /// How many of these are of `source`.
    pub(super) fn count_of(&self, source: &str) -> usize {
        self.sensors.iter().filter(|(facts, _)| facts.source == source).count()
    }

    /// How many of these measure what `covers` says.
    pub(super) fn count(&self, covers: Covers) -> usize {
        self.sensors.iter().filter(|(facts, _)| facts.covers == covers).count()
    }
}
