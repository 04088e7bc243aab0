//! Files of a run folder.

use std::path::Path;
use std::sync::LazyLock;

use objectives::real::GuardRecord;
use serde_json::{Map, Value};
use space::result::PhaseTime;
use space::windows::PairResult;
use space::{RunResult, WindowsResult};
use tuner::record::now::Now;
use tuner::record::session::Session;
use tuner::record::{Begun, Row, journal, parquet as tables};
use tuner::report::summary::Summary;
use tuner::report::{html, table};

use super::{json_comes_back, utf8};

/// `session.toml`.
pub(super) fn session(data: &[u8]) {
    let Some(Ok(session)) = utf8(data).map(|text| Session::parse(text, Path::new("session.toml"))) else { return };
    let text = session.to_toml().expect("what was read can be written");
    let again = Session::parse(&text, Path::new("session.toml")).expect("what was written can be read");
    // As text, in which a number that is none equals itself.
    assert_eq!(again.to_toml().expect("what was read can be written"), text);
    let _ = (session.speeds(), session.node_names(), session.recorded_engine());
}

/// `journal.jsonl`: what is left out does not matter to what is kept.
pub(super) fn journal(data: &[u8]) {
    let Ok(contents) = journal::contents(data, Path::new("journal.jsonl")) else { return };
    if contents.rows.is_empty() {
        return;
    }
    let lines =
        contents.rows.iter().map(|row| serde_json::to_string(row).expect("what was read can be written") + "\n");
    let again = journal::contents(lines.collect::<String>().as_bytes(), Path::new("journal.jsonl"));
    let again = again.expect("what was written can be read");
    assert_eq!(again.rows, contents.rows);
    assert!(again.bad_lines.is_empty());
}

/// A session as a run of the program wrote it.
static SESSION: LazyLock<Session> = LazyLock::new(|| {
    let text = include_str!("../session.toml");
    Session::parse(text, Path::new("session.toml")).unwrap()
});

/// Rows of whole runs, windows, a repeat, a failure and a final run, as sessions of the program wrote them.
static ROWS: LazyLock<Vec<Map<String, Value>>> =
    LazyLock::new(|| include_str!("../rows.jsonl").lines().map(|line| serde_json::from_str(line).unwrap()).collect());

/// More lines say nothing new of a report.
const MOST_ROWS: usize = 200;

/// The report of a session: each line is the number of one of [`ROWS`] and what is changed of it, as `3{"nb":64}`. What is no row at all is
/// for `journal`.
pub(super) fn report(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let lines: String = text.lines().take(MOST_ROWS).enumerate().filter_map(changed_row).collect();
    let Ok(contents) = journal::contents(lines.as_bytes(), Path::new("journal.jsonl")) else { return };
    if contents.rows.is_empty() {
        return;
    }
    let summary = Summary::new(&SESSION, &contents.rows);
    summary.json().expect("a summary is JSON");
    assert!(!table::summary(&summary, Some(80)).is_empty());
    assert!(html::ReportPage::new(&summary, &contents.rows).html().ends_with("</html>"));
}

/// The line of the journal that line `number` of an input stands for; its trial is that number where no other is given.
fn changed_row((number, line): (usize, &str)) -> Option<String> {
    let first = line.chars().next()?.to_digit(10)? as usize;
    let mut row = ROWS[first % ROWS.len()].clone();
    row.insert("trial".to_owned(), number.into());
    if let Ok(changes) = serde_json::from_str::<Map<String, Value>>(&line[1..]) {
        row.extend(changes);
    }
    Some(Value::Object(row).to_string() + "\n")
}

/// The JSON files of a trial, by the first byte: `trial.json`, `now.json`, `guard.json`, `result.json` of a run, windows or a pair by windows.
pub(super) fn trial(data: &[u8]) {
    let Some((kind, json)) = data.split_first() else { return };
    match kind {
        b't' => drop(json_comes_back::<Begun>(json)),
        b'n' => drop(json_comes_back::<Now>(json).map(|now| now.line(jiff::Timestamp::UNIX_EPOCH))),
        b'g' => drop(json_comes_back::<GuardRecord>(json)),
        b'w' => drop(json_comes_back::<WindowsResult>(json)),
        b'p' => drop(json_comes_back::<PairResult>(json)),
        _ => drop(json_comes_back::<RunResult>(json)),
    }
}

/// Name of the checksum that the program's own files have: without it a damaged file would be refused before it is decoded.
const CHECKSUM: &[u8] = b"hpl-tune checksum";

/// Tables of other sessions.
pub(super) fn parquet(data: &[u8]) {
    let mut bytes = data.to_vec();
    while let Some(at) = bytes.windows(CHECKSUM.len()).position(|window| window == CHECKSUM) {
        bytes[at] = b'H';
    }
    if let Ok(rows) = tables::rows::<Row>(bytes.clone()) {
        rows.iter().for_each(|row| drop(row.candidate()));
    }
    let _ = tables::rows::<PhaseTime>(bytes.clone());
    let _ = tables::cells(bytes);
}
