//! `hpl-tune weights --measure`: weights from the times of successive windows of a run.

use std::io::Write;
use std::path::Path;

use anyhow::anyhow;
use hpl::balance::weights::WeightSearch;
use hpl::comm::grid::coords;
use hpl::plan::layout::Layout;
use hpl::plan::windows::{Window, Windows};
use hpl::program::files::check_writable;
use hpl::program::{RunOptions, measure_candidate, refuse_mpi};
use space::stats::summary;
use space::weights_file::WeightsFile;
use space::{Candidate, Share, Weights, WindowsResult};

use crate::cli::weights::WeightsArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::report::owners::{Bar, Owned, picture};
use crate::report::ratio_in_words;
use crate::report::stats::{Ratio, paired_ratio};
use crate::search::rounds::PAIRS_TO_JUDGE;
use crate::session::input::{read_dat, read_params_of, single};

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
    let hpl = single(&file, dat)?;
    let engine = read_params_of(args.engine_params.as_deref(), hpl.ranks())?;
    let mut candidate = Candidate { hpl, engine };
    if candidate.hpl.ranks() == 1 {
        return Err(bad_input(format!("{}: P=1 Q=1 has one rank, which gets everything; raise P or Q", dat.display())));
    }
    if hpl.n <= hpl.nb {
        return Err(bad_input(format!(
            "{}: N={} must be above NB={}, as a single block has no updates to share; raise N or lower NB",
            dat.display(),
            hpl.n,
            hpl.nb
        )));
    }
    for path in [&args.out, &args.picture].into_iter().flatten() {
        check_writable(path).map_err(RecordError::write(path))?;
    }
    let mut out = std::io::stdout().lock();
    let mut windows = Windows::Auto;
    for (along, ranks) in [(Along::Columns, candidate.hpl.q), (Along::Rows, candidate.hpl.p)] {
        if ranks > 1 {
            windows = search(&mut candidate, along, ranks, file.threshold, &mut out)?;
        }
    }
    if !is_equal(&candidate.engine.weights)
        && let Some(ratio) = beside_equal(&candidate, &windows, file.threshold)?
    {
        writeln!(out, "kept/equal {}", ratio_in_words(&ratio))?;
    }
    if let Some(path) = &args.picture {
        replace_file(path, drawn(&candidate, &windows, file.threshold)?.as_bytes())?;
        writeln!(out, "\nequal and measured weights drawn in {}", path.display())?;
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

/// Finds the weights of one axis and leaves them in the candidate; the windows that say most of its run.
fn search(
    candidate: &mut Candidate,
    along: Along,
    ranks: usize,
    threshold: f64,
    out: &mut impl Write,
) -> anyhow::Result<Windows> {
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
        if search.is_final() {
            break;
        }
    }
    let best = search.best().to_vec();
    writeln!(out, "{:<10}{}", "kept", line(&best))?;
    set(candidate, along, &best)?;
    Ok(windows)
}

/// Rate of the candidate by that of equal weights, by windows measured in turn.
fn beside_equal(candidate: &Candidate, windows: &Windows, threshold: f64) -> anyhow::Result<Option<Ratio>> {
    let equal = equal(candidate);
    let rate = |of: &Candidate| -> anyhow::Result<f64> { Ok(sample(of, windows, threshold)?.predicted_rate_gflops) };
    let pair = |round: usize| {
        if round.is_multiple_of(2) {
            return Ok((rate(candidate)?, rate(&equal)?));
        }
        let equal = rate(&equal)?;
        Ok((rate(candidate)?, equal))
    };
    Ok(paired_ratio(&(0..PAIRS_TO_JUDGE).map(pair).collect::<anyhow::Result<Vec<_>>>()?))
}

fn is_equal(weights: &Weights) -> bool {
    [&weights.rows, &weights.columns].iter().all(|axis| axis.iter().all(|share| *share == axis[0]))
}

fn equal(candidate: &Candidate) -> Candidate {
    let mut equal = candidate.clone();
    equal.engine.weights = Weights::default();
    equal
}

fn line(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value:.4}")).collect::<Vec<_>>().join(" ")
}

/// What a run with some weights takes.
struct WeightedRun {
    /// How long each process row or column is busy in the windows, in seconds, as if it had exactly its share of the work.
    busy_s: Vec<f64>,
    /// The whole run in seconds, as the windows predict it.
    whole_s: f64,
}

/// Medians of some measurements of the same windows.
fn measure(candidate: &Candidate, along: Along, windows: &Windows, threshold: f64) -> anyhow::Result<WeightedRun> {
    let (mut whole, mut busy) = (Vec::new(), Vec::new());
    for _ in 0..REPEATS {
        let result = sample(candidate, windows, threshold)?;
        whole.push(result.predicted_time_s);
        busy.push(busy_times(&result, along));
    }
    let median = |of: &dyn Fn(usize) -> f64| summary(&(0..REPEATS).map(of).collect::<Vec<_>>()).median;
    let busy_s = (0..busy[0].len()).map(|at| median(&|repeat| busy[repeat][at])).collect();
    Ok(WeightedRun { busy_s, whole_s: median(&|repeat| whole[repeat]) })
}

fn sample(candidate: &Candidate, windows: &Windows, threshold: f64) -> anyhow::Result<WindowsResult> {
    let options = RunOptions { threshold, force: false, watch: &() };
    let result = measure_candidate(candidate, windows, &options).map_err(bad_input)?;
    if result.passed {
        Ok(result)
    } else {
        Err(anyhow!("the matrix after a window is wrong; the kernels cannot be trusted"))
    }
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
    for (rank, &time_s) in of_ranks(result, along).iter().enumerate() {
        let (row, column) = coords(hpl.pmap, rank, hpl.p, hpl.q);
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

/// Seconds for which each rank was busy in the windows.
fn of_ranks(result: &WindowsResult, along: Along) -> Vec<f64> {
    let mut busy_s = vec![0.0; result.candidate.hpl.ranks()];
    for phase in &result.phases {
        busy_s[phase.rank as usize] += match along {
            Along::Columns => phase.fact_s + phase.rs_s + phase.update_s,
            Along::Rows => phase.update_s,
        };
    }
    busy_s
}

/// The picture of the run with equal weights and with its own, each measured once more. In several process rows only updates
/// tell who is busy.
fn drawn(candidate: &Candidate, windows: &Windows, threshold: f64) -> anyhow::Result<String> {
    let hpl = candidate.hpl;
    let equal = equal(candidate);
    let along = if hpl.p > 1 { Along::Rows } else { Along::Columns };
    let kinds: Vec<usize> = (0..hpl.ranks()).collect();
    let shares = |of: &[Share], ranks: usize| -> Vec<f64> {
        let sum: f64 = of.iter().map(|share| share.get()).sum();
        if of.is_empty() { vec![1.0 / ranks as f64; ranks] } else { of.iter().map(|share| share.get() / sum).collect() }
    };
    let sets = [("equal", &equal), ("measured", candidate)].map(|(name, candidate)| {
        let result = sample(candidate, windows, threshold)?;
        let weights = &candidate.engine.weights;
        Ok::<_, anyhow::Error>((name, result, shares(&weights.rows, hpl.p), shares(&weights.columns, hpl.q)))
    });
    let sets = sets.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    let owned = |at: usize| {
        let (name, result, rows, columns) = &sets[at];
        let whole_s: f64 = result.windows.iter().flat_map(|window| &window.step_s).sum();
        let bar = |(rank, busy_s): (usize, &f64)| {
            let (row, column) = coords(hpl.pmap, rank, hpl.p, hpl.q);
            Bar { place: row + column * hpl.p, busy: busy_s / whole_s, name: format!("rank {rank}") }
        };
        Owned {
            title: format!("{name} weights"),
            outcome: format!("{:.1} GFLOP/s by windows", result.predicted_rate_gflops),
            size: (hpl.n, hpl.nb),
            rows,
            columns,
            kinds: &kinds,
            bars: of_ranks(result, along).iter().enumerate().map(bar).collect(),
        }
    };
    let busy = match along {
        Along::Rows => "measured busy with updates, of the steps that were run",
        Along::Columns => "measured busy with panels, rows and updates, of the steps that were run",
    };
    Ok(picture([owned(0), owned(1)], busy))
}
