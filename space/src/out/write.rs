//! The text of Netlib's HPL 2.3, part by part.

use std::fmt::Write as _;

use super::{DOUBLE, SINGLE, ctime, tv_code};
use crate::dat::HplDat;
use crate::params::Coded;
use crate::{Bcast, Form, HplParams, Looking, Pmap, RunResult, Swap};

/// Values of a list that the banner prints on one line.
const PER_LINE: usize = 8;

/// Norms that HPL prints when a residual fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Norms {
    /// ‖Ax−b‖∞.
    pub r_inf: f64,
    /// ‖A‖∞.
    pub a_inf: f64,
    /// ‖A‖₁.
    pub a_1: f64,
    /// ‖x‖∞.
    pub x_inf: f64,
    /// ‖x‖₁.
    pub x_1: f64,
    /// ‖b‖∞.
    pub b_inf: f64,
}

/// Numbers of tests by outcome; without a check, completed ones count as passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Residual below the threshold.
    pub passed: usize,
    /// Residual at or above the threshold.
    pub failed: usize,
    /// No solution to check.
    pub skipped: usize,
}

/// The banner: program, parameters, and the check where there is one.
pub fn header(dat: &HplDat) -> String {
    let mut out = format!(
        "{DOUBLE}\n\
         HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018\n\
         Written by A. Petitet and R. Clint Whaley,  Innovative Computing Laboratory, UTK\n\
         Modified by Piotr Luszczek, Innovative Computing Laboratory, UTK\n\
         Modified by Julien Langou, University of Colorado Denver\n\
         {DOUBLE}\n\
         \n\
         An explanation of the input/output parameters follows:\n\
         T/V    : Wall time / encoded variant.\n\
         N      : The order of the coefficient matrix A.\n\
         NB     : The partitioning blocking factor.\n\
         P      : The number of process rows.\n\
         Q      : The number of process columns.\n\
         Time   : Time in seconds to solve the linear system.\n\
         Gflops : Rate of execution for solving the linear system.\n\
         \n\
         The following parameter values will be used:\n\
         \n"
    );
    parameters(&mut out, dat);
    if dat.threshold > 0.0 {
        let (eps, threshold) = (exponential(f64::EPSILON / 2.0, 21, 6), dat.threshold);
        let check = format!(
            "{SINGLE}\n\
             \n\
             - The matrix A is randomly generated for each test.\n\
             - The following scaled residual check will be computed:\n      \
               ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )\n\
             - The relative machine precision (eps) is taken to be      {eps}\n\
             - Computational tests pass if scaled residuals are less than         {threshold:11.1}\n\
             \n"
        );
        out += &check;
    }
    out
}

/// The lines `N      :` to `ALIGN  :` and a blank one.
fn parameters(out: &mut String, dat: &HplDat) {
    let looking = |values: &[Looking]| {
        let name = |value: &Looking| match value {
            Looking::Left => "Left",
            Looking::Crout => "Crout",
            Looking::Right => "Right",
        };
        values.iter().map(|value| name(value).to_owned()).collect::<Vec<_>>()
    };
    let bcasts = dat.bcasts.iter().map(|bcast| match bcast {
        Bcast::Long => "Blong".to_owned(),
        Bcast::LongM => "BlongM".to_owned(),
        ring => ring.name().to_owned(),
    });
    let pmap = if dat.pmap == Pmap::Row { "Row-major" } else { "Column-major" };
    let swap = match dat.swap {
        Swap::BinExch => "Binary-exchange".to_owned(),
        Swap::Long => "Spread-roll (long)".to_owned(),
        Swap::Mix { threshold } => format!("Mix (threshold = {threshold})"),
    };
    let form = |form| if form == Form::Transposed { "transposed form" } else { "no-transposed form" };
    let sizes = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>();
    let (ps, qs): (Vec<_>, Vec<_>) = dat.grids.iter().copied().unzip();

    list(out, "N", &sizes(&dat.ns));
    list(out, "NB", &sizes(&dat.nbs));
    line(out, "PMAP", &format!("{pmap} process mapping"));
    list(out, "P", &sizes(&ps));
    list(out, "Q", &sizes(&qs));
    list(out, "PFACT", &looking(&dat.pfacts));
    list(out, "NBMIN", &sizes(&dat.nbmins));
    list(out, "NDIV", &sizes(&dat.ndivs));
    list(out, "RFACT", &looking(&dat.rfacts));
    list(out, "BCAST", &bcasts.collect::<Vec<_>>());
    list(out, "DEPTH", &sizes(&dat.depths));
    line(out, "SWAP", &swap);
    line(out, "L1", form(dat.l1));
    line(out, "U", form(dat.u));
    line(out, "EQUIL", if dat.equil { "yes" } else { "no" });
    line(out, "ALIGN", &format!("{} double precision words", dat.align));
    out.push('\n');
}

fn line(out: &mut String, name: &str, value: &str) {
    writeln!(out, "{name:<7}: {value}").expect("writing to a String");
}

/// `name` with a list, [`PER_LINE`] values on a line.
fn list(out: &mut String, name: &str, values: &[String]) {
    for (i, values) in values.chunks(PER_LINE).enumerate() {
        let start = if i == 0 { format!("{name:<7}:") } else { " ".repeat(8) };
        let values: String = values.iter().map(|value| format!("{value:>8} ")).collect();
        writeln!(out, "{start}{values}").expect("writing to a String");
    }
}

/// The heading of a result; without a check Netlib prints it above the first result only.
pub fn heading() -> String {
    format!(
        "{DOUBLE}\n\
         T/V                N    NB     P     Q               Time                 Gflops\n\
         {SINGLE}\n"
    )
}

/// The result line, with start and end of the timed part as C's `ctime` has them (`Thu Oct 12 18:37:13 2023`).
pub fn result(params: &HplParams, time_s: f64, rate_gflops: f64, started: &str, ended: &str) -> String {
    let (tv, rate) = (tv_code(params), exponential(rate_gflops, 19, 4));
    // Netlib pads N to 12 behind NBMIN, whatever the length of the code is.
    let HplParams { n, nb, p, q, .. } = params;
    format!(
        "{tv}{n:12} {nb:5} {p:5} {q:5} {time_s:18.2}    {rate}\n\
         HPL_pdgesv() start time {started}\n\
         \n\
         HPL_pdgesv() end time   {ended}\n\
         \n"
    )
}

/// The check of a result: PASSED when `scaled` is below `threshold`, otherwise FAILED with the norms, where
/// they are known.
pub fn residual(scaled: f64, threshold: f64, norms: Option<&Norms>) -> String {
    let verdict = if scaled < threshold { "PASSED" } else { "FAILED" };
    let residual = exponential(scaled, 16, 8);
    let mut out = format!("{SINGLE}\n||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {residual} ...... {verdict}\n");
    if let (Some(norms), "FAILED") = (norms, verdict) {
        let lines = [
            ("||Ax-b||_oo ", norms.r_inf),
            ("||A||_oo", norms.a_inf),
            ("||A||_1 ", norms.a_1),
            ("||x||_oo", norms.x_inf),
            ("||x||_1 ", norms.x_1),
            ("||b||_oo", norms.b_inf),
        ];
        for (name, norm) in lines {
            // Dots lead to the column of the equals sign.
            let dots = " .".repeat((46 - name.len()) / 2);
            writeln!(out, "{name}{dots} = {:>18}", plain(norm, 6)).expect("writing to a String");
        }
    }
    out
}

/// What stands in the place of the check after a zero pivot in column `info` − 1. Netlib's message has a line of
/// its source in it; this is its form without one.
fn skipped(info: usize) -> String {
    format!(
        "HPL ERROR from process # 0, in function HPL_pdtest:\n\
         >>> Error code returned by solve is {info}, skip <<<\n\
         \n"
    )
}

/// The end: numbers of tests by outcome. Without a check (`threshold` ≤ 0) there is no line of failures.
pub fn footer(tally: &Tally, threshold: f64) -> String {
    let Tally { passed, failed, skipped } = *tally;
    let finished = passed + failed + skipped;
    let checked = if threshold > 0.0 {
        format!(
            "         {passed:6} tests completed and passed residual checks,\n         \
                      {failed:6} tests completed and failed residual checks,\n"
        )
    } else {
        format!("         {passed:6} tests completed without checking,\n")
    };
    format!(
        "{DOUBLE}\n\
         \n\
         Finished {finished:6} tests with the following results:\n\
         {checked}         {skipped:6} tests skipped because of illegal input values.\n\
         {SINGLE}\n\
         \n\
         End of Tests.\n\
         {DOUBLE}\n"
    )
}

/// The lines of one finished run below the [`heading`]: its result, and the check where `threshold` asks for one, with
/// `norms` where they are known. Its outcome is counted in `tally`. Start and end are in the local time of [`ctime`].
pub fn finished(
    run: &RunResult,
    threshold: f64,
    norms: Option<&Norms>,
    tally: &mut Tally,
    offset_s: impl Fn(u64) -> i64,
) -> String {
    let (core, before_s) = run.core_start();
    let stamp = |after_s| ctime(core, after_s, &offset_s).unwrap_or_else(|| core.to_owned());
    let (started, ended) = (stamp(before_s), stamp(before_s + run.time_s));
    let line = result(&run.candidate.hpl, run.time_s, run.rate_gflops, &started, &ended);
    match run.residual {
        _ if threshold <= 0.0 => {
            tally.passed += 1;
            line
        }
        Some(scaled) => {
            *(if scaled < threshold { &mut tally.passed } else { &mut tally.failed }) += 1;
            line + &residual(scaled, threshold, norms)
        }
        None => {
            tally.skipped += 1;
            line + &skipped(run.info)
        }
    }
}

/// The whole output of finished runs of one HPL.dat, from their results, which do not contain norms, in the local time of
/// [`ctime`].
pub fn report(dat: &HplDat, results: &[RunResult], offset_s: impl Fn(u64) -> i64) -> String {
    let (mut out, mut tally) = (header(dat), Tally::default());
    for (i, run) in results.iter().enumerate() {
        if i == 0 || dat.threshold > 0.0 {
            out += &heading();
        }
        out += &finished(run, dat.threshold, None, &mut tally, &offset_s);
    }
    out + &footer(&tally, dat.threshold)
}

/// A line of progress as Netlib's program prints it when built for it: `done` of `n` columns are factored, at a mean
/// rate in GFLOP/s. Without a line feed.
///
/// ```
/// let line = space::out::progress(1024, 8000, 97.3125);
/// assert_eq!(line, "Column=000001024 Fraction=12.8% Gflops=9.731e+01");
/// ```
pub fn progress(done: usize, n: usize, rate_gflops: f64) -> String {
    let percent = done as f64 * 100.0 / n as f64;
    format!("Column={done:09} Fraction={percent:4.1}% Gflops={}", exponential(rate_gflops, 9, 3))
}

/// What a line of [`progress`] says: the part of the columns in per cent, and the mean rate in GFLOP/s; `None` for another line.
pub fn read_progress(line: &str) -> Option<(f64, f64)> {
    let (_, rest) = line.split_once("Fraction=")?;
    let (percent, rest) = rest.split_once('%')?;
    let (_, rate) = rest.split_once("Gflops=")?;
    Some((percent.trim().parse().ok()?, rate.trim().parse().ok()?))
}

/// `value` as C's `%w.de` prints it: `1.0210e+02`.
fn exponential(value: f64, width: usize, digits: usize) -> String {
    let text = match format!("{value:.digits$e}").split_once('e') {
        Some((mantissa, exponent)) => {
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
            format!("{mantissa}e{sign}{exponent:0>2}")
        }
        None => plain(value, digits),
    };
    format!("{text:>width$}")
}

/// `value` as C's `%.df` prints it; C writes nan in small letters.
fn plain(value: f64, digits: usize) -> String {
    if value.is_nan() { "nan".to_owned() } else { format!("{value:.digits$}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponents_are_cs() {
        // What C's printf gives for %.4e and %.8e.
        assert_eq!(exponential(102.1, 0, 4), "1.0210e+02");
        assert_eq!(exponential(0.00211204902, 16, 8), "  2.11204902e-03");
        assert_eq!(exponential(0.0, 0, 4), "0.0000e+00");
        assert_eq!(exponential(9.99999e-101, 0, 4), "1.0000e-100");
        assert_eq!(exponential(f64::INFINITY, 5, 4), "  inf");
        assert_eq!(exponential(f64::NAN, 5, 4), "  nan");
    }
}
