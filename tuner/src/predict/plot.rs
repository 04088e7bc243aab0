//! The picture of a prediction: GFLOP/s over N, the phases over the run, weak scaling over nodes.

use objectives::scenario::Choices;
use objectives::timeline::StepTimes;
use space::HplParams;
use space::domain::squarest;
use space::machine::{Machine, Measured};

use super::chart::{Diagram, NamedMark, Scale, Series, document};
use super::text::{is_as_placed, rate, rate_unit};
use super::{Answer, Model, Question};

/// Points of a curve over N.
const POINTS: usize = 60;
/// Pieces that a run is cut into for the phases.
const PIECES: usize = 240;

/// The picture of a prediction as an SVG document.
pub fn picture(machine: &Machine, model: Model, question: &Question, choices: &Choices, answer: &Answer) -> String {
    let hpl = &question.hpl;
    let subtitle = format!(
        "model {}; N {}, NB {}, P×Q {}×{}: predicted {}",
        model.name(),
        hpl.n,
        hpl.nb,
        hpl.p,
        hpl.q,
        rate(answer.rate_gflops(hpl.n))
    );
    let rate_at = |question: &Question| {
        model.answer(machine, question, choices).ok().map(|answer| answer.rate_gflops(question.hpl.n))
    };
    let diagrams = [over_n(machine, question, &rate_at), phases(answer), over_nodes(machine, question, &rate_at)];
    document(&machine.host.name, &subtitle, &diagrams)
}

/// A way to write counts up to `highest`: what follows the name, and the size.
fn count_unit(highest: f64) -> (&'static str, f64) {
    match highest {
        h if h >= 2e6 => (", millions", 1e6),
        h if h >= 2e4 => (", thousands", 1e3),
        _ => ("", 1.0),
    }
}

/// Predicted rates of the same grid over N, with measured runs.
fn over_n(machine: &Machine, question: &Question, rate_at: &dyn Fn(&Question) -> Option<f64>) -> Diagram {
    let largest_n = question.largest_n(machine).ok().flatten();
    let highest_n = largest_n.unwrap_or(question.hpl.n + question.hpl.n / 4).max(question.hpl.n);
    let nb = question.hpl.nb;
    let curve: Vec<(f64, f64)> = (1..=POINTS)
        .map(|i| (highest_n * i / POINTS / nb * nb).max(nb).min(highest_n))
        .filter_map(|n| Some((n as f64, rate_at(&question.at(n))?)))
        .filter(|(_, rate)| *rate > 0.0)
        .collect();
    let top = curve.iter().map(|point| point.1).fold(0.0, f64::max);
    let (unit, size) = rate_unit(top);
    let (thousands, count) = count_unit(highest_n as f64);
    let mark = |class, name, n: usize, gflops: f64, title| NamedMark {
        class,
        name,
        x: n as f64 / count,
        y: gflops / size,
        title,
    };
    let near = |run: &&Measured| run.n.is_some_and(|n| n <= highest_n) && run.rate_gflops <= 1.5 * top;
    let mut marks = Vec::new();
    for run in machine.measured.iter().filter(near) {
        let Some(theirs) = Question::of_measured(run, Some(nb), None) else { continue };
        let HplParams { n, nb, p, q, .. } = theirs.hpl;
        let theirs = Question { hpl: HplParams { n, nb, p, q, ..question.hpl }, threads: question.threads, ..theirs };
        let same = is_as_placed(run, question);
        if !same && let Some(predicted) = rate_at(&theirs) {
            marks.push(mark("there", "predicted for them", n, predicted, format!("predicted {}", rate(predicted))));
        }
        let (class, name) = if same { ("measured", "measured") } else { ("other", "measured, other ranks or nodes") };
        marks.push(mark(class, name, n, run.rate_gflops, words(run)));
    }
    if let Some(predicted) = rate_at(question) {
        let title = format!("predicted {}", rate(predicted));
        marks.push(mark("here", "this run, predicted", question.hpl.n, predicted, title));
    }
    let rates = curve.iter().map(|point| point.1 / size).chain(marks.iter().map(|mark| mark.y));
    let y = Scale::from_zero(rates.collect::<Vec<_>>().into_iter());
    let line: Vec<(f64, f64)> = curve.iter().map(|(n, rate)| (n / count, rate / size)).collect();
    Diagram {
        title: "Rate over N",
        x_name: format!("N{thousands}"),
        y_name: unit.to_owned(),
        x: Scale::from_zero([highest_n as f64 / count].into_iter()),
        y,
        areas: Vec::new(),
        empty: line.is_empty().then(|| "no N of this grid can be predicted".to_owned()),
        lines: vec![Series { class: "predicted", name: "predicted", points: line }],
        marks,
    }
}

fn words(run: &Measured) -> String {
    let part = |name: &str, value: Option<usize>| value.map_or(String::new(), |value| format!(", {value} {name}"));
    let shape = format!("{}{}", part("nodes", run.nodes), part("ranks", run.ranks()));
    format!("measured {}{shape} {}", rate(run.rate_gflops), run.note)
}

/// Shares of the phases in the time of each part of the run.
fn phases(answer: &Answer) -> Diagram {
    let steps = answer.timeline.as_ref().map_or(&[][..], |timeline| &timeline.steps);
    let piece = steps.len().div_ceil(PIECES).max(1);
    let shares: Vec<[f64; 4]> = steps.chunks(piece).map(shares).collect();
    let last = steps.len().max(1) as f64;
    let at = |index: usize| (index * piece) as f64;
    // Each area reaches from the phases below it up to its own share, a step at a time.
    let area = |phase: usize| {
        let under = |shares: &[f64; 4], phases: usize| 100.0 * shares[..phases].iter().sum::<f64>();
        let corners = |index: usize, height: f64| [(at(index), height), (at(index + 1).min(last), height)];
        let upper = shares.iter().enumerate().flat_map(|(i, s)| corners(i, under(s, phase + 1)));
        let lower: Vec<(f64, f64)> = shares.iter().enumerate().flat_map(|(i, s)| corners(i, under(s, phase))).collect();
        upper.chain(lower.into_iter().rev()).collect()
    };
    let names = [("update", "UPDATE"), ("rs", "RS"), ("lbcast", "LBCAST"), ("fact", "FACT")];
    let series = names.iter().enumerate().map(|(phase, &(class, name))| Series { class, name, points: area(phase) });
    Diagram {
        title: "Phases over the run",
        x_name: "step (panel)".to_owned(),
        y_name: "share of the step's time, %".to_owned(),
        x: Scale::exactly(0.0, last),
        y: Scale::exactly(0.0, 100.0),
        areas: series.collect(),
        lines: Vec::new(),
        marks: Vec::new(),
        empty: steps.is_empty().then(|| "this model has no steps".to_owned()),
    }
}

/// UPDATE, RS, LBCAST and FACT of some steps, their sum 1.
fn shares(steps: &[StepTimes]) -> [f64; 4] {
    let sum = |of: fn(&StepTimes) -> f64| steps.iter().map(of).map(|time_s| time_s.max(0.0)).sum::<f64>();
    let all = [sum(|s| s.update_s), sum(|s| s.rs_s), sum(|s| s.lbcast_s), sum(|s| s.fact_s)];
    let total = all.iter().sum::<f64>().max(f64::MIN_POSITIVE);
    all.map(|time_s| time_s / total)
}

/// Predicted rate per node with N growing so that each node keeps its memory's share, with measured runs.
fn over_nodes(machine: &Machine, question: &Question, rate_at: &dyn Fn(&Question) -> Option<f64>) -> Diagram {
    let mut panel = Diagram {
        title: "Weak scaling",
        x_name: "nodes".to_owned(),
        y_name: String::new(),
        x: Scale::doubling(std::iter::empty()),
        y: Scale::from_zero(std::iter::empty()),
        areas: Vec::new(),
        lines: Vec::new(),
        marks: Vec::new(),
        empty: None,
    };
    let [node] = machine.nodes.as_slice() else {
        panel.empty = Some("needs a description of equal nodes".to_owned());
        return panel;
    };
    if node.count < 2 {
        panel.empty = Some("one node".to_owned());
        return panel;
    }
    let ranks_per_node = node.ranks(question.threads);
    let nodes_here = question.nodes.unwrap_or(question.hpl.ranks().div_ceil(ranks_per_node));
    let doubled = std::iter::successors(Some(1), |nodes| Some(nodes * 2)).take_while(|nodes| *nodes < node.count);
    let points: Vec<(f64, f64)> = doubled
        .chain([node.count])
        .filter_map(|nodes| {
            let n = question.hpl.n as f64 * (nodes as f64 / nodes_here as f64).sqrt();
            let n = (n as usize / question.hpl.nb * question.hpl.nb).max(question.hpl.nb);
            let mut scaled = Question { nodes: Some(nodes), ..question.at(n) };
            (scaled.hpl.p, scaled.hpl.q) = grid(machine, nodes * ranks_per_node);
            Some((nodes as f64, rate_at(&scaled)? / nodes as f64))
        })
        .collect();
    let highest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let (unit, size) = rate_unit(highest);
    let full = |run: &&Measured| run.nodes.is_some_and(|nodes| run.ranks() == Some(nodes * ranks_per_node));
    panel.marks = machine
        .measured
        .iter()
        .filter(full)
        .filter_map(|run| {
            let x = run.nodes? as f64;
            Some(NamedMark {
                class: "measured",
                name: "measured, full nodes",
                x,
                y: run.rate_gflops / x / size,
                title: words(run),
            })
        })
        .collect();
    panel.y_name = format!("{unit} per node");
    // Runs may have been measured on more nodes than the description counts.
    let nodes = points.iter().map(|point| point.0).chain(panel.marks.iter().map(|mark| mark.x));
    panel.x = Scale::doubling(nodes);
    panel.y = Scale::from_zero(points.iter().map(|point| point.1 / size).chain(panel.marks.iter().map(|mark| mark.y)));
    // Not all models predict one node, whose N is smaller.
    if let (Some(first), Some(last)) = (points.first().filter(|point| point.0 <= 1.0), points.last()) {
        let level = first.1 / size;
        panel.lines.push(Series { class: "ideal", name: "as one node", points: vec![(1.0, level), (last.0, level)] });
    }
    let line: Vec<(f64, f64)> = points.iter().map(|(nodes, rate)| (*nodes, rate / size)).collect();
    panel.empty = line.is_empty().then(|| "no number of nodes can be predicted".to_owned());
    panel.lines.push(Series {
        class: "predicted",
        name: "predicted, N filling the same share of memory",
        points: line,
    });
    panel
}

/// P×Q as a measured run of as many ranks had it, else as square as they allow.
fn grid(machine: &Machine, ranks: usize) -> (usize, usize) {
    let known = machine.measured.iter().filter(|run| run.ranks() == Some(ranks)).find_map(|run| run.p.zip(run.q));
    known.unwrap_or_else(|| squarest(ranks))
}

#[cfg(test)]
mod tests {
    use space::machine::published;

    use super::*;
    use crate::predict::WantedRun;

    fn on_two_nodes() -> (Machine, Question) {
        let machine = published::find("p100-cluster").unwrap().machine().unwrap();
        let wanted = WantedRun { nodes: Some(2), n: Some(90_000), p: Some(2), q: Some(2), ..WantedRun::default() };
        let question = Question::new(&wanted, &machine).unwrap();
        (machine, question)
    }

    /// Four ranks on one node stood there as a measured run of four ranks on two.
    #[test]
    fn measured_runs_on_other_nodes_are_others() {
        let (machine, question) = on_two_nodes();
        let diagram = over_n(&machine, &question, &|_: &Question| Some(1e4));
        let of = |class: &str| -> Vec<&str> {
            diagram.marks.iter().filter(|mark| mark.class == class).map(|mark| mark.title.as_str()).collect()
        };
        assert_eq!(of("measured"), ["measured 14.00 TFLOP/s, 2 nodes, 4 ranks "]);
        assert!(of("other").contains(&"measured 13.57 TFLOP/s, 1 nodes, 4 ranks "), "{:?}", of("other"));
    }

    #[test]
    fn weak_scaling_is_beside_one_node_where_that_can_be_predicted() {
        let (machine, question) = on_two_nodes();
        let ideal = |least: usize| {
            let rate_at = |question: &Question| question.nodes.filter(|nodes| *nodes >= least).map(|_| 1e4);
            let diagram = over_nodes(&machine, &question, &rate_at);
            diagram.lines.iter().find(|line| line.name == "as one node").map(|line| line.points.clone())
        };
        assert_eq!(ideal(1), Some(vec![(1.0, 10.0), (4.0, 10.0)]));
        assert_eq!(ideal(2), None);
    }

    #[test]
    fn runs_on_more_nodes_than_described_lie_within_the_axes() {
        let (mut machine, question) = on_two_nodes();
        let larger = Measured { nodes: Some(8), ranks: Some(32), rate_gflops: 1e5, ..Measured::default() };
        machine.measured.push(larger);
        let diagram = over_nodes(&machine, &question, &|_: &Question| Some(1e4));
        let Scale::Doubling(axis) = diagram.x else { panic!("nodes double") };
        assert!(axis.high >= 3.0 && diagram.marks.iter().any(|mark| mark.x >= 8.0), "{axis:?}");
    }
}
