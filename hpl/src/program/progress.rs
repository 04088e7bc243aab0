//! Progress in the format of Netlib's program.

use std::io::Write;

use parking_lot::Mutex;
use space::out::progress;

use crate::Watch;

/// Writes one line per report, see [`progress`].
pub struct ProgressLines<W>(Mutex<W>);

impl<W: Write + Send> ProgressLines<W> {
    /// Writes the progress to `out`.
    pub fn new(out: W) -> Self {
        Self(Mutex::new(out))
    }
}

impl<W: Write + Send> Watch for ProgressLines<W> {
    fn column(&self, done: usize, n: usize, rate_gflops: f64) {
        let line = progress(done, n, rate_gflops);
        let mut out = self.0.lock();
        // A closed pipe must not end the run.
        let _ = writeln!(out, "{line}").and_then(|()| out.flush());
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
