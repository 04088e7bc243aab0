//! What a search ran, one line of JSON for each seed: enough to compute every measure again.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::landscape::Landscape;
use crate::record::left::GainLeft;

/// One search of one tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTrace {
    /// The strategy, or another tool with its version.
    pub tool: String,
    /// Name of the landscape.
    pub landscape: String,
    /// Seed of search and noise.
    pub seed: u64,
    /// Position in the landscape of each evaluation, repeats and failures included.
    pub points: Vec<usize>,
    /// Seconds that each suggestion took.
    pub ask_s: Vec<f64>,
    /// The point that the tool calls best in the end, `None` where nothing passed.
    pub declared: Option<usize>,
    /// What it says is left to gain in the end, where it says that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<GainLeft>,
}

/// Why traces cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("cannot use {}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A line is no trace of this landscape.
    #[error("{} line {line}: {reason}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// Its line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

/// Writes traces to a new file at `path`.
///
/// # Errors
/// [`TraceError::File`] when it cannot be written.
pub fn write<'a>(path: &Path, traces: impl Iterator<Item = &'a SearchTrace>) -> Result<(), TraceError> {
    let error = |cause| TraceError::File { path: path.to_path_buf(), cause };
    let mut file = std::io::BufWriter::new(std::fs::File::create(path).map_err(error)?);
    for trace in traces {
        serde_json::to_writer(&mut file, trace).map_err(|cause| error(cause.into()))?;
        file.write_all(b"\n").map_err(error)?;
    }
    file.flush().map_err(error)
}

/// The traces of `landscape` in the file at `path`; those of other landscapes are passed over.
///
/// # Errors
/// [`TraceError`] for a line that is no trace, or that names points which the landscape does not have.
pub fn read(path: &Path, landscape: &Landscape) -> Result<Vec<SearchTrace>, TraceError> {
    let text = std::fs::read_to_string(path).map_err(|cause| TraceError::File { path: path.to_path_buf(), cause })?;
    let mut traces = Vec::new();
    for (line, text) in text.lines().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let wrong = |reason: String| TraceError::Line { path: path.to_path_buf(), line: line + 1, reason };
        let trace: SearchTrace = serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
        if trace.landscape != landscape.name {
            continue;
        }
        let odd = trace.points.iter().chain(&trace.declared).find(|at| **at >= landscape.len());
        if let Some(at) = odd {
            return Err(wrong(format!("point {at} of a landscape with {} points", landscape.len())));
        }
        if trace.ask_s.len() != trace.points.len() {
            return Err(wrong(format!("{} points with {} times", trace.points.len(), trace.ask_s.len())));
        }
        traces.push(trace);
    }
    Ok(traces)
}
