//! `hpl-tune __node-agent`: the process that watches a node for a session elsewhere: its sensors of power, its clock, its heat.
//!
//! It ends when the lease of its session ends, or nobody takes what it prints.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hpl::machine::host::{HostVitals, VitalsReader, facts};
use hpl::measure::power::{MOST_CPU, PowerSensors, cpu_s};

use super::lease::SeenLease;
use super::line::{NodeLine, found, sampled};
use super::root_of;

/// Even where a look takes long, the session hears of the node within this time: one that is silent is started again.
const HEARD_OF: Duration = Duration::from_secs(10);

/// Processor seconds beyond [`MOST_CPU`] that are free at the start: the first samples take several times as long as later ones, and would leave the
/// first run without power.
const FIRST_CPU_S: f64 = 0.02;

/// What can be read is said again after this time: a launcher may have lost a line.
const SAID_AGAIN: Duration = Duration::from_secs(10);

/// The hidden verb, as the program must dispatch it to [`main`].
pub const VERB: &str = "__node-agent";

/// Runs the verb with the arguments after it: the root of the sensors, the file of the lease, and seconds between samples.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let [root, lease, pace] = &arguments[..] else { return ExitCode::from(2) };
    let pace = pace.to_str().and_then(|text| Duration::try_from_secs_f64(text.parse().ok()?).ok());
    let Some(pace) = pace else { return ExitCode::from(2) };
    match sample(Path::new(root), SeenLease::new(lease.into()), pace) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
        // Whoever takes the lines is gone when they cannot be written.
        Ok(()) | Err(_) => ExitCode::SUCCESS,
    }
}

fn sample(root: &Path, mut lease: SeenLease, pace: Duration) -> io::Result<()> {
    let node = facts().hostname;
    if !lease.holds() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("{node} does not see the run folder, which needs a file system that all nodes share"),
        ));
    }
    let root = root_of(root, &node);
    let sensors = PowerSensors::find(&root);
    let host = VitalsReader::find(&root);
    let has_sensors = !sensors.set().all().is_empty();
    let has_vitals = host.read() != HostVitals::default();
    let more = has_sensors || has_vitals;
    let facts = found(&node, sensors.set(), sensors.unreadable(), more);
    facts.iter().try_for_each(print)?;
    if !more {
        return Ok(());
    }
    let begun = Instant::now();
    let (mut looked, mut said) = (begun, begun);
    // Each has processor time of its own, so that many files of vitals make power no rarer.
    let mut spent_s = [0.0; 2];
    let now_s = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
    while lease.holds() {
        if said.elapsed() >= SAID_AGAIN {
            said = Instant::now();
            facts.iter().try_for_each(print)?;
        }
        let most_s = FIRST_CPU_S + MOST_CPU * begun.elapsed().as_secs_f64();
        let before = cpu_s();
        if has_sensors && spent_s[0] <= most_s {
            let (values, at_s) = (sensors.read(), now_s());
            sampled(&node, at_s, spent_s[0], &values).iter().try_for_each(print)?;
            spent_s[0] += cpu_s() - before;
        }
        let before = cpu_s();
        if has_vitals && (spent_s[1] <= most_s || looked.elapsed() >= HEARD_OF) {
            looked = Instant::now();
            let (vitals, at_s) = (host.read(), now_s());
            print(&NodeLine::Vitals { node: node.clone(), at_s, vitals })?;
            spent_s[1] += cpu_s() - before;
        }
        std::thread::sleep(pace);
    }
    Ok(())
}

/// Prints a line at once, in one write. Launchers pass on what is written, but srun at most 1024 bytes at a time: longer lines of several nodes
/// would mix.
fn print(line: &NodeLine) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&text)?;
    out.flush()
}
