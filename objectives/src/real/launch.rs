//! Starting real runs, waiting for them, and taking over those of a tuner that died.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use space::Candidate;
use space::dat::HplDat;

use super::followed::followed;
use super::guard;
use super::job::{Engine, Extent, Job};
use super::printed::{judge_printed, progress};
use super::processes::{GRACE, LAUNCHERS_GRACE, TRIAL_VARIABLE, end_all, marked};
use super::record::{EndedBy, GuardRecord};
use super::running::Running;
use super::slurm;
use super::verdict::{RESULT, judge, judge_windows};
use super::words::quoted;
use crate::foreign::{Foreign, Progress};
use crate::launcher::MpiJob;
use crate::simulated::{LIMIT_VARIABLE, RunClock};
use crate::{Failure, Measurement, Observation};

const HPL_DAT: &str = "HPL.dat";
const ENGINE_PARAMS: &str = "engine-params.toml";

/// Time that a guard gets to end its run after its tuner died, before a resuming tuner ends both.
pub(super) const LAST_ACT: Duration = Duration::from_secs(2);

/// Real runs of an engine, each in its own folder.
#[derive(Debug, Clone)]
pub struct RealRuns {
    program: PathBuf,
    pub(super) engine: Engine,
}

impl RealRuns {
    /// Runs of our engine by `program`, the absolute path of `hpl-tune`: it must know the verbs `run` and `__guard`.
    pub fn new(program: PathBuf) -> Self {
        Self { program, engine: Engine::Ours }
    }

    /// Runs of our engine on the processes of MPI jobs; `program` guards them.
    pub fn launched(program: PathBuf, job: MpiJob) -> Self {
        Self { program, engine: Engine::Launched(Arc::new(job)) }
    }

    /// Whether a run is a command of its own, which its folder has to hold, and not one of `hpl-tune run`.
    pub fn has_command(&self) -> bool {
        !matches!(self.engine, Engine::Ours)
    }

    /// Whether its runs are simulated.
    fn is_simulated(&self) -> bool {
        matches!(&self.engine, Engine::Launched(job) if job.simulated.is_some())
    }

    /// What the clock of the cluster says of a simulated run that ended in `folder`; `None` of one that was run.
    pub fn simulated(&self, folder: &Path) -> Option<RunClock> {
        self.is_simulated().then(|| RunClock::read(folder))?
    }

    /// How a run in `folder` ended, by the clock that it goes by.
    pub(super) fn by_its_clock(&self, folder: &Path, record: GuardRecord) -> GuardRecord {
        let Some(RunClock { simulated_wall_s: wall_s, timed_out }) = self.simulated(folder) else { return record };
        let ended_by = if timed_out { EndedBy::Deadline } else { record.ended_by };
        GuardRecord { wall_s, ended_by, ..record }
    }

    /// Time between SIGTERM and SIGKILL at the end of a run.
    pub(super) fn grace(&self) -> Duration {
        if self.has_command() { LAUNCHERS_GRACE } else { GRACE }
    }

    /// Ends what a dead tuner has left running in `folder`; its guard gets a moment to do so itself.
    fn end_left(&self, folder: &Path) {
        let begun = Instant::now();
        while begun.elapsed() < LAST_ACT && !marked(folder).is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end_marked(folder);
    }

    /// Ends what is left of a run in `folder`: the processes of this node that carry its mark, and in a Slurm job the step on
    /// the others.
    pub(super) fn end_marked(&self, folder: &Path) {
        end_all(self.grace(), || marked(folder), || marked(folder).is_empty());
        self.end_step();
    }

    /// Cancels the step of a run whose launcher had to be ended: what it has not ended itself is on any node of the job.
    pub(super) fn end_step(&self) {
        match &self.engine {
            Engine::Ours => {}
            Engine::Launched(job) => slurm::cancel_steps(&job.program),
            Engine::Foreign(engine) => slurm::cancel_steps(Path::new(&engine.profile().program)),
        }
    }

    /// Runs of another engine; `program` guards them.
    pub fn foreign(program: PathBuf, engine: Foreign) -> Self {
        Self { program, engine: Engine::Foreign(Arc::new(engine)) }
    }

    /// The words of the command that runs `job` in `folder`, quoted for bash where needed.
    pub fn command(&self, job: &Job, folder: &Path) -> Vec<String> {
        let folder = &folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let words = quoted(self.arguments(job, folder));
        if !self.has_command() {
            return words;
        }
        let settings = self.environment(job, folder).into_iter().map(|(name, value)| format!("{name}={value}"));
        let settings = quoted(settings);
        let there = ["cd".to_owned(), quoted([folder]).concat(), "&&".to_owned()].into_iter();
        if settings.is_empty() {
            return there.chain(words).collect();
        }
        there.chain(["env".to_owned()]).chain(settings).chain(words).collect()
    }

    /// Makes a whole run of `candidate` in `folder`, for at most `limit_s` seconds.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, candidate: &Candidate, folder: &Path, limit_s: f64) -> Result<Measurement, Failure> {
        let mut running = self.start(&Job::whole(candidate), folder, limit_s)?;
        loop {
            match running.finish_within(Duration::MAX) {
                Some(Ok(Observation::Whole(measured))) => return Ok(measured),
                Some(Ok(Observation::Windows(_))) => unreachable!("a whole run was asked for"),
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
        }
    }

    /// Starts `job` in `folder`, which is made if needed; files of an earlier run in it are replaced. The run is ended
    /// `limit_s` seconds after its start.
    ///
    /// # Errors
    /// [`Failure::Launch`] when the folder cannot be written or the program cannot be started,
    /// [`Failure::Infeasible`] when HPL.dat cannot hold the candidate, [`Failure::Skipped`] when the limit
    /// leaves no time.
    pub fn start(&self, job: &Job, folder: &Path, limit_s: f64) -> Result<Running, Failure> {
        if !Duration::try_from_secs_f64(limit_s).is_ok_and(|limit| !limit.is_zero()) {
            return Err(Failure::Skipped { why: format!("a time limit of {limit_s} s leaves no time to run") });
        }
        let folder = self.prepare(job, folder)?;
        let mut guard = Command::new(&self.program);
        guard
            .args([guard::VERB, "--parent", &std::process::id().to_string(), "--deadline-s", &limit_s.to_string()])
            .args(["--grace-s", &self.grace().as_secs_f64().to_string()])
            .arg("--folder")
            .arg(&folder)
            .arg("--")
            .args(self.arguments(job, &folder))
            .env(TRIAL_VARIABLE, &folder);
        if self.has_command() {
            // xhpl reads HPL.dat where it stands.
            guard.current_dir(&folder).envs(self.environment(job, &folder));
        }
        if self.is_simulated() {
            guard.env(LIMIT_VARIABLE, limit_s.to_string());
        }
        let guard = guard
            // A Ctrl-C is for the tuner, which decides what becomes of the run.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| cannot_start(&self.program, &error))?;
        let followed = match &self.engine {
            Engine::Ours | Engine::Launched(_) => Vec::new(),
            Engine::Foreign(engine) => followed(engine, &folder),
        };
        Ok(Running::new(guard, followed, folder, self.clone(), job.clone()))
    }

    /// The outcome of `job` in `folder`, which a dead tuner had started, when it came to its own end.
    /// `None` when it did not, because it was ended with its tuner or its guard was killed: then it is
    /// nobody's failure, and can be run again. In every case no process of the run is left.
    pub fn adopt(&self, job: &Job, folder: &Path) -> Option<Result<Observation, Failure>> {
        let folder = folder.canonicalize().ok()?;
        self.end_left(&folder);
        let record = self.by_its_clock(&folder, GuardRecord::read(&folder).ok()?);
        match self.judge(job, &folder, &record) {
            Err(Failure::Killed { .. }) => None,
            verdict => Some(verdict),
        }
    }

    /// The progress that a run in `folder` has printed, finished or not; empty where its engine does not tell.
    pub fn progress_in(&self, folder: &Path) -> Vec<Progress> {
        match &self.engine {
            Engine::Ours | Engine::Launched(_) => Vec::new(),
            Engine::Foreign(engine) => progress(engine, folder),
        }
    }

    /// Whether its engine tells how far a run has come.
    pub fn tell_progress(&self) -> bool {
        matches!(&self.engine, Engine::Foreign(engine) if engine.tells_progress())
    }

    pub(super) fn judge(&self, job: &Job, folder: &Path, record: &GuardRecord) -> Result<Observation, Failure> {
        match (&self.engine, job.extent) {
            (Engine::Foreign(engine), _) => {
                let command = self.command(job, folder);
                judge_printed(engine, &job.candidate, command, folder, record).map(Observation::Whole)
            }
            (_, Extent::Whole) => judge(folder, record).map(Observation::Whole),
            (_, Extent::Windows) => judge_windows(folder, record).map(Observation::Windows),
        }
    }

    fn environment(&self, job: &Job, folder: &Path) -> Vec<(String, String)> {
        match &self.engine {
            Engine::Ours | Engine::Launched(_) => Vec::new(),
            Engine::Foreign(engine) => engine.environment(&job.candidate, folder),
        }
    }

    fn arguments(&self, job: &Job, folder: &Path) -> Vec<OsString> {
        let file = |name: &str| folder.join(name).into_os_string();
        let mut words: Vec<OsString> = match &self.engine {
            Engine::Foreign(engine) => return engine.command(&job.candidate, folder),
            Engine::Launched(launched) => launched.command(&job.candidate),
            Engine::Ours => vec![self.program.clone().into(), "run".into(), "--dat".into(), file(HPL_DAT)],
        };
        words.extend(["--engine-params".into(), file(ENGINE_PARAMS), "--result".into(), file(RESULT)]);
        if job.extent == Extent::Windows {
            words.extend(["--windows".into(), "auto".into()]);
        }
        words
    }

    /// Names and texts of the files that a run of `candidate` reads.
    ///
    /// # Errors
    /// A sentence, when a file cannot hold the candidate.
    pub fn inputs(&self, candidate: &Candidate) -> Result<Vec<(String, String)>, String> {
        match &self.engine {
            Engine::Ours | Engine::Launched(_) => {
                let dat = HplDat::single(&candidate.hpl).write().map_err(|error| error.to_string())?;
                let params = toml::to_string(&candidate.engine).map_err(|error| error.to_string())?;
                Ok(vec![(HPL_DAT.to_owned(), dat), (ENGINE_PARAMS.to_owned(), params)])
            }
            Engine::Foreign(engine) => {
                let input = engine.input(candidate).map_err(|error| error.to_string())?;
                Ok(input.into_iter().map(|(name, text)| (name.to_owned(), text)).collect())
            }
        }
    }

    /// File in the folder of a trial that holds the results as the program prints them: its standard output, unless its
    /// profile names another.
    pub fn results_file(&self) -> &str {
        match &self.engine {
            Engine::Ours | Engine::Launched(_) => guard::STDOUT,
            Engine::Foreign(engine) => engine.profile().output.as_deref().unwrap_or(guard::STDOUT),
        }
    }

    /// Makes the folder of a trial with its input; returns its absolute path.
    fn prepare(&self, job: &Job, folder: &Path) -> Result<PathBuf, Failure> {
        let output = match &self.engine {
            Engine::Ours | Engine::Launched(_) => None,
            Engine::Foreign(_) if job.extent == Extent::Windows => {
                return Err(Failure::Infeasible { why: "only our engine runs windows".to_owned() });
            }
            Engine::Foreign(engine) => engine.profile().output.clone(),
        };
        let inputs = self.inputs(&job.candidate).map_err(|why| Failure::Infeasible { why })?;
        fs::create_dir_all(folder).map_err(|error| cannot_start(folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| cannot_start(folder, &error))?;
        let output = output.map(|name| folder.join(name));
        let results = [GuardRecord::path(&folder), folder.join(RESULT), RunClock::path(&folder)];
        for stale in results.into_iter().chain(output) {
            match fs::remove_file(&stale) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(cannot_start(&stale, &error)),
                _ => {}
            }
        }
        for (name, text) in inputs {
            let path = folder.join(name);
            fs::write(&path, text).map_err(|error| cannot_start(&path, &error))?;
        }
        Ok(folder)
    }
}

fn cannot_start(what: &Path, error: &io::Error) -> Failure {
    Failure::Launch { what: what.display().to_string(), why: error.to_string() }
}
