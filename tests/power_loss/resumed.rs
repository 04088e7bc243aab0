//! A resume by the library: what the program does before its first trial.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use space::Candidates;
use space::domain::DomainSpec;
use space::machine::Machine;
use tuner::record::folder::RunFolder;
use tuner::record::journal::{self, Journal};
use tuner::record::session::Session;
use tuner::record::store::Store;
use tuner::record::{Outcome, Row, Shortener};
use tuner::search::history::History;
use tuner::session::engine::Engine;
use tuner::session::prepare;

/// What every state of one session has to agree with.
pub(super) struct Resumed {
    /// The rows of the record that the session left.
    truth: BTreeMap<u64, Row>,
    domain: Box<dyn Candidates>,
}

impl Resumed {
    /// For the session in `folder`, whose record is `rows`.
    pub(super) fn new(folder: &Path, rows: &[Row]) -> Self {
        let folder = RunFolder::open(folder).unwrap();
        let session = Session::load(&folder.session_toml()).unwrap();
        let machine = Machine::parse(&fs::read_to_string(folder.machine_toml()).unwrap()).unwrap();
        let spec = DomainSpec {
            n: session.n.unwrap(),
            cores: session.cores.len(),
            memory_bytes: prepare::usable_bytes(&machine),
            kernels: space::KernelChoice::Builtin,
            ranks: session.ranks,
            threads: session.threads,
            most_threads: None,
            common_cores: None,
            unequal: session.unequal.clone(),
        };
        let (domain, _) = Engine::of(&session, &folder).unwrap().domain(&spec).unwrap();
        Self { truth: rows.iter().map(|row| (row.trial, row.clone())).collect(), domain }
    }

    /// Resumes the session in `folder`, in which the trials `finished` have ended; the number of its rows, `None` for one that
    /// had not begun.
    pub(super) fn goes_on(&self, folder: &Path, finished: &BTreeSet<u64>, what: &str) -> Option<usize> {
        if !folder.join("session.toml").exists() {
            assert!(finished.is_empty(), "{what}: the session is gone");
            // Its name is free.
            RunFolder::create(folder).unwrap_or_else(|error| panic!("{what}: {error}"));
            return None;
        }
        let open = RunFolder::open(folder).unwrap();
        open.check_owner().unwrap();
        let _lock = open.lock().unwrap();
        let session = Session::load(&open.session_toml()).unwrap_or_else(|error| panic!("{what}: {error}"));
        let engine = Engine::of(&session, &open).unwrap_or_else(|error| panic!("{what}: {error}"));
        let runs = engine.runs(Path::new(env!("CARGO_BIN_EXE_hpl-tune")));
        // What was under way as the session was killed, and once more as the power was lost, has failed.
        let under_way = journal::read(&open.journal()).map_or(Vec::new(), |contents| contents.under_way);
        let twice =
            |row: &Row| under_way.iter().any(|trial| trial.begun.identity.trial == row.trial && trial.kills() > 1);
        let store = Store::open(open.clone(), session, &runs);
        let (store, _) = store.unwrap_or_else(|error| panic!("{what}: {error}"));
        let rows = store.recorded().unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut shortener = Shortener::default();
        assert!(rows.iter().map(|row| shortener.short(row)).eq(store.rows().iter().cloned()), "{what}: rows in memory");
        let rows = &rows[..];
        let numbers: BTreeSet<u64> = rows.iter().map(|row| row.trial).collect();
        assert_eq!(numbers.len(), rows.len(), "{what}: a trial is recorded twice");
        assert!(numbers.is_superset(finished), "{what}: lost of {finished:?}: {numbers:?}");
        for row in rows {
            if finished.contains(&row.trial) {
                assert_eq!(row, &self.truth[&row.trial], "{what}");
            }
            let expected = match row.outcome {
                Outcome::Killed if twice(row) => (Outcome::Killed, None),
                _ => (Outcome::Passed, Some(rate(row))),
            };
            assert_eq!((row.outcome, row.rate_gflops), expected, "{what}: trial {}", row.trial);
        }
        assert_eq!(
            History::from_rows(rows, self.domain.as_ref(), tuner::record::Objective::Gflops).trials.len(),
            rows.len(),
            "{what}"
        );
        // The next trial is recorded behind them, for good.
        let next = Row { trial: numbers.last().map_or(0, |last| last + 1), ..self.truth[&0].clone() };
        Journal::open(&open.journal()).unwrap().0.append(&next).unwrap();
        let again = journal::read(&open.journal()).unwrap().rows;
        assert_eq!(again.last(), Some(&next), "{what}");
        assert_eq!(&again[..rows.len()], rows, "{what}");
        assert_eq!(again.len(), rows.len() + 1, "{what}");
        Some(rows.len())
    }
}

/// What the engine prints for this trial.
fn rate(row: &Row) -> f64 {
    let fast = row.extra.as_ref().is_some_and(|extra| extra.contains("fast"));
    let thousandths = 200 + row.nb as u64 / 8 + row.trial * 37 % 41 + if fast { 50 } else { 0 };
    format!("0.{thousandths}").parse().unwrap()
}
