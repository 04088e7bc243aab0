//! What the summary says, a sentence each, for the table and the page.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use objectives::real::Extent;
use space::Candidate;

use super::format::{OURS_ALONE, digits, ratio_in_words, runs_in_words, watts_above, words};
use super::importance::Importance;
use super::summary::{
    Comparison, Estimate, FinalByEstimate, Leads, ParetoPoint, Score, Summary, by_kind, direction, in_spite_of_pairs,
};
use crate::record::session::Session;
use crate::record::{Objective, Row};

/// Hosts whose names are given, at most.
const HOSTS_NAMED: usize = 4;

/// What is said of the leader of a search that no whole run has followed.
pub(super) const NOT_VERIFIED: &str = "not verified, as no whole run has passed";

/// The words of the best candidate that its engine obeys. Without a split or weights there is nothing to say of them.
pub(super) fn words_of(summary: &Summary, candidate: &Candidate) -> Vec<(String, String)> {
    let ours = summary.session.engine == Session::OURS;
    let words = words(candidate).into_iter();
    let said = |(name, value): &(String, String)| match (name.as_str(), value.as_str()) {
        ("split", "0") | ("weights", "equal") => false,
        (name, _) => ours || !OURS_ALONE.contains(&name),
    };
    words.filter(said).collect()
}

/// Columns of a table of candidates: NB, P and Q, then whatever differs between them, `-` where a candidate has no such word.
pub(super) fn telling_columns(candidates: &[&Candidate]) -> Vec<(String, Vec<String>)> {
    let rows: Vec<_> = candidates.iter().map(|candidate| words(candidate)).collect();
    let mut seen = HashSet::new();
    let names: Vec<_> = rows.iter().flatten().map(|(name, _)| name).filter(|name| seen.insert(*name)).collect();
    let rows: Vec<HashMap<_, _>> =
        rows.iter().map(|row| row.iter().map(|(name, cell)| (name, cell)).collect()).collect();
    let column = |name| rows.iter().map(|row| row.get(name).map_or("-", |cell| cell.as_str()).to_owned()).collect();
    let named = names.into_iter().map(|name| (name.clone(), column(name)));
    named
        .filter(|(name, cells): &(String, Vec<String>)| {
            ["NB", "P", "Q"].contains(&name.as_str()) || cells.iter().any(|cell| *cell != cells[0])
        })
        .collect()
}

/// The heading of the rates of the best candidates.
pub(super) fn rate_heading(summary: &Summary) -> &'static str {
    match summary.session.extent {
        Extent::Whole => "GFLOP/s",
        Extent::Windows => "est. GFLOP/s",
    }
}

/// Columns of the best candidates that say what they take: watts where all of them were read, and GFLOPS/W where that is made as large as
/// possible. What windows predict is called so.
pub(super) fn power_columns(summary: &Summary) -> Vec<(String, Vec<String>)> {
    let Session { extent, objective, .. } = summary.session;
    let column = |name: &str, of: fn(&Score) -> Option<f64>| {
        let cell = |score: &Score| of(score).map_or("-".to_owned(), digits);
        (name.to_owned(), summary.top.iter().map(cell).collect::<Vec<_>>())
    };
    let (watts, efficiency) = match (extent, objective) {
        (Extent::Windows, _) => ("predicted W", "predicted GFLOPS/W"),
        (Extent::Whole, Objective::GflopsPerWatt) => ("core W", "GFLOPS/W of the run"),
        (Extent::Whole, _) => ("watts", ""),
    };
    let power_w: fn(&Score) -> Option<f64> = match (extent, objective) {
        (Extent::Windows, _) | (_, Objective::GflopsWithin { .. }) => |score| score.limited_power_w,
        (Extent::Whole, _) => |score| score.power_w,
    };
    // Where the rate alone counts, windows go by what was read, be it a part: whole runs say whether it was.
    let is_whole = !objective.is_rate() || summary.best.as_ref().is_some_and(|best| best.gflops_per_w.is_some());
    let is_read = is_whole && summary.top.iter().any(|score| power_w(score).is_some());
    let is_per_watt = objective == Objective::GflopsPerWatt;
    let watts = is_read.then(|| column(watts, power_w));
    watts.into_iter().chain(is_per_watt.then(|| column(efficiency, |score| score.run_gflops_per_w))).collect()
}

/// The runs behind a score, `median of 3 runs, 84.90 … 85.60`.
pub(super) fn spread(score: &Score) -> String {
    let [low, high] = score.range_gflops.map(digits);
    match (score.extent, score.runs) {
        (Extent::Whole, 1) => "1 run".to_owned(),
        (Extent::Whole, runs) => format!("median of {runs} runs, {low} … {high}"),
        (_, 1) => "estimated by windows, 1 sample".to_owned(),
        (_, runs) => format!("estimated by windows, median of {runs} samples, {low} … {high}"),
    }
}

/// The best beside another configuration, `1.013 (0.998-1.024, 96.9 %, 6 pairs)`, and where the rates of its pairs are estimated by windows
/// with these words.
pub(crate) fn in_pairs(summary: &Summary, comparison: &Comparison) -> String {
    let by = if comparison.ratio().is_some() { by_windows(summary) } else { "" };
    comparison.words() + by
}

/// What is said of pairs whose rates windows have estimated; nothing of whole runs.
pub(super) fn by_windows(summary: &Summary) -> &'static str {
    match summary.session.extent {
        Extent::Whole => "",
        Extent::Windows => " by windows",
    }
}

/// What windows say of the target N, `145.2 ± 1.6 GFLOP/s at N = 51712, by windows of 5 trials; not run whole`.
pub(crate) fn estimated(estimate: &Estimate) -> String {
    let rate = estimate.estimated_rate_gflops;
    let samples = estimate.trials.len();
    format!(
        "{} ± {} GFLOP/s at N = {}, by windows of {samples} trial{}",
        digits(rate),
        digits(rate * estimate.estimated_sd),
        estimate.candidate.hpl.n,
        if samples == 1 { "" } else { "s" }
    )
}

/// The final run beside its estimate, `0.962: windows of 12.0 s predict 210.3 ± 2.1 GFLOP/s, the whole run took 340.2 s`.
pub(crate) fn final_by_estimate(beside: &FinalByEstimate) -> String {
    let FinalByEstimate { ratio, estimate, final_s, windows_s, clock_hz } = beside;
    let rate = estimate.estimated_rate_gflops;
    let clock = clock_hz.map(|[windows, last]| format!(", clock {:.2} and {:.2} GHz", windows / 1e9, last / 1e9));
    let advice =
        if beside.is_slower() { "; long runs are slower here: look at clock, heat and power limits" } else { "" };
    format!(
        "{ratio:.3}: windows of {windows_s:.1} s predict {} ± {} GFLOP/s, the whole run took {final_s:.1} s{}{advice}",
        digits(rate),
        digits(rate * estimate.estimated_sd),
        clock.unwrap_or_default()
    )
}

/// Drift, steal, clocks, heat of GPUs and nodes in one clause; `None` where nothing is known of them.
pub(crate) fn steadiness(summary: &Summary) -> Option<String> {
    let drift = summary.drift.as_ref().map(|drift| {
        let verdict = match direction(drift) {
            Some(Ordering::Less) => ": the machine slowed down, look for heat or other work",
            Some(_) => ": the machine became faster, look for other work at the start",
            None => "",
        };
        format!("speed of later ÷ earlier runs of the same candidates: {}{verdict}", ratio_in_words(drift))
    });
    let stolen =
        summary.most_stolen.map(|share| format!("time taken by the hypervisor: at most {:.1} %", 100.0 * share));
    let clocks = |[low, high]: [f64; 2]| format!("clock {:.2} … {:.2} GHz", low / 1e9, high / 1e9);
    let clock = summary.clock_hz.map(clocks);
    let hottest = summary.gpu_temperature_c.map(|celsius| format!("GPUs at most {celsius:.0} °C"));
    let gpus = summary.gpu_clock_hz.map(|range| format!("GPU {}", clocks(range))).into_iter().chain(hottest);
    let gpus = gpus.reduce(|clock, hottest| format!("{clock}, {hottest}"));
    let apart = summary.nodes_apart.as_ref().map(|apart| {
        format!(
            "nodes stood apart in {} of {} trials, in trial {} {}",
            apart.trials, summary.trials, apart.last_trial, apart.last
        )
    });
    let parts: Vec<String> = [drift, stolen, clock, gpus, apart].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// The watts of a score, `, 412 W, 2.06 GFLOPS/W`, and what was made as large as possible, where that is another one; nothing where no power was
/// read, or that of a part alone.
pub(super) fn watts(score: &Score, objective: Objective) -> String {
    let phase = if objective == Objective::GflopsPerWatt { " in the core phase" } else { "" };
    let watts = score.power_w.map(|watts| format!(", {} W{phase}", digits(watts)));
    let rate = match objective {
        Objective::GflopsPerWatt => {
            let of = match score.extent {
                Extent::Whole => "of the whole run",
                Extent::Windows => "as predicted for the core phase",
            };
            score.run_gflops_per_w.map(|rate| format!(", {} GFLOPS/W {of}", digits(rate)))
        }
        _ => score.gflops_per_w.map(|rate| format!(", {} GFLOPS/W", digits(rate))),
    };
    watts.into_iter().chain(rate).collect()
}

/// The power of the shown run, `trial 12: 412 W and 34100 J in the core phase (98 % read), …`; `None` where nothing was read.
pub(crate) fn power(summary: &Summary) -> Option<String> {
    let shown = summary.power.as_ref()?;
    let parts = |watts: Option<f64>, joules: Option<f64>, of: &str, coverage: Option<f64>| {
        let read = coverage.map_or(String::new(), |part| format!(" ({:.0} % of it read)", 100.0 * part));
        watts.zip(joules).map(|(watts, joules)| format!("{} W, {} J{of}{read}", digits(watts), digits(joules)))
    };
    let core = parts(shown.power_w, shown.energy_j, " in the core phase", shown.power_coverage);
    let core = core.unwrap_or("no reading of the core phase".to_owned());
    let rate = shown.gflops_per_w.map(|rate| format!(", {} GFLOPS/W", digits(rate))).unwrap_or_default();
    let run = parts(shown.run_power_w, shown.run_energy_j, "", shown.run_power_coverage);
    let run = run.map(|parts| format!("; whole run {parts}")).unwrap_or_default();
    let (trial, source) = (shown.trial, &shown.source);
    let reading = if summary.session.is_simulated() { "" } else { "software reading: " };
    let reading = if source.starts_with("meter") { "" } else { reading };
    let windows = summary.energy_by_windows.as_ref().map(|by| {
        let (percent, of) = (100.0 * (by.median_ratio - 1.0), by.candidates);
        format!("; energies predicted by windows against whole runs: {percent:+.1} % (median of {of})")
    });
    let windows = windows.unwrap_or_default();
    Some(format!("trial {trial}: {core}{rate}{run}{windows}; {reading}{source}"))
}

/// What the session made as large as possible, where that is not the rate.
pub(crate) fn objective(summary: &Summary) -> Option<String> {
    match summary.session.objective {
        Objective::Gflops => None,
        Objective::GflopsPerWatt => {
            let by = match summary.session.extent {
                Extent::Whole => "mean power of whole runs",
                Extent::Windows => "power that windows predict for the core phase",
            };
            Some(format!(
                "GFLOPS/W by the {by}: the search, the choice, the ratios and the order of the best are by it"
            ))
        }
        limit @ Objective::GflopsWithin { power_limit_w } => {
            let taken = match summary.limited_power_w {
                None if summary.best.is_none() => String::new(),
                None => "; no power of the best was read".to_owned(),
                Some(watts) if limit.allows(watts) => format!("; the best takes {} W", digits(watts)),
                Some(watts) => {
                    let who = if summary.others_keep_limit() { "others keep it" } else { "no candidate keeps it" };
                    format!("; {who}: the best takes {} W", watts_above(watts, power_limit_w))
                }
            };
            Some(format!("GFLOP/s at no more than {power_limit_w} W in the core phase{taken}"))
        }
    }
}

/// The front of speed and efficiency, `8.02 GFLOP/s at 0.0454 GFLOPS/W (NB 384, 1×2×1t), …`; `None` where no power was read.
pub(crate) fn pareto(summary: &Summary) -> Option<String> {
    let point = |ParetoPoint { candidate, runs, runs_read, rate_gflops, gflops_per_w }: &ParetoPoint| {
        let (hpl, threads) = (&candidate.hpl, candidate.engine.threads);
        let all = runs_in_words(*runs);
        let runs = if runs_read == runs { all } else { format!("{runs_read} of {all} read") };
        let settings = candidate.engine.settings.named().map(|(name, value)| format!(", {name} {value}"));
        let settings: String = settings.collect();
        let shape = format!("NB {}, {}×{}×{threads}t{settings}, {runs}", hpl.nb, hpl.p, hpl.q);
        format!("{} GFLOP/s at {} GFLOPS/W ({shape})", digits(*rate_gflops), digits(*gflops_per_w))
    };
    let points: Vec<String> = summary.pareto.iter().map(point).collect();
    (!points.is_empty()).then(|| format!("not beaten in speed and efficiency: {}", points.join("; ")))
}

/// The phases of the shown run with their part, `UPDATE 4.1 s (92 %), …`.
pub(super) fn phases(summary: &Summary) -> Option<String> {
    let totals = summary.phases.as_ref()?;
    let all = totals.all_s();
    let part = |(name, seconds): (&str, f64)| format!("{name} {} s ({:.0} %)", digits(seconds), 100.0 * seconds / all);
    Some(totals.named().map(part).join(", "))
}

/// The dimensions that made a difference, `explained by NB 41 % (chance: up to 12 %)`, or why none is named; `None` where chance
/// explains as much.
pub(crate) fn importances(summary: &Summary) -> Option<String> {
    if let Some(why) = summary.importance_not_judged {
        return Some(format!("not judged: {why}"));
    }
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let shown = summary.importance.iter().filter(|dim| dim.is_shown());
    let word = |dim: &Importance| {
        format!("{} {} (chance: up to {})", dim.dimension, percent(dim.explained), percent(dim.chance))
    };
    let words: Vec<String> = shown.map(word).collect();
    (!words.is_empty()).then(|| format!("explained by {}", words.join(", ")))
}

/// What there is to say of the choice of the best: that pairs have taken it back or are against it, that another one has a higher median.
pub(crate) fn choice(summary: &Summary) -> Vec<String> {
    let by_baseline = &summary.best_by_baseline;
    let leads = summary.lead.map(|all| Leads { search: summary.session.lead_of_search, all });
    let by = by_windows(summary);
    let objective = summary.session.objective;
    let back = summary.taken_back.as_ref().and_then(|back| back.words(leads, by, objective));
    let by_pairs = back.or_else(|| in_spite_of_pairs(by_baseline, leads?, by));
    let higher = summary.higher.as_ref().map(|higher| higher.words(by_baseline, by));
    by_pairs.into_iter().chain(higher).collect()
}

/// What the final run `row` reached, or why it failed.
pub(crate) fn final_run(summary: &Summary, row: &Row) -> String {
    let (Some(rate), Some(residual), true) = (row.rate_gflops, row.residual, row.passed) else {
        return format!("FAILED: {}", row.failure_detail.as_deref().unwrap_or(row.outcome.name()));
    };
    let whose = if summary.verified_run().is_some() { "" } else { ", of the candidate that was chosen before" };
    let target = summary.estimate.as_ref().map_or(row.n, |estimate| estimate.candidate.hpl.n);
    let smaller = if row.n < target { ": the time that was left for it allows no larger N" } else { "" };
    format!("{} GFLOP/s at N = {}, residual {} PASSED{whose}{smaller}", digits(rate), row.n, digits(residual))
}

/// The failures by kind, `2 timed-out, 1 crashed`; `none`.
pub(crate) fn failures(summary: &Summary) -> String {
    by_kind(&summary.failures)
}

/// The hosts of the trials, or that of the session.
pub(super) fn place(summary: &Summary) -> String {
    let (named, others) = summary.hosts.split_at(summary.hosts.len().min(HOSTS_NAMED));
    match (named, others.len()) {
        ([], _) => summary.session.host.clone(),
        (_, 0) => named.join(", "),
        (_, more) => format!("{} and {more} more", named.join(", ")),
    }
}

/// What there is to say of trials on several hosts.
pub(super) fn several_hosts(summary: &Summary) -> Option<String> {
    let said = || format!("the trials ran on {}: rates of different hosts may not compare", place(summary));
    (summary.hosts.len() > 1).then(said)
}

/// Why the target N is what it is, where there is more to say than its value.
pub(super) fn limit_of_n(summary: &Summary) -> Option<String> {
    let n_memory = summary.session.n_memory.filter(|_| summary.session.n_limited_by_budget)?;
    Some(format!("N is limited by the budget; memory allows N = {n_memory}"))
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;
    use crate::record::arbitrary::{row, windows};
    use crate::report::summary::tests::session;

    /// Of windows no power is measured: what it was called is that of whole runs.
    #[test]
    fn the_efficiency_of_windows_is_called_predicted() {
        let session = Session { objective: Objective::GflopsPerWatt, ..session() };
        let said = |extent: Extent, row: Row| {
            let summary = Summary::new(&Session { extent, ..session.clone() }, &[row]);
            (watts(&summary.top[0], summary.session.objective), objective(&summary).unwrap())
        };
        let (rate, by) = said(Extent::Windows, Row { estimated_power_w: Some(40.0), ..windows(0, 64, 20.0) });
        assert_eq!(rate, ", 0.5000 GFLOPS/W as predicted for the core phase");
        assert!(by.starts_with("GFLOPS/W by the power that windows predict for the core phase: "), "{by}");
        let (rate, by) = said(Extent::Whole, Row { run_power_w: Some(40.0), ..row(0) });
        assert_eq!(rate, ", 0.5000 GFLOPS/W of the whole run");
        assert!(by.starts_with("GFLOPS/W by the mean power of whole runs: "), "{by}");
    }

    /// Nothing said that a resume on another node had put rates of both into one score.
    #[test]
    fn hosts_are_named_where_trials_ran_on_several() {
        let rows = |hosts: &[&str]| -> Vec<Row> {
            (0..).zip(hosts).map(|(trial, host)| Row { host: (*host).into(), ..row(trial) }).collect()
        };
        let of = |hosts: &[&str]| Summary::new(&session(), &rows(hosts));
        let said = |hosts: &[&str]| several_hosts(&of(hosts));
        assert_eq!([said(&[]), said(&["n1"]), said(&["n1", "n1.site", "n1"])], [None, None, None]);
        let both = "the trials ran on n1, n2: rates of different hosts may not compare";
        assert_eq!(said(&["n1", "n2", "n1"]).as_deref(), Some(both));
        assert_eq!((place(&of(&[])), place(&of(&["n1", "n1"]))), ("host".to_owned(), "n1".to_owned()));
        assert_eq!(place(&of(&["a", "b", "c", "d", "e", "f"])), "a, b, c, d and 2 more");
        let summary = of(&["n1", "n2"]);
        let page = crate::report::html::ReportPage::new(&summary, &rows(&["n1", "n2"])).html();
        assert!(crate::report::table::summary(&summary, None).contains(&format!("Note          {both}")));
        assert!(page.contains(both) && summary.json().unwrap().contains("\"n2\""));
        let named = Session { hosts: vec!["n1".into(), "n2".into()], ..session() };
        assert!(Summary::new(&named, &[row(0)]).hosts.is_empty(), "they are its nodes");
    }

    /// Rates and powers of windows stood there as measured ones, and watts of the core phase beside GFLOPS/W of the whole run as if of one span.
    #[test]
    fn the_columns_of_the_best_say_what_they_are_of() {
        let names = |extent: Extent, objective: Objective, rows: &[Row]| {
            let summary = Summary::new(&Session { extent, objective, ..session() }, rows);
            let names: Vec<String> = power_columns(&summary).into_iter().map(|(name, _)| name).collect();
            format!("{}: {}", rate_heading(&summary), names.join(", "))
        };
        let whole = Row { power_w: Some(50.0), gflops_per_w: Some(0.4), run_power_w: Some(40.0), ..row(0) };
        let sampled = Row { estimated_power_w: Some(40.0), ..windows(1, 64, 20.0) };
        let of_whole = |objective: Objective| names(Extent::Whole, objective, std::slice::from_ref(&whole));
        assert_eq!(of_whole(Objective::Gflops), "GFLOP/s: watts");
        assert_eq!(of_whole(Objective::GflopsPerWatt), "GFLOP/s: core W, GFLOPS/W of the run");
        let by_windows = |objective: Objective, rows: &[Row]| names(Extent::Windows, objective, rows);
        let predicted = "est. GFLOP/s: predicted W, predicted GFLOPS/W";
        assert_eq!(by_windows(Objective::GflopsPerWatt, std::slice::from_ref(&sampled)), predicted);
        // By rate they may be the watts of a part, as those of a whole run without GFLOPS/W are.
        let part = Row { gflops_per_w: None, ..whole.clone() };
        assert_eq!(names(Extent::Whole, Objective::Gflops, std::slice::from_ref(&part)), "GFLOP/s: ");
        assert_eq!(by_windows(Objective::Gflops, &[part, sampled.clone()]), "est. GFLOP/s: ");
        assert_eq!(by_windows(Objective::Gflops, &[whole.clone(), sampled]), "est. GFLOP/s: predicted W");
    }

    #[test]
    fn a_candidate_without_a_dimension_that_others_have_gets_a_dash() {
        let plain = Candidate { hpl: HplParams::baseline(1000, 1, 2), engine: EngineParams::default() };
        let mut other = plain.clone();
        other.engine.extra.insert("mode".into(), "g".into());
        for (candidates, cells) in [([&plain, &other], ["-", "g"]), ([&other, &plain], ["g", "-"])] {
            let mode = ("mode".to_owned(), cells.map(str::to_owned).to_vec());
            assert_eq!(telling_columns(&candidates).last(), Some(&mode));
        }
    }
}
