//! `hpl-tune survey`: what each rank reaches while all work, with the links between them.

use std::collections::{HashMap, HashSet};
use std::io::Write;
use std::path::Path;

use hpl::measure::survey::{RankSurvey, Survey};
use hpl::program::files::check_writable;
use hpl::program::{Ranks, Runner, refuse_mpi};
use objectives::links::Links;
use objectives::outliers::{Outlier, lost_by_equal_shares, outliers};
use objectives::real::quoted;
use serde_json::json;
use space::machine::{Host, Layer, Machine, Node};
use space::stats::{MedianSpread, summary};
use space::{Candidate, EngineParams, HplParams, KernelChoice};

use crate::cli::survey::SurveyArgs;
use crate::cluster::acceptance::LOAD;
use crate::cluster::launched::survey::below_here;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::session::engine::programs::launcher_here;
use crate::session::input;
use crate::session::input::read_params;

/// Version of the JSON; version 2 has links to some ranks, with latencies, in place of a bandwidth to each.
const SCHEMA: u32 = 2;

/// How the origin of a description begins whose nodes are ranks.
const ORIGIN: &str = "hpl-tune survey";

/// Whether the nodes of `machine` are ranks, in their order, as a survey has found them.
pub(super) fn is_of_ranks(machine: &Machine) -> bool {
    machine.host.origin.starts_with(ORIGIN) && machine.nodes.iter().all(|node| node.count == 1)
}

/// Surveys ranks that are threads of this process or processes of an MPI job, prints what they reach, names those that
/// are too slow, and writes the machine description.
///
/// # Errors
/// Bad input, a survey that broke off, or a file that cannot be written.
pub fn survey(args: &SurveyArgs) -> anyhow::Result<u8> {
    refuse_mpi(|name| std::env::var(name).ok()).map_err(bad_input)?;
    let engine = read_params(args.engine_params.as_deref())?;
    if let Some(path) = &args.out {
        check_writable(path).map_err(RecordError::write(path))?;
    }
    let cores = hpl::machine::host::facts().cores_allowed.len();
    let ranks = args.ranks.map_or((cores / engine.threads.max(1)).max(1), |ranks| ranks as usize);
    if args.program.is_none() && ranks * engine.threads > cores {
        return Err(bad_input(format!(
            "--ranks {ranks} with {} threads each share {cores} cores; lower them: rates of ranks that share cores cannot be compared",
            engine.threads
        )));
    }
    let hpl = HplParams { nb: args.nb as usize, ..HplParams::baseline(args.n as usize, 1, ranks) };
    let candidate = Candidate { hpl, engine };
    let calibrated = match &args.machine {
        Some(path) => {
            let calibrated = input::load(&path.display().to_string())?;
            check_kernels(path, &calibrated, &candidate.engine)?;
            calibrated
        }
        None => Machine::default(),
    };
    let Survey { ranks: found, .. } = match &args.program {
        Some(program) => {
            let launcher = args.launcher.clone().map_or_else(|| launcher_here("mpirun"), Ok).map_err(bad_input)?;
            below_here(program, &launcher, &candidate, args.repeats, args.limit)?
        }
        None => {
            let runner = Runner::new(&candidate.engine.kernels).map_err(bad_input)?;
            let ranks =
                runner.survey_on(&Ranks::threads(), &candidate, args.repeats as usize, false).map_err(bad_input)?;
            Survey { kernels: runner.kernels().0, ranks }
        }
    };
    let machine = machine(&candidate, &found, calibrated, args.program.is_none());
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&document(&found))?)?;
    } else {
        print(&mut out, &found)?;
    }
    if let Some(path) = &args.out {
        replace_file(path, machine.to_toml()?.as_bytes())?;
        if !args.json {
            let word = quoted([path]).concat();
            writeln!(out, "\nwritten to {}; weights for it: hpl-tune weights --machine {word}", path.display())?;
        }
    }
    out.flush()?;
    Ok(exit::DONE)
}

/// Refuses a description, that at `path`, whose rates and phases are of other kernels than the ranks are measured with: predictions would
/// mix the two.
fn check_kernels(path: &Path, calibrated: &Machine, engine: &EngineParams) -> anyhow::Result<()> {
    let described = &calibrated.host.kernels;
    let has_rates = !(calibrated.rates.is_empty() && calibrated.phases.is_empty());
    let of_ranks = match &engine.rank_kernels[..] {
        [] => std::slice::from_ref(&engine.kernels),
        own => own,
    };
    // It is of one node: where ranks have kernels of their own, those of some of them.
    if !has_rates || described.is_empty() || of_ranks.contains(&KernelChoice::from(described.clone())) {
        return Ok(());
    }
    let surveyed: Vec<String> = of_ranks.iter().map(ToString::to_string).collect();
    Err(bad_input(format!(
        "--machine {}: its rates are of the kernels {described}, and the ranks are measured with {}; write kernels = \"{described}\" \
         into the file of --engine-params, or give a description of the same kernels",
        path.display(),
        surveyed.join(", ")
    )))
}

/// Ranks slower than typical.
fn slow(found: &[RankSurvey]) -> Vec<Outlier> {
    let rates: Vec<MedianSpread> = found.iter().map(|rank| summary(&rank.hpl_gflops)).collect();
    outliers(&rates).into_iter().filter(|outlier| outlier.ratio < 1.0).collect()
}

fn medians(found: &[RankSurvey]) -> Vec<f64> {
    found.iter().map(|rank| summary(&rank.hpl_gflops).median).collect()
}

fn print(out: &mut impl Write, found: &[RankSurvey]) -> std::io::Result<()> {
    writeln!(out, "rank  host              DGEMM GFLOP/s (spread)   HPL GFLOP/s (spread)   slowest link GB/s")?;
    for rank in found {
        let (dgemm, hpl) = (summary(&rank.dgemm_gflops), summary(&rank.hpl_gflops));
        let slowest = rank.links.iter().map(|link| link.gbytes_per_s).fold(f64::INFINITY, f64::min);
        let slowest = if slowest.is_finite() { format!("{slowest:.2}") } else { "–".to_owned() };
        writeln!(
            out,
            "{:>4}  {:<16}  {:>12.2} ({:>5.1} %)  {:>12.2} ({:>5.1} %)   {slowest:>17}",
            rank.rank,
            rank.host,
            dgemm.median,
            100.0 * dgemm.spread,
            hpl.median,
            100.0 * hpl.spread
        )?;
    }
    let mut seen = HashSet::new();
    let first = found.iter().filter(|rank| seen.insert(rank.host.as_str()));
    for (host, load) in first.filter_map(|rank| Some((&rank.host, rank.load.filter(|load| *load > LOAD)?))) {
        writeln!(
            out,
            "\nwarning: {load:.1} processes ran on {host} in the minute before; end other work and measure again"
        )?;
    }
    let slow = slow(found);
    if slow.is_empty() {
        return writeln!(out, "\nno rank is slower than the others by more than 2 % and the spread of the repeats");
    }
    writeln!(out)?;
    for outlier in slow {
        let (rank, host) = (outlier.index, &found[outlier.index].host);
        writeln!(out, "rank {rank} on {host} is {:.1} % slower than typical", 100.0 * (1.0 - outlier.ratio))?;
    }
    let all = medians(found);
    writeln!(
        out,
        "with equal shares all ranks wait for the slowest: {:.1} % of {:.1} GFLOP/s are lost; weights recover most of that",
        100.0 * lost_by_equal_shares(&all),
        all.iter().sum::<f64>()
    )
}

fn document(found: &[RankSurvey]) -> serde_json::Value {
    let slow: Vec<_> = slow(found)
        .into_iter()
        .map(|outlier| json!({ "rank": outlier.index, "rate_gflops": outlier.rate, "below": 1.0 - outlier.ratio }))
        .collect();
    let ranks: Vec<_> = found
        .iter()
        .map(|rank| {
            json!({
                "rank": rank.rank,
                "host": rank.host,
                "memory_bytes": rank.memory_bytes,
                "load": rank.load,
                "dgemm_gflops": rank.dgemm_gflops,
                "hpl_gflops": rank.hpl_gflops,
                "socket": rank.socket,
                "links": rank.links,
            })
        })
        .collect();
    json!({
        "schema_version": SCHEMA,
        "ranks": ranks,
        "outliers": slow,
        "lost_by_equal_shares": lost_by_equal_shares(&medians(found)),
    })
}

/// A node per rank; those of one host share its memory evenly. Layers say what the links are, but for those that differ. What else is known of one node is taken along.
fn machine(candidate: &Candidate, found: &[RankSurvey], calibrated: Machine, in_process: bool) -> Machine {
    let name = |rank: &RankSurvey| format!("{}-{}", rank.host, rank.rank);
    let mut ranks_of_host: HashMap<&str, u64> = HashMap::new();
    found.iter().for_each(|rank| *ranks_of_host.entry(rank.host.as_str()).or_default() += 1);
    let node = |rank: &RankSurvey| {
        let memory_bytes = rank.memory_bytes / ranks_of_host[rank.host.as_str()];
        Node {
            name: name(rank),
            count: 1,
            cores: candidate.engine.threads,
            memory_bytes,
            reserved_bytes: memory_bytes / 20,
            rate_gflops: summary(&rank.hpl_gflops).median,
            ..Node::default()
        }
    };
    let Links { mut layers, links } = Links::new(found, candidate.engine.threads, name);
    if in_process {
        // What messages between threads cost is in the phases of a calibration: see `Layer::THREADS`.
        layers.iter_mut().for_each(|layer| layer.name = Layer::THREADS.to_owned());
    }
    // A layer of one rank is its memory, which no message shows.
    let memory = |layer: &&Layer| layers.is_empty() || layer.ranks <= 1;
    let kept: Vec<Layer> = calibrated.layers.iter().filter(memory).cloned().collect();
    layers.splice(0..0, kept);
    let facts = hpl::machine::host::facts();
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let hpl = &candidate.hpl;
    Machine {
        host: Host {
            name: facts.hostname,
            cpu: facts.cpu_model,
            origin: format!("{ORIGIN}, {date}: short HPL runs of N={} NB={} on all ranks at once", hpl.n, hpl.nb),
            kernels: candidate.engine.kernels.to_string(),
        },
        nodes: found.iter().map(node).collect(),
        layers,
        links,
        ..calibrated
    }
}

#[cfg(test)]
mod tests {
    use space::machine::{Rate, RateKernel};

    use super::*;

    #[test]
    fn a_description_of_other_kernels_than_those_of_the_ranks_is_refused() {
        let rate = Rate {
            kernel: RateKernel::Dgemm,
            threads: 1,
            coefficients: vec![1e-10],
            valid: Vec::new(),
            spread: 0.0,
            fit_error: 0.0,
            date: String::new(),
            origin: String::new(),
        };
        let of = |kernels: &str, rates: Vec<Rate>| Machine {
            host: Host { kernels: kernels.to_owned(), ..Host::default() },
            rates,
            ..Machine::default()
        };
        let refused = |machine: &Machine, engine: &EngineParams| {
            check_kernels(Path::new("m.toml"), machine, engine).err().map(|error| error.to_string())
        };
        let blas = of("/lib/blas.so", vec![rate.clone()]);
        let builtin = EngineParams::default();
        let message = refused(&blas, &builtin).unwrap();
        assert!(message.contains("measured with builtin; write kernels = \"/lib/blas.so\""), "{message}");
        let loaded = EngineParams { kernels: KernelChoice::Blas("/lib/blas.so".into()), ..EngineParams::default() };
        let mixed = EngineParams {
            rank_kernels: vec![KernelChoice::Builtin, loaded.kernels.clone()],
            ..EngineParams::default()
        };
        for engine in [&loaded, &mixed] {
            assert_eq!(refused(&blas, engine), None);
        }
        // Without rates nothing is mixed, and of some descriptions nobody knows.
        for machine in [of("/lib/blas.so", Vec::new()), of("", vec![rate])] {
            assert_eq!(refused(&machine, &builtin), None);
        }
    }

    /// A launcher that deals the ranks to the hosts in turn had a warning for each rank.
    #[test]
    fn a_host_with_other_work_is_named_once() {
        let rank = |(rank, host): (usize, &str)| RankSurvey {
            rank,
            host: host.to_owned(),
            load: Some(3.0),
            dgemm_gflops: vec![9.0; 3],
            hpl_gflops: vec![8.0; 3],
            ..RankSurvey::default()
        };
        let found: Vec<RankSurvey> = ["n1", "n2", "n1", "n2"].into_iter().enumerate().map(rank).collect();
        let mut out = Vec::new();
        print(&mut out, &found).unwrap();
        assert_eq!(String::from_utf8(out).unwrap().matches("3.0 processes ran on").count(), 2);
    }
}
