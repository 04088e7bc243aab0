//! `hpl-tune balance`: a product y ← y + A·x shared by two workers of unequal speed.

use std::io::Write;

use hpl::balance::matvec::{BalancedWorkers, Csr, Dense, Iteration, Matrix, Path, Rates, Worker, share};
use hpl::balance::{Balance, FixedPoint, SixState, Times};
use serde_json::json;
use space::counted;
use space::stats::summary;

use crate::cli::balance::{BalanceArgs, ByArg, FormatArg};
use crate::exit::{self, bad_input};
use crate::report::ratio_in_words;
use crate::report::stats::paired_ratio;

/// Version of the JSON. Since version 3 the intervals are exact, with their level.
const SCHEMA: u32 = 3;
/// Iterations of a simulation; both ways settle long before.
const MOST_SIMULATED: usize = 1000;

/// Measures two workers alone and together, or follows simulated ones, and prints each iteration.
///
/// # Errors
/// A matrix too large for the memory, a ratio that is none, or threads that cannot be started.
pub fn balance(args: &BalanceArgs) -> anyhow::Result<u8> {
    if !(args.peak_ratio.is_finite() && args.peak_ratio >= 1.0) {
        return Err(bad_input(format!(
            "--peak-ratio {}: it is faster to slower, so a number of at least 1",
            args.peak_ratio
        )));
    }
    let balance = match args.by {
        ByArg::FixedPoint => Balance::FixedPoint(FixedPoint::new(1.0 / (1.0 + args.peak_ratio))),
        ByArg::SixStates => Balance::SixState(SixState::new(args.peak_ratio)),
    };
    if let Some((slow_s, transfer_s)) = args.simulate {
        return simulate(args, balance, slow_s, transfer_s);
    }
    check_memory(args)?;
    let matrix = matrix(args);
    let worker = |threads: u64, path| Worker { threads: threads as usize, path };
    let (slow, fast) = (worker(args.slow_threads, Path::Slow), worker(args.fast_threads, Path::Fast));
    let cores = hpl::machine::host::facts().cores_allowed;
    let shared = share(&matrix, &slow, &fast, balance, args.repeats as usize, &cores).map_err(bad_input)?;
    if slow.threads + fast.threads > cores.len() {
        let threads = slow.threads + fast.threads;
        crate::search::progress::say(&format!(
            "warning: {threads} threads share {}; their times disturb each other",
            counted(cores.len(), "core")
        ));
    }
    print(args, &shared)
}

/// Bytes of the matrix, of x, and of three vectors as long as y.
fn needed_bytes(args: &BalanceArgs) -> f64 {
    let (rows, cols) = (args.rows as f64, args.cols as f64);
    let matrix = match args.format {
        FormatArg::Dense => 8.0 * rows * cols,
        FormatArg::Csr => rows * (12.0 * args.per_row.min(args.cols) as f64 + 8.0),
    };
    matrix + 8.0 * (cols + 3.0 * rows)
}

fn check_memory(args: &BalanceArgs) -> anyhow::Result<()> {
    let bytes = needed_bytes(args);
    let free = hpl::machine::host::facts().memory_available_bytes as f64;
    if bytes > 0.9 * free {
        let gib = |bytes: f64| bytes / f64::from(1 << 30);
        return Err(bad_input(format!(
            "--rows {} --cols {}: matrix and vectors take {:.2} GiB, {:.2} GiB are available; lower them",
            args.rows,
            args.cols,
            gib(bytes),
            gib(free)
        )));
    }
    Ok(())
}

fn matrix(args: &BalanceArgs) -> Matrix {
    let (rows, cols) = (args.rows as usize, args.cols as usize);
    let entry = |i: usize, j: usize| ((i * 31 + j * 17) % 64) as f64 / 64.0 - 0.5;
    match args.format {
        FormatArg::Dense => Matrix::Dense(Dense::new(rows, cols, entry)),
        FormatArg::Csr => {
            // From half to one and a half times the mean, in runs, near the diagonal.
            let row = |i: usize| {
                let len = (args.per_row as usize * (64 + i % 64) / 96).clamp(1, cols);
                let first = (i * cols / rows).min(cols - len);
                (0..len).map(|k| ((first + k) as u32, entry(i, k))).collect()
            };
            Matrix::Csr(Csr::new(cols, (0..rows).map(row)))
        }
    }
}

fn print(args: &BalanceArgs, shared: &BalancedWorkers) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    let rounds = &shared.rounds;
    let median = |of: &dyn Fn(&Rates) -> f64| 1e-9 * summary(&rounds.iter().map(of).collect::<Vec<_>>()).median;
    let [slow, fast] = [0, 1].map(|at| [median(&|rates| rates.alone[at]), median(&|rates| rates.at_once[at])]);
    let rate_gflops = median(&|rates| rates.shared);
    let ratio = |sum: fn(&Rates) -> f64| paired_ratio(&rounds.iter().map(|r| (r.shared, sum(r))).collect::<Vec<_>>());
    let ratios = ratio(|rates| rates.at_once.iter().sum()).zip(ratio(|rates| rates.alone.iter().sum()));
    let (of_both, of_alone) = ratios.ok_or_else(|| bad_input("--repeats must be at least 1"))?;
    if args.json {
        let whole = json!({
            "schema_version": SCHEMA,
            "simulated": false,
            "alone_gflops": { "slow": slow[0], "fast": fast[0] },
            "at_once_gflops": { "slow": slow[1], "fast": fast[1] },
            "share": shared.share,
            "rate_gflops": rate_gflops,
            "of_sum_at_once": of_both,
            "of_sum_alone": of_alone,
            "error": shared.error,
            "iterations": rows(&shared.iterations),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&whole)?)?;
        return Ok(exit::DONE);
    }
    table(&mut out, &shared.iterations)?;
    writeln!(
        out,
        "alone          slower {:.3} GFLOP/s, faster {:.3} GFLOP/s (measured, the other idle)",
        slow[0], fast[0]
    )?;
    writeln!(
        out,
        "both at once   slower {:.3} GFLOP/s, faster {:.3} GFLOP/s (measured, without waiting)",
        slow[1], fast[1]
    )?;
    writeln!(
        out,
        "shared         {rate_gflops:.3} GFLOP/s with share {:.4}; results differ by {:.0e}",
        shared.share, shared.error
    )?;
    writeln!(
        out,
        "               {} of the sum at once, {:.3} of the sum alone; a pair is a round",
        ratio_in_words(&of_both),
        of_alone.median
    )?;
    out.flush()?;
    Ok(exit::DONE)
}

fn table(out: &mut impl Write, iterations: &[Iteration]) -> std::io::Result<()> {
    writeln!(out, "iteration  share of the slower  slower [s]  faster [s]   whole [s]")?;
    for (i, Iteration { share, times }) in iterations.iter().enumerate() {
        writeln!(
            out,
            "{:>9}  {share:>19.4}  {:>10.6}  {:>10.6}  {:>10.6}",
            i + 1,
            times.slow_s,
            times.fast_s,
            times.whole_s
        )?;
    }
    Ok(())
}

fn rows(iterations: &[Iteration]) -> Vec<serde_json::Value> {
    let row = |Iteration { share, times }: &Iteration| json!({ "share": share, "slow_s": times.slow_s, "fast_s": times.fast_s, "whole_s": times.whole_s });
    iterations.iter().map(row).collect()
}

/// Two workers whose times are `slow_s`·share and 1 − share, with transfers of (1 − share)·`transfer_s`.
fn simulate(args: &BalanceArgs, mut balance: Balance, slow_s: f64, transfer_s: f64) -> anyhow::Result<u8> {
    let mut iterations = Vec::new();
    while !balance.is_final() && iterations.len() < MOST_SIMULATED {
        let share = balance.share();
        let (slow_s, fast_s) = (slow_s * share, 1.0 - share);
        let times = Times { slow_s, fast_s, whole_s: slow_s.max(fast_s) + fast_s * transfer_s };
        balance.observe(&times);
        iterations.push(Iteration { share, times });
    }
    let mut out = std::io::stdout().lock();
    if args.json {
        let whole = json!({
            "schema_version": SCHEMA,
            "simulated": true,
            "share": balance.share(),
            "iterations": rows(&iterations),
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&whole)?)?;
        return Ok(exit::DONE);
    }
    writeln!(out, "simulated, nothing is measured: {slow_s} s and 1 s for everything, {transfer_s} s for transfers")?;
    table(&mut out, &iterations)?;
    writeln!(out, "kept: share {:.4}{}", balance.share(), ratio(&balance))?;
    out.flush()?;
    Ok(exit::DONE)
}

fn ratio(balance: &Balance) -> String {
    match balance {
        Balance::SixState(balance) => format!(", ratio {}", balance.ratio()),
        Balance::FixedPoint(_) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_need_memory_too() {
        let args = |format, rows, cols| BalanceArgs {
            rows,
            cols,
            format,
            per_row: 7,
            slow_threads: 1,
            fast_threads: 1,
            by: ByArg::FixedPoint,
            peak_ratio: 2.0,
            repeats: 1,
            simulate: None,
            json: false,
        };
        let of = |format, rows, cols| needed_bytes(&args(format, rows, cols));
        assert_eq!(of(FormatArg::Dense, 1000, 100), 8.0 * (100_000.0 + 100.0 + 3000.0));
        // A row of seven entries, and x of 32 GB.
        assert_eq!(of(FormatArg::Csr, 1, 4_000_000_000), 32e9 + 7.0 * 12.0 + 8.0 + 24.0);
        // No row has more entries than columns.
        assert_eq!(of(FormatArg::Csr, 100, 2), 100.0 * (2.0 * 12.0 + 8.0) + 8.0 * 302.0);
    }
}
