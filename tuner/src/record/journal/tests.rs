use proptest::prelude::*;

use super::*;
use crate::record::Identity;
use crate::record::arbitrary::{any_row, identity, row};

fn begun(trial: u64, nb: usize) -> Begun {
    let mut candidate = row(trial).candidate();
    candidate.hpl.nb = nb;
    let (extent, predicted) = (objectives::real::Extent::Whole, None);
    let reference = (trial == 2).then(|| candidate.clone());
    Begun {
        identity: identity(trial),
        candidate,
        extent,
        reference,
        predicted,
        expected_s: 2.5,
        nodes: Vec::new(),
        seed: 7,
        host: "host".into(),
    }
}

fn write(path: &Path, rows: &[Row]) {
    let (mut journal, _) = Journal::open(path).unwrap();
    rows.iter().for_each(|row| journal.append(row).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn rows_come_back(rows in proptest::collection::vec(any_row(), 0..4)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        write(&path, &rows);
        let contents = read(&path).unwrap();
        prop_assert_eq!(&contents.rows, &rows);
        prop_assert!(contents.bad_lines.is_empty());
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.jsonl");
        std::fs::write(&path, &bytes).unwrap();
        prop_assert!(read(&path).unwrap().rows.is_empty());
    }
}

/// Wherever the last line is cut, the rows before it survive and the next append starts a line.
#[test]
fn a_torn_last_line_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let rows: Vec<Row> = (0..3).map(row).collect();
    write(&path, &rows);
    let bytes = std::fs::read(&path).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1;
    for cut in last..=bytes.len() {
        std::fs::write(&path, &bytes[..cut]).unwrap();
        let (mut journal, contents) = Journal::open(&path).unwrap();
        // Cut just before its line feed, the last row is whole and kept.
        let kept = if cut >= bytes.len() - 1 { 3 } else { 2 };
        assert_eq!(contents.rows, rows[..kept], "cut at {cut}");
        let torn = (last + 1..bytes.len() - 1).contains(&cut);
        let expected = if torn { vec![BadLine::Torn { line: 3 }] } else { vec![] };
        assert_eq!(contents.bad_lines, expected, "cut at {cut}");
        journal.append(&row(9)).unwrap();
        let again = read(&path).unwrap();
        assert_eq!(again.bad_lines, []);
        assert_eq!(again.rows, [&rows[..kept], &[row(9)]].concat());
    }
}

#[test]
fn a_damaged_line_is_named_and_costs_only_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    write(&path, &[row(0), row(1), row(2)]);
    let mut bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    bytes[second + 5] = 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let (_, contents) = Journal::open(&path).unwrap();
    assert_eq!(contents.rows, [row(0), row(2)]);
    assert!(contents.bad_lines[0].to_string().starts_with("journal.jsonl line 2: damaged"));
    assert_eq!(std::fs::read(&path).unwrap(), bytes, "what cannot be read is not destroyed");
}

#[test]
fn a_line_that_is_there_twice_counts_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    write(&path, &[row(0), row(1)]);
    let bytes = std::fs::read(&path).unwrap();
    let second = bytes.iter().position(|&b| b == b'\n').unwrap() + 1;
    std::fs::write(&path, [&bytes, &bytes[second..]].concat()).unwrap();
    let contents = read(&path).unwrap();
    assert_eq!((contents.rows, contents.bad_lines), (vec![row(0), row(1)], vec![BadLine::Again { line: 3, trial: 1 }]));
}

#[test]
fn a_start_is_under_way_until_its_end_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    let left = || -> Vec<(u64, u32, usize)> {
        let contents = read(&path).unwrap();
        assert_eq!(contents.bad_lines, []);
        let of = |trial: &UnderWay| (trial.begun.identity.trial, trial.starts, trial.begun.candidate.hpl.nb);
        contents.under_way.iter().map(of).collect()
    };
    journal.append(&row(0)).unwrap();
    (1..4).for_each(|trial| journal.start(&begun(trial, 64)).unwrap());
    assert_eq!(left(), [(1, 1, 64), (2, 1, 64), (3, 1, 64)]);
    journal.append(&row(2)).unwrap();
    // Again, and another one under the number of one that was interrupted.
    journal
        .start(&Begun { identity: Identity { started_utc: "later".into(), ..identity(1) }, ..begun(1, 64) })
        .unwrap();
    journal.start(&begun(3, 96)).unwrap();
    assert_eq!(left(), [(1, 2, 64), (3, 1, 96)]);
    assert_eq!(read(&path).unwrap().under_way[1].begun, begun(3, 96));
    journal.append(&row(1)).unwrap();
    journal.start(&begun(1, 64)).unwrap();
    assert_eq!(left(), [(3, 1, 96)], "what has ended is not under way");
    // A torn start never was.
    let bytes = std::fs::read(&path).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|&b| b == b'\n').unwrap() + 1;
    std::fs::write(&path, &bytes[..last + 40]).unwrap();
    let (_, contents) = Journal::open(&path).unwrap();
    assert_eq!(contents.bad_lines, [BadLine::Torn { line: 9 }]);
    assert_eq!(left(), [(3, 1, 96)]);
}

/// What was asked to end counted as what was killed.
#[test]
fn a_trial_that_is_ended_with_its_session_is_told_from_one_that_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    let left = || -> Vec<(u64, u32, u32)> {
        let contents = read(&path).unwrap();
        assert_eq!(contents.bad_lines, []);
        let of = |trial: &UnderWay| (trial.begun.identity.trial, trial.starts, trial.kills());
        contents.under_way.iter().map(of).collect()
    };
    let started = |trial: u64, when: &str| Begun {
        identity: Identity { started_utc: when.into(), ..identity(trial) },
        ..begun(trial, 64)
    };
    (0..3).for_each(|trial| journal.start(&started(trial, "first")).unwrap());
    journal.stop(&[1, 2]).unwrap();
    assert_eq!(left(), [(0, 1, 1), (1, 1, 0), (2, 1, 0)]);
    (0..2).for_each(|trial| journal.start(&started(trial, "second")).unwrap());
    assert_eq!(left(), [(2, 1, 0), (0, 2, 2), (1, 2, 1)]);
    // A line that is there twice, as a file server that is asked twice may leave it.
    journal.start(&started(1, "second")).unwrap();
    journal.stop(&[2]).unwrap();
    assert_eq!(left(), [(2, 1, 0), (0, 2, 2), (1, 2, 1)]);
    journal.append(&row(1)).unwrap();
    journal.stop(&[0, 1, 7]).unwrap();
    assert_eq!(left(), [(2, 1, 0), (0, 2, 1)]);
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.jsonl");
    write(&path, &[row(0)]);
    let newer = format!("{{\"schema_version\":{},\"moon_phase\":1}}\n", ROW_SCHEMA + 1);
    std::fs::write(&path, newer).unwrap();
    assert!(
        matches!(Journal::open(&path), Err(RecordError::Newer { found, .. }) if found == u64::from(ROW_SCHEMA) + 1)
    );
}

#[test]
#[ignore = "needs the right to mount: tests/run runs it where that is given"]
fn needs_mount_a_full_disk_costs_only_the_row_that_did_not_fit() {
    let disk = crate::record::folder::small_disk::SmallDisk::mount();
    let path = disk.path().join("journal.jsonl");
    let (mut journal, _) = Journal::open(&path).unwrap();
    journal.append(&row(0)).unwrap();
    let ballast = disk.fill();
    let mut written = vec![row(0)];
    let error = loop {
        let next = row(written.len() as u64);
        match journal.append(&next) {
            Ok(()) => written.push(next),
            Err(error) => break error,
        }
    };
    assert!(error.to_string().contains("free some space"), "{error}");
    let contents = read(&path).unwrap();
    assert_eq!((contents.rows, contents.bad_lines), (written.clone(), vec![]));
    std::fs::remove_file(ballast).unwrap();
    written.push(row(77));
    journal.append(&row(77)).unwrap();
    assert_eq!(read(&path).unwrap().rows, written);
}
