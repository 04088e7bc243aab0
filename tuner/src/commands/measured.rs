//! `hpl-tune weights --measure`: weights from the times of successive windows of a run.

use std::io::Write;
use std::path::Path;

use hpl::balance::weights::WeightSearch;
use hpl::program::{RunOptions, measure_candidate, refuse_mpi};
use hpl::windows::Windows;
use space::params::Pmap;
use space::weights_file::WeightsFile;
use space::{Candidate, Share, WindowsResult};

use crate::cli::weights::WeightsArgs;
use crate::commands::run::{read_dat, read_params, single};
use crate::exit::{self, bad_input};
use crate::folder::replace_file;

/// Most measurements for one axis.
const MOST: usize = 14;

/// One dimension of the grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Along {
    Rows,
    Columns,
}

/// Measures windows of the run again and again, each time with better weights, and keeps the best.
///
/// # Errors
/// Bad input, a run that cannot be made, or weights that cannot be written.
pub fn measured(args: &WeightsArgs, dat: &Path) -> anyhow::Result<u8> {
    refuse_mpi(|name| std::env::var(name).ok()).map_err(bad_input)?;
    let file = read_dat(dat)?;
    let mut candidate = Candidate { hpl: single(&file, dat)?, engine: read_params(args.engine_params.as_deref())? };
    if candidate.hpl.ranks() == 1 {
        return Err(bad_input(format!("{}: P=1 Q=1 has one rank, which gets everything; raise P or Q", dat.display())));
    }
    let mut out = std::io::stdout().lock();
    for (along, ranks) in [(Along::Columns, candidate.hpl.q), (Along::Rows, candidate.hpl.p)] {
        if ranks > 1 {
            search(&mut candidate, along, ranks, file.threshold, &mut out)?;
        }
    }
    if let Some(path) = &args.out {
        let origin = format!("hpl-tune weights --measure {}: measured on this machine", dat.display());
        let weights = candidate.engine.weights.clone();
        let file = WeightsFile { origin, rows: weights.rows, columns: weights.columns, nodes: Vec::new() };
        replace_file(path, file.to_toml()?.as_bytes())?;
        writeln!(out, "\nmeasured weights written to {}", path.display())?;
    }
    out.flush()?;
    Ok(exit::DONE)
}

/// Finds the weights of one axis and leaves them in the candidate.
fn search(
    candidate: &mut Candidate,
    along: Along,
    ranks: usize,
    threshold: f64,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let blocks = candidate.hpl.n.div_ceil(candidate.hpl.nb);
    let mut search = WeightSearch::new(vec![1.0 / ranks as f64; ranks], blocks);
    let name = if along == Along::Rows { "rows" } else { "columns" };
    writeln!(out, "{:<14}{:<40}{:<40}whole run [GFLOP/s]", name, "weights", "computing in the windows [s]")?;
    for _ in 0..MOST {
        set(candidate, along, search.weights())?;
        let options = RunOptions { threshold, force: false, watch: &() };
        let result = measure_candidate(candidate, &Windows::Auto, &options).map_err(bad_input)?;
        if !result.passed {
            return Err(anyhow::anyhow!("a window left a wrong matrix; the kernels cannot be trusted"));
        }
        let times = computing(&result, along, ranks);
        let line = |values: &[f64]| values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(" ");
        writeln!(
            out,
            "{:<14}{:<40}{:<40}{:.2} predicted from windows",
            "",
            line(search.weights()),
            line(&times),
            result.predicted_rate_gflops
        )?;
        out.flush()?;
        search.observe(&times, result.predicted_time_s);
        if search.settled() {
            break;
        }
    }
    let best = search.best().to_vec();
    writeln!(out, "{:<14}{}", "kept", best.iter().map(|w| format!("{w:.4}")).collect::<Vec<_>>().join(" "))?;
    set(candidate, along, &best)
}

fn set(candidate: &mut Candidate, along: Along, weights: &[f64]) -> anyhow::Result<()> {
    let shares = weights.iter().map(|&weight| Share::new(weight)).collect::<Result<_, _>>()?;
    match along {
        Along::Rows => candidate.engine.weights.rows = shares,
        Along::Columns => candidate.engine.weights.columns = shares,
    }
    Ok(())
}

/// Computing time of the slowest rank of each process row or column, in seconds: updates, and with one process row the
/// panels, whose time holds no waiting then.
fn computing(result: &WindowsResult, along: Along, ranks: usize) -> Vec<f64> {
    let hpl = &result.candidate.hpl;
    let mut of_rank = vec![0.0; hpl.ranks()];
    for phase in &result.phases {
        of_rank[phase.rank as usize] += phase.update_s + if hpl.p == 1 { phase.fact_s } else { 0.0 };
    }
    let mut slowest = vec![0.0_f64; ranks];
    for (rank, &time_s) in of_rank.iter().enumerate() {
        let (row, column) = match hpl.pmap {
            Pmap::Row => (rank / hpl.q, rank % hpl.q),
            Pmap::Column => (rank % hpl.p, rank / hpl.p),
        };
        let at = if along == Along::Rows { row } else { column };
        slowest[at] = slowest[at].max(time_s);
    }
    slowest
}
