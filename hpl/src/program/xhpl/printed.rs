//! What is printed of a run.

use space::out::{self, Norms, Tally};
use space::{Candidate, HplParams};

use crate::Residual;
use crate::program::{CompletedRun, RunError, local_offset_s};

/// A skipped run: as Netlib prints it, or as a line of JSON.
pub(super) fn skipped(candidate: &Candidate, reason: &RunError, as_json: bool) -> String {
    if !as_json {
        // An error of the system or of a device does not name the run.
        let run = match (reason, candidate.hpl) {
            (RunError::Engine { .. }, HplParams { n, nb, p, q, .. }) => format!("N={n} P={p} Q={q} NB={nb}: "),
            _ => String::new(),
        };
        return format!("{run}{reason}, skip\n");
    }
    let schema_version = space::result::RESULT_SCHEMA;
    let line =
        serde_json::json!({ "schema_version": schema_version, "candidate": candidate, "skipped": reason.to_string() });
    line.to_string() + "\n"
}

/// The text of one completed run, which is counted in `tally`.
pub(super) fn report(run: &CompletedRun, threshold: f64, tally: &mut Tally) -> String {
    let norms = run.residual.as_ref().map(norms);
    out::finished(&run.result, threshold, norms.as_ref(), tally, local_offset_s)
}

fn norms(residual: &Residual) -> Norms {
    let &Residual { r_norminf, a_norminf, a_norm1, x_norminf, x_norm1, b_norminf, .. } = residual;
    Norms { r_inf: r_norminf, a_inf: a_norminf, a_1: a_norm1, x_inf: x_norminf, x_1: x_norm1, b_inf: b_norminf }
}
