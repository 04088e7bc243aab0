//! A comparison in lines for people.

use std::fmt::Write;

use objectives::real::Extent;
use space::counted;

use super::report::{By, RatioReport, Report, SideReport};
use super::sides::RUNS_TO_JUDGE;
use super::verdict::Verdict;
use crate::exit;
use crate::report::digits;

/// The lines, one line feed at the end.
pub fn text(report: &Report) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{name:<14}{value}");
    };
    for (name, side) in [("A", &report.a), ("B", &report.b)] {
        line(name, &score(side));
        let same = name == "B" && side.configuration == report.a.configuration;
        line("", if same { "of the same configuration" } else { &side.configuration });
    }
    line("B/A", &ratio(&report.ratio));
    let differs: Vec<String> =
        report.differs.iter().map(|found| format!("{} {} → {}", found.what, found.a, found.b)).collect();
    line("Differences", if differs.is_empty() { "none that both report" } else { &differs[0] });
    differs.iter().skip(1).for_each(|found| line("", found));
    for (name, side) in [("Command A", &report.a), ("Command B", &report.b)] {
        let command = side.session_command.as_ref().or(side.command.as_ref());
        line(name, command.map_or("not recorded", String::as_str));
    }
    report.notes.iter().for_each(|note| line("Note", note));
    line("Verdict", &verdict(report));
    text
}

fn score(side: &SideReport) -> String {
    let runs = side.rates_gflops.len();
    let what = match (side.extent, runs) {
        (Extent::Whole, 1) => "1 whole run".to_owned(),
        (Extent::Whole, _) => format!("median of {runs} whole runs"),
        (Extent::Windows, 1) => "estimated by windows, 1 sample".to_owned(),
        (Extent::Windows, _) => format!("estimated by windows, median of {runs} samples"),
    };
    let fold = |pick: fn(f64, f64) -> f64| digits(side.rates_gflops.iter().copied().reduce(pick).unwrap_or(0.0));
    let range = if runs > 1 { format!(", {} … {}", fold(f64::min), fold(f64::max)) } else { String::new() };
    let residual = side
        .residual
        .map_or("residual not recorded".to_owned(), |residual| format!("residual at most {}", digits(residual)));
    format!(
        "{} GFLOP/s at N = {} ({what}{range}), {residual}; {} {}",
        digits(side.median_gflops),
        side.n,
        side.kind,
        side.source
    )
}

fn ratio(found: &RatioReport) -> String {
    let RatioReport { by, ratio, interval, level, runs: [a, b] } = found;
    let (runs, at_least) = match by {
        By::Pairs => (format!("{}, run in turn", counted(*a, "pair")), ""),
        By::Medians => (format!("{a} and {b} runs"), "at least "),
    };
    match interval.zip(*level) {
        Some(([low, high], level)) => {
            format!("{ratio:.3} ({low:.3}-{high:.3}, {at_least}{:.1} %, {runs})", 100.0 * level)
        }
        None => format!("{ratio:.3} ({runs}: no interval below {RUNS_TO_JUDGE} of each)"),
    }
}

fn verdict(report: &Report) -> String {
    // Rounded, as 0.07 has no exact value in binary.
    let percent = format!("{} %", (1e6 * report.tolerance).round() / 1e4);
    let by_runs = report.ratio.interval.is_none();
    let said = match report.verdict {
        Verdict::Slower if by_runs => format!(
            "slower: all runs of B are below all runs of A by more than {percent}; this is not an interval and has no level"
        ),
        Verdict::Slower => format!("slower: the whole interval is more than {percent} below 1"),
        Verdict::Faster if by_runs => format!(
            "faster: all runs of B are above all runs of A by more than {percent}; this is not an interval and has no level"
        ),
        Verdict::Faster => format!("faster: the whole interval is more than {percent} above 1"),
        Verdict::Alike => format!("alike: the whole interval is within {percent} of 1"),
        Verdict::Open if by_runs => {
            format!(
                "open: too few runs for an interval, and not all of B's differ from all of A's by more than {percent}"
            )
        }
        Verdict::Open => {
            let [not_slower, not_faster] = report
                .ratio
                .interval
                .map_or([false; 2], |[low, high]| [low >= 1.0 - report.tolerance, high <= 1.0 + report.tolerance]);
            let shown = match (not_slower, not_faster) {
                (true, _) => format!("not slower by more than {percent}, but maybe faster by more"),
                (_, true) => format!("not faster by more than {percent}, but maybe slower by more"),
                _ => format!("maybe slower or faster by more than {percent}"),
            };
            format!("open: {shown}; more runs make the interval narrower")
        }
    };
    if report.exit_code == exit::RESIDUAL {
        return format!("a residual FAILED; {said}");
    }
    said
}
