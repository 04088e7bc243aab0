//! `hpl-tune nodes`: HPL on every node of the job at once, and an acceptance report.

use std::io::Write;

use anyhow::Context;
use objectives::launcher::MpiJob;
use space::{Candidate, EngineParams, HplParams};

use crate::cli::nodes::NodesArgs;
use crate::cluster::acceptance::{self, Acceptance, SURVEY_NB};
use crate::cluster::allocation::Allocation;
use crate::cluster::launched::nodes::{Reached, Used, found, reached};
use crate::cluster::launched::survey::{order, surveyed};
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::search::progress::say;
use crate::session::engine::programs::xhpl_beside;
use crate::session::input::read_params;
use crate::signals::removed_at_a_signal;

/// Order of the runs on a node of one core.
const ORDER: f64 = 4000.0;

/// Surveys the nodes, prints what they reach and writes the report.
///
/// # Errors
/// Bad input, nodes that do not answer, or a report that cannot be written.
pub fn nodes(args: &NodesArgs) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let program = args.program.clone().map_or_else(|| Ok(xhpl_beside(&program)), |given| given.canonicalize());
    let program = program.map_err(|error| bad_input(format!("--program: {error}")))?;
    let Some(allocation) = Allocation::or_reached(args.nodes, args.launcher.as_deref())? else {
        return Err(bad_input(
            "hpl-tune nodes looks at the nodes of a job of Slurm, PBS or LSF: start it in one (salloc, sbatch), or say with \
             --launcher and --nodes how many are reached",
        ));
    };
    if let Some(unequal) = allocation.unequal() {
        say(&format!("warning: {unequal}: no more than those of the smallest are used of each"));
    }
    let cores = hpl::machine::host::facts().cores_allowed.len();
    let Reached { job, nodes, hosts, .. } = match &args.launcher {
        Some(launcher) => {
            let job = MpiJob::new(launcher, program);
            reached(&job, &allocation, cores, Used::AllBut(0))?
        }
        None => found(program, &allocation, cores, Used::AllBut(0))?,
    };
    let threads = nodes.iter().map(|node| node.cores).min().unwrap_or(1);
    let n = args.n.map_or_else(|| order(&nodes, ORDER), |n| n as usize);
    let hpl = HplParams { nb: SURVEY_NB, ..HplParams::baseline(n, 1, hosts.len()) };
    let engine = EngineParams { threads, ..read_params(args.engine_params.as_deref())? };
    std::fs::create_dir_all(&args.out).map_err(RecordError::write(&args.out))?;
    // All nodes see the folder of the report, and no other is known of.
    let folder = tempfile::Builder::new().prefix(".nodes-").tempdir_in(&args.out);
    let folder = folder.map_err(RecordError::write(&args.out))?;
    let path = folder.path().canonicalize()?;
    removed_at_a_signal(path.clone()).context("cannot listen to signals")?;
    let found = surveyed(&job, &path, &Candidate { hpl, engine }, args.repeats, args.limit)?.ranks;
    let acceptance = Acceptance::new(&found, n, threads, args.tolerance);
    let json = serde_json::to_string_pretty(&acceptance)?;
    replace_file(&args.out.join("nodes.json"), json.as_bytes())?;
    replace_file(&args.out.join("nodes.html"), acceptance::page(&acceptance).as_bytes())?;
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{json}")?;
    } else {
        write!(out, "{acceptance}")?;
        writeln!(out, "\nwritten: nodes.html and nodes.json in {}", args.out.display())?;
    }
    out.flush()?;
    Ok(if acceptance.accepted { exit::DONE } else { exit::NOT_ACCEPTED })
}
