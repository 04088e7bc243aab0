//! Our `xhpl` on the processes of an MPI job: whether it is one job, and a survey of its ranks.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use hpl::survey::{LinkSurvey, RankSurvey, Survey, partners};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::launcher::MpiJob;
use objectives::real::quoted;
use space::dat::HplDat;
use space::{Candidate, EngineParams, HplParams};

use crate::cli::survey::SurveyArgs;
use crate::exit::bad_input;
use crate::folder::replace_file;

/// How often the job is looked at.
const LOOK: Duration = Duration::from_millis(20);
/// Time that a job has to start and say its version.
const STARTS: Duration = Duration::from_secs(60);
/// Time that a launcher has to end its processes.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// Makes sure that processes of `job` are one job and its program is of this version: of `ranks` processes the first alone says it.
///
/// # Errors
/// A job that cannot be started, does not end, or is none, and the way out.
pub(crate) fn check(job: &MpiJob, ranks: usize) -> anyhow::Result<()> {
    let candidate = Candidate { hpl: HplParams::baseline(1, 1, ranks), engine: EngineParams::default() };
    let mut words = job.command(&candidate);
    words.push("--version".into());
    let line = quoted(&words).join(" ");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let child = command.spawn().map_err(|error| bad_input(format!("cannot start {}: {error}", words[0].display())))?;
    let way_out = "is the job waiting for nodes, or the launcher for a word?";
    let said = within(child, STARTS, way_out).map_err(|reason| bad_input(format!("{line}: {reason}")))?;
    let said = String::from_utf8_lossy(&said);
    let found: Vec<&str> = said.lines().filter_map(|line| line.trim().strip_prefix("xhpl ")).collect();
    let this = env!("CARGO_PKG_VERSION");
    let problem = match found[..] {
        [version] if version == this => return Ok(()),
        [version] => format!("it is xhpl {version}, this is {this}; build both from the same source"),
        [] => "it does not say its version; is it our xhpl?".to_owned(),
        _ => format!(
            "{} processes ran alone, in place of one job; build xhpl with --features mpi, and with MPICC of the launcher's MPI \
             library (README, xhpl)",
            found.len()
        ),
    };
    Err(bad_input(format!("{line}: {problem}")))
}

/// What the processes of the job find, in a folder of their own below the current one, which all nodes see where they see the
/// program.
///
/// # Errors
/// A job that cannot be started, fails, does not end, or leaves out a rank.
pub(crate) fn launched(program: &Path, args: &SurveyArgs, candidate: &Candidate) -> anyhow::Result<Survey> {
    let program = program.canonicalize().map_err(|error| bad_input(format!("{}: {error}", program.display())))?;
    let folder = std::env::current_dir()?.join(format!("survey-{}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let found = launched_in(&folder, &program, args, candidate);
    std::fs::remove_dir_all(&folder).with_context(|| format!("cannot remove {}", folder.display()))?;
    found
}

fn launched_in(folder: &Path, program: &Path, args: &SurveyArgs, candidate: &Candidate) -> anyhow::Result<Survey> {
    replace_file(&folder.join("HPL.dat"), HplDat::single(&candidate.hpl).write()?.as_bytes())?;
    replace_file(&folder.join("engine.toml"), toml::to_string(&candidate.engine)?.as_bytes())?;
    let job = MpiJob { launcher: args.launcher.clone(), program: program.to_owned(), most_threads: None };
    let mut words = job.command(candidate);
    words.extend(["--engine-params", "engine.toml", "--survey", &args.repeats.to_string()].map(OsString::from));
    let line = quoted(&words).join(" ");
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    let child = command.spawn().map_err(|error| bad_input(format!("cannot start {}: {error}", words[0].display())))?;
    let way_out = "a node that answers no benchmark holds up all: survey fewer nodes to find it and leave it out, or raise --limit";
    let said = within(child, args.limit, way_out).map_err(|reason| bad_input(format!("{line}: {reason}")))?;
    let found: Survey = serde_json::from_slice(&said).map_err(|error| {
        bad_input(format!("{line}: no survey in its output ({error}); is it an xhpl of this version?"))
    })?;
    let (wanted, answered) = (candidate.hpl.ranks(), found.ranks.len());
    if answered != wanted {
        return Err(bad_input(format!("{line}: {answered} of {wanted} ranks answered; start as many as --ranks says")));
    }
    if let Some(rank) = found.ranks.iter().find(|rank| !answers(rank, wanted)) {
        return Err(bad_input(format!(
            "{line}: rank {} on {} answered no benchmark; leave its node out of the job, or survey it alone to see why",
            rank.rank, rank.host
        )));
    }
    Ok(found)
}

/// Whether all rates of a rank are rates.
fn answers(found: &RankSurvey, ranks: usize) -> bool {
    let rates = |of: &[f64]| !of.is_empty() && of.iter().all(|rate| rate.is_finite() && *rate > 0.0);
    let good = |link: &LinkSurvey| [link.gbytes_per_s, link.latency_s].iter().all(|of| of.is_finite() && *of > 0.0);
    let others = found.links.iter().map(|link| link.other);
    rates(&found.dgemm_gflops)
        && rates(&found.hpl_gflops)
        && others.eq(partners(found.rank, ranks))
        && found.links.iter().all(good)
}

/// What a job prints until it ends, or why it does not; `way_out` of one that is not done within `limit`.
fn within(mut child: Child, limit: Duration, way_out: &str) -> Result<Vec<u8>, String> {
    let mut pipe = child.stdout.take().ok_or("no pipe")?;
    let reader = thread::spawn(move || {
        let mut said = Vec::new();
        pipe.read_to_end(&mut said).map(|_| said)
    });
    let started = Instant::now();
    let mut asked = None;
    let status = loop {
        if let Some(status) = child.try_wait().map_err(|error| error.to_string())? {
            break status;
        }
        match asked {
            // A launcher that is asked ends its processes; those of a killed one would stay.
            None if started.elapsed() > limit => {
                let _ = kill(Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM);
                asked = Some(Instant::now());
            }
            Some(asked) if asked.elapsed() > LAST_WORDS => child.kill().map_err(|error| error.to_string())?,
            _ => thread::sleep(LOOK),
        }
    };
    if asked.is_some() {
        return Err(format!("no answer within {} s; {way_out}", limit.as_secs_f64()));
    }
    if !status.success() {
        return Err(format!("{status}; what it said is above"));
    }
    let said = reader.join().map_err(|_| "its output could not be read".to_owned())?;
    said.map_err(|error| format!("its output could not be read: {error}"))
}
