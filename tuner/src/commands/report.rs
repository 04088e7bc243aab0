//! `hpl-tune report`: the summary of a run folder again, and its files rewritten.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use jiff::Timestamp;

use objectives::real::{RealRuns, RunSpec, printable};
use space::dat::HplDat;
use space::result::PhaseTime;

use crate::cli::ReportArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::Row;
use crate::record::decode::Decoder;
use crate::record::folder::{RunFolder, replace_file};
use crate::record::journal;
use crate::record::now::Now;
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::session::{RowsByPlace, Session};
use crate::record::sha256;
use crate::report::closing::closing;
use crate::report::folded::folded;
use crate::report::summary::{PhaseTotals, TrialsOnSomeNodes};
use crate::report::{Exports, Summary, counted, html, table};
use crate::search::progress::say;
use crate::session::engine::Engine;

/// Reads a run folder, rewrites its report and prints the summary.
///
/// # Errors
/// A folder that is none, a damaged file, or a report that cannot be written.
pub fn report(args: &ReportArgs) -> anyhow::Result<u8> {
    let folder = RunFolder::open(&args.folder)?;
    // The folder may be of somebody else.
    folder.check_record()?;
    let session = Session::load(&folder.session_toml())?;
    if session.is_shared() {
        RunFolder::let_others_read();
    }
    let contents = journal::read(&folder.journal())?;
    for line in &contents.bad_lines {
        say(&format!("warning: {line}"));
    }
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let engine = Engine::of(&session, &folder)?;
    // Only who may write there writes, and no report during a session that works there.
    let lock = folder.check_owner().and_then(|()| folder.lock());
    let (mut files, runs) = (Files::Written, engine.runs(&program));
    if let Err(error) = &lock
        && has_others(error)
    {
        say(&format!("the files of the report were not rewritten: {error}"));
        files = Files::Kept;
    }
    if let Err(RecordError::Locked { .. }) = &lock
        && let Some(now) = Now::read(&folder)
    {
        say(&format!("now: {}", now.line(Timestamp::now())));
    }
    let rows = session.split(contents.rows);
    if !rows.elsewhere.is_empty() {
        say(&elsewhere(rows.elsewhere.len()));
    }
    publish(&folder, &session, &rows, &runs, &program, args.json, files)?;
    Ok(exit::DONE)
}

/// What is said of so many trials on other nodes than those of the session.
fn elsewhere(count: usize) -> String {
    let are = if count == 1 { "is" } else { "are" };
    format!("{} on other nodes {are} in the record, and no part of this summary", counted(count, "trial"))
}

/// Whether a folder that cannot be locked may have others who write there; else what hinders the lock hinders the report, too.
fn has_others(error: &RecordError) -> bool {
    match error {
        RecordError::NotYours { .. } | RecordError::Open { .. } | RecordError::Locked { .. } => true,
        // A link or a pipe in the place of the lock keeps nobody out.
        RecordError::Write { cause, .. } => cause.kind() == std::io::ErrorKind::InvalidInput,
        _ => false,
    }
}

/// What becomes of the files of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Files {
    /// They are replaced.
    Written,
    /// They stay as they are; the summary is printed alone.
    Kept,
}

/// Writes the exports and the report of a session into its folder, and prints its summary, also when they cannot
/// be written. `rows`: those on all its nodes, and on some of them; of others it says nothing.
///
/// # Errors
/// Files that cannot be written, or a standard output that is closed.
pub fn publish(
    folder: &RunFolder,
    session: &Session,
    RowsByPlace { all: rows, some, .. }: &RowsByPlace,
    runs: &RealRuns,
    program: &Path,
    json: bool,
    files: Files,
) -> anyhow::Result<()> {
    let mut summary = Summary::new(session, rows);
    summary.on_some_nodes = TrialsOnSomeNodes::new(some);
    let decoder = Decoder::of(program);
    // A trial without phases, or whose file is damaged, is shown without them.
    let shown = summary.shown_trial();
    let times = |trial: u64| {
        let path = folder.phases(trial);
        plain::check(&path).ok()?;
        decoder.rows::<PhaseTime>(&path).ok()
    };
    let phases = shown.and_then(times).unwrap_or_default();
    summary.phases = shown.and_then(|trial| PhaseTotals::new(trial, &phases));
    let exports = exports(folder, (&summary, rows), runs, program)?;
    let place = objectives::real::quoted([folder.root()]).join("");
    summary.closing = closing(&summary, &place);
    let page = html::ReportPage { summary: &summary, rows, exports: exports.as_ref(), phases: &phases }.html();
    let write = || {
        exports.as_ref().map_or(Ok(()), |exports| exports.write(folder))?;
        replace_file(&folder.report_html(), page.as_bytes())
    };
    let written = if files == Files::Written { write() } else { Ok(()) };
    let mut out = std::io::stdout().lock();
    if json {
        out.write_all(summary.json()?.as_bytes())?;
    } else {
        let width = terminal_columns();
        // The folder may be of somebody else.
        out.write_all(printable(&table::summary(&summary, width)).as_bytes())?;
        if exports.is_some() && written.is_ok() && files == Files::Written {
            writeln!(out, "\nResults in {}: HPL.dat, run.sh, report.html", folder.root().display())?;
        }
        writeln!(out)?;
        for sentence in &summary.closing {
            writeln!(out, "{}", printable(&folded(sentence, width, 6)))?;
        }
    }
    out.flush()?;
    Ok(written?)
}

/// Columns of the terminal that standard output is; `None` where it is none, or too narrow to fold lines for.
fn terminal_columns() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    Some(usize::from(size.ws_col)).filter(|&columns| columns >= 40)
}

/// What is exported: the best with its final run, else with its last trial, else what windows say is best; `None` when nothing passed.
fn exports(
    folder: &RunFolder,
    (summary, rows): (&Summary, &[Row]),
    runs: &RealRuns,
    program: &Path,
) -> anyhow::Result<Option<Exports>> {
    let last = summary.verified_run().and_then(|row| Some((row.candidate(), row.rate_gflops?, row.trial)));
    let best = || {
        let best = summary.best.as_ref().or(summary.top.first())?;
        Some((best.candidate.clone(), best.rate_gflops, *best.trials.last()?))
    };
    let Some((candidate, rate_gflops, trial)) = last.or_else(best) else { return Ok(None) };
    let how = if summary.best.is_some() { summary.session.how() } else { "estimated by windows and not verified" };
    // Windows print nothing that is a result.
    let of_run = || printed(folder, rows.iter().find(|row| row.trial == trial)?, runs.results_file());
    let printed = summary.best.as_ref().and_then(|_| of_run());
    let mut exports = Exports::new(&candidate, (rate_gflops, how), program, printed)?;
    if !runs.has_command() {
        return Ok(Some(exports));
    }
    let mut inputs = runs.inputs(&candidate).map_err(bad_input)?;
    // Ours says what was reached; of an engine that makes several runs it has N as often.
    if let Some(at) = inputs.iter().position(|(name, _)| name == "HPL.dat") {
        let HplDat { ns, .. } = HplDat::parse(&inputs.remove(at).1)?;
        exports.hpl_dat = HplDat { ns, ..HplDat::parse(&exports.hpl_dat)? }.write()?;
    }
    let command = runs.command(&RunSpec::whole(&candidate), folder.root()).join(" ");
    let settings = runs.settings_to_make(&candidate);
    Ok(Some(exports.foreign(&command, (rate_gflops, how), (&candidate, &settings), inputs)))
}

/// What the run of a row printed. It is in the folder of its input, which a user may have deleted; then HPL.out may have it still, and is left
/// as it is where the row does not tell. A link is not followed: it could lead to a private file.
fn printed(folder: &RunFolder, row: &Row, results: &str) -> Option<Vec<u8>> {
    let trial = folder.trial(row.trial);
    let bytes = |path: &Path| plain::read(path, TEXT_BYTES).ok();
    let own = bytes(&trial.join(results)).filter(|_| !trial.is_symlink());
    let is_own = |bytes: &Vec<u8>| row.output_sha256.as_ref().is_none_or(|own| *own == sha256::of_bytes(bytes));
    own.or_else(|| bytes(&folder.hpl_out()).filter(is_own))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use objectives::real::Extent;

    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::report::summary::tests::session;

    #[test]
    fn one_trial_on_other_nodes_is_no_plural() {
        assert!(elsewhere(1).starts_with("1 trial on other nodes is in the record"));
        assert!(elsewhere(2).starts_with("2 trials on other nodes are in the record"));
    }

    /// hpcc writes its results to a file; what it prints is something else.
    #[test]
    fn hpl_out_is_the_file_that_holds_the_results() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let engine = Engine::chosen(Some("hpcc"), None, None).unwrap();
        let session = Session { engine: engine.name().to_owned(), ..session() };
        let rows = [Row { trial: 3, rate_gflops: Some(10.0), nb: 64, ..row(0) }];
        std::fs::create_dir_all(folder.trial(3)).unwrap();
        // It may print the name of a processor in Latin-1.
        let results = &b"results of a Xeon\xae"[..];
        for (name, text) in [("stdout.txt", &b"chatter"[..]), ("hpccoutf.txt", results)] {
            std::fs::write(folder.trial(3).join(name), text).unwrap();
        }
        let program = Path::new("/usr/bin/hpl-tune");
        let exports = exports(&folder, (&Summary::new(&session, &rows), &rows[..]), &engine.runs(program), program);
        exports.unwrap().unwrap().write(&folder).unwrap();
        assert_eq!(std::fs::read(folder.hpl_out()).unwrap(), results);
    }

    /// The input of the engine took its place, which says nothing of a rate, and the page showed another text than the file.
    #[test]
    fn hpl_dat_of_another_engine_says_its_rate() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let (rows, program, path) = ([row(0)], Path::new("/usr/bin/hpl-tune"), parent.path().join("mine.toml"));
        for repeats in [1, 3] {
            let netlib = include_str!("../../../datasets/engines/netlib.toml");
            std::fs::write(&path, format!("repeats = {repeats}\n{netlib}")).unwrap();
            let engine = Engine::chosen(path.to_str(), None, None).unwrap();
            let session = Session { engine: engine.name().to_owned(), ..session() };
            let found = (&Summary::new(&session, &rows), &rows[..]);
            let exports = exports(&folder, found, &engine.runs(program), program).unwrap().unwrap();
            exports.write(&folder).unwrap();
            let text = std::fs::read_to_string(folder.hpl_dat()).unwrap();
            assert_eq!(text.lines().nth(1), Some("hpl-tune: 20.00 GFLOP/s measured"));
            assert_eq!(HplDat::parse(&text).unwrap().runs(), vec![rows[0].candidate().hpl; repeats]);
            assert_eq!(text, exports.hpl_dat);
        }
    }

    /// Of windows nothing is printed that were a result; and what a whole run printed stays when the folder of its trial is deleted.
    #[test]
    fn hpl_out_is_of_a_whole_run_alone() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let program = Path::new("/usr/bin/hpl-tune");
        let engine = Engine::chosen(Some("hpcc"), None, None).unwrap();
        let hpl_out = |session: &Session, rows: &[Row]| {
            let summary = Summary::new(session, rows);
            exports(&folder, (&summary, rows), &engine.runs(program), program).unwrap().unwrap().hpl_out
        };
        std::fs::create_dir_all(folder.trial(0)).unwrap();
        std::fs::write(folder.trial(0).join("hpccoutf.txt"), "predicted").unwrap();
        let by_windows = Session { extent: Extent::Windows, ..session() };
        assert_eq!(hpl_out(&by_windows, &[windows(0, 128, 20.0)]), None);
        std::fs::write(folder.hpl_out(), "results").unwrap();
        let whole = Row { output_sha256: Some(sha256::of_bytes(b"results")), ..row(1) };
        assert_eq!(hpl_out(&session(), &[whole]).as_deref(), Some(&b"results"[..]));
        let untold = Row { output_sha256: None, ..row(1) };
        assert_eq!(hpl_out(&session(), &[untold]).as_deref(), Some(&b"results"[..]), "nobody knows better");
        let other = Row { output_sha256: Some(sha256::of_bytes(b"others")), ..row(1) };
        assert_eq!(hpl_out(&session(), &[other]), None, "it is of another run");
        // A folder from somebody else has links to files of the user.
        let private = parent.path().join("private");
        std::fs::create_dir(&private).unwrap();
        std::fs::write(private.join("hpccoutf.txt"), "a secret").unwrap();
        std::fs::create_dir(folder.trial(2)).unwrap();
        symlink(private.join("hpccoutf.txt"), folder.trial(2).join("hpccoutf.txt")).unwrap();
        symlink(&private, folder.trial(3)).unwrap();
        std::fs::remove_file(folder.hpl_out()).unwrap();
        symlink(private.join("hpccoutf.txt"), folder.hpl_out()).unwrap();
        for trial in [1, 2, 3] {
            assert_eq!(hpl_out(&session(), &[Row { output_sha256: None, ..row(trial) }]), None, "{trial}");
        }
    }
}
