//! `hpl-tune weights --measure`: weights from the times of successive windows of a run.

use std::io::Write;
use std::path::Path;

use hpl::balance::weights::WeightSearch;
use hpl::layout::Layout;
use hpl::program::{RunOptions, measure_candidate, refuse_mpi};
use hpl::windows::{Window, Windows};
use space::params::Pmap;
use space::stats::summary;
use space::weights_file::WeightsFile;
use space::{Candidate, Share, WindowsResult};

use crate::cli::weights::WeightsArgs;
use crate::commands::run::{read_dat, read_params, single};
use crate::exit::{self, bad_input};
use crate::folder::replace_file;

/// Most weights that are tried along one axis.
const MOST: usize = 12;
/// Measurements of the same weights.
const REPEATS: usize = 3;
/// A run below this time is measured as a whole, in seconds.
const SHORT_S: f64 = 3.0;

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
    let steps = candidate.hpl.n.div_ceil(candidate.hpl.nb);
    let mut search = WeightSearch::new(vec![1.0 / ranks as f64; ranks], steps);
    let name = if along == Along::Rows { "rows" } else { "columns" };
    writeln!(out, "{name:<10}{:<34}{:<34}GFLOP/s by the windows", "weights", "busy [s]")?;
    let mut windows = Windows::Auto;
    for _ in 0..MOST {
        set(candidate, along, search.weights())?;
        let mut seen = measure(candidate, along, &windows, threshold)?;
        if windows == Windows::Auto && seen.whole_s < SHORT_S {
            // All steps of a short run say more than a few, and take no time.
            windows = Windows::These(vec![Window { first: 0, steps }]);
            seen = measure(candidate, along, &windows, threshold)?;
        }
        let rate = space::flops::rate_gflops(candidate.hpl.n, seen.whole_s);
        writeln!(out, "{:<10}{:<34}{:<34}{rate:.2}", "", line(search.weights()), line(&seen.busy_s))?;
        out.flush()?;
        search.observe(&seen.busy_s, seen.whole_s);
        if search.settled() {
            break;
        }
    }
    let best = search.best().to_vec();
    writeln!(out, "{:<10}{}", "kept", line(&best))?;
    set(candidate, along, &best)
}

fn line(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(" ")
}

/// What a run with some weights takes.
struct Seen {
    /// How long each process row or column is busy in the windows, in seconds, as if it had exactly its share of the work.
    busy_s: Vec<f64>,
    /// The whole run in seconds, as the windows predict it.
    whole_s: f64,
}

/// Medians of some measurements of the same windows.
fn measure(candidate: &Candidate, along: Along, windows: &Windows, threshold: f64) -> anyhow::Result<Seen> {
    let options = RunOptions { threshold, force: false, watch: &() };
    let (mut whole, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let result = measure_candidate(candidate, windows, &options).map_err(bad_input)?;
        if !result.passed {
            return Err(anyhow::anyhow!("a window left a wrong matrix; the kernels cannot be trusted"));
        }
        whole.push(result.predicted_time_s);
        busy.push(busy_times(&result, along));
    }
    let median = |of: &dyn Fn(usize) -> f64| summary(&(0..REPEATS).map(of).collect::<Vec<_>>()).median;
    let busy_s = (0..busy[0].len()).map(|at| median(&|repeat| busy[repeat][at])).collect();
    Ok(Seen { busy_s, whole_s: median(&|repeat| whole[repeat]) })
}

fn set(candidate: &mut Candidate, along: Along, weights: &[f64]) -> anyhow::Result<()> {
    let shares = weights.iter().map(|&weight| Share::new(weight)).collect::<Result<_, _>>()?;
    match along {
        Along::Rows => candidate.engine.weights.rows = shares,
        Along::Columns => candidate.engine.weights.columns = shares,
    }
    Ok(())
}

/// Time for which the slowest rank of each process row or column is busy, in seconds, scaled from the blocks that it had
/// in the windows to its share of the work: few blocks are rarely dealt as the shares say.
///
/// A process column is busy with its panels, rows and updates: all of it grows with its share, and who waits in it waits
/// for ranks of the same column. Process rows wait for each other in panels and exchanges, so only updates count.
fn busy_times(result: &WindowsResult, along: Along) -> Vec<f64> {
    let hpl = &result.candidate.hpl;
    let layout = Layout::of(hpl, &result.candidate.engine.weights);
    let (axis, weights) = match along {
        Along::Rows => (&layout.rows, &result.candidate.engine.weights.rows),
        Along::Columns => (&layout.cols, &result.candidate.engine.weights.columns),
    };
    let mut slowest = vec![0.0_f64; axis.procs()];
    let mut of_rank = vec![0.0; hpl.ranks()];
    for phase in &result.phases {
        of_rank[phase.rank as usize] += match along {
            Along::Columns => phase.fact_s + phase.rs_s + phase.update_s,
            Along::Rows => phase.update_s,
        };
    }
    for (rank, &time_s) in of_rank.iter().enumerate() {
        let (row, column) = match hpl.pmap {
            Pmap::Row => (rank / hpl.q, rank % hpl.q),
            Pmap::Column => (rank % hpl.p, rank / hpl.p),
        };
        let at = if along == Along::Rows { row } else { column };
        slowest[at] = slowest[at].max(time_s);
    }
    let mut work = vec![0.0; axis.procs()];
    for step in result.windows.iter().flat_map(|window| window.first..window.first + window.steps) {
        let end = ((step + 1) * hpl.nb).min(hpl.n);
        for (at, work) in work.iter_mut().enumerate() {
            *work += (hpl.n - end) as f64 * (axis.local_len(at) - axis.local_from(at, end)) as f64;
        }
    }
    let (all, shares): (f64, f64) = (work.iter().sum(), weights.iter().map(|weight| weight.get()).sum());
    let scaled = |((time_s, work), weight): ((&f64, &f64), &Share)| {
        if *work > 0.0 { time_s * weight.get() / shares * all / work } else { 0.0 }
    };
    slowest.iter().zip(&work).zip(weights).map(scaled).collect()
}
