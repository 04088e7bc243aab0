//! `hpl-tune space`: what a search would look at on this machine, and why.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use hpl::machine::host::{HostFacts, facts};
use objectives::launcher::MpiJob;
use serde::Serialize;
use space::dims::Dim;
use space::domain::{DomainError, DomainSpec, Limits, TOO_MANY_POINTS};
use space::guide::guideline;
use space::machine::Machine;
use space::{KernelChoice, SettingLevels, counted};

use crate::cli::space::SpaceArgs;
use crate::commands::survey::is_of_ranks;
use crate::exit::{self, bad_input};
use crate::search::progress::say;
use crate::session::core_kinds;
use crate::session::engine::Engine;
use crate::session::gpus::{self, Drivers};
use crate::session::input::read_machine;
use crate::session::prepare;
use crate::session::room::{Here, Room, Wanted};
use crate::session::settings;
use crate::session::unequal::RankInput;

/// Version of the JSON that `--json` prints.
const JSON_SCHEMA: u32 = 1;

#[derive(Serialize)]
struct SpaceReport<'a> {
    schema_version: u32,
    n: usize,
    /// Cores, or accelerators where the ranks are on these.
    cores: usize,
    /// The same in words.
    #[serde(skip)]
    places: String,
    candidates: usize,
    /// Candidates without the user's limits; `None` where they are too many to be searched.
    candidates_unlimited: Option<usize>,
    dimensions: Vec<DimEntry<'a>>,
}

#[derive(Serialize)]
struct DimEntry<'a> {
    #[serde(flatten)]
    dim: &'a Dim,
    limited: bool,
    why: &'static str,
    source: &'a str,
}

impl<'a> DimEntry<'a> {
    /// `profile`: where dimensions without a guideline come from.
    fn new(dim: &'a Dim, limits: &Limits, profile: &'a str) -> Self {
        let guide = guideline(&dim.name);
        Self {
            dim,
            limited: limits.names().any(|name| name == dim.name),
            why: guide.map_or("a dimension of this engine only, from its profile", |guide| guide.why),
            source: guide.map_or(profile, |guide| guide.source),
        }
    }
}

/// Prints the space that a search on this machine would have.
///
/// # Errors
/// A file that cannot be used, or limits that leave nothing.
pub fn space(args: &SpaceArgs) -> anyhow::Result<u8> {
    let engine = Engine::chosen(args.engine.as_deref(), None, None)?;
    engine.check_flags(args.threads, &KernelChoice::Auto)?;
    let limits = limits(args.space.as_deref(), &engine)?;
    settings::check_limits(&limits, &SettingLevels::default()).map_err(bad_input)?;
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let facts = facts();
    let machine = machine_of(args.machine.as_deref(), &engine, &facts, || gpus::look(&program))?;
    let engine = on_described(engine, machine.as_ref());
    let cores = facts.cores_allowed.len();
    let input =
        RankInput { weights: args.weights.as_deref(), engine_params: args.engine_params.as_deref(), ranks: args.ranks };
    let unequal = input.unequal(&engine, machine.as_ref(), cores)?;
    let is_here = args.machine.is_none() && !unequal.differs();
    if let Some(sentence) = core_kinds::warning(&facts, &engine).filter(|_| is_here) {
        say(&format!("warning: {sentence}"));
    }
    let mut wanted = Wanted::of(args.ranks, args.threads);
    wanted.ranks = wanted.ranks.or(unequal.ranks());
    let described =
        machine.iter().flat_map(|machine| &machine.nodes).map(|node| node.count * node.cores).sum::<usize>();
    let cores = if described > 0 { described } else { cores };
    // What a machine.toml describes is another machine.
    let memory_bytes = machine.as_ref().map(prepare::usable_bytes).filter(|bytes| *bytes > 0);
    let here = Here { cores, memory_bytes: memory_bytes.unwrap_or(facts.memory_available_bytes) };
    let room = Room::new(&engine, here, machine.as_ref(), wanted);
    room.check(wanted)?;
    let n = args.n.map(|n| n as usize);
    let mut spec = DomainSpec { unequal, ..room.spec(0, room.memory_for(n)?, wanted) };
    spec.n = n.unwrap_or_else(|| prepare::largest_n_within(&spec, &engine, &limits));
    room.notes.iter().for_each(|note| say(&format!("warning: {note}")));
    let unlimited = match engine.domain(&spec) {
        Ok((domain, _)) => Some(domain.points().len()),
        Err(DomainError::TooMany { .. }) if !limits.is_empty() => None,
        Err(error) => return Err(bad_input(error)),
    };
    let (domain, _) = engine.domain_within(&spec, &limits).map_err(|error| of_limits(args.space.as_deref(), &error))?;
    let report = SpaceReport {
        schema_version: JSON_SCHEMA,
        n: spec.n,
        cores: spec.cores,
        places: room.places_in_words(),
        candidates: domain.points().len(),
        candidates_unlimited: unlimited,
        dimensions: domain.dims().iter().map(|dim| DimEntry::new(dim, &limits, engine.source())).collect(),
    };
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?,
        false => out.write_all(text(&report).as_bytes())?,
    }
    out.flush()?;
    Ok(exit::DONE)
}

/// What the file at `path` describes; without one this host with the GPUs that a session of `engine` would find.
fn machine_of(
    path: Option<&Path>,
    engine: &Engine,
    facts: &HostFacts,
    look: impl FnOnce() -> Drivers,
) -> anyhow::Result<Option<Machine>> {
    match path {
        Some(path) => Ok(Some(read_machine(path)?.0)),
        // Also without a GPU there is a space to look at.
        None => Ok(gpus::described(engine, facts, look).unwrap_or_default()),
    }
}

/// `engine` on the nodes of `machine`: on several nodes the ranks of ours are processes, each on one of them.
fn on_described(engine: Engine, machine: Option<&Machine>) -> Engine {
    let nodes = |machine: &Machine| machine.nodes.iter().map(|node| node.count).fold(0, usize::saturating_add);
    let is_several = machine.is_some_and(|machine| nodes(machine) > 1 && !is_of_ranks(machine));
    let engine = match engine {
        Engine::Ours if is_several => Engine::Launched(MpiJob::new("none", PathBuf::new())),
        engine => engine,
    };
    engine.on(machine)
}

/// What is wrong with a domain within limits, with their file where there is one.
pub(crate) fn of_limits(path: Option<&Path>, error: &DomainError) -> anyhow::Error {
    let by_limits = matches!(error, DomainError::Limit(_) | DomainError::NoGrid { .. } | DomainError::Recursion { .. });
    match path.filter(|_| by_limits) {
        Some(path) => bad_input(format!("{}: {error}", path.display())),
        None => bad_input(error),
    }
}

/// The limits for `engine` in a file; none without one.
///
/// # Errors
/// As [`read_limits`].
pub(crate) fn limits(path: Option<&Path>, engine: &Engine) -> anyhow::Result<Limits> {
    path.map_or_else(|| Ok(Limits::default()), |path| Ok(read_limits(path, engine)?.0))
}

/// A file of limits for `engine`, checked, and its text.
///
/// # Errors
/// A file that cannot be read, or limits that cannot be kept.
pub(crate) fn read_limits(path: &Path, engine: &Engine) -> anyhow::Result<(Limits, String)> {
    let named = |error: &dyn std::fmt::Display| bad_input(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(&error))?;
    let limits = engine.limits(&text).map_err(|error| named(&error))?;
    Ok((limits, text))
}

fn text(report: &SpaceReport<'_>) -> String {
    let unlimited = match report.candidates_unlimited {
        Some(all) if all == report.candidates => String::new(),
        Some(all) => format!(" of {all} without --space"),
        None => format!(" of more than {TOO_MANY_POINTS} without --space"),
    };
    let mut text = format!(
        "N = {} on {}: {}{unlimited}, all valid and all different\n",
        report.n,
        report.places,
        counted(report.candidates, "candidate")
    );
    for entry in &report.dimensions {
        let labels: Vec<&str> = entry.dim.levels.iter().map(|level| level.label.as_str()).collect();
        let (limited, usually) = if entry.limited { (" (by --space)", "without --space ") } else { ("", "") };
        text += &format!("\n{}{limited}: {}\n", entry.dim.name, labels.join(" "));
        text += &format!("    {usually}{}\n    source: {}\n", entry.why, entry.source);
    }
    text
}

#[cfg(test)]
mod tests {
    use hpl::backend::device::{DeviceError, FoundGpus, GpuFacts};
    use space::machine::{Host, Node};

    use super::*;

    /// One rank was assumed, and no N chosen.
    #[test]
    fn the_gpus_of_this_host_are_those_of_a_session() {
        let engine = Engine::chosen(Some("cuda"), None, None).unwrap();
        let none = || DeviceError { device: "gpu".to_owned(), reason: "no driver".to_owned(), lacks_memory: false };
        let accelerators = |count: usize| {
            let gpus = FoundGpus {
                platform: "cuda".to_owned(),
                driver: "12.9".to_owned(),
                libraries: Vec::new(),
                devices: vec![GpuFacts { name: "GPU".to_owned(), memory_bytes: 80 << 30, free_bytes: None }; count],
            };
            let cuda = if count > 0 { Ok(gpus) } else { Err(none()) };
            let machine = machine_of(None, &engine, &facts(), || [("cuda", cuda), ("hip", Err(none()))]).unwrap();
            machine.and_then(|machine| machine.nodes[0].accelerators)
        };
        assert_eq!([accelerators(4), accelerators(0)], [Some(4), None]);
    }

    /// One rank had threads on all nodes, and PMAP one value.
    #[test]
    fn a_rank_is_on_one_of_several_nodes() {
        let node = |count, cores| Node { name: "a".to_owned(), count, cores, ..Node::default() };
        let most_threads = |origin: &str, nodes: &[Node]| {
            let host = Host { origin: origin.to_owned(), ..Host::default() };
            let machine = Machine { host, nodes: nodes.to_vec(), ..Machine::default() };
            on_described(Engine::Ours, Some(&machine)).mpi_job().and_then(|job| job.most_threads)
        };
        assert_eq!(most_threads("by hand", &[node(2, 8), node(1, 4)]), Some(4));
        assert_eq!(most_threads("by hand", &[node(1, 8)]), None);
        assert_eq!(most_threads("hpl-tune survey", &[node(1, 1), node(1, 1)]), None, "ranks of one process");
        assert!(matches!(on_described(Engine::Ours, None), Engine::Ours));
    }

    /// Limits may leave few of candidates that are too many without them.
    #[test]
    fn what_is_left_is_said_beside_all_candidates() {
        let of = |candidates, candidates_unlimited| {
            let (schema_version, dimensions) = (JSON_SCHEMA, Vec::new());
            let report = SpaceReport {
                schema_version,
                n: 100,
                cores: 1,
                places: "1 core".into(),
                candidates,
                candidates_unlimited,
                dimensions,
            };
            text(&report)
        };
        let first_line = |candidates_unlimited| of(8, candidates_unlimited);
        let all = "N = 100 on 1 core: 8 candidates, all valid and all different\n";
        assert_eq!(first_line(Some(8)), all);
        assert_eq!(of(1, Some(1)), all.replace("8 candidates", "1 candidate"));
        assert_eq!(first_line(Some(9)), all.replace(" candidates", " candidates of 9 without --space"));
        assert_eq!(first_line(None), all.replace(" candidates", " candidates of more than 2000000 without --space"));
    }
}
