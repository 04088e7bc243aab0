//! The first minute: what a session would do here, and the budget that it asks for.

use std::io::{BufRead, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use anyhow::Context;
use hpl::machine::host::{HostFacts, facts};
use signal_hook::consts::SIGINT;
use signal_hook::{flag, low_level};
use space::counted;

use crate::cli::duration;
use crate::cluster::allocation::Allocation;
use crate::exit::{self, bad_input};
use crate::record::now::human;
use crate::search::budget::{Budget, SMALLEST_BUDGET_S};
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::prepare::largest_safe_n;

/// The budget of who only presses Enter.
const USUAL: Duration = Duration::from_secs(600);

/// Says what a session would do, and asks for its budget where somebody can answer. `None` where none was given.
///
/// # Errors
/// Nobody who can answer: the message names `--budget`.
pub(super) fn budget() -> anyhow::Result<Option<Duration>> {
    overview(&facts(), Allocation::here().as_ref()).iter().for_each(|line| say(line));
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(bad_input(
            "--budget is missing, and there is no terminal to ask on: give the time for everything, as --budget 10m",
        ));
    }
    // Ctrl-C ends at once: there is nothing to save yet.
    let interrupt =
        flag::register_conditional_shutdown(SIGINT, exit::INTERRUPTED.into(), Arc::new(AtomicBool::new(true)))
            .context("cannot listen to signals")?;
    let budget = ask(&mut std::io::stdin().lock(), &mut std::io::stderr().lock());
    low_level::unregister(interrupt);
    let budget = budget.context("cannot read the budget")?;
    if budget.is_none() {
        say("\nno budget was given; nothing was started, and nothing written");
    }
    Ok(budget)
}

/// Asks until a budget can be used; `None` at the end of the input.
fn ask(input: &mut impl BufRead, out: &mut impl Write) -> std::io::Result<Option<Duration>> {
    loop {
        write!(out, "Time for everything, such as 2m, 10m or 4h [10m]: ")?;
        out.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let word = line.trim();
        let budget = if word.is_empty() { Ok(USUAL) } else { duration(word) };
        match budget {
            Ok(budget) if budget.as_secs_f64() >= SMALLEST_BUDGET_S => return Ok(Some(budget)),
            Ok(_) => writeln!(out, "too short for a calibration, a few trials and a final run; give at least 30s")?,
            Err(error) => writeln!(out, "{error}")?,
        }
    }
}

/// What a session would do here, in lines.
fn overview(host: &HostFacts, job: Option<&Allocation>) -> Vec<String> {
    let cores = counted(host.cores_allowed.len(), "core");
    let gib = host.memory_available_bytes as f64 / f64::from(1 << 30);
    let n = largest_safe_n(&host.domain_spec(0), &Engine::Ours);
    let budget = Budget::new(Instant::now(), USUAL.as_secs_f64(), 0.0);
    let place = match job {
        Some(job) if job.nodes() > 1 => format!("{job}: all of its {} nodes; --local for this one alone", job.nodes()),
        _ => {
            let quota = host.cpu_quota.filter(|quota| *quota < host.cores_allowed.len() as f64);
            let quota = quota.map_or_else(String::new, |quota| format!(" by a CPU quota of {quota:.2}"));
            format!("{}, {cores} for runs{quota}, {gib:.1} GiB available", host.cpu_model)
        }
    };
    let calibration = human(budget.calibration_s());
    // No line is longer than 80 columns where the names of processor and host are not.
    vec![
        "hpl-tune finds the fastest HPL.dat for this machine, by real runs in your time.".to_owned(),
        format!("  machine   {place}"),
        format!("  searched  ranks × threads on {cores}, P × Q, NB, DEPTH, BCAST, and the rest"),
        format!("  N         the largest of which a trial takes 1/60 of the time; at most {n}"),
        format!("  stages    calibration ({calibration} of 10 min), search, a final run that is checked,"),
        "            pairs of the usual HPL.dat and the best, run in turn".to_owned(),
        format!("  results   runs/{}-DATE-TIME: HPL.dat, run.sh, report.html, every trial", host.hostname),
        "  stop      Ctrl-C ends with the best so far; --resume goes on".to_owned(),
        "  time      2m: a first answer; 10m: usually an interval; hours: a large N".to_owned(),
        "hpl-tune doctor looks at the machine first; hpl-tune --help lists all flags.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(text: &str) -> (Option<u64>, String) {
        let mut out = Vec::new();
        let budget = ask(&mut text.as_bytes(), &mut out).unwrap();
        (budget.map(|budget| budget.as_secs()), String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_budget_is_asked_for_until_it_can_be_used() {
        assert_eq!(answered("\n").0, Some(600));
        assert_eq!(answered(" 4h \n").0, Some(14_400));
        let (budget, said) = answered("soon\n5s\n2m\n");
        assert_eq!((budget, said.matches("[10m]").count()), (Some(120), 3));
        assert!(said.contains("'soon' is not a time") && said.contains("at least 30s"), "{said}");
        assert_eq!(answered("").0, None);
        assert_eq!(answered("soon\n").0, None);
    }

    #[test]
    fn the_overview_is_about_ten_lines_of_what_is_there() {
        let host = facts();
        let lines = overview(&host, None);
        assert!((8..=12).contains(&lines.len()));
        let named = |line: &String| line.contains(&host.cpu_model) || line.contains(&host.hostname);
        assert!(lines.iter().all(|line| named(line) || line.chars().count() <= 80), "{lines:#?}");
        let text = lines.join("\n");
        for words in [&host.cpu_model, &counted(host.cores_allowed.len(), "core"), "--help", "runs/"] {
            assert!(text.contains(words), "'{words}' is not in:\n{text}");
        }
        let job = Allocation::reached(4);
        assert!(overview(&host, Some(&job)).join("\n").contains("all of its 4 nodes"));
    }
}
