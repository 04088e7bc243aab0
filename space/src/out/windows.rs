//! The output for windows of a run: it differs from HPL's, so that a prediction cannot be mistaken for a score.

use std::fmt::Write as _;

use super::{SINGLE, tv_code};
use crate::HplParams;
use crate::windows::{PairResult, WindowResult, WindowsResult};

/// Step times on one line.
const PER_LINE: usize = 8;

/// The measurements of each window, then the prediction for the whole run.
pub fn windows(result: &WindowsResult) -> String {
    let mut out = head(result);
    result.windows.iter().for_each(|window| push(&mut out, window));
    out += &format!(
        "measured in {:.2} s of which {:.2} s are generation and {:.2} s checks\n",
        result.wall_s, result.generate_s, result.check_s
    );
    out + &predicted(result)
}

/// The predictions from the windows of two runs, measured in turn: of each run and of the ratio of their rates.
pub fn pair(result: &PairResult) -> String {
    let &PairResult { predicted_log_ratio, predicted_log_ratio_sd, ref candidate, ref reference, .. } = result;
    let side = |windows: &WindowsResult| {
        let verdict = if windows.passed { "no check failed" } else { "a check FAILED" };
        format!("{}{verdict}\n{}", head(windows), predicted(windows))
    };
    let ratio = predicted_log_ratio.exp();
    format!(
        "{}{}{SINGLE}\n{} windows of each in turn, measured in {:.2} s\npredicted, not measured: the rate of the first \
         is {ratio:.4} +- {:.4} of that of the second, one standard error\n",
        side(candidate),
        side(reference),
        candidate.windows.len(),
        candidate.wall_s,
        ratio * predicted_log_ratio_sd,
    )
}

/// Which run it is.
fn head(result: &WindowsResult) -> String {
    let HplParams { n, nb, p, q, .. } = result.candidate.hpl;
    format!(
        "{SINGLE}\nWindows of the run {}, N={n} NB={nb} P={p} Q={q}: some of its {} steps.\n",
        tv_code(&result.candidate.hpl),
        n.div_ceil(nb),
    )
}

/// The prediction for the whole run.
fn predicted(result: &WindowsResult) -> String {
    let WindowsResult { predicted_time_s, predicted_rate_gflops, predicted_spread_s, .. } = *result;
    let spread_gflops = predicted_rate_gflops * predicted_spread_s / predicted_time_s.max(f64::MIN_POSITIVE);
    let measured: usize = result.windows.iter().map(|window| window.steps).sum();
    format!(
        "predicted, not measured, for the whole run: {predicted_time_s:.3} s +- {predicted_spread_s:.3}, \
         {predicted_rate_gflops:.2} GFLOP/s +- {spread_gflops:.2} from {measured} steps\n",
    )
}

/// One window. Writing to a String cannot fail.
fn push(out: &mut String, window: &WindowResult) {
    let &WindowResult { first, steps, prologue_s, ref step_s, residual, passed } = window;
    let _ =
        writeln!(out, "steps {first} to {}: {prologue_s:.6} s before the first, then in seconds", first + steps - 1);
    for times in step_s.chunks(PER_LINE) {
        let times: String = times.iter().map(|step_s| format!(" {step_s:.6}")).collect();
        let _ = writeln!(out, "   {times}");
    }
    let _ = match passed {
        None => writeln!(out, "    the matrix after the window is not checked"),
        Some(passed) => {
            let verdict = if passed { "PASSED" } else { "FAILED" };
            let residual = residual.unwrap_or(f64::NAN);
            writeln!(out, "    ||A'1-b'||_oo/(eps*(||A'||_oo+||b'||_oo)*n)= {residual:.4e} ...... {verdict}")
        }
    };
}
