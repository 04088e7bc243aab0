//! `journal.jsonl`: one line when a trial starts and one when it has ended, each on the disk before anything else happens.
//!
//! The journal is the truth for resume. The line of an end is a [`Row`] in JSON, that of a start has what was proposed
//! ([`Begun`]) under the key `started`. Trials that are ended as their session is asked to end have a line with their numbers under the key
//! `stopped`. Each line carries its own schema version, so there is no header. A line is written whole and synced before [`Journal::append`] returns; when that
//! fails, the part that was written is taken back. A line that was torn by a crash can only be the last
//! one: it is dropped. Damage in the middle costs that line alone, and a trial counts once.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use hpl::program::files::sync_folder;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::error::{RecordError, Version};
use crate::record::{Begun, ROW_SCHEMA, Row};

/// A journal open for appending.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length up to the end of the last whole line.
    len: u64,
    /// Whether the file may be longer: a line failed, and could not be taken back either.
    torn: bool,
}

/// What a journal holds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Contents {
    /// The trials, in the order in which they finished.
    pub rows: Vec<Row>,
    /// Trials that were started, and have no end in it.
    pub under_way: Vec<UnderWay>,
    /// Lines that were left out.
    pub bad_lines: Vec<BadLine>,
    /// Bytes that are kept: all but a torn last line.
    pub(super) len: u64,
    /// Whether the last kept line lacks its line feed.
    unterminated: bool,
    /// Lines among these bytes.
    lines: usize,
    /// Numbers of the trials in `rows`, and of those that were taken out of it.
    trials: HashSet<u64>,
}

/// A trial that was started and has not ended, as far as is recorded.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderWay {
    /// What was started.
    pub begun: Begun,
    /// How often.
    pub starts: u32,
    /// How often it was ended with its session, as that was asked to end.
    pub stops: u32,
}

impl UnderWay {
    /// How often it was ended by what ended its session at once, as a kill or the loss of power.
    pub fn kills(&self) -> u32 {
        self.starts.saturating_sub(self.stops)
    }
}

/// The line of a start.
#[derive(Serialize, Deserialize)]
struct StartLine<B> {
    schema_version: u32,
    started: B,
}

/// The line of trials that are ended with their session.
#[derive(Serialize)]
struct StopLine<'a> {
    schema_version: u32,
    stopped: &'a [u64],
}

/// The keys by which a line is none of an end.
#[derive(Deserialize)]
struct LineKeys {
    #[serde(default)]
    started: Option<IgnoredAny>,
    #[serde(default)]
    stopped: Option<Vec<u64>>,
}

/// A line that is no row.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadLine {
    /// The last line ends in the middle: the tuner or the machine went down while writing it.
    #[error("journal.jsonl line {line}: incomplete, dropped")]
    Torn {
        /// Line number, from 1.
        line: usize,
    },
    /// A line of a trial that has one before it, as a file server that is asked twice may leave it.
    #[error("journal.jsonl line {line}: trial {trial} is there already, left out")]
    Again {
        /// Line number, from 1.
        line: usize,
        /// The trial.
        trial: u64,
    },
    /// A whole line that cannot be understood.
    #[error("journal.jsonl line {line}: damaged, left out: {reason}")]
    Damaged {
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl Journal {
    /// Open the journal at `path`, create it if there is none, and cut off a torn last line.
    ///
    /// # Errors
    /// [`RecordError::Write`] or [`RecordError::Read`] with the path.
    pub fn open(path: &Path) -> Result<(Self, Contents), RecordError> {
        let write_error = |cause| RecordError::Write { path: path.to_path_buf(), cause };
        let file = OpenOptions::new().append(true).create(true).open(path).map_err(write_error)?;
        sync_folder(path);
        let contents = read(path)?;
        let mut journal = Self { path: path.to_path_buf(), file, len: contents.len, torn: false };
        journal.file.set_len(contents.len).map_err(write_error)?;
        if contents.unterminated {
            journal.write_line(b"\n").map_err(write_error)?;
        }
        Ok((journal, contents))
    }

    /// Append a trial that is about to run; it is on the disk when this returns.
    ///
    /// # Errors
    /// As of [`append`](Self::append).
    pub fn start(&mut self, begun: &Begun) -> Result<(), RecordError> {
        self.write(&StartLine { schema_version: ROW_SCHEMA, started: begun })
    }

    /// Append that these trials are ended with their session, as it is asked to end; it is on the disk when this returns.
    ///
    /// # Errors
    /// As of [`append`](Self::append).
    pub fn stop(&mut self, trials: &[u64]) -> Result<(), RecordError> {
        self.write(&StopLine { schema_version: ROW_SCHEMA, stopped: trials })
    }

    /// Append one finished trial; it is on the disk when this returns.
    ///
    /// # Errors
    /// [`RecordError::Write`], as on a full disk; the journal is as it was before the call then, and may be appended to again.
    pub fn append(&mut self, row: &Row) -> Result<(), RecordError> {
        self.write(row)
    }

    fn write(&mut self, line: &impl Serialize) -> Result<(), RecordError> {
        let mut line = serde_json::to_vec(line).map_err(|e| RecordError::write(&self.path)(e.into()))?;
        line.push(b'\n');
        self.write_line(&line).map_err(RecordError::write(&self.path))
    }

    fn write_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.torn {
            // Behind a part of a line, this one would be lost with it.
            self.file.set_len(self.len)?;
            self.torn = false;
        }
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        match written {
            Ok(()) => self.len += line.len() as u64,
            // Freeing needs no space, so this works on a full disk.
            Err(_) => self.torn = self.file.set_len(self.len).is_err(),
        }
        written
    }
}

/// Read the journal at `path` without changing it.
///
/// # Errors
/// [`RecordError::Read`] when the file cannot be read, [`RecordError::Newer`] when a line has a newer schema
/// than [`ROW_SCHEMA`]. Torn and damaged lines are no errors; they are listed in the contents.
pub fn read(path: &Path) -> Result<Contents, RecordError> {
    contents(&std::fs::read(path).map_err(RecordError::read(path))?, path)
}

/// What the `bytes` of the journal at `path` hold.
///
/// # Errors
/// [`RecordError::Newer`], as [`read`].
pub fn contents(bytes: &[u8], path: &Path) -> Result<Contents, RecordError> {
    let mut contents = Contents::default();
    if contents.take(bytes).map_err(|newer| newer.of(path))? {
        contents.bad_lines.push(BadLine::Torn { line: contents.lines + 1 });
    }
    Ok(contents)
}

impl Contents {
    /// Takes in the bytes that follow those that are kept; true where the last line is torn: it is not kept.
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<bool, Newer> {
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let whole = line.ends_with(b"\n");
            // The end of the line before.
            let is_rest = std::mem::take(&mut self.unterminated) && line == b"\n";
            if !is_rest {
                let number = self.lines + 1;
                match parse(line) {
                    Ok(Line::Start(begun)) => {
                        self.unterminated = !whole;
                        self.start(*begun);
                    }
                    Ok(Line::Stop(trials)) => {
                        self.unterminated = !whole;
                        self.stop(&trials);
                    }
                    Ok(Line::End(row)) => {
                        self.unterminated = !whole;
                        self.under_way.retain(|under_way| under_way.begun.identity.trial != row.trial);
                        if self.trials.insert(row.trial) {
                            self.rows.push(*row);
                        } else {
                            self.bad_lines.push(BadLine::Again { line: number, trial: row.trial });
                        }
                    }
                    Err(Bad::Newer(found)) => return Err(found),
                    Err(Bad::Damaged(reason)) if whole => {
                        self.bad_lines.push(BadLine::Damaged { line: number, reason });
                    }
                    Err(Bad::Damaged(_)) => return Ok(true),
                }
                self.lines = number;
            }
            self.len += line.len() as u64;
        }
        Ok(false)
    }

    /// Takes in a start: of a trial that was interrupted it is another one, or another proposal in its place. A line that is there twice is one.
    fn start(&mut self, begun: Begun) {
        let trial = begun.identity.trial;
        if self.trials.contains(&trial) || self.under_way.iter().any(|under_way| under_way.begun == begun) {
            return;
        }
        let before = self.under_way.iter().position(|under_way| under_way.begun.identity.trial == trial);
        let before = before.map(|at| self.under_way.remove(at)).filter(|before| before.begun.is_again(&begun));
        let (starts, stops) = before.map_or((0, 0), |before| (before.starts, before.stops));
        self.under_way.push(UnderWay { begun, starts: starts + 1, stops });
    }

    /// Takes in that trials were ended with their session, each of its starts once.
    fn stop(&mut self, trials: &[u64]) {
        let stopped = self.under_way.iter_mut().filter(|under_way| trials.contains(&under_way.begun.identity.trial));
        stopped.for_each(|under_way| under_way.stops = under_way.starts.min(under_way.stops + 1));
    }
}

/// The schema version of a line that this program does not know.
pub(super) struct Newer(u64);

impl Newer {
    pub(super) fn of(self, path: &Path) -> RecordError {
        RecordError::Newer { path: path.to_path_buf(), found: self.0, known: ROW_SCHEMA }
    }
}

enum Bad {
    Newer(Newer),
    Damaged(String),
}

/// What a line says.
enum Line {
    Start(Box<Begun>),
    Stop(Vec<u64>),
    End(Box<Row>),
}

fn parse(line: &[u8]) -> Result<Line, Bad> {
    let damaged = |e: serde_json::Error| Bad::Damaged(e.to_string());
    let version = serde_json::from_slice::<Version>(line).map_err(damaged)?.schema_version;
    if version > u64::from(ROW_SCHEMA) {
        return Err(Bad::Newer(Newer(version)));
    }
    let keys: LineKeys = serde_json::from_slice(line).map_err(damaged)?;
    if keys.started.is_some() {
        let start: StartLine<Begun> = serde_json::from_slice(line).map_err(damaged)?;
        return Ok(Line::Start(Box::new(start.started)));
    }
    if let Some(trials) = keys.stopped {
        return Ok(Line::Stop(trials));
    }
    serde_json::from_slice(line).map(|row| Line::End(Box::new(row))).map_err(damaged)
}

#[cfg(test)]
mod tests;
