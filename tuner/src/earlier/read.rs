//! Earlier runs from run folders, journals, Parquet files and HPL.out files.
//!
//! What is damaged is named and left out; the rest is used. An old HPL.out is read where it lies: it holds results and
//! nothing else that a run folder has, so that there is nothing to import it into.

use std::path::{Path, PathBuf};

use objectives::real::Extent;
use space::{Candidate, EngineParams, out};

use super::{EARLIER_SCHEMA, Earlier};
use crate::record::Row;
use crate::record::decode::Decoder;
use crate::record::journal;

/// Earlier runs with what was wrong with their sources.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Found {
    /// The passed runs, source by source.
    pub runs: Vec<Earlier>,
    /// What was left out, and why; each names its file.
    pub warnings: Vec<String>,
}

/// Reads all `sources`, their Parquet files by `decoder`.
///
/// # Errors
/// The first one that is not there: a mistyped path is to be mended before a night is spent.
pub fn read(sources: &[PathBuf], decoder: &Decoder) -> Result<Found, String> {
    exist(sources)?;
    let mut found = Found::default();
    for source in sources {
        let before = found.runs.len();
        match one(source, decoder, &mut found.warnings) {
            Ok(runs) => found.runs.extend(runs),
            Err(error) => found.warnings.push(error),
        }
        if found.runs.len() == before {
            found
                .warnings
                .push(format!("--warm-start {}: no passed run in it that is not simulated", source.display()));
        }
    }
    Ok(found)
}

/// Whether all of them are there.
///
/// # Errors
/// The first that is not, and what can be given.
pub fn exist(sources: &[PathBuf]) -> Result<(), String> {
    match sources.iter().find(|path| !path.exists()) {
        Some(absent) => Err(format!(
            "--warm-start {}: no such file or folder; give a run folder, a journal.jsonl, a trials.parquet or an HPL.out",
            absent.display()
        )),
        None => Ok(()),
    }
}

fn one(source: &Path, decoder: &Decoder, warnings: &mut Vec<String>) -> Result<Vec<Earlier>, String> {
    if source.is_dir() {
        let journal = source.join("journal.jsonl");
        let trials = source.join("trials.parquet");
        // The journal is the truth; without one, or where it cannot be read, the same rows are in Parquet.
        let by_journal = journal.is_file().then(|| of_journal(&journal, source, warnings));
        return match by_journal {
            Some(Ok(runs)) => Ok(runs),
            Some(Err(error)) if !trials.is_file() => Err(error),
            Some(Err(error)) => {
                warnings.push(error);
                of_parquet(&trials, source, decoder)
            }
            None if trials.is_file() => of_parquet(&trials, source, decoder),
            None => {
                Err(format!("{}: not a run folder, it has no journal.jsonl and no trials.parquet", source.display()))
            }
        };
    }
    match source.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => of_journal(source, source, warnings),
        Some("parquet") => of_parquet(source, source, decoder),
        _ => of_output(source, warnings),
    }
}

fn of_journal(path: &Path, source: &Path, warnings: &mut Vec<String>) -> Result<Vec<Earlier>, String> {
    let contents = journal::read(path).map_err(|error| error.to_string())?;
    warnings.extend(contents.bad_lines.iter().map(|line| format!("{}: {line}", source.display())));
    Ok(contents.rows.iter().filter_map(|row| of_row(row, source)).collect())
}

fn of_parquet(path: &Path, source: &Path, decoder: &Decoder) -> Result<Vec<Earlier>, String> {
    let rows: Vec<Row> = decoder.rows(path).map_err(|error| error.to_string())?;
    Ok(rows.iter().filter_map(|row| of_row(row, source)).collect())
}

/// A passed row of `source`; none that is simulated.
pub(crate) fn of_row(row: &Row, source: &Path) -> Option<Earlier> {
    if row.engine == Row::SIMULATED {
        return None;
    }
    Some(Earlier {
        schema_version: EARLIER_SCHEMA,
        source: source.display().to_string(),
        host: Some(row.nodes.as_ref().unwrap_or(&row.host).clone()),
        cores: Some(row.p * row.q * row.threads),
        engine: Some(row.engine.clone()),
        extent: row.extent,
        candidate: row.candidate(),
        rate_gflops: row.comparable_rate_gflops().filter(|rate| rate.is_finite() && *rate > 0.0)?,
    })
}

/// Results with a passed check; a run without one may be wrong.
fn of_output(path: &Path, warnings: &mut Vec<String>) -> Result<Vec<Earlier>, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let records = out::parse(&String::from_utf8_lossy(&bytes));
    let passed = |record: &&out::OutRecord| record.passed == Some(true) && record.rate_gflops > 0.0;
    let unproven = records.iter().filter(|record| !passed(record)).count();
    if unproven > 0 {
        let of = records.len();
        warnings.push(format!("{}: {unproven} of {of} results have no passed check: left out", path.display()));
    }
    let run = |record: &out::OutRecord| Earlier {
        schema_version: EARLIER_SCHEMA,
        source: path.display().to_string(),
        host: None,
        cores: None,
        engine: None,
        extent: Extent::Whole,
        candidate: Candidate { hpl: record.params, engine: EngineParams::default() },
        rate_gflops: record.rate_gflops,
    };
    Ok(records.iter().filter(passed).map(run).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::record::journal::Journal;
    use crate::record::parquet;

    const OUTPUT: &str = "\
WR11C2R4        8000   128     1     2               3.50             9.7500e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.11204902e-03 ...... PASSED
WR11C2R4        8000   192     1     2               3.40             9.9500e+01
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.11204902e+06 ...... FAILED
WR11C2R4        8000   256     1     2               3.";

    #[test]
    fn every_kind_of_source_is_read_and_what_is_damaged_is_named() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        for folder in ["run", "old", "torn"] {
            std::fs::create_dir(at(folder)).unwrap();
        }
        let failed = Row { passed: false, ..row(2) };
        let simulated = Row { engine: Row::SIMULATED.to_owned(), ..row(3) };
        let rows = [row(0), windows(1, 96, 30.0), failed, simulated];
        let (mut journal, _) = Journal::open(&at("run/journal.jsonl")).unwrap();
        rows.iter().for_each(|row| journal.append(row).unwrap());
        parquet::write(&at("old/trials.parquet"), &rows).unwrap();
        let lines = std::fs::read_to_string(at("run/journal.jsonl")).unwrap();
        std::fs::write(at("torn/journal.jsonl"), format!("no line\n{lines}{{\"half")).unwrap();
        std::fs::write(at("bad.parquet"), "PAR1 and nothing else").unwrap();
        std::fs::write(at("HPL.out"), OUTPUT).unwrap();
        std::fs::write(at("notes.txt"), "dear diary").unwrap();
        let names = ["run", "old", "torn", "bad.parquet", "HPL.out", "notes.txt"];
        let found = read(&names.map(at), &Decoder::Here).unwrap();
        let rates: Vec<f64> = found.runs.iter().map(|run| run.rate_gflops).collect();
        assert_eq!(rates, [20.0, 30.0, 20.0, 30.0, 20.0, 30.0, 97.5]);
        assert_eq!((found.runs[1].extent, found.runs[1].cores), (Extent::Windows, Some(2)));
        assert_eq!((found.runs[6].candidate.hpl.nb, found.runs[6].host.as_deref()), (128, None));
        assert_eq!((found.runs[0].engine.as_ref(), found.runs[6].engine.as_ref()), (Some(&row(0).engine), None));
        let all = found.warnings.join("\n");
        for word in [
            "torn: journal.jsonl line 1",
            "line 6: incomplete",
            "bad.parquet",
            "1 of 2 results",
            "notes.txt: no passed",
        ] {
            assert!(all.contains(word), "'{word}' is not in: {all}");
        }
        assert!(read(&[at("run"), at("typo")], &Decoder::Here).unwrap_err().contains("typo: no such file"));
    }
}
