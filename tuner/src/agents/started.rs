//! The processes on the nodes, as the session has started them.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hpl::measure::power::{SensorSet, Unreadable};
use hpl::program::files::nameless_file;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use objectives::real::{guard, telling_lines};

use super::lease::Lease;
use super::states::{NodeReadings, NodeStates};
use crate::agents::vitals::NodeVitals;

/// Time in which the nodes say what they have, at the start of a session.
const FIRST_WORDS: Duration = Duration::from_secs(15);
/// Time for the last samples of a run.
const LAST_SAMPLES: Duration = Duration::from_secs(2);
/// Time for a launcher to end by itself.
const LAST_WORDS: Duration = Duration::from_secs(3);
/// How often the lines are looked at while they are waited for.
const LOOK: Duration = Duration::from_millis(20);
/// Launchers that end one after the other, each within this time: then none is started any more.
const FAILURES: u32 = 3;
const LASTS: Duration = Duration::from_secs(60);
/// A node that has sent nothing for so many seconds is not read any more.
const QUIET_S: f64 = 15.0;
/// Seconds between two samples of a node, of a session on many nodes for each so many.
const SHORTEST_PACE_S: f64 = 0.5;
const NODES_PER_S: f64 = 100.0;
const LONGEST_PACE_S: f64 = 10.0;

/// How the process of a node is started on all of them.
#[derive(Debug, Clone)]
pub struct AgentCommand {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// The words of the launcher, of this program and of the verb.
    pub words: Vec<OsString>,
    /// The root of the sensors.
    pub root: PathBuf,
    /// The folder of the session, where all nodes see it.
    pub folder: PathBuf,
}

/// The processes that watch the nodes of a session; they end when it is dropped.
#[derive(Debug)]
pub struct NodeAgents {
    command: AgentCommand,
    states: Arc<Mutex<NodeStates>>,
    launched: Mutex<Launched>,
}

#[derive(Debug, Default)]
struct Launched {
    running: Option<Running>,
    failures: u32,
    /// How often all were started again as a node had said nothing at all.
    unheard: u32,
    /// What the last launcher that failed has said.
    said: String,
}

#[derive(Debug)]
struct Running {
    launcher: Child,
    stderr: File,
    begun: Instant,
    /// Of its processes; dropped after the launcher was asked to end.
    _lease: Lease,
}

impl NodeAgents {
    /// Starts them, and waits until every node has said what it has, some seconds at most.
    pub fn start(command: AgentCommand) -> Self {
        let agents = Self { command, states: Arc::default(), launched: Mutex::default() };
        agents.keep_running();
        let begun = Instant::now();
        while begun.elapsed() < FIRST_WORDS
            && !agents.command.nodes.iter().all(|node| agents.states().of(node).is_some())
        {
            if !agents.keep_running() {
                break;
            }
            std::thread::sleep(LOOK);
        }
        agents
    }

    /// The nodes.
    pub fn nodes(&self) -> &[String] {
        &self.command.nodes
    }

    /// A run begins: samples and looks so far are forgotten, and processes that have ended are started again.
    pub fn begin(&self) {
        let (now_s, most_s) = (now_s(), QUIET_S + self.pace_s());
        let [quiet, unheard] = {
            let (states, nodes) = (self.states(), &self.command.nodes);
            let mut arrived =
                nodes.iter().filter_map(|node| states.of(node)).filter_map(|state| state.last_arrived_s());
            let quiet = arrived.any(|arrived_s| now_s - arrived_s > most_s);
            [quiet, nodes.iter().any(|node| states.of(node).is_none())]
        };
        let mut launched = self.launched();
        let has_waited =
            launched.running.as_ref().is_some_and(|running| running.begun.elapsed().as_secs_f64() > most_s);
        // What was started again has to come up first.
        let quiet = quiet && has_waited;
        // A node that cannot be reached at all would have the others started again and again.
        let unheard = unheard && has_waited && launched.unheard < FAILURES;
        if quiet || unheard {
            // That of one node was ended, or what it said was lost: all are started again.
            launched.unheard += u32::from(unheard);
            if let Some(running) = launched.running.take() {
                if quiet {
                    launched.failures = failures(launched.failures, &running);
                }
                let said = if quiet { "a node has fallen silent" } else { "a node has said nothing" };
                said.clone_into(&mut launched.said);
            }
        }
        drop(launched);
        self.keep_running();
        self.states().begin();
    }

    /// What a node has said of its sensors; `None` where it has said nothing.
    pub fn found(&self, node: &str) -> Option<(SensorSet, Vec<Unreadable>)> {
        let states = self.states();
        states.of(node).map(|state| (state.set.clone(), state.unreadable.clone()))
    }

    /// What the last launcher said that failed, in a line.
    pub fn problem(&self) -> String {
        self.launched().said.clone()
    }

    /// The samples of each node since the run began, in the order of the nodes; `None` where there is no sensor. Waits a moment for those up
    /// to `end_s`, in seconds since 1970.
    pub fn readings(&self, end_s: Option<f64>) -> Vec<Option<NodeReadings>> {
        let begun = Instant::now();
        let late = |states: &NodeStates| {
            let of = |node: &String| states.of(node).and_then(|state| state.last_s());
            self.command.nodes.iter().filter_map(of).any(|last_s| end_s.is_some_and(|end_s| last_s < end_s))
        };
        let most = LAST_SAMPLES + Duration::from_secs_f64(self.pace_s());
        while begun.elapsed() < most && late(&self.states()) && self.runs() {
            std::thread::sleep(LOOK);
        }
        let states = self.states();
        let of =
            |node: &String| states.of(node).filter(|state| !state.set.all().is_empty()).map(|state| state.readings());
        self.command.nodes.iter().map(of).collect()
    }

    /// The nodes of which nothing is known, with the reason; `None` where all have answered.
    pub fn unwatched(&self) -> Option<String> {
        let silent: Vec<&str> = {
            let states = self.states();
            self.command.nodes.iter().filter(|node| states.of(node).is_none()).map(String::as_str).collect()
        };
        let problem = self.problem();
        let why = if problem.is_empty() { "no answer" } else { &problem };
        (!silent.is_empty()).then(|| format!("{}: {why}", silent.join(" ")))
    }

    /// How each of `nodes` has fared since the run began, of all nodes where that is empty; those of which nothing is known are left out.
    pub fn vitals(&self, nodes: &[String]) -> Vec<NodeVitals> {
        let nodes = if nodes.is_empty() { &self.command.nodes } else { nodes };
        let states = self.states();
        nodes.iter().filter_map(|node| Some(states.of(node)?.vitals(node))).collect()
    }

    fn pace_s(&self) -> f64 {
        (self.command.nodes.len() as f64 / NODES_PER_S).clamp(SHORTEST_PACE_S, LONGEST_PACE_S)
    }

    fn states(&self) -> MutexGuard<'_, NodeStates> {
        self.states.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launched(&self) -> MutexGuard<'_, Launched> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn runs(&self) -> bool {
        self.launched().running.as_mut().is_some_and(|running| matches!(running.launcher.try_wait(), Ok(None)))
    }

    /// Starts the processes where none run, unless that has failed too often or there is nothing for them to do; whether they run, or
    /// have nothing to do.
    fn keep_running(&self) -> bool {
        let mut launched = self.launched();
        let launched = &mut *launched;
        if let Some(running) = &mut launched.running {
            match running.launcher.try_wait() {
                Ok(None) => return true,
                // Every node has said that there is nothing to read.
                Ok(Some(status)) if status.success() && self.have_nothing() => return true,
                Ok(Some(status)) => {
                    let said = running.said();
                    let said = if said.is_empty() { status.to_string() } else { said };
                    launched.failures = failures(launched.failures, running);
                    launched.said = said;
                }
                Err(error) => launched.said = error.to_string(),
            }
            launched.running = None;
        }
        if launched.failures >= FAILURES {
            return false;
        }
        match self.launch() {
            Ok(running) => launched.running = Some(running),
            Err(error) => {
                let program = self.command.words.first().map(|word| word.to_string_lossy().into_owned());
                launched.said = format!("{}: {error}", program.unwrap_or_default());
                launched.failures = FAILURES;
            }
        }
        launched.running.is_some()
    }

    fn have_nothing(&self) -> bool {
        let states = self.states();
        self.command.nodes.iter().all(|node| states.of(node).is_some_and(|state| !state.has_more))
    }

    fn launch(&self) -> std::io::Result<Running> {
        let lease = Lease::new(&self.command.folder)?;
        let stderr = nameless_file(&std::env::temp_dir(), &self.command.folder)?;
        let mut words = self.command.words.clone();
        words.extend([self.command.root.clone().into(), lease.path().into(), self.pace_s().to_string().into()]);
        let mut command = guard::tied(&words);
        command.current_dir(&self.command.folder);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr.try_clone()?);
        // Ctrl-C must only reach the session, which ends it.
        let mut launcher = command.process_group(0).spawn()?;
        if let Some(pipe) = launcher.stdout.take() {
            let states = Arc::clone(&self.states);
            let read = move || {
                for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                    let arrived_s = now_s();
                    let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
                    states.take(&String::from_utf8_lossy(&line), arrived_s);
                }
            };
            // It ends with the launcher.
            std::thread::Builder::new().name("agents".to_owned()).spawn(read)?;
        }
        Ok(Running { launcher, stderr, begun: Instant::now(), _lease: lease })
    }
}

/// Failures one after the other, of which `running` is the last, after so many.
fn failures(before: u32, running: &Running) -> u32 {
    if running.begun.elapsed() < LASTS { before + 1 } else { 1 }
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

impl Running {
    /// The last line that the launcher has said.
    fn said(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.stderr.rewind().and_then(|()| self.stderr.read_to_end(&mut text));
        telling_lines(&text, 1).join(" ")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.launcher.try_wait(), Ok(None)) {
            return;
        }
        let _ = kill(Pid::from_raw(self.launcher.id().cast_signed()), Signal::SIGTERM);
        let asked = Instant::now();
        while asked.elapsed() < LAST_WORDS {
            if !matches!(self.launcher.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(LOOK);
        }
        // What it leaves ends with the lease.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}
