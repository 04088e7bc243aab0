//! Runs the models of the engine's threads ([`hpl::models`]) in all orders of their steps. Then takes away each ordering, store and wake-up
//! that they pass, one at a time: a model has to fail, or nothing shows that it is needed.
//!
//! usage: `models` for that; `models NAME` for one model in this process, with the fault that the environment names
//! ([`faults::VARIABLE`]): prints the number of orders and what could be taken away.

use std::collections::BTreeMap;
use std::io::Read;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hpl::models::{MODELS, Model};
use hpl::sync::watched::faults;

/// Exit code of a model that failed.
const FAILED: i32 = 3;

/// Time in which a model has to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Panics of this text belong to a model.
const PURPOSE: &str = "on purpose";

fn main() -> ExitCode {
    match std::env::args().nth(1) {
        Some(name) => one(&name),
        None => all(),
    }
}

/// Runs one model in this process.
fn one(name: &str) -> ExitCode {
    let Some(model) = MODELS.iter().find(|model| model.name == name) else {
        eprintln!("no model '{name}'; there are: {}", MODELS.iter().map(|m| m.name).collect::<Vec<_>>().join(", "));
        return ExitCode::from(2);
    };
    // After the first failure nothing is unwound, as loom's state is lost.
    std::panic::set_hook(Box::new(|info| {
        if info.payload().downcast_ref::<&str>() != Some(&PURPOSE) {
            eprintln!("{info}");
            std::process::exit(FAILED);
        }
    }));
    let orders = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&orders);
    let mut builder = loom::model::Builder::new();
    (builder.max_threads, builder.max_branches) = (4, 3000);
    // Another bound may come from LOOM_MAX_PREEMPTIONS.
    builder.preemption_bound = builder.preemption_bound.or(model.preemptions);
    let run = model.run;
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        run();
    });
    println!("{}", orders.load(Ordering::Relaxed));
    faults::seen().iter().for_each(|fault| println!("{fault}"));
    ExitCode::SUCCESS
}

/// What a process printed that ran a model.
struct Outcome {
    /// Its exit code; `None` for a signal, also that of the time limit.
    code: Option<i32>,
    seconds: f64,
    stdout: String,
    stderr: String,
}

/// Runs a model in a process of its own.
fn run(model: &Model, fault: Option<&str>) -> Outcome {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.arg(model.name).stdout(Stdio::piped()).stderr(Stdio::piped()).env_remove(faults::VARIABLE);
    command.envs(fault.map(|fault| (faults::VARIABLE, fault)));
    let clock = Instant::now();
    let mut child = command.spawn().expect("this program starts");
    let code = wait(&mut child);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    child.stdout.take().map(|mut pipe| pipe.read_to_string(&mut stdout));
    child.stderr.take().map(|mut pipe| pipe.read_to_string(&mut stderr));
    Outcome { code, seconds: clock.elapsed().as_secs_f64(), stdout, stderr }
}

/// Waits until a process has ended, or ends it at [`LIMIT`]. What a model prints fits into a pipe.
fn wait(child: &mut Child) -> Option<i32> {
    let clock = Instant::now();
    while clock.elapsed() < LIMIT {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status.code();
        }
        thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    child.wait().expect("it is a child").code()
}

/// Runs all models, then all faults.
fn all() -> ExitCode {
    let mut failed = false;
    let mut passing: BTreeMap<String, Vec<(f64, &Model)>> = BTreeMap::new();
    for model in MODELS {
        let outcome = run(model, None);
        let mut lines = outcome.stdout.lines();
        match (outcome.code, lines.next()) {
            (Some(0), Some(orders)) => {
                let bound =
                    model.preemptions.map_or_else(|| "all".into(), |most| format!("at most {most} preemptions:"));
                println!("{:28} {bound} {orders} orders, {:.1} s", model.name, outcome.seconds);
                lines.for_each(|fault| passing.entry(fault.to_owned()).or_default().push((outcome.seconds, model)));
            }
            _ => {
                println!("{:28} FAILED after {:.1} s: {}", model.name, outcome.seconds, outcome.stderr);
                failed = true;
            }
        }
    }
    for (fault, models) in &mut passing {
        models.sort_by(|a, b| a.0.total_cmp(&b.0));
        let found = models.iter().find_map(|(_, model)| {
            let outcome = run(model, Some(fault));
            (outcome.code == Some(FAILED)).then(|| (model.name, said(&outcome.stderr)))
        });
        match found {
            Some((name, said)) => println!("without {fault}: '{name}' fails: {said}"),
            None => {
                println!("without {fault}: NO MODEL FAILS");
                failed = true;
            }
        }
    }
    println!("{} models, {} parts taken away", MODELS.len(), passing.len());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The message of a panic, in one line.
fn said(stderr: &str) -> String {
    let lines = stderr.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("panicked at"));
    lines.map(str::trim).collect::<Vec<_>>().join(" ").chars().take(100).collect()
}
