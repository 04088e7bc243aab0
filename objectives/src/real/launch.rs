//! Starting real runs, waiting for them, and taking over those of a tuner that died.

use std::ffi::OsString;
use std::fs;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use space::Candidate;
use space::dat::HplDat;

use super::followed::{Followed, followed};
use super::guard;
use super::job::{Engine, Extent, Job};
use super::printed::{judge_printed, progress};
use super::processes::{GRACE, LAUNCHERS_GRACE, PATIENCE, TRIAL_VARIABLE, end_all, marked};
use super::record::{EndedBy, GuardRecord};
use super::slurm;
use super::verdict::{RESULT, judge, judge_windows};
use super::words::{last_lines, quoted};
use crate::foreign::{Foreign, Progress};
use crate::launcher::MpiJob;
use crate::simulated::{LIMIT_VARIABLE, RunClock};
use crate::{Exit, Failure, Measurement, Observation};

const HPL_DAT: &str = "HPL.dat";
const ENGINE_PARAMS: &str = "engine-params.toml";

/// Time that a guard gets to end its run after its tuner died, before a resuming tuner ends both.
const LAST_ACT: Duration = Duration::from_secs(2);

/// Real runs of an engine, each in its own folder.
#[derive(Debug, Clone)]
pub struct RealRuns {
    program: PathBuf,
    engine: Engine,
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
    fn by_its_clock(&self, folder: &Path, record: GuardRecord) -> GuardRecord {
        let Some(RunClock { simulated_wall_s: wall_s, timed_out }) = self.simulated(folder) else { return record };
        let ended_by = if timed_out { EndedBy::Deadline } else { record.ended_by };
        GuardRecord { wall_s, ended_by, ..record }
    }

    /// Time between SIGTERM and SIGKILL at the end of a run.
    fn grace(&self) -> Duration {
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
    fn end_marked(&self, folder: &Path) {
        end_all(self.grace(), || marked(folder), || marked(folder).is_empty());
        self.end_step();
    }

    /// Cancels the step of a run whose launcher had to be ended: what it has not ended itself is on any node of the job.
    fn end_step(&self) {
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
        let mut guard = guard
            // A Ctrl-C is for the tuner, which decides what becomes of the run.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| cannot_start(&self.program, &error))?;
        let stderr = guard.stderr.take().expect("stderr is piped");
        let followed = match &self.engine {
            Engine::Ours | Engine::Launched(_) => Vec::new(),
            Engine::Foreign(engine) => followed(engine, &folder),
        };
        let (runs, job) = (self.clone(), job.clone());
        Ok(Running { guard, stderr, said: Vec::new(), folder, followed, ended: false, runs, job })
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

    fn judge(&self, job: &Job, folder: &Path, record: &GuardRecord) -> Result<Observation, Failure> {
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

/// A run that was started. Dropping it ends it.
#[derive(Debug)]
pub struct Running {
    guard: Child,
    /// Ends with the guard, which is the only process that holds its other end.
    stderr: ChildStderr,
    said: Vec<u8>,
    folder: PathBuf,
    followed: Vec<Followed>,
    ended: bool,
    runs: RealRuns,
    job: Job,
}

impl Running {
    /// Waits for the outcome for at most `time`. Returns earlier, without one, when a signal arrives.
    pub fn finish_within(&mut self, time: Duration) -> Option<Result<Observation, Failure>> {
        let begun = Instant::now();
        loop {
            let left = time.saturating_sub(begun.elapsed());
            let timeout = PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX);
            let mut stderr = [PollFd::new(self.stderr.as_fd(), PollFlags::POLLIN)];
            if !matches!(poll(&mut stderr, timeout), Ok(1..)) {
                return None;
            }
            let mut buffer = [0; 4096];
            match self.stderr.read(&mut buffer) {
                Ok(0) | Err(_) => return Some(self.conclude()),
                Ok(count) => self.said.extend(&buffer[..count]),
            }
        }
    }

    /// How far the run has come, by what it has printed; empty where its engine does not tell. Reads what came since the
    /// last call.
    pub fn progress(&mut self) -> &[Progress] {
        let Engine::Foreign(engine) = &self.runs.engine else { return &[] };
        let mut traces = self.followed.iter_mut().map(|followed| followed.look(engine));
        traces.find(|trace| !trace.is_empty()).unwrap_or_default()
    }

    /// Ends the run with all its processes, within a second or so. Whether it had finished at the last moment
    /// is known to [`RealRuns::adopt`].
    pub fn cancel(mut self) {
        self.end();
    }

    fn conclude(&mut self) -> Result<Observation, Failure> {
        let status = self.guard.wait();
        self.ended = true;
        let problem = match GuardRecord::read(&self.folder) {
            Ok(record) => {
                if record.ended_by != EndedBy::Itself {
                    self.runs.end_step();
                }
                let record = self.runs.by_its_clock(&self.folder, record);
                return self.runs.judge(&self.job, &self.folder, &record);
            }
            Err(problem) => problem.to_string(),
        };
        self.runs.end_marked(&self.folder);
        let said = last_lines(&self.said, 10).join("; ");
        match status.map(Exit::from) {
            Ok(Exit::Code(code)) if code == i32::from(guard::NOT_STARTED) => {
                Err(Failure::Launch { what: self.folder.display().to_string(), why: said })
            }
            Ok(Exit::Signal(signal)) => {
                Err(Failure::Killed { by: format!("the end of its guard, which {}", Exit::Signal(signal)) })
            }
            _ => Err(Failure::Output {
                file: GuardRecord::path(&self.folder).display().to_string(),
                problem: if said.is_empty() { problem } else { said },
                last_lines: Vec::new(),
            }),
        }
    }

    fn end(&mut self) {
        if self.ended {
            return;
        }
        // The guard was not waited for, so its id cannot belong to another process.
        let _ = kill(Pid::from_raw(self.guard.id().cast_signed()), Signal::SIGTERM);
        let begun = Instant::now();
        while begun.elapsed() < self.runs.grace() + PATIENCE + LAST_ACT {
            if self.finish_within(LAST_ACT).is_some() {
                return;
            }
        }
        // A guard that does not come to its end is stopped, or hangs in the kernel.
        let _ = self.guard.kill();
        self.runs.end_marked(&self.folder);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

fn cannot_start(what: &Path, error: &io::Error) -> Failure {
    Failure::Launch { what: what.display().to_string(), why: error.to_string() }
}
