//! Progress as Netlib prints it.

use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::Watch;

/// Writes one line per report, as Netlib's program does when built for it:
/// `Column=000001024 Fraction=12.8% Gflops=9.731e+01`.
pub struct ProgressLines<W>(Mutex<W>);

impl<W: Write + Send> ProgressLines<W> {
    /// Progress goes to `out`.
    pub fn new(out: W) -> Self {
        Self(Mutex::new(out))
    }
}

impl<W: Write + Send> Watch for ProgressLines<W> {
    fn column(&self, done: usize, n: usize, rate_gflops: f64) {
        let percent = done as f64 * 100.0 / n as f64;
        let rate = c_exponent(rate_gflops);
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Progress that nobody reads any more is no reason to end the run.
        let _ = writeln!(out, "Column={done:09} Fraction={percent:4.1}% Gflops={rate:>9}").and_then(|()| out.flush());
    }
}

/// C's `%.3e`: an exponent of a sign and at least two digits.
fn c_exponent(value: f64) -> String {
    let text = format!("{value:.3e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        },
        // Infinite or not a number.
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of a Netlib xhpl 2.3 built with HPL_PROGRESS_REPORT have this form.
    #[test]
    fn lines_have_netlibs_form() {
        let mut text = Vec::new();
        let lines = ProgressLines::new(&mut text);
        lines.column(1024, 8000, 97.3125);
        lines.column(8000, 8000, 0.000123449);
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "Column=000001024 Fraction=12.8% Gflops=9.731e+01\n\
             Column=000008000 Fraction=100.0% Gflops=1.234e-04\n"
        );
    }
}
