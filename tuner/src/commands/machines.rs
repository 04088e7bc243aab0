//! `hpl-tune machines`: the published machine descriptions that come with the program.

use std::fmt::Write as _;
use std::io::Write;

use objectives::scenario::Choices;
use serde::Serialize;
use space::machine::{Machine, published};

use crate::cli::predict::MachinesArgs;
use crate::exit::{self, bad_input};
use crate::predict::text::rate;
use crate::predict::{Model, Question};

/// Version of the JSON document.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
struct List {
    schema_version: u32,
    machines: Vec<MachineEntry>,
}

#[derive(Debug, Serialize)]
struct MachineEntry {
    name: &'static str,
    system: String,
    cpu: String,
    origin: String,
    nodes: usize,
    /// Ranks of one thread, or one per accelerator, on all nodes.
    ranks: usize,
    measured_runs: usize,
    best_measured_gflops: Option<f64>,
    /// Models that can predict the whole machine as described.
    models: Vec<&'static str>,
    /// What the others lack.
    missing: Vec<String>,
}

/// Lists the descriptions, or prints one.
///
/// # Errors
/// An unknown name, or a standard output that is closed.
pub fn machines(args: &MachinesArgs) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    if let Some(name) = &args.name {
        let found = published::find(name);
        let found =
            found.ok_or_else(|| bad_input(format!("no machine '{name}'; `hpl-tune machines` lists the names")))?;
        out.write_all(found.text.as_bytes())?;
        return Ok(exit::DONE);
    }
    let mut machines = Vec::new();
    for published in published::ALL {
        machines.push(entry(published.name, &published.machine()?));
    }
    let text = if args.json {
        serde_json::to_string_pretty(&List { schema_version: SCHEMA, machines })? + "\n"
    } else {
        table(&machines)
    };
    out.write_all(text.as_bytes())?;
    Ok(exit::DONE)
}

fn entry(name: &'static str, machine: &Machine) -> MachineEntry {
    let tried: Vec<_> = Model::all().map(|model| (model, lacks(machine, model))).collect();
    let missing = tried.iter().filter_map(|(model, why)| Some(format!("{}: {}", model.name(), why.as_ref()?)));
    MachineEntry {
        name,
        system: machine.host.name.clone(),
        cpu: machine.host.cpu.clone(),
        origin: machine.host.origin.clone(),
        nodes: machine.nodes.iter().map(|node| node.count).sum(),
        ranks: machine.nodes.iter().map(|node| node.count * node.ranks(1)).sum(),
        measured_runs: machine.measured.len(),
        best_measured_gflops: machine.measured.iter().map(|run| run.rate_gflops).reduce(f64::max),
        missing: missing.collect(),
        models: tried.iter().filter(|(_, why)| why.is_none()).map(|(model, _)| model.name()).collect(),
    }
}

/// Why a model cannot predict a small run on all of the machine; `None` when it can.
fn lacks(machine: &Machine, model: Model) -> Option<String> {
    let ranks: usize = machine.nodes.iter().map(|node| node.count * node.ranks(1)).sum();
    if ranks == 0 {
        return Some("it has no [[node]]".to_owned());
    }
    let (p, q) = space::domain::squarest(ranks);
    let hpl = space::HplParams::baseline(1024, p, q);
    model
        .answer(machine, &Question { hpl, nodes: None, threads: 1 }, &Choices::default())
        .err()
        .map(|error| error.to_string())
}

fn table(entries: &[MachineEntry]) -> String {
    let mut text = String::new();
    for entry in entries {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<14} {}{}", entry.name, entry.system, cpu(entry));
        if entry.nodes > 0 {
            let of = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
            let _ = writeln!(text, "{:<14} {}, {}", "", of(entry.nodes, "node"), of(entry.ranks, "rank"));
        }
        if let Some(best) = entry.best_measured_gflops {
            let (best, s) = (rate(best), if entry.measured_runs == 1 { "" } else { "s" });
            let _ = writeln!(text, "{:<14} {} measured run{s}, up to {best}", "", entry.measured_runs);
        }
        match entry.missing.first().filter(|_| entry.models.is_empty()) {
            None => writeln!(text, "{:<14} models: {}", "", entry.models.join(", ")),
            Some(first) => writeln!(text, "{:<14} models: none as it is; {first}", ""),
        }
        .ok();
        let _ = writeln!(text, "{:<14} source: {}\n", "", entry.origin);
    }
    text += "hpl-tune machines NAME prints a description; hpl-tune predict --machine NAME says what a model lacks.\n";
    text
}

fn cpu(entry: &MachineEntry) -> String {
    if entry.cpu.is_empty() { String::new() } else { format!(": {}", entry.cpu) }
}
