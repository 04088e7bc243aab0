//! `report.html`: one page that needs nothing else.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};
use objectives::real::Extent;

use super::format::digits;
use super::importance::Importance;
use super::sentences::{
    choice, estimated, failures, final_by_estimate, limit_of_n, objective, pareto, power, spread, steadiness,
    telling_columns, words_of,
};
use super::svg::{Mark, Plot};
use super::{Exports, Score, Summary};
use crate::record::Row;

const STYLE: &str = include_str!("../style.css");

/// The page for a session: its summary, its trials in order, and the exported files.
pub fn page(summary: &Summary, rows: &[Row], exports: Option<&Exports>) -> String {
    let body = html! {
        (head(summary))
        (figures(summary, rows))
        (best(summary, exports))
        (top(summary))
        (differences(summary))
        (trials(rows))
        (session(summary))
    };
    frame(&format!("hpl-tune: {}", summary.session.name), &body)
}

/// A page that needs no other file.
pub(crate) fn frame(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { (body) } }
        }
    };
    page.into_string()
}

fn head(summary: &Summary) -> Markup {
    let mut facts = Vec::new();
    if let Some(best) = &summary.best {
        let residual = best.residual.map_or("-".to_owned(), |residual| format!("at most {}", digits(residual)));
        facts.push((summary.session.how(), format!("{} GFLOP/s", digits(best.rate_gflops)), spread(best)));
        facts.push(("at", format!("N = {}", best.candidate.hpl.n), limit_of_n(summary).unwrap_or_default()));
        facts.push(("residual", residual, "of all its runs; below 16 passes".to_owned()));
    }
    if let Some(row) = &summary.final_run {
        let (word, detail) = match (row.passed, row.rate_gflops) {
            (true, Some(rate)) => ("PASSED", format!("{} GFLOP/s at N = {}", digits(rate), row.n)),
            _ => ("FAILED", row.failure_detail.clone().unwrap_or_else(|| row.outcome.name().to_owned())),
        };
        facts.push(("final run", word.to_owned(), detail));
    }
    if let Some(beside) = &summary.final_by_estimate {
        facts.push(("final / estimate", format!("{:.3}", beside.ratio), final_by_estimate(beside)));
    }
    if let Some(estimate) = &summary.estimate {
        let detail = "the whole run as predicted from windows, ± one standard deviation".to_owned();
        facts.push(("estimated", estimated(estimate), detail));
    }
    for (name, comparison, other) in [
        ("best / default", &summary.best_by_baseline, &summary.baseline),
        ("best / expert", &summary.best_by_expert, &summary.expert),
    ] {
        let other =
            other.as_ref().map(|other| format!("; it alone: {} GFLOP/s, {}", digits(other.rate_gflops), spread(other)));
        let value = comparison.ratio().map_or("-".to_owned(), |ratio| format!("{:.3}", ratio.median));
        facts.push((name, value, comparison.words() + &other.unwrap_or_default()));
    }
    facts.extend(choice(summary).into_iter().map(|said| ("choice", String::new(), said)));
    if let Some(predicted) = summary.best.as_ref().and_then(|best| best.predicted_rate_gflops) {
        facts.push(("predicted", format!("{} GFLOP/s", digits(predicted)), "before its first run".to_owned()));
    }
    if let Some(left) = &summary.session.left {
        facts.push(("left", format!("≤ {:.1} %", 100.0 * left.at_most), left.to_string()));
    }
    facts.push((
        "trials",
        summary.trials.to_string(),
        format!("{} different candidates; failed: {}", summary.distinct_candidates, failures(summary)),
    ));
    if let Some(said) = power(summary) {
        let watts = summary.power.as_ref().and_then(|power| power.power_w);
        facts.push(("power", watts.map_or(String::new(), |watts| format!("{} W", digits(watts))), said));
    }
    facts.extend(pareto(summary).map(|said| ("speed, efficiency", summary.pareto.len().to_string(), said)));
    facts.extend(objective(summary).map(|said| ("objective", String::new(), said)));
    if let Some(steadiness) = steadiness(summary) {
        facts.push(("machine", String::new(), steadiness));
    }
    facts.push(("time", format!("{:.1} s", summary.used_s), format!("of {:.1} s", summary.session.budget_s)));
    html! {
        h1 { (summary.session.name) }
        p {
            "High Performance Linpack on " (summary.session.host) ", started " (summary.session.started_utc) "."
            @if summary.session.is_simulated() { " " strong { "Simulated: no HPL has run, and nothing is measured." } }
            @if summary.best.is_none() { " " strong { "No trial passed its residual." } }
        }
        dl.facts {
            @for (name, value, detail) in &facts {
                div { dt { (name) } dd { (value) small { (detail) } } }
            }
        }
    }
}

fn figures(summary: &Summary, rows: &[Row]) -> Markup {
    let plots = [
        (over_time(summary, rows), "Rates over time; the line is the highest so far."),
        (
            against_prediction(summary, rows),
            "Measured rate against the rate that was predicted before the trial; on the line \
        both are equal.",
        ),
    ];
    html! {
        div.figures {
            @for (plot, caption) in &plots {
                @if let Some(svg) = plot.draw() {
                    figure {
                        (PreEscaped(svg))
                        // What the colours of the points say.
                        figcaption {
                            (caption) br;
                            span.key.best { "the best" } span.key.default { "default" } span.key.other { "others" }
                        }
                    }
                }
            }
        }
    }
}

/// What the rates of the search are.
fn rate_name(summary: &Summary) -> &'static str {
    match summary.session.extent {
        _ if summary.session.is_simulated() => "simulated, GFLOP/s",
        Extent::Whole => "measured, GFLOP/s",
        Extent::Windows => "estimated by windows, GFLOP/s",
    }
}

/// Passed trials of the search over the wall clock, with the highest rate so far.
fn over_time(summary: &Summary, rows: &[Row]) -> Plot<'static> {
    let mut points = Vec::new();
    let mut line: Vec<(f64, f64)> = Vec::new();
    for row in of_search(summary, rows) {
        let Some(rate) = row.comparable_rate_gflops() else { continue };
        let end_s = summary.session.budget_s - row.budget_left_s;
        let highest = line.last().map_or(rate, |&(_, highest)| highest);
        line.extend([(end_s, highest), (end_s, highest.max(rate))]);
        points.push(Mark { x: end_s, y: rate, class: class(summary, row), title: label(row, rate) });
    }
    let y_name = rate_name(summary);
    Plot { x_name: "wall clock, s", y_name, description: "Measured rates over time", points, line }
}

/// Passed trials of the search that were predicted, and the diagonal.
fn against_prediction(summary: &Summary, rows: &[Row]) -> Plot<'static> {
    let point = |row: &Row| {
        let (predicted, rate) = (row.predicted_rate_gflops?, row.comparable_rate_gflops()?);
        Some(Mark { x: predicted, y: rate, class: class(summary, row), title: label(row, rate) })
    };
    let points: Vec<Mark> = of_search(summary, rows).into_iter().filter_map(point).collect();
    let values = || points.iter().flat_map(|point| [point.x, point.y]);
    let ends = [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)];
    let description = "Measured against predicted rates";
    let line = ends.map(|end| (end, end)).to_vec();
    Plot { x_name: "predicted, GFLOP/s", y_name: rate_name(summary), description, points, line }
}

/// Rates at different N, or of whole runs and of windows, do not compare.
fn of_search<'a>(summary: &Summary, rows: &'a [Row]) -> Vec<&'a Row> {
    super::summary::of_search(&summary.session, rows)
}

/// The style of a trial's point.
fn class(summary: &Summary, row: &Row) -> &'static str {
    let is = |score: &Option<Score>| score.as_ref().is_some_and(|score| score.trials.contains(&row.trial));
    if is(&summary.best) {
        "best"
    } else if is(&summary.baseline) {
        "default"
    } else {
        "other"
    }
}

fn label(row: &Row, rate: f64) -> String {
    format!("trial {}: {} GFLOP/s, NB {} {}×{}, {} threads", row.trial, digits(rate), row.nb, row.p, row.q, row.threads)
}

fn best(summary: &Summary, exports: Option<&Exports>) -> Markup {
    let Some(best) = &summary.best else { return html! {} };
    let words = words(&words_of(summary, &best.candidate));
    html! {
        h2 { "The best" }
        @if let Some(exports) = exports {
            div.pair {
                div { (words) }
                div { h3 { "HPL.dat" } pre { (exports.hpl_dat) } }
            }
            @if let Some(params) = &exports.engine_params {
                h3 { "engine-params.toml" }
                pre { (params) }
            }
            h3 { "How to repeat it" }
            p { "Run " code { "run.sh" } " in this folder. It says:" }
            pre { (exports.run_sh) }
        } @else {
            (words)
        }
    }
}

/// Names with their values.
fn words(lines: &[(impl Render, impl Render)]) -> Markup {
    html! {
        table.words {
            @for (name, value) in lines {
                tr { th { (name) } td { (value) } }
            }
        }
    }
}

/// The best candidates with the columns in which they differ.
fn top(summary: &Summary) -> Markup {
    if summary.top.is_empty() {
        return html! {};
    }
    let telling = telling_columns(&summary.top.iter().map(|score| &score.candidate).collect::<Vec<_>>());
    let names = telling.iter().map(|(name, _)| name.as_str());
    let header = ["GFLOP/s", "runs", "lowest", "highest", "residual"].into_iter().chain(names);
    let lines = summary.top.iter().enumerate().map(|(index, score)| {
        let cells = telling.iter().map(|(_, cells)| cells[index].clone());
        measured_cells(score).into_iter().chain(cells).collect()
    });
    html! {
        h2 { "The best " (summary.top.len()) ", by median" }
        (table(header, lines))
    }
}

/// Bars: where the time of the best run went, and what made the difference between trials.
fn differences(summary: &Summary) -> Markup {
    let phases = summary.phases.as_ref().map(|totals| {
        let all: f64 = totals.named().iter().map(|(_, seconds)| seconds).sum();
        let rows =
            totals.named().map(|(name, seconds)| (name.to_owned(), seconds / all, format!("{} s", digits(seconds))));
        (totals.trial, bars(&rows))
    });
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let bar = |dim: &Importance| {
        let chance =
            format!("{} (chance: up to {}), {} values", percent(dim.explained), percent(dim.chance), dim.values);
        (dim.dimension.clone(), dim.explained, chance)
    };
    let shown: Vec<_> = summary.importance.iter().filter(|dim| dim.is_shown()).map(bar).collect();
    html! {
        @if let Some((trial, bars)) = phases {
            h2 { "Time per phase of trial " (trial) }
            (bars)
        }
        @if let Some(why) = summary.importance_not_judged {
            h2 { "What made the difference" }
            p { "Not judged: " (why) "." }
        } @else if !shown.is_empty() {
            h2 { "What made the difference" }
            p {
                "Part of the variance between the trials of the search that each dimension explains by itself, beside what \
                 chance explains at most in 95 % of such searches. The search looks at good regions only."
            }
            (bars(&shown))
        }
    }
}

/// A table of names, bars of a length from 0 to 1, and texts.
fn bars(rows: &[(String, f64, String)]) -> Markup {
    html! {
        table.bars {
            @for (name, part, value) in rows {
                tr {
                    th { (name) }
                    td.bar { span style={ "width:" (format!("{:.1}", 100.0 * part.clamp(0.0, 1.0))) "%" } {} }
                    td { (value) }
                }
            }
        }
    }
}

fn measured_cells(score: &Score) -> [String; 5] {
    let [low, high] = score.range_gflops.map(digits);
    let residual = score.residual.map_or("-".to_owned(), digits);
    [digits(score.rate_gflops), score.runs.to_string(), low, high, residual]
}

fn trials(rows: &[Row]) -> Markup {
    let candidates: Vec<_> = rows.iter().map(Row::candidate).collect();
    let telling = telling_columns(&candidates.iter().collect::<Vec<_>>());
    let names = telling.iter().map(|(name, _)| name.as_str());
    let header =
        ["trial", "chosen by", "measured GFLOP/s", "estimated GFLOP/s", "residual", "predicted GFLOP/s", "wall s"];
    let header = header.into_iter();
    let lines = rows.iter().enumerate().map(|(index, row)| {
        let number = |value: Option<f64>| value.map_or("-".to_owned(), digits);
        let rate = if row.passed { number(row.score_gflops()) } else { row.outcome.name().to_owned() };
        let fixed = [
            row.trial.to_string(),
            row.strategy.clone(),
            rate,
            number(row.estimated_rate_gflops),
            number(row.residual),
            number(row.predicted_rate_gflops),
            digits(row.wall_s),
        ];
        let cells = telling.iter().map(|(_, cells)| cells[index].clone());
        let why = row.failure_detail.as_ref().unwrap_or(&row.why).clone();
        fixed.into_iter().chain(cells).chain([why]).collect()
    });
    html! {
        h2 { "Trials" }
        details open[rows.len() <= 40] {
            summary { "All " (rows.len()) " trials, in order" }
            (table(header.chain(names).chain(["why"]), lines))
        }
    }
}

fn session(summary: &Summary) -> Markup {
    let session = &summary.session;
    let cores: Vec<String> = session.cores.iter().map(usize::to_string).collect();
    let memory = match session.memory_bytes {
        0 => "unknown".to_owned(),
        bytes => format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)),
    };
    let facts = [
        ("command", session.command.clone()),
        ("version", session.version.clone()),
        ("seed", session.seed.to_string()),
        ("strategy", session.strategy.clone()),
        ("cores", cores.join(" ")),
        ("memory for HPL", memory),
    ];
    let kernels = session.kernels.iter().map(|kernels| ("kernels", kernels.to_string()));
    let notes = session.notes.iter().map(|note| ("note", note.clone()));
    let facts: Vec<(&str, String)> = facts.into_iter().chain(kernels).chain(notes).collect();
    html! {
        h2 { "The session" }
        (words(&facts))
    }
}

/// A table of texts; cells that begin like a number stand to the right.
fn table<'a>(header: impl Iterator<Item = &'a str>, lines: impl Iterator<Item = Vec<String>>) -> Markup {
    html! {
        div.wide {
            table {
                tr { @for name in header { th { (name) } } }
                @for line in lines {
                    tr {
                        @for cell in &line { td.number[cell.parse::<f64>().is_ok()] { (cell) } }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
