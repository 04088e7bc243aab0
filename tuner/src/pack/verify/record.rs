//! The journal against trials.parquet, and rows against what they claim to be.

use std::path::Path;

use objectives::real::Extent;
use space::counted;
use space::flops::rate_gflops;

use super::Checked;
use crate::error::RecordError;
use crate::record::decode::Decoder;
use crate::record::journal;
use crate::record::plain::{self, RECORD_BYTES};
use crate::record::session::Session;
use crate::record::{Identity, Outcome, Row};

/// How far the rate of a row may be from its operations over its time, as a share: both come from one division.
const EXACT: f64 = 1e-6;
/// A run may take this much longer by its own clock than its process lived, as a share and in seconds.
const CLOCKS: (f64, f64) = (0.05, 0.05);

/// What to do about a row that cannot be.
const OF_RUN: &str = "the record was changed after the runs: take the journal of the session itself";

/// The record of a session as far as it can be read; `place` is its path in what is verified, empty or with a slash at its end.
pub(super) fn read(checked: &mut Checked, folder: &Path, place: &str) -> (Option<Session>, Vec<Row>) {
    let file = |name: &str| format!("{place}{name}");
    let load = |path: &Path| {
        plain::check(path).map_err(RecordError::read(path))?;
        Session::load(path)
    };
    let session = match load(&folder.join("session.toml")) {
        Ok(session) => Some(session),
        Err(error) => {
            checked.find(file("session.toml"), error.to_string(), "put the session.toml of the session back");
            None
        }
    };
    let path = folder.join("journal.jsonl");
    let contents = plain::read(&path, RECORD_BYTES).map_err(RecordError::read(&path));
    let rows = match contents.and_then(|bytes| journal::contents(&bytes, &path)) {
        Ok(contents) => {
            for line in &contents.bad_lines {
                checked.find(
                    file("journal.jsonl"),
                    line.to_string(),
                    "put the line back as it was; an incomplete last line is dropped by --resume",
                );
            }
            contents.rows
        }
        Err(error) => {
            checked.find(file("journal.jsonl"), error.to_string(), "put the journal of the session back");
            Vec::new()
        }
    };
    (session, rows)
}

/// Checks that trials.parquet holds the rows of the journal, where it is there.
pub(super) fn against_parquet(checked: &mut Checked, folder: &Path, place: &str, rows: &[Row], decoder: &Decoder) {
    let file = format!("{place}trials.parquet");
    let path = folder.join("trials.parquet");
    // Of a link the rows would be those of a file elsewhere.
    if let Err(error) = plain::check(&path) {
        checked.find(file, format!("cannot be read: {error}"), "hpl-tune --resume of the run folder writes it anew");
        return;
    }
    if !path.is_file() {
        checked.find(file, "it is missing", "hpl-tune --resume of the run folder writes it anew");
        return;
    }
    let held = match decoder.rows::<Row>(&path) {
        Ok(held) => held,
        Err(error) => {
            return checked.find(file, error.to_string(), "hpl-tune --resume of the run folder writes it anew");
        }
    };
    let way_out = "one of the two was changed, or the session was killed: hpl-tune --resume writes trials.parquet anew from the journal";
    let mut journal: Vec<&Row> = rows.iter().collect();
    journal.sort_by_key(|row| row.trial);
    let mut held: Vec<&Row> = held.iter().collect();
    held.sort_by_key(|row| row.trial);
    if journal.len() != held.len() {
        let rows = counted(held.len(), "row");
        return checked.find(file, format!("{rows}, journal.jsonl has {}", journal.len()), way_out);
    }
    for (row, held) in journal.into_iter().zip(held) {
        if row != held {
            let names = differing(row, held);
            checked.find(&file, format!("trial {} differs from journal.jsonl in {names}", row.trial), way_out);
        }
    }
    checked.looked(format!("{} of journal.jsonl with trials.parquet", counted(rows.len(), "row")));
}

/// Names of the columns in which two rows differ.
fn differing(a: &Row, b: &Row) -> String {
    let values = |row: &Row| serde_json::to_value(row).unwrap_or_default();
    let (a, b) = (values(a), values(b));
    let keys = a.as_object().into_iter().flat_map(serde_json::Map::keys);
    keys.filter(|key| a[key.as_str()] != b[key.as_str()]).cloned().collect::<Vec<_>>().join(", ")
}

/// Checks each row: that its figures are of the kind that it says, and its rate that of its time.
pub(super) fn rows(checked: &mut Checked, place: &str, session: Option<&Session>, rows: &[Row]) {
    let file = format!("{place}journal.jsonl");
    let mut numbers = std::collections::BTreeSet::new();
    for row in rows {
        let mut report = |problem: &str| checked.find(&file, format!("trial {}: {problem}", row.trial), OF_RUN);
        if !numbers.insert(row.trial) {
            report("its number is there twice");
        }
        if row.passed != (row.outcome == Outcome::Passed) {
            report(&format!("passed is {}, but its outcome is {}", row.passed, row.outcome.name()));
        }
        kinds(row, &mut report);
        if let Some(session) = session {
            if row.engine != session.recorded_engine() {
                report(&format!(
                    "its engine is \"{}\", that of the session is \"{}\"",
                    row.engine,
                    session.recorded_engine()
                ));
            }
            if row.session != session.name {
                report(&format!("it is of the session {}, this one is {}", row.session, session.name));
            }
        }
        if let (Some(rate), Some(time_s)) = (row.rate_gflops, row.time_s) {
            let expected = rate_gflops(row.n, time_s);
            if (rate / expected - 1.0).abs() > EXACT {
                report(&format!("{rate} GFLOP/s, but N = {} in {time_s} s are {expected} GFLOP/s", row.n));
            }
            // Of a run that was taken in after a crash the time of its process may be unknown.
            let (share, seconds) = CLOCKS;
            if row.wall_s > 0.0 && time_s > (1.0 + share) * row.wall_s + seconds {
                report(&format!("a time of {time_s} s, but its process ran for {} s", row.wall_s));
            }
        }
    }
    checked.looked(format!("the figures of {}", counted(rows.len(), "row")));
}

/// Windows have estimates, whole runs are measured; no row has both, and what is estimated is nowhere called a measurement.
fn kinds(row: &Row, report: &mut impl FnMut(&str)) {
    match row.extent {
        Extent::Windows => {
            if row.rate_gflops.is_some() || row.time_s.is_some() {
                report("windows with a measured rate or time: what windows predict is estimated_rate_gflops alone");
            }
            if row.strategy == Identity::FINAL {
                report("windows as the final run, which is always whole");
            }
        }
        Extent::Whole if row.passed => {
            if row.estimated_rate_gflops.is_some() || row.estimated_sd.is_some() {
                report("a passed whole run with an estimated rate: it would be windows");
            }
            if row.rate_gflops.is_none() || row.time_s.is_none() || row.residual.is_none() {
                report("a passed whole run without rate, time or residual");
            }
            if row.cost_fraction != 1.0 {
                report("a passed whole run that did only a part of the work");
            }
        }
        Extent::Whole => {
            if row.rate_gflops.is_some() {
                report("a failed run with a measured rate");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::report::summary::tests::session;

    fn findings(row: Row) -> Vec<String> {
        let mut checked = Checked::default();
        rows(&mut checked, "", None, &[row]);
        checked.findings.iter().map(ToString::to_string).collect()
    }

    /// A row whose rate is that of its time.
    fn good() -> Row {
        let row = row(0);
        Row { rate_gflops: Some(rate_gflops(row.n, row.time_s.unwrap())), ..row }
    }

    #[test]
    fn rows_that_cannot_be_are_findings() {
        assert_eq!((findings(good()), findings(windows(1, 64, 20.0))), (vec![], vec![]));
        let window = || windows(1, 64, 20.0);
        let cases = [
            (Row { rate_gflops: Some(99.0), ..good() }, "99 GFLOP/s, but N = 1000"),
            (
                Row { wall_s: 0.5, time_s: Some(0.6), rate_gflops: Some(rate_gflops(1000, 0.6)), ..good() },
                "its process ran for 0.5 s",
            ),
            (Row { rate_gflops: Some(20.0), ..window() }, "windows with a measured rate"),
            (Row { strategy: Identity::FINAL.into(), ..window() }, "windows as the final run"),
            (Row { extent: Extent::Whole, ..window() }, "a passed whole run with an estimated rate"),
            (Row { residual: None, ..good() }, "without rate, time or residual"),
            (Row { cost_fraction: 0.5, ..good() }, "only a part of the work"),
            (Row { passed: false, ..good() }, "passed is false, but its outcome is passed"),
            (Row { passed: false, outcome: Outcome::Residual, ..good() }, "a failed run with a measured rate"),
        ];
        for (row, words) in cases {
            let findings = findings(row);
            assert!(findings.iter().any(|line| line.contains(words)), "{words}: {findings:?}");
        }
    }

    #[test]
    fn a_row_of_another_session_or_engine_is_findings() {
        let session = session();
        let own = Row { session: session.name.clone(), engine: session.recorded_engine(), ..good() };
        let findings = |row: &Row| {
            let mut checked = Checked::default();
            rows(&mut checked, "record/", Some(&session), std::slice::from_ref(row));
            checked.findings.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert!(findings(&own).is_empty(), "{:?}", findings(&own));
        let simulated = findings(&Row { engine: Row::SIMULATED.into(), ..own.clone() });
        assert!(
            simulated[0].starts_with("record/journal.jsonl: trial 0: its engine is \"hpl, simulated\""),
            "{simulated:?}"
        );
        assert!(findings(&Row { session: "other".into(), ..own })[0].contains("of the session other"));
    }
}
