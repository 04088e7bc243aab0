//! The numbers that come first: the score with its N, how it compares, and what to do next.

use maud::{Markup, html};

use crate::record::session::Session;
use crate::report::format::{counted, digits, runs_in_words};
use crate::report::sentences::{
    NOT_VERIFIED, choice, estimated, failures, final_by_estimate, final_run, in_pairs, limit_of_n, objective, pareto,
    place, power, several_hosts, spread, steadiness,
};
use crate::report::{Score, Summary};

/// Nodes whose names are in the head, at most.
const NODES_NAMED: usize = 16;

/// A figure with its name and what is to be said of it.
type HeadFact = (&'static str, String, String);

/// The session in one sentence, what was won, what to try next, and the figures.
pub(super) fn head(summary: &Summary) -> Markup {
    let facts = [score(summary), compared(summary), verified(summary), around(summary)].concat();
    html! {
        h1 { (summary.session.name) }
        p {
            "High Performance Linpack on " (place(summary)) ", started " (minute(&summary.session.started_utc)) "."
            @if summary.session.is_simulated() { " " strong { "Simulated: no HPL has run, and nothing is measured." } }
            @if summary.best.is_none() { " " strong { "Nothing is verified: no whole run has passed." } }
        }
        dl.facts {
            @for (name, value, detail) in &facts {
                div { dt { (name) } dd { (value) small { (detail) } } }
            }
        }
        ul.closing { @for sentence in &summary.closing { li { (sentence) } } }
    }
}

/// A time stamp of the record to the minute; what is none stays as it is.
fn minute(utc: &str) -> String {
    utc.parse::<jiff::Timestamp>().map_or(utc.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

/// The rate of the best with its N, and its residual; of the leader of the search where no whole run has passed.
fn score(summary: &Summary) -> Vec<HeadFact> {
    let Some(best) = &summary.best else {
        return summary.top.first().map_or_else(Vec::new, |leader| led(summary, leader));
    };
    let residual = best.residual.map_or("-".to_owned(), |residual| format!("at most {}", digits(residual)));
    let (how, rate, detail, n) = match summary.estimate_at_other_n() {
        Some(estimate) => ("estimated", estimate.estimated_rate_gflops, estimated(estimate), estimate.candidate.hpl.n),
        None => (summary.session.how(), best.rate_gflops, spread(best), best.candidate.hpl.n),
    };
    vec![
        (how, format!("{} GFLOP/s", digits(rate)), detail),
        ("at", format!("N = {n}"), limit_of_n(summary).unwrap_or_default()),
        ("residual", residual, "of all its runs; below 16 passes".to_owned()),
    ]
}

/// The rate of the leader of a search with its N.
fn led(summary: &Summary, leader: &Score) -> Vec<HeadFact> {
    let rate = format!("{} GFLOP/s", digits(leader.rate_gflops));
    vec![
        ("best", rate, format!("{NOT_VERIFIED}: {}", spread(leader))),
        ("at", format!("N = {}", leader.candidate.hpl.n), limit_of_n(summary).unwrap_or_default()),
    ]
}

/// The best beside the default and the expert's configuration.
fn compared(summary: &Summary) -> Vec<HeadFact> {
    let mut facts = Vec::new();
    for (name, comparison, other) in [
        ("best / default", &summary.best_by_baseline, &summary.baseline),
        ("best / expert", &summary.best_by_expert, &summary.expert),
    ] {
        let other =
            other.as_ref().map(|other| format!("; it alone: {} GFLOP/s, {}", digits(other.rate_gflops), spread(other)));
        let value = comparison.ratio().map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median));
        facts.push((name, value, in_pairs(summary, comparison) + &other.unwrap_or_default()));
    }
    facts.extend(choice(summary).into_iter().map(|said| ("choice", String::new(), said)));
    facts
}

/// The final run, and what was expected of it.
fn verified(summary: &Summary) -> Vec<HeadFact> {
    let mut facts = Vec::new();
    if let Some(row) = &summary.final_run {
        let word = if row.passed { "PASSED" } else { "FAILED" };
        facts.push(("final run", word.to_owned(), final_run(summary, row)));
    }
    if let Some(beside) = &summary.final_by_estimate {
        facts.push(("final / estimate", format!("{:.3}", beside.ratio), final_by_estimate(beside)));
    }
    if let Some(estimate) = summary.estimate.as_ref().filter(|_| summary.estimate_at_other_n().is_none()) {
        let (rate, n) = (estimate.estimated_rate_gflops, estimate.candidate.hpl.n);
        let value = format!("{} ± {} GFLOP/s", digits(rate), digits(rate * estimate.estimated_sd));
        let samples = runs_in_words(estimate.trials.len());
        let detail = format!("the whole run at N = {n} as predicted by windows of {samples}, ± one standard deviation");
        facts.push(("estimated", value, detail));
    }
    if let Some(predicted) = summary.best.as_ref().and_then(|best| best.predicted_rate_gflops) {
        facts.push(("predicted", format!("{} GFLOP/s", digits(predicted)), "before its first whole run".to_owned()));
    }
    if let Some(left) = summary.left() {
        facts.push(("left", format!("≤ {:.1} %", 100.0 * left.at_most), left.to_string()));
    }
    facts
}

/// The names of several nodes.
fn nodes(session: &Session) -> Option<HeadFact> {
    let (shown, others) = session.hosts.split_at(session.hosts.len().min(NODES_NAMED));
    let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
    (session.hosts.len() > 1).then(|| ("nodes", session.hosts.len().to_string(), shown.join(", ") + &more))
}

/// Trials, power, machine and time.
fn around(summary: &Summary) -> Vec<HeadFact> {
    let different = counted(summary.distinct_candidates, "different candidate");
    let trials = format!("{different}; failed: {}", failures(summary));
    let mut facts = vec![("trials", summary.trials.to_string(), trials)];
    if let Some(said) = power(summary) {
        let watts = summary.power.as_ref().and_then(|power| power.power_w);
        facts.push(("power", watts.map_or(String::new(), |watts| format!("{} W", digits(watts))), said));
    }
    facts.extend(pareto(summary).map(|said| ("speed, efficiency", summary.pareto.len().to_string(), said)));
    facts.extend(objective(summary).map(|said| ("objective", String::new(), said)));
    facts.extend(nodes(&summary.session));
    facts.extend(several_hosts(summary).map(|said| ("hosts", summary.hosts.len().to_string(), said)));
    if let Some(on_some) = &summary.on_some_nodes {
        facts.push(("trials on some nodes", on_some.trials.to_string(), on_some.words()));
    }
    facts.extend(steadiness(summary).map(|said| ("machine", String::new(), said)));
    facts.push(("time", format!("{:.1} s", summary.used_s), format!("of {:.1} s", summary.session.budget_s)));
    facts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_nodes_are_named_where_there_are_several() {
        let of = |count: usize| {
            let hosts = (1..=count).map(|node| format!("n{node}")).collect();
            nodes(&Session { hosts, ..Session::default() })
        };
        let said = |count| of(count).map(|(name, value, detail)| format!("{name} {value}: {detail}"));
        assert_eq!([said(0), said(1)], [None, None]);
        assert_eq!(said(2).unwrap(), "nodes 2: n1, n2");
        assert!(
            said(NODES_NAMED).unwrap().ends_with("n15, n16")
                && said(NODES_NAMED + 1).unwrap().ends_with("n16 and 1 more")
        );
    }
}
