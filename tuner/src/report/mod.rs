//! What a session found, for people and for programs.
//!
//! [`summary`] computes it once from the record; [`table`], [`html`] and JSON print it; [`export`] writes the
//! files that repeat the best run.

pub mod export;
pub mod html;
pub mod stats;
pub mod summary;
mod svg;
pub mod table;
pub mod weights;

use space::Candidate;
use space::params::{Coded, Swap};

pub use export::Exports;
pub use summary::{Score, Summary};

/// A candidate in words, as HPL names them, most important first.
fn words(candidate: &Candidate) -> Vec<(&'static str, String)> {
    let (hpl, engine) = (&candidate.hpl, &candidate.engine);
    let yes_no = |yes: bool| if yes { "yes" } else { "no" }.to_owned();
    vec![
        ("N", hpl.n.to_string()),
        ("NB", hpl.nb.to_string()),
        ("P", hpl.p.to_string()),
        ("Q", hpl.q.to_string()),
        ("threads", engine.threads.to_string()),
        ("DEPTH", hpl.depth.to_string()),
        ("BCAST", hpl.bcast.name().to_owned()),
        (
            "SWAP",
            match hpl.swap {
                Swap::Mix { threshold } => format!("mix {threshold}"),
                swap => swap.name().to_owned(),
            },
        ),
        ("PFACT", hpl.pfact.name().to_owned()),
        ("RFACT", hpl.rfact.name().to_owned()),
        ("NBMIN", hpl.nbmin.to_string()),
        ("NDIV", hpl.ndiv.to_string()),
        ("PMAP", hpl.pmap.name().to_owned()),
        ("L1", hpl.l1.name().to_owned()),
        ("U", hpl.u.name().to_owned()),
        ("EQUIL", yes_no(hpl.equil)),
        ("ALIGN", hpl.align.to_string()),
        ("huge pages", yes_no(engine.huge_pages)),
        ("kernels", engine.kernels.to_string()),
    ]
}

/// Columns of a table of candidates: NB, P and Q, then whatever differs between them.
fn telling_columns(candidates: &[&Candidate]) -> Vec<(&'static str, Vec<String>)> {
    let rows: Vec<_> = candidates.iter().map(|candidate| words(candidate)).collect();
    let Some(first) = rows.first() else { return Vec::new() };
    let column = |index: usize| rows.iter().map(|row| row[index].1.clone()).collect::<Vec<_>>();
    let named = first.iter().enumerate().map(|(index, (name, _))| (*name, column(index)));
    named
        .filter(|(name, cells)| ["NB", "P", "Q"].contains(name) || cells.iter().any(|cell| *cell != cells[0]))
        .collect()
}

/// `value` with four significant digits, `85.31`, `0.003412`, `1.2e-7`.
fn digits(value: f64) -> String {
    let magnitude = value.abs().log10().floor();
    if !(-5.0..7.0).contains(&magnitude) {
        return if value == 0.0 { "0".to_owned() } else { format!("{value:.3e}") };
    }
    format!("{value:.*}", (3.0 - magnitude).max(0.0) as usize)
}

/// The interval of a ratio and its count, `95 %: 1.052 … 1.071, 7 pairs`.
fn certainty(ratio: &stats::Ratio) -> String {
    let pairs = format!("{} pair{}", ratio.pairs, if ratio.pairs == 1 { "" } else { "s" });
    match ratio.interval {
        Some([low, high]) => format!("95 %: {low:.3} … {high:.3}, {pairs}"),
        None => format!("{pairs}, too few for an interval"),
    }
}

/// The runs behind a score, `median of 3 runs, 84.90 … 85.60`.
fn spread(score: &Score) -> String {
    let [low, high] = score.range_gflops.map(digits);
    match score.runs {
        1 => "1 run".to_owned(),
        runs => format!("median of {runs} runs, {low} … {high}"),
    }
}

/// The failures by kind, `2 timed-out, 1 crashed`; `none`.
fn failures(summary: &Summary) -> String {
    let kinds: Vec<String> = summary.failures.iter().map(|(kind, count)| format!("{count} {}", kind.name())).collect();
    if kinds.is_empty() { "none".to_owned() } else { kinds.join(", ") }
}

/// Why the target N is what it is, where there is more to say than its value.
fn limit_of_n(summary: &Summary) -> Option<String> {
    let n_memory = summary.session.n_memory.filter(|_| summary.session.n_limited_by_budget)?;
    Some(format!("N is limited by the budget; memory allows N = {n_memory}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits() {
        let cases = [(85.3149, "85.31"), (0.0034123, "0.003412"), (1.2e-7, "1.200e-7"), (1234.5, "1234"), (0.0, "0")];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
        assert_eq!(digits(f64::INFINITY), "inf");
    }
}
