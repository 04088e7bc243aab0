//! The run folder, read again and again: what is new since the last look.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use objectives::progress::ProgressPoint;
use objectives::real::RealRuns;

use super::begun::Begun;
use super::work::{Evidence, Work, is_alive, is_held};
use crate::error::RecordError;
use crate::record::folder::RunFolder;
use crate::record::follow::Follower;
use crate::record::now::Now;
use crate::record::plain;
use crate::record::session::{RanOn, Session};
use crate::record::store::predicted;
use crate::record::{Prediction, Row};
use crate::report::{Summary, counted};
use crate::session::engine::Engine;

/// A summary of thousands of trials takes a second: the next one waits this many times as long as the last one took, so that a watcher
/// takes little from a session on the same machine.
const PACE: u32 = 300;

/// A run folder as it was at the last look.
#[derive(Debug, Clone)]
pub struct Record {
    /// Where it lies.
    pub folder: PathBuf,
    /// What was asked, and how far it got.
    pub session: Session,
    /// Finished trials on the nodes of the session.
    pub rows: Vec<Row>,
    /// Trials on nodes that it had before.
    pub elsewhere: usize,
    /// Trials on some nodes of the session alone, which are no part of the rows.
    pub on_some: usize,
    /// What the report says of these trials, or of the first of them, see [`Summary::trials`].
    pub summary: Summary,
    /// The trial under way, if the folder names one.
    pub running: Option<Running>,
    /// Whether the machine is calibrated.
    pub calibrated: bool,
    /// Whether the session is at work.
    pub work: Work,
    /// Seconds since the clock of the session was written down.
    pub clock_age_s: f64,
    /// What is wrong with the files, a sentence each.
    pub doubts: Vec<String>,
}

/// A trial under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Running {
    /// What the session says of it.
    pub now: Now,
    /// Seconds since it began.
    pub since_s: f64,
    /// Seconds since the session said so.
    pub told_s: f64,
    /// What was predicted of it.
    pub predicted: Option<Prediction>,
    /// How far it is, where its engine prints that.
    pub progress: Option<ProgressPoint>,
}

/// Reads a run folder and writes nothing, nor takes a lock.
#[derive(Debug)]
pub struct Reader {
    folder: RunFolder,
    journal: Follower,
    record: Record,
    files: TimedFiles,
    begun: Begun,
    /// Name of this machine.
    host: String,
    /// To find what a run prints, where its engine tells its progress.
    runs: Option<RealRuns>,
    /// Whether the summary lacks something.
    stale: bool,
    /// When the next summary may be made.
    next: Instant,
    /// When the folder could be read last.
    read: Instant,
}

impl Reader {
    /// Reads the run folder at `path`.
    ///
    /// # Errors
    /// [`RecordError`] where there is none, or one that this program cannot read.
    pub fn open(path: &Path) -> Result<Self, RecordError> {
        let folder = RunFolder::open(path)?;
        folder.check_record()?;
        let session = Session::load(&folder.session_toml())?;
        let record = Record {
            folder: folder.root().to_owned(),
            rows: Vec::new(),
            on_some: 0,
            elsewhere: 0,
            summary: Summary::new(&session, &[]),
            running: None,
            calibrated: false,
            work: Work::Silent { since_s: 0.0 },
            clock_age_s: 0.0,
            doubts: Vec::new(),
            session,
        };
        let program = std::env::current_exe().unwrap_or_default();
        let runs = Engine::of(&record.session, &folder).ok().map(|engine| engine.runs(&program));
        let runs = runs.filter(RealRuns::reports_progress);
        let journal = Follower::new(&folder.journal());
        let now = Instant::now();
        let host = hpl::machine::host::facts().hostname;
        let (files, begun) = (TimedFiles::default(), Begun::default());
        let mut reader = Self { folder, journal, record, files, begun, host, runs, stale: true, next: now, read: now };
        reader.read_on()?;
        Ok(reader)
    }

    /// What is there now. What cannot be read stays as it was, and is a doubt.
    pub fn look(&mut self) -> &Record {
        match self.read_on() {
            Ok(()) => self.read = Instant::now(),
            Err(error) => {
                self.record.doubts = vec![error.to_string()];
                self.record.work = Work::Silent { since_s: self.read.elapsed().as_secs_f64() };
            }
        }
        &self.record
    }

    fn read_on(&mut self) -> Result<(), RecordError> {
        self.folder.check_record()?;
        if self.files.session.look(&self.folder.session_toml()) {
            self.take_session(Session::load(&self.folder.session_toml())?);
        }
        self.files.journal.look(&self.folder.journal());
        let news = self.journal.look()?;
        if news.anew {
            self.record.rows.clear();
            (self.record.on_some, self.record.elsewhere) = (0, 0);
        }
        self.stale |= news.anew || !news.rows.is_empty();
        for row in news.rows {
            match self.record.session.place_of(&row) {
                RanOn::AllNodes => self.record.rows.push(row),
                RanOn::SomeNodes => self.record.on_some += 1,
                RanOn::OtherNodes => self.record.elsewhere += 1,
            }
        }
        self.record.running = self.running();
        self.record.calibrated = self.folder.machine_toml().exists();
        self.record.work = self.work();
        self.record.clock_age_s = self.files.session.age_s().min(self.files.journal.age_s());
        self.record.doubts = self.doubts();
        self.summarise();
        Ok(())
    }

    fn take_session(&mut self, session: Session) {
        let before = std::mem::replace(&mut self.record.session, session);
        let session = &self.record.session;
        if before.node_names() != session.node_names() || before.moved_from != session.moved_from {
            self.journal = Follower::new(&self.folder.journal());
            self.record.rows.clear();
            (self.record.on_some, self.record.elsewhere) = (0, 0);
        }
        // Its clock makes no difference to what was found.
        self.stale |= before != Session { elapsed_s: before.elapsed_s, ..session.clone() };
    }

    fn running(&mut self) -> Option<Running> {
        self.files.now.look(&self.folder.now());
        let now = Now::read(&self.folder);
        self.begun.look(&self.folder, now.as_ref(), self.files.now.age_s());
        let now = now?;
        let known = self.record.running.take().filter(|known| known.now == now);
        let predicted = known.map_or_else(|| predicted(&self.folder, now.trial), |known| known.predicted);
        let progress = |runs: &RealRuns| runs.progress_in(&self.folder.trial(now.trial)).last().copied();
        Some(Running {
            since_s: self.begun.since_s(&now),
            told_s: self.files.now.age_s(),
            predicted,
            progress: self.runs.as_ref().and_then(progress),
            now,
        })
    }

    fn work(&mut self) -> Work {
        let here = self.is_here();
        let lock = self.folder.lock_file();
        let files = &mut self.files;
        files.report.look(&self.folder.report_html());
        let table = if here { fs::read_to_string("/proc/locks").unwrap_or_default() } else { String::new() };
        let evidence = Evidence {
            held: is_held(&lock, &table),
            process: here.then(|| is_alive(&lock)),
            reported: files.report.is_newer(&files.session) && files.report.is_newer(&files.journal),
            quiet_s: [&files.session, &files.journal, &files.now].map(Seen::age_s).into_iter().fold(f64::MAX, f64::min),
        };
        evidence.judge()
    }

    /// Whether the session is at work on this machine, if it is.
    fn is_here(&self) -> bool {
        self.record.session.host == self.host
    }

    fn doubts(&self) -> Vec<String> {
        let mut doubts: Vec<String> = self.journal.bad_lines().iter().take(3).map(ToString::to_string).collect();
        if self.journal.bad_lines().len() > doubts.len() {
            doubts.push(format!("{} lines of journal.jsonl are left out", self.journal.bad_lines().len()));
        }
        if self.journal.is_torn() && self.record.work == Work::Over {
            doubts.push("the last line of journal.jsonl is incomplete, dropped".to_owned());
        }
        for (count, place) in [(self.record.on_some, "some of the nodes"), (self.record.elsewhere, "other nodes")] {
            let are = if count == 1 { "is" } else { "are" };
            let said = || format!("{} on {place} {are} no part of this", counted(count, "trial"));
            doubts.extend((count > 0).then(said));
        }
        doubts
    }

    /// Makes the summary anew where it lacks something: soon for few trials, and at once at the end.
    fn summarise(&mut self) {
        let begun = Instant::now();
        if self.stale && (begun >= self.next || self.record.work == Work::Over) {
            self.record.summary = Summary::new(&self.record.session, &self.record.rows);
            self.stale = false;
            self.next = Instant::now() + PACE * begun.elapsed().max(Duration::from_millis(1));
        }
    }
}

/// The files that tell when something happened.
#[derive(Debug, Default)]
struct TimedFiles {
    session: Seen,
    journal: Seen,
    now: Seen,
    report: Seen,
}

/// When a file changed. The clock of this machine counts from a change that was seen; only before the first one the time stamp of the
/// file is believed, which another machine may have given.
#[derive(Debug, Default)]
struct Seen {
    /// Its time, length and number: a file that is replaced has another number, even within a tick of the clock.
    stamp: Option<(SystemTime, u64, u64)>,
    /// When the change was seen, and how old it was by then.
    changed: Option<(Instant, f64)>,
}

impl Seen {
    /// Whether the file has changed since the last look. It is opened, which on a network file system asks the server.
    fn look(&mut self, path: &Path) -> bool {
        let about = plain::open(path).and_then(|file| file.metadata());
        let stamp = about.ok().and_then(|about| Some((about.modified().ok()?, about.len(), about.ino())));
        if stamp == self.stamp {
            return false;
        }
        let old = |(time, ..): (SystemTime, u64, u64)| SystemTime::now().duration_since(time).unwrap_or_default();
        let before_s = if self.changed.is_none() { stamp.map(old).unwrap_or_default().as_secs_f64() } else { 0.0 };
        self.stamp = stamp;
        self.changed = Some((Instant::now(), before_s));
        true
    }

    /// Seconds since it changed; infinite for a file that never was there.
    fn age_s(&self) -> f64 {
        self.changed.map_or(f64::INFINITY, |(seen, before_s)| seen.elapsed().as_secs_f64() + before_s)
    }

    /// Whether it is there and was written no earlier than `other`.
    fn is_newer(&self, other: &Self) -> bool {
        self.stamp.is_some_and(|(time, ..)| other.stamp.is_none_or(|(before, ..)| time >= before))
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::summary::tests::session;

    /// A run folder with these rows.
    fn folder(rows: &[Row]) -> (tempfile::TempDir, RunFolder) {
        let home = tempfile::tempdir().unwrap();
        let (folder, lock) = RunFolder::create(&home.path().join("run")).unwrap();
        drop(lock);
        session().save(&folder.session_toml()).unwrap();
        fs::write(folder.journal(), "").unwrap();
        rows.iter().for_each(|row| append(&folder, row));
        (home, folder)
    }

    fn append(folder: &RunFolder, row: &Row) {
        let mut journal = File::options().append(true).open(folder.journal()).unwrap();
        writeln!(journal, "{}", serde_json::to_string(row).unwrap()).unwrap();
    }

    /// What the journal of a long session costs: each row is read once, and the summary waits for its time.
    #[test]
    fn the_summary_is_made_for_new_rows_and_not_at_each_look() {
        let (_home, folder) = folder(&[row(0), row(1)]);
        let mut reader = Reader::open(folder.root()).unwrap();
        assert_eq!((reader.record.rows.len(), reader.record.summary.trials), (2, 2));
        let due = reader.next;
        for _ in 0..3 {
            reader.look();
            assert_eq!(reader.next, due, "nothing is new: no summary is made");
        }
        append(&folder, &row(2));
        reader.next = Instant::now() + Duration::from_secs(3600);
        let record = reader.look();
        assert_eq!((record.rows.len(), record.summary.trials), (3, 2), "it is not due yet");
        reader.next = Instant::now();
        assert_eq!(reader.look().summary.trials, 3);
        // The clock of the session makes nothing new; what it searches does.
        let due = reader.next;
        Session { elapsed_s: 77.0, ..session() }.save(&folder.session_toml()).unwrap();
        assert_eq!(reader.look().session.elapsed_s, 77.0);
        assert_eq!(reader.next, due);
        Session { n: Some(2000), ..session() }.save(&folder.session_toml()).unwrap();
        reader.next = Instant::now();
        assert_eq!(reader.look().summary.session.n, Some(2000));
    }

    #[test]
    fn rows_of_other_nodes_are_counted_apart() {
        let on = |trial, nodes: &str| Row { nodes: Some(nodes.to_owned()), ..row(trial) };
        let (_home, folder) = folder(&[on(0, "a b"), on(1, "c d"), on(2, "c d")]);
        let hosts = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Session { hosts: hosts(["c", "d"]), ..session() }.save(&folder.session_toml()).unwrap();
        let mut reader = Reader::open(folder.root()).unwrap();
        assert_eq!((reader.record.rows.len(), reader.record.elsewhere), (2, 1));
        assert!(reader.record.doubts.iter().any(|doubt| doubt.starts_with("1 trial on other nodes is ")));
        // Resumed on others.
        Session { hosts: hosts(["b", "a"]), ..session() }.save(&folder.session_toml()).unwrap();
        let record = reader.look();
        assert_eq!((record.rows.len(), record.elsewhere), (1, 2));
        // One that names no nodes, on this host and on another machine.
        append(&folder, &row(3));
        Session { moved_from: vec!["other".to_owned()], ..session() }.save(&folder.session_toml()).unwrap();
        let record = reader.look();
        assert_eq!((record.rows.len(), record.elsewhere), (1, 3));
        Session { moved_from: vec![row(3).host], ..session() }.save(&folder.session_toml()).unwrap();
        let record = reader.look();
        assert_eq!((record.rows.len(), record.elsewhere), (0, 4));
    }

    #[test]
    fn a_folder_that_is_gone_is_a_doubt_and_what_was_read_stays() {
        let (home, folder) = folder(&[row(0)]);
        let mut reader = Reader::open(folder.root()).unwrap();
        let away = home.path().join("away");
        fs::rename(folder.root(), &away).unwrap();
        let record = reader.look();
        assert_eq!(record.rows.len(), 1);
        assert!(matches!(record.work, Work::Silent { .. }));
        assert!(record.doubts[0].contains("session.toml"), "{:?}", record.doubts);
        fs::rename(&away, folder.root()).unwrap();
        assert!(reader.look().doubts.is_empty());
    }

    #[test]
    fn a_trial_under_way_is_read_with_its_prediction() {
        let (_home, folder) = folder(&[]);
        fs::create_dir_all(folder.trial(4)).unwrap();
        let begun = serde_json::json!({
            "identity": crate::record::arbitrary::identity(4), "candidate": row(4).candidate(), "extent": "whole",
            "predicted": {"rate_gflops": 21.0, "sd": 0.1},
        });
        fs::write(folder.trial(4).join("trial.json"), begun.to_string()).unwrap();
        let now = serde_json::json!({
            "schema_version": 1, "trial": 4, "strategy": "bayes", "why": "expected", "extent": "whole",
            "candidate": row(4).candidate(), "nodes": null, "command": "hpl-tune run",
            "started_utc": "2026-11-20T07:01:00Z", "expected_s": 20.0, "limit_s": 60.0, "left_s": 58.0,
        });
        fs::write(folder.now(), now.to_string()).unwrap();
        let mut reader = Reader::open(folder.root()).unwrap();
        let running = reader.look().running.clone().unwrap();
        assert_eq!((running.now.trial, running.predicted.map(|of| of.rate_gflops)), (4, Some(21.0)));
        assert!(running.since_s < 60.0, "by this machine's clock, and not by the one that started it");
        assert_eq!(reader.record.work, Work::AtWork, "something was written just now");
        fs::remove_file(folder.now()).unwrap();
        assert_eq!(reader.look().running, None);
    }
}
