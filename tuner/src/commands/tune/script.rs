//! The batch script of `--sbatch`: what its job asks for, and the file.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};
use std::path::Path;

use objectives::real::quoted;

use super::given::budget_s;
use crate::cli::TuneArgs;
use crate::cluster::sbatch::{self, JobRequest};
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::RunFolder;
use crate::report::counted;
use crate::session::engine::Engine;
use crate::session::engine::programs::set_up;
use crate::session::room::{Room, Wanted};

/// What the job of a script asks for.
///
/// # Errors
/// Several nodes for ranks that are threads of one process.
pub(super) fn request(args: &TuneArgs, engine: &Engine, wanted: Wanted, room: &Room) -> anyhow::Result<JobRequest> {
    let nodes = args.nodes.map(|nodes| nodes as usize);
    let spares = args.spares as usize;
    if spares > 0 && spares >= nodes.unwrap_or(1) {
        let nodes = nodes.unwrap_or(1);
        return Err(bad_input(format!(
            "--spares {spares}: of {nodes} nodes none is left to run on; raise --nodes, or lower --spares"
        )));
    }
    if let (Engine::Foreign(foreign), Some(asked)) = (engine, nodes)
        && let Some(most) = foreign.profile().nodes.filter(|most| asked > *most)
    {
        let (name, most) = (engine.name(), counted(most, "node"));
        return Err(bad_input(format!("--nodes {asked}: engine {name} runs on {most} at most; lower --nodes")));
    }
    Ok(match engine {
        // Without a launcher it finds one on the nodes of its job.
        Engine::Ours if nodes.is_some_and(|nodes| nodes > 1) && args.local => {
            return Err(bad_input("--local uses one node: leave out --nodes, or --local"));
        }
        // Steps of its own start the ranks, on all cores.
        Engine::Ours if nodes.is_some_and(|nodes| nodes > 1) => JobRequest { nodes, ..JobRequest::default() },
        Engine::Ours => {
            let tasks = wanted.ranks.zip(wanted.threads).map(|(ranks, threads)| (1, ranks * threads));
            JobRequest { nodes: Some(1), tasks, accelerators: None }
        }
        _ => {
            let threads = wanted.threads.unwrap_or(1);
            let ranks = wanted.ranks.unwrap_or((room.places / threads).max(1));
            // All cores of the nodes, where neither they nor the ranks are known: this may be a login node.
            let unknown = args.machine.is_none() && wanted.ranks.is_none();
            let tasks = (!unknown).then_some((ranks, threads));
            let accelerators = (!engine.calibrates() && !unknown).then_some(ranks);
            JobRequest { nodes: nodes.or(unknown.then_some(1)), tasks, accelerators }
        }
    })
}

/// Writes the script of `request` to a new file at `path`, and says how it is submitted.
///
/// # Errors
/// A file that is there already or cannot be written, or a folder of results that is taken.
pub(super) fn write_script(
    args: &TuneArgs,
    program: &Path,
    path: &Path,
    request: JobRequest,
    room: &Room,
    engine: &Engine,
) -> anyhow::Result<u8> {
    let words = sbatch::without(std::env::args_os().skip(1), &["--sbatch", "--nodes", "--out"]);
    let words: Vec<_> = [program.as_os_str().to_owned()].into_iter().chain(words).collect();
    // Each script has its own session.
    let named = || Path::new("runs").join(path.file_stem().unwrap_or(OsStr::new("slurm")));
    let out = args.out.clone().unwrap_or_else(named);
    RunFolder::is_free(&out)?;
    let script =
        sbatch::script(&words, request, budget_s(args.budget)?, &std::env::current_dir()?, &std::path::absolute(out)?);
    // What is there may be another session's script, or anything else.
    let new = OpenOptions::new().write(true).create_new(true).open(path);
    match new.and_then(|mut file| file.write_all(script.as_bytes())) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            return Err(bad_input(format!(
                "--sbatch {}: the file is there already; remove it, or give another name",
                path.display()
            )));
        }
        written => written.map_err(RecordError::write(path))?,
    }
    let mut out = std::io::stdout().lock();
    for note in &room.notes {
        writeln!(out, "# {note}")?;
    }
    if !engine.calibrates() && request.accelerators.is_none() {
        writeln!(
            out,
            "# it asks for no accelerators, whose number is not known here: add them to it, as by #SBATCH --gpus=1"
        )?;
    }
    let starts_ranks = matches!(engine, Engine::Ours) && request.nodes.is_some_and(|nodes| nodes > 1);
    if starts_ranks && args.program.is_none() && !set_up(program).is_file() {
        writeln!(
            out,
            "# hpl-tune mpi-setup has made no xhpl here: run it before the script, unless an xhpl beside hpl-tune or on the search path \
             is built for the MPI library of the nodes"
        )?;
    }
    let nodes = request.nodes.map(|nodes| counted(nodes, "node"));
    let tasks = request.tasks.map(|(tasks, cores)| match tasks {
        1 => format!("1 task with {}", counted(cores, "core")),
        _ => format!("{tasks} tasks with {} each", counted(cores, "core")),
    });
    let asked: Vec<String> = nodes.into_iter().chain(tasks).collect();
    writeln!(
        out,
        "{0} asks for {1}; submit it with: sbatch {2}",
        path.display(),
        asked.join(" and "),
        quoted([path]).concat()
    )?;
    Ok(exit::DONE)
}
