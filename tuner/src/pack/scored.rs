//! The run that is packed: the passed final run of a session, with what it left in its folder.

use std::path::{Path, PathBuf};

use objectives::real::Extent;
use objectives::real::{GuardRecord, RealRuns};
use space::dat::HplDat;
use space::machine::{Machine, Node};
use space::out::{OutRecord, parse};
use space::{Candidate, RunResult};

use super::error::PackError;
use crate::error::RecordError;
use crate::power::stamps::Stamps;
use crate::record::Row;
use crate::record::folder::RunFolder;
use crate::record::journal;
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::session::Session;
use crate::record::sha256;
use crate::report::Summary;
use crate::search::rounds;
use crate::session::engine::Engine;
use crate::session::node_count::node_count;

/// What a guard writes where it has left out the middle of a long output.
const CUT: &str = " bytes left out here]";

/// The file that our engine writes.
pub const RESULT: &str = "result.json";

/// The file that the guard of a run writes.
pub const GUARD: &str = "guard.json";

/// A run that is a score, with the session that it ended.
#[derive(Debug, Clone)]
pub struct Scored {
    /// The run folder.
    pub folder: RunFolder,
    /// Its session.
    pub session: Session,
    /// The engine of that.
    pub engine: Engine,
    /// The nodes that its machine.toml describes; none where it has none.
    pub described: Vec<Node>,
    /// The rows of runs on the nodes of the session.
    pub rows: Vec<Row>,
    /// That of the packed run.
    pub row: Row,
    /// The default configuration, where it ran.
    pub baseline: Option<Candidate>,
    /// What the run printed, byte by byte.
    pub output: Vec<u8>,
    /// The result in there.
    pub printed: OutRecord,
    /// The run's HPL.dat.
    pub dat: String,
    /// Names and texts of what else it read.
    pub inputs: Vec<(String, String)>,
    /// What our engine wrote.
    pub result: Option<RunResult>,
    /// How its guard saw it end.
    pub guard: Option<GuardRecord>,
    /// When it began and ended.
    pub stamps: Stamps,
    /// The program of this process.
    pub program: PathBuf,
}

/// What engine and guard wrote in `folder`, where it is there and can be read.
fn left_by_run(folder: &Path) -> (Option<RunResult>, Option<GuardRecord>) {
    // Only of regular files: a pipe of somebody else is not waited for.
    let json = |name: &str| plain::read(&folder.join(name), TEXT_BYTES).ok();
    let result = json(RESULT).and_then(|json| serde_json::from_slice(&json).ok());
    (result, json(GUARD).and_then(|_| GuardRecord::read(folder).ok()))
}

impl Scored {
    /// The score of the session in the run folder at `root`; `program` is the path of `hpl-tune`.
    ///
    /// # Errors
    /// [`PackError`] for a folder that is none, a simulated session, one without a passed final run, and an output that is gone
    /// or was changed.
    pub fn open(root: &Path, program: &Path) -> Result<Self, PackError> {
        let folder = RunFolder::open(root)?;
        folder.check_record()?;
        let session = Session::load(&folder.session_toml())?;
        let rows = session.split(journal::read(&folder.journal())?.rows).all;
        let named = rows.iter().find(|row| row.engine == Row::SIMULATED);
        if session.is_simulated() || named.is_some() {
            let engine = named.map_or(session.recorded_engine(), |row| row.engine.clone());
            return Err(PackError::Simulated { folder: root.to_path_buf(), engine });
        }
        let summary = Summary::new(&session, &rows);
        let no_final = |why: String| PackError::NoFinal { folder: root.to_path_buf(), why };
        let row = summary.verified_run().cloned().ok_or_else(|| no_final(instead(&summary, &rows)))?;
        if row.extent != Extent::Whole || row.score_gflops().is_none() {
            return Err(no_final("its final run is not a whole run that passed".to_owned()));
        }
        let engine = Engine::of(&session, &folder)?;
        let described = described(&folder.machine_toml())?;
        let runs = engine.runs(program);
        let trial = folder.trial(row.trial);
        let file = trial.join(runs.results_file());
        let output = output(&file, &row)?;
        let text = String::from_utf8_lossy(&output).into_owned();
        if let Some(problem) = no_hpl(&engine, &text) {
            return Err(PackError::Output { file, problem });
        }
        let printed = printed(&text, &row).ok_or_else(|| PackError::Output {
            file,
            problem: format!(
                "no passed result line of HPL for N = {}, as journal.jsonl has it of trial {}",
                row.n, row.trial
            ),
        })?;
        let (result, guard) = left_by_run(&trial);
        let (dat, inputs) = inputs(&runs, &row, &trial)?;
        Ok(Self {
            stamps: Stamps::new(guard.as_ref(), result.as_ref(), &text),
            baseline: rounds::baseline(&rows),
            program: program.to_path_buf(),
            folder,
            session,
            engine,
            described,
            rows,
            row,
            output,
            printed,
            dat,
            inputs,
            result,
            guard,
        })
    }

    /// The run of the pack at `root`, that of `trial` in its record, as far as values are taken from it: without what else it read, and
    /// without a program.
    ///
    /// # Errors
    /// [`PackError`] for a record that lacks it, and an output without its result.
    pub fn in_pack(root: &Path, trial: u64) -> Result<Self, PackError> {
        let folder = RunFolder::open(&root.join("record"))?;
        folder.check_record()?;
        let session = Session::load(&folder.session_toml())?;
        let rows = session.split(journal::read(&folder.journal())?.rows).all;
        let wrong = |problem: String| PackError::Output { file: root.join("HPL.out"), problem };
        let row = rows.iter().find(|row| row.trial == trial).cloned();
        let row =
            row.ok_or_else(|| wrong(format!("journal.jsonl has no trial {trial} on the nodes of its session")))?;
        let engine = Engine::of(&session, &folder)?;
        let described = described(&folder.machine_toml())?;
        let file = root.join("HPL.out");
        let output = plain::read(&file, TEXT_BYTES).map_err(RecordError::read(&file))?;
        let text = String::from_utf8_lossy(&output).into_owned();
        let printed = printed(&text, &row)
            .ok_or_else(|| wrong(format!("it has no passed result of N = {}, as journal.jsonl has it", row.n)))?;
        let (result, guard) = left_by_run(folder.root());
        Ok(Self {
            stamps: Stamps::new(guard.as_ref(), result.as_ref(), &text),
            baseline: rounds::baseline(&rows),
            program: PathBuf::new(),
            folder,
            session,
            engine,
            described,
            rows,
            row,
            output,
            printed,
            dat: String::new(),
            inputs: Vec::new(),
            result,
            guard,
        })
    }

    /// The folder of the run.
    pub fn trial(&self) -> PathBuf {
        self.folder.trial(self.row.trial)
    }

    /// Nodes of the run; `None` where a launcher may have spread its ranks over nodes that nothing describes.
    pub fn nodes(&self) -> Option<usize> {
        let fits_here = self.cores_used().is_some_and(|cores| cores <= self.session.cores.len());
        node_count(&self.session, &self.engine, &self.described).or_else(|| fits_here.then_some(1))
    }

    /// Cores that its ranks and threads took; `None` where accelerators held the matrix: each rank took one of these, and nothing says how
    /// many cores.
    pub fn cores_used(&self) -> Option<usize> {
        self.engine.calibrates().then_some(self.row.p * self.row.q * self.row.threads)
    }
}

/// The nodes that the machine.toml at `path` describes; none where there is no such file.
fn described(path: &Path) -> Result<Vec<Node>, RecordError> {
    let text = match plain::text(path, TEXT_BYTES) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(RecordError::read(path)(error)),
    };
    Ok(Machine::parse(&text).map_err(|error| RecordError::damaged(path, error))?.nodes)
}

/// What there is instead of a passed final run.
fn instead(summary: &Summary, rows: &[Row]) -> String {
    let windows = rows.iter().any(|row| row.extent == Extent::Windows && row.passed);
    match &summary.final_run {
        Some(row) if row.passed => {
            "the pairs after it showed that the default is faster, and the default had no final run".to_owned()
        }
        Some(row) => format!(
            "trial {} was one, and failed: {}",
            row.trial,
            row.failure_detail.as_deref().unwrap_or(row.outcome.name())
        ),
        None if windows && summary.best.is_none() => {
            "only windows of runs passed; the rate of a whole run is only estimated from them, and an estimate is not a score".to_owned()
        }
        None => "none was made".to_owned(),
    }
}

/// The output of a run, if it is what the run wrote.
fn output(file: &Path, row: &Row) -> Result<Vec<u8>, PackError> {
    let wrong = |problem: String| PackError::Output { file: file.to_path_buf(), problem };
    let bytes = plain::read(file, TEXT_BYTES).map_err(|error| {
        wrong(format!(
            "cannot read what the run printed: {error}; a pack needs the unmodified output of trial {}",
            row.trial
        ))
    })?;
    let found = sha256::of_bytes(&bytes);
    if let Some(known) = row.output_sha256.as_ref().filter(|known| **known != found) {
        return Err(wrong(format!(
            "it was changed after the run: its SHA-256 is {found}, journal.jsonl has {known} of trial {}; put the file back as it was",
            row.trial
        )));
    }
    if String::from_utf8_lossy(&bytes).contains(CUT) {
        return Err(wrong(
            "the output was longer than 1280 KiB, and its middle was left out, so that it is not the unmodified one; run with a \
             program that prints less progress"
                .to_owned(),
        ));
    }
    Ok(bytes)
}

/// Why what another engine printed is no score of HPL; `None` where it may be one.
fn no_hpl(engine: &Engine, text: &str) -> Option<String> {
    let Engine::Foreign(foreign) = engine else { return None };
    let name = &foreign.profile().name;
    if foreign.profile().patterns.residual_eps.is_some() {
        return Some(format!("engine {name} solves in mixed precision: HPL-MxP is no HPL score; tune another engine"));
    }
    let in_other_form = parse(text).is_empty() && !foreign.read(text).is_empty();
    in_other_form.then(|| format!("engine {name} prints its results in another form than HPL; tune another engine"))
}

/// The result of the output that the row stands for: of several repeats the one whose rate is nearest to it.
fn printed(text: &str, row: &Row) -> Option<OutRecord> {
    let rate = row.rate_gflops?;
    let off = |record: &OutRecord| (record.rate_gflops - rate).abs();
    let passed = parse(text).into_iter().filter(|record| record.params.n == row.n && record.passed == Some(true));
    passed.min_by(|a, b| off(a).total_cmp(&off(b)))
}

/// The HPL.dat of a run, and what else it read: as they lie in its folder.
fn inputs(runs: &RealRuns, row: &Row, trial: &Path) -> Result<(String, Vec<(String, String)>), PackError> {
    const DAT: &str = "HPL.dat";
    let candidate = row.candidate();
    let unwritable = |problem: String| PackError::Output { file: trial.join(DAT), problem };
    let names = runs.inputs(&candidate).map_err(unwritable)?.into_iter().map(|(name, _)| name);
    let (mut dat, mut others) = (None, Vec::new());
    for name in names {
        let path = trial.join(&name);
        let text = plain::text(&path, TEXT_BYTES).map_err(RecordError::read(&path))?;
        if name == DAT { dat = Some(text) } else { others.push((name, text)) }
    }
    // HPCC reads the same under another name. An engine that takes flags alone has the same parameters in HPL's form.
    let renamed = || others.iter().map(|(_, text)| text).find(|text| HplDat::parse(text).is_ok()).cloned();
    let written = || HplDat::single(&candidate.hpl).write().map_err(|error| unwritable(error.to_string()));
    let dat = dat.or_else(renamed).map_or_else(written, Ok)?;
    Ok((dat, others))
}
