//! Runs of earlier sessions: what another night, or another machine, says before the first trial.
//!
//! They are prior information and nothing else: never a row of this session's record, never a score. [`read`] takes them
//! from where they are, [`place`] finds the points of this space that they stand for; what is made of them is in
//! [`crate::search::strategy::informed`]. [`nodes`] is the same for trials of this session on groups of its nodes.

pub mod nodes;
pub mod place;
pub mod read;

use objectives::real::Extent;
use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::error::RecordError;
use crate::error::Version;
use crate::record::folder::{RunFolder, replace_file};

/// Version of a line of `earlier.jsonl`.
pub const EARLIER_SCHEMA: u32 = 1;

/// One passed run of an earlier session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// [`EARLIER_SCHEMA`] of the writer.
    pub schema_version: u32,
    /// The file or folder that it was read from.
    pub source: String,
    /// Host that ran it; null where the source does not say.
    pub host: Option<String>,
    /// Cores that it used; null where the source does not say.
    pub cores: Option<usize>,
    /// Name of the engine that ran, as [`Row::engine`](crate::record::Row::engine); null where the source does not say.
    pub engine: Option<String>,
    /// How much of the run was measured.
    pub extent: Extent,
    /// What was run.
    pub candidate: Candidate,
    /// GFLOP/s, of the whole run or as its windows estimate it.
    pub rate_gflops: f64,
}

/// Keeps what a session starts from in its folder, so that a resume starts from the same.
///
/// # Errors
/// [`RecordError`] when it cannot be written.
pub fn save(folder: &RunFolder, earlier: &[Earlier]) -> Result<(), RecordError> {
    let path = folder.earlier();
    let line = |run: &Earlier| serde_json::to_string(run).map(|line| line + "\n");
    let lines: Result<String, _> = earlier.iter().map(line).collect();
    replace_file(&path, lines.map_err(|error| RecordError::damaged(&path, error))?.as_bytes())
}

/// What the session in `folder` starts from; nothing where it has no such file.
///
/// # Errors
/// [`RecordError`] naming the line that is damaged: with fewer of them the same record would lead elsewhere.
pub fn load(folder: &RunFolder) -> Result<Vec<Earlier>, RecordError> {
    let path = folder.earlier();
    if !path.exists() {
        return Ok(Vec::new());
    }
    let text = std::fs::read_to_string(&path).map_err(RecordError::read(&path))?;
    let run = |(line, text): (usize, &str)| -> Result<Earlier, RecordError> {
        let damaged = |error| RecordError::damaged(&path, format!("line {}: {error}", line + 1));
        let version = serde_json::from_str::<Version>(text).map_err(damaged)?.schema_version;
        if version > u64::from(EARLIER_SCHEMA) {
            return Err(RecordError::Newer { path: path.clone(), found: version, known: EARLIER_SCHEMA });
        }
        serde_json::from_str(text).map_err(damaged)
    };
    text.lines().enumerate().map(run).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::record::arbitrary::row;

    /// A run of NB 64 + 8 × `number` on `host`.
    pub(crate) fn run(number: u64, host: &str, rate_gflops: f64) -> Earlier {
        Earlier {
            schema_version: EARLIER_SCHEMA,
            source: "before".into(),
            host: Some(host.into()),
            cores: Some(2),
            engine: Some("hpl".into()),
            extent: Extent::Whole,
            candidate: row(number).candidate(),
            rate_gflops,
        }
    }

    #[test]
    fn what_a_session_starts_from_comes_back_and_damage_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        assert_eq!(load(&folder).unwrap(), []);
        let runs = [run(0, "a", 10.0), Earlier { host: None, cores: None, ..run(1, "a", 11.5) }];
        save(&folder, &runs).unwrap();
        assert_eq!(load(&folder).unwrap(), runs);
        let text = std::fs::read_to_string(folder.earlier()).unwrap();
        // A file of before has no engines.
        std::fs::write(folder.earlier(), text.replace("\"engine\":\"hpl\",", "")).unwrap();
        assert_eq!(load(&folder).unwrap(), runs.map(|run| Earlier { engine: None, ..run }));
        std::fs::write(folder.earlier(), text.replace("11.5", "eleven")).unwrap();
        assert!(load(&folder).unwrap_err().to_string().contains("line 2"));
        std::fs::write(folder.earlier(), text.replace("\"schema_version\":1", "\"schema_version\":9")).unwrap();
        assert!(matches!(load(&folder), Err(RecordError::Newer { found: 9, .. })));
    }
}
