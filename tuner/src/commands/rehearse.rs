//! `--dry-run` and `--sbatch`: what a session would run, without running it.

use std::io::Write;
use std::path::{Path, PathBuf};

use objectives::real::Job;
use space::KernelChoice;
use space::domain::{DomainSpec, squarest};

use crate::cli::TuneArgs;
use crate::commands::space::limits;
use crate::engine::Engine;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::folder::RunFolder;
use crate::machines::read_machine;
use crate::sbatch;
use crate::unequal::Told;

/// Order of a dry run whose user names none: what a session takes depends on its calibration.
const EXAMPLE_N: usize = 10_000;

/// Shows the first run of a session, or writes its batch script.
///
/// # Errors
/// Bad input, or a script that cannot be written.
pub fn rehearse(args: &TuneArgs, program: &Path) -> anyhow::Result<u8> {
    let engine = Engine::chosen(args.engine.as_deref(), args.launcher.as_deref(), args.program.as_deref())?;
    if let Some(path) = &args.sbatch {
        return write_script(args, program, path);
    }
    let facts = hpl::host::facts();
    let here = facts.cores_allowed.len();
    let wanted = args.ranks.unwrap_or(1).saturating_mul(args.threads.unwrap_or(1)) as usize;
    let machine = args.machine.as_deref().map(read_machine).transpose()?.map(|(machine, _)| machine);
    let unequal = Told::of(args).unequal(&engine, machine.as_ref(), here)?;
    let limits = limits(args.space.as_deref(), &engine)?;
    let spec = DomainSpec {
        n: args.n.map_or(EXAMPLE_N, |n| n as usize),
        // Another engine's launcher may reach more nodes than this one.
        cores: if matches!(engine, Engine::Ours) { here } else { here.max(wanted) },
        memory_bytes: u64::MAX,
        kernels: match &args.blas {
            KernelChoice::Auto => KernelChoice::Builtin,
            named => named.clone(),
        },
        ranks: args.ranks.map(|r| r as usize).or(unequal.ranks()),
        threads: args.threads.map(|t| t as usize),
        unequal,
    };
    let (domain, usual) = engine.domain_within(&spec, &limits).map_err(bad_input)?;
    let root = args.out.clone().unwrap_or_else(|| RunFolder::default_path(&facts.hostname, jiff::Timestamp::now()));
    let folder = std::path::absolute(root)?.join("trials").join("0");
    let runs = engine.runs(program);
    let mut out = std::io::stdout().lock();
    writeln!(out, "# {} candidates at N = {}; the first trial:", domain.points().len(), spec.n)?;
    if args.n.is_none() {
        writeln!(out, "# (N = {EXAMPLE_N} is an example: a session chooses it after its calibration)")?;
    }
    writeln!(out, "{}", runs.command(&Job::whole(&usual), &folder).join(" "))?;
    for (name, text) in runs.inputs(&usual).map_err(bad_input)? {
        writeln!(out, "\n# {}\n{}", folder.join(name).display(), text.trim_end())?;
    }
    out.flush()?;
    engine.check_programs()?;
    Ok(exit::DONE)
}

fn write_script(args: &TuneArgs, program: &Path, path: &Path) -> anyhow::Result<u8> {
    let budget_s = args.budget.map_or(0.0, |budget| budget.as_secs_f64());
    let facts = hpl::host::facts();
    let cores = facts.cores_allowed.len() as u64;
    let threads = args.threads.unwrap_or(1);
    let ranks = args.ranks.unwrap_or((cores / threads).max(1));
    let words = sbatch::without(std::env::args_os().skip(1), &["--sbatch", "--out"]);
    let words: Vec<_> = [program.as_os_str().to_owned()].into_iter().chain(words).collect();
    let out = args.out.clone().unwrap_or_else(|| PathBuf::from("runs/slurm"));
    let script = sbatch::script(&words, ranks, threads, budget_s, &std::path::absolute(out)?);
    std::fs::write(path, script).map_err(RecordError::write(path))?;
    let (p, q) = squarest(ranks as usize);
    writeln!(
        std::io::stdout(),
        "{} asks for {ranks} tasks ({p}×{q}) with {threads} cores each; submit it with: sbatch {}",
        path.display(),
        path.display()
    )?;
    Ok(exit::DONE)
}
