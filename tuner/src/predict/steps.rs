//! How many steps of a run are listed.

use objectives::netlib::Problem;
use space::HplParams;

use crate::exit::bad_input;

/// Steps at most: 400 MB, and some seconds of a core.
const MOST: usize = 10_000_000;

/// Whether the steps of a run can be listed.
pub(super) fn are_few(problem: &Problem) -> bool {
    problem.n / problem.nb <= MOST as f64
}

/// Refuses a run of which a model would walk too many.
///
/// # Errors
/// Bad input: N and NB, with the way out.
pub(super) fn check(hpl: &HplParams) -> anyhow::Result<()> {
    if hpl.n.div_ceil(hpl.nb.max(1)) > MOST { Err(too_many(hpl)) } else { Ok(()) }
}

/// The error of a run of too many steps.
pub(super) fn too_many(hpl: &HplParams) -> anyhow::Error {
    let HplParams { n, nb, p, q, .. } = *hpl;
    let steps = n.div_ceil(nb.max(1));
    bad_input(format!(
        "N = {n}, NB = {nb}: {steps} steps on {p}×{q} ranks are too many to compute; raise NB, or give --model mcl"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_too_many_steps_are_refused() {
        let of = |nb| check(&HplParams { nb, ..HplParams::baseline(1_000_000_000, 1, 1) });
        assert!(of(128).is_ok());
        assert!(of(1).unwrap_err().to_string().contains("NB = 1: 1000000000 steps on 1×1 ranks"));
        assert!(of(0).is_err());
        assert!(are_few(&Problem::new(10_000_000, 1, 1, 1)) && !are_few(&Problem::new(10_000_001, 1, 1, 1)));
    }
}
