//! Starts real runs, waits for them, and adopts those of a tuner that died.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use space::Candidate;

use super::followed::followed;
use super::full_disk::lack_of_room;
use super::guard;
use super::processes::{TRIAL_VARIABLE, marked};
use super::record::GuardRecord;
use super::run_spec::{Extent, RunProgram, RunSpec};
use super::running::{GUARD_END, Running};
use super::runs::RealRuns;
use super::verdict::RESULT;
use crate::simulated::{LIMIT_VARIABLE, RunClock};
use crate::{Failure, Measurement, Observation};

impl RealRuns {
    /// Ends the processes that a dead tuner has left running in `folder`, after its guard had a moment to do so itself.
    fn end_left(&self, folder: &Path, nodes: &[String]) {
        let begun = Instant::now();
        while begun.elapsed() < GUARD_END && !marked(folder).is_empty() {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.end_marked(folder, nodes);
    }

    /// Makes a whole run of `candidate` in `folder`, for at most `limit_s` seconds.
    ///
    /// # Errors
    /// See [`Failure`].
    pub fn run(&self, candidate: &Candidate, folder: &Path, limit_s: f64) -> Result<Measurement, Failure> {
        let mut running = self.start(&RunSpec::whole(candidate), folder, limit_s)?;
        loop {
            match running.finish_within(Duration::MAX) {
                Some(Ok(Observation::Whole(measured))) => return Ok(measured),
                Some(Ok(Observation::Windows(_))) => unreachable!("a whole run was asked for"),
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
        }
    }

    /// Starts `run` in `folder`, which is made if needed; files of an earlier run in it are replaced. The run is ended
    /// `limit_s` seconds after its start.
    ///
    /// # Errors
    /// [`Failure::Launch`] when the folder cannot be written or the program cannot be started,
    /// [`Failure::Infeasible`] when HPL.dat cannot hold the candidate, [`Failure::Skipped`] when the limit
    /// leaves no time.
    pub fn start(&self, run: &RunSpec, folder: &Path, limit_s: f64) -> Result<Running, Failure> {
        if !Duration::try_from_secs_f64(limit_s).is_ok_and(|limit| !limit.is_zero()) {
            // What was planned with seconds left may begin after them.
            let why = if limit_s <= 0.0 {
                "no time is left to run it".to_owned()
            } else {
                format!("a time limit of {limit_s} s leaves no time to run")
            };
            return Err(Failure::Skipped { why });
        }
        let folder = self.prepare(run, folder)?;
        let mut guard = Command::new(&self.program);
        guard
            .args([guard::VERB, "--parent", &std::process::id().to_string(), "--deadline-s", &limit_s.to_string()])
            .args(["--grace-s", &self.grace().as_secs_f64().to_string()])
            .arg("--folder")
            .arg(&folder)
            .arg("--")
            .args(self.arguments(run, &folder))
            .env(TRIAL_VARIABLE, &folder);
        if self.has_command() {
            // xhpl reads HPL.dat in its working folder.
            guard.current_dir(&folder).envs(self.environment(run, &folder));
        }
        if self.is_simulated() {
            guard.env(LIMIT_VARIABLE, limit_s.to_string());
        }
        let guard = guard
            // Ctrl-C must only reach the tuner, which decides about the run.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| cannot_start(&self.program, &error))?;
        let followed = followed(&self.engine, &folder);
        Ok(Running::new(guard, followed, folder, self.clone(), run.clone()))
    }

    /// The outcome of `run` in `folder`, which a dead tuner had started, if it ended by itself.
    /// `None` if it was ended with its tuner, its guard was killed, or its output or result could not be kept: then the candidate did
    /// not fail, and can be run again. In every case all processes of the run are ended.
    pub fn adopt(&self, run: &RunSpec, folder: &Path) -> Option<Result<Observation, Failure>> {
        let folder = folder.canonicalize().ok()?;
        self.end_left(&folder, &run.nodes);
        let record = self.by_its_clock(&folder, GuardRecord::read(&folder).ok()?);
        if record.output_error.is_some() {
            return None;
        }
        match self.judge(run, &folder, &record) {
            Err(Failure::Killed { .. }) => None,
            Err(failure) if lack_of_room(&folder, &failure).is_some() => None,
            verdict => {
                self.pass(record.wall_s);
                Some(verdict)
            }
        }
    }

    /// Makes the folder of a trial with its input; returns its absolute path.
    fn prepare(&self, run: &RunSpec, folder: &Path) -> Result<PathBuf, Failure> {
        let output = match &self.engine {
            RunProgram::Ours | RunProgram::Launched(_) => None,
            RunProgram::Foreign(_) if run.extent == Extent::Windows => {
                return Err(Failure::Infeasible { why: "only our engine runs windows".to_owned() });
            }
            RunProgram::Foreign(engine) => engine.profile().output.clone(),
        };
        let inputs = self.inputs_of(run).map_err(|why| Failure::Infeasible { why })?;
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
