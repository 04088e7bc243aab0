//! Real runs of an engine: its command, its input files and the judgement of its outcome.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use hpl::plan::windows::Windows;
use space::dat::HplDat;
use space::{Candidate, HplParams, NodeSettings};

use super::guard;
use super::pair_rule::{Grids, PairRule};
use super::printed::{judge_printed, text};
use super::processes::{GRACE, LAUNCHERS_GRACE, end_all, marked};
use super::record::{EndedBy, GuardRecord};
use super::run_spec::{Extent, RunProgram, RunSpec};
use super::slurm;
use super::verdict::{RESULT, judge, judge_pair, judge_windows};
use super::words::quoted;
use crate::foreign::Foreign;
use crate::launcher::MpiJob;
use crate::progress::{ProgressPoint, traced};
use crate::simulated::{Clock, RunClock};
use crate::{Exit, Failure, Observation};

const HPL_DAT: &str = "HPL.dat";
const ENGINE_PARAMS: &str = "engine-params.toml";

/// Input files of the reference of a pair.
const REFERENCE_DAT: &str = "reference-HPL.dat";
const REFERENCE_PARAMS: &str = "reference-engine-params.toml";

/// Bytes of a result for each step of a rank: its times with all their digits.
const BYTES_OF_A_STEP: u64 = 200;

/// Real runs of an engine, each in its own folder.
#[derive(Debug, Clone)]
pub struct RealRuns {
    pub(super) program: PathBuf,
    pub(super) engine: RunProgram,
}

impl RealRuns {
    /// Runs of our engine by `program`, the absolute path of `hpl-tune`, with the verbs `run` and `__guard`.
    pub fn new(program: PathBuf) -> Self {
        Self { program, engine: RunProgram::Ours }
    }

    /// Runs of our engine on the processes of MPI jobs; `program` guards them.
    pub fn launched(program: PathBuf, job: MpiJob) -> Self {
        Self { program, engine: RunProgram::Launched(Arc::new(job)) }
    }

    /// Whether a run has its own command, which is stored in its folder, rather than `hpl-tune run`.
    pub fn has_command(&self) -> bool {
        !matches!(self.engine, RunProgram::Ours)
    }

    /// Whether its runs are simulated.
    pub(super) fn is_simulated(&self) -> bool {
        matches!(&self.engine, RunProgram::Launched(job) if job.simulated.is_some())
    }

    /// The simulated time of a run that ended in `folder`; `None` for a real run.
    pub fn simulated(&self, folder: &Path) -> Option<RunClock> {
        self.is_simulated().then(|| RunClock::read(folder))?
    }

    /// Moves the clock of a simulated cluster on by a run of `wall_s` seconds, or by several at the same time of which the longest took
    /// that; does nothing for real runs.
    pub fn pass(&self, wall_s: f64) {
        if let RunProgram::Launched(job) = &self.engine
            && let Some(cluster) = &job.simulated
        {
            // A clock that cannot be written stands still: its changes of speed come later.
            let _ = Clock::read(cluster).and_then(|clock| clock.add(cluster, wall_s));
        }
    }

    /// The record of a run in `folder`, in simulated time if the run is simulated.
    pub(super) fn by_its_clock(&self, folder: &Path, record: GuardRecord) -> GuardRecord {
        let Some(RunClock { simulated_wall_s: wall_s, timed_out, .. }) = self.simulated(folder) else { return record };
        let ended_by = if timed_out { EndedBy::Deadline } else { record.ended_by };
        GuardRecord { wall_s, ended_by, ..record }
    }

    /// Time between SIGTERM and SIGKILL at the end of a run.
    pub(super) fn grace(&self) -> Duration {
        if self.has_command() { LAUNCHERS_GRACE } else { GRACE }
    }

    /// Ends the remaining processes of a run in `folder`: on this node those with its environment variable, and in a Slurm job
    /// its step on `nodes`, or all nodes.
    pub(super) fn end_marked(&self, folder: &Path, nodes: &[String]) {
        end_all(self.grace(), || marked(folder), || marked(folder).is_empty());
        self.end_step(nodes, None);
    }

    /// Cancels the Slurm step of a run whose launcher was ended: its ranks may still run on any of its `nodes`, or of the job. With `begun` only
    /// steps that were started since: those of other sessions in the job may have the same name.
    pub(super) fn end_step(&self, nodes: &[String], begun: Option<Instant>) {
        if let Some(program) = self.program_of_steps() {
            slurm::cancel_steps(program, nodes, begun);
        }
    }

    /// The program after which the steps of its runs are named; `None` where they are not Slurm's.
    fn program_of_steps(&self) -> Option<&Path> {
        let program = match &self.engine {
            RunProgram::Ours => return None,
            RunProgram::Launched(job) => job.program.as_path(),
            RunProgram::Foreign(engine) => Path::new(&engine.profile().program),
        };
        // A step with the name of the tuner may be the session itself; such runs are processes of this node.
        (program.file_name() != self.program.file_name()).then_some(program)
    }

    /// Runs of another engine; `program` guards them.
    pub fn foreign(program: PathBuf, engine: Foreign) -> Self {
        Self { program, engine: RunProgram::Foreign(Arc::new(engine)) }
    }

    /// The words of the command that runs `run` in `folder`, quoted for bash where needed.
    pub fn command(&self, run: &RunSpec, folder: &Path) -> Vec<String> {
        let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let words = quoted(self.arguments(run, folder));
        if !self.has_command() {
            return words;
        }
        let settings = self.environment(run, folder).into_iter().map(|(name, value)| format!("{name}={value}"));
        let settings = quoted(settings);
        let there = ["cd".to_owned(), quoted([folder]).concat(), "&&".to_owned()].into_iter();
        if settings.is_empty() {
            return there.chain(words).collect();
        }
        there.chain(["env".to_owned()]).chain(settings).chain(words).collect()
    }

    /// The settings of the nodes for `candidate` that its command does not make by itself.
    pub fn settings_to_make(&self, candidate: &Candidate) -> NodeSettings {
        let settings = candidate.engine.settings;
        let by_slurm = match &self.engine {
            RunProgram::Ours => false,
            RunProgram::Launched(job) => job.slurm_clock.is_some(),
            RunProgram::Foreign(engine) => engine.asks_for_clock(),
        };
        if by_slurm { NodeSettings { max_clock_mhz: None, ..settings } } else { settings }
    }

    /// The progress that a run in `folder` has printed, finished or not; empty if its engine prints none.
    pub fn progress_in(&self, folder: &Path) -> Vec<ProgressPoint> {
        let files = self.engine.progress_files().into_iter();
        let traces = files.map(|name| traced(&text(&folder.join(name)), |line| self.engine.progress_of(line)));
        traces.into_iter().find(|trace| !trace.is_empty()).unwrap_or_default()
    }

    /// Whether its engine reports its progress.
    pub fn reports_progress(&self) -> bool {
        !self.engine.progress_files().is_empty()
    }

    pub(super) fn judge(&self, run: &RunSpec, folder: &Path, record: &GuardRecord) -> Result<Observation, Failure> {
        let record = &self.without_kills_of_others(record);
        match (&self.engine, run.extent) {
            (RunProgram::Foreign(engine), _) => {
                let command = self.command(run, folder);
                judge_printed(engine, &run.candidate, command, folder, record).map(Observation::Whole)
            }
            (_, Extent::Whole) => judge(folder, record).map(Observation::Whole),
            (_, Extent::Windows) if run.reference.is_some() => judge_pair(folder, record).map(Observation::Windows),
            (_, Extent::Windows) => judge_windows(folder, record).map(Observation::Windows),
        }
    }

    /// The record of a run, without kills for lack of memory that were none of its processes: the system counts those of the whole machine,
    /// and `hpl-tune run` is one process, which ends by that signal itself.
    fn without_kills_of_others(&self, record: &GuardRecord) -> GuardRecord {
        let of_others = matches!(self.engine, RunProgram::Ours) && matches!(record.exit, Some(Exit::Code(_)));
        let oom_kills = if of_others { 0 } else { record.oom_kills };
        GuardRecord { oom_kills, ..record.clone() }
    }

    pub(super) fn environment(&self, run: &RunSpec, folder: &Path) -> Vec<(String, String)> {
        match &self.engine {
            RunProgram::Ours => Vec::new(),
            RunProgram::Launched(job) => job.on(&run.nodes).environment().into_iter().collect(),
            RunProgram::Foreign(engine) => engine.environment(&run.candidate, folder),
        }
    }

    pub(super) fn arguments(&self, run: &RunSpec, folder: &Path) -> Vec<OsString> {
        let file = |name: &str| folder.join(name).into_os_string();
        let mut words: Vec<OsString> = match &self.engine {
            RunProgram::Foreign(engine) => return engine.command(&run.candidate, folder),
            RunProgram::Launched(launched) => launched.on(&run.nodes).command(&run.candidate),
            RunProgram::Ours => vec![self.program.clone().into(), "run".into(), "--dat".into(), file(HPL_DAT)],
        };
        words.extend(["--engine-params".into(), file(ENGINE_PARAMS), "--result".into(), file(RESULT)]);
        match run.extent {
            Extent::Windows if run.reference.is_some() => {
                words.extend(["--reference".into(), file(REFERENCE_DAT)]);
                words.extend(["--reference-params".into(), file(REFERENCE_PARAMS)]);
            }
            Extent::Windows => words.extend(["--windows".into(), "auto".into()]),
            Extent::Whole if self.reports_progress() => words.push("--progress".into()),
            Extent::Whole => {}
        }
        words
    }

    /// Bytes of the result of `run`, about: our engine tells what each rank did in each step, a simulated one what one rank did, and another
    /// engine writes none.
    pub fn result_bytes(&self, run: &RunSpec) -> u64 {
        let steps = |hpl: &HplParams| match run.extent {
            Extent::Whole => hpl.n.div_ceil(hpl.nb.max(1)),
            Extent::Windows => {
                Windows::Auto.of(hpl).map_or(0, |windows| windows.iter().map(|window| window.steps).sum::<usize>())
            }
        };
        let entries = |Candidate { hpl, .. }: &Candidate| match &self.engine {
            RunProgram::Foreign(_) => 0,
            RunProgram::Launched(job) if job.simulated.is_some() => steps(hpl),
            RunProgram::Ours | RunProgram::Launched(_) => steps(hpl).saturating_mul(hpl.ranks()),
        };
        let both = std::iter::once(&run.candidate).chain(&run.reference);
        let entries = both.map(entries).fold(0, usize::saturating_add);
        (entries as u64).saturating_mul(BYTES_OF_A_STEP)
    }

    /// Which two candidates on these grids it can measure in turn.
    pub fn pair_rule(&self, grids: Grids) -> PairRule {
        match &self.engine {
            RunProgram::Ours => PairRule::InProcess(grids),
            RunProgram::Launched(_) => PairRule::InJob(grids),
            RunProgram::Foreign(_) => PairRule::Never,
        }
    }

    /// Names and texts of the files that `run` reads.
    pub(super) fn inputs_of(&self, run: &RunSpec) -> Result<Vec<(String, String)>, String> {
        let mut files = self.inputs(&run.candidate)?;
        let Some(reference) = &run.reference else { return Ok(files) };
        if !self.pair_rule(Grids::All).allows([&run.candidate, reference]) {
            return Err("these two cannot be measured in turn".to_owned());
        }
        let of_reference = self.inputs(reference)?.into_iter().zip([REFERENCE_DAT, REFERENCE_PARAMS]);
        files.extend(of_reference.map(|((_, text), name)| (name.to_owned(), text)));
        Ok(files)
    }

    /// Names and texts of the files that a run of `candidate` reads.
    ///
    /// # Errors
    /// A sentence, when a file cannot hold the candidate.
    pub fn inputs(&self, candidate: &Candidate) -> Result<Vec<(String, String)>, String> {
        match &self.engine {
            RunProgram::Ours | RunProgram::Launched(_) => {
                let dat = HplDat::single(&candidate.hpl).write().map_err(|error| error.to_string())?;
                let params = toml::to_string(&candidate.engine).map_err(|error| error.to_string())?;
                Ok(vec![(HPL_DAT.to_owned(), dat), (ENGINE_PARAMS.to_owned(), params)])
            }
            RunProgram::Foreign(engine) => {
                let input = engine.input(candidate).map_err(|error| error.to_string())?;
                Ok(input.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
            }
        }
    }

    /// File in the folder of a trial that holds the results as the program prints them: its standard output, unless its
    /// profile names another.
    pub fn results_file(&self) -> &str {
        match &self.engine {
            RunProgram::Ours | RunProgram::Launched(_) => guard::STDOUT,
            RunProgram::Foreign(engine) => engine.profile().output.as_deref().unwrap_or(guard::STDOUT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error of a run was lost where another process of the machine was killed for lack of memory meanwhile.
    #[test]
    fn an_error_of_a_run_of_one_process_is_no_kill_for_lack_of_memory() {
        let folder = tempfile::tempdir().unwrap();
        let engine = space::EngineParams::default();
        let run = RunSpec::whole(&Candidate { hpl: space::HplParams::baseline(100, 1, 1), engine });
        let kind = |runs: &RealRuns, exit: Exit| {
            let record = GuardRecord { oom_kills: 1, ..GuardRecord::of_end(EndedBy::Itself, Some(exit)) };
            runs.judge(&run, folder.path(), &record).unwrap_err().kind()
        };
        let ours = RealRuns::new("/opt/hpl-tune".into());
        assert_eq!(kind(&ours, Exit::Code(1)), "crashed");
        assert_eq!(kind(&ours, Exit::Signal(9)), "out-of-memory");
        let launched = RealRuns::launched("/opt/hpl-tune".into(), MpiJob::new("mpirun", "xhpl".into()));
        assert_eq!(kind(&launched, Exit::Code(1)), "out-of-memory", "a launcher tells the end of a rank by a code");
    }

    /// Four MiB were asked for, whatever the run.
    #[test]
    fn a_result_grows_with_ranks_and_steps() {
        let s = 1e4 / 7.0;
        let longest = space::result::PhaseTime {
            step: 26_041,
            rank: 4095,
            fact_s: s,
            lbcast_s: s / 3e7,
            rs_s: s,
            update_s: s,
            trsv_s: 0.0,
            end_s: s,
        };
        // With the comma behind it.
        assert!(serde_json::to_string(&longest).unwrap().len() < BYTES_OF_A_STEP as usize);
        let ours = RealRuns::new("/opt/hpl-tune".into());
        let hpl = HplParams { nb: 100, ..HplParams::baseline(80_000, 8, 16) };
        let whole = RunSpec::whole(&Candidate { hpl, engine: space::EngineParams::default() });
        assert_eq!(ours.result_bytes(&whole), 128 * 800 * 200);
        let windows = RunSpec { extent: Extent::Windows, ..whole.clone() };
        let alone = ours.result_bytes(&windows);
        assert!(alone > 0 && alone < ours.result_bytes(&whole) / 4, "{alone}");
        let in_turn = RunSpec { reference: Some(whole.candidate.clone()), ..windows };
        assert_eq!(ours.result_bytes(&in_turn), 2 * alone);
        let simulated = Some("/run/simulated.toml".into());
        let job = MpiJob { simulated, ..MpiJob::new("none", "hpl-tune".into()) };
        assert_eq!(RealRuns::launched("/opt/hpl-tune".into(), job).result_bytes(&whole), 800 * 200);
    }

    #[test]
    fn steps_with_the_name_of_the_tuner_are_not_cancelled() {
        let of = |program: &str| RealRuns::launched("/opt/hpl-tune".into(), MpiJob::new("none", program.into()));
        assert_eq!(of("/opt/mpi/xhpl").program_of_steps(), Some(Path::new("/opt/mpi/xhpl")));
        assert_eq!(of("hpl-tune").program_of_steps(), None, "a simulated cluster");
        assert_eq!(RealRuns::new("/opt/hpl-tune".into()).program_of_steps(), None);
    }
}
