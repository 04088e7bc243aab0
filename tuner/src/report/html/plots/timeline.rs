//! Where the time of the best run went: the phases of its ranks along the run.

use maud::html;
use serde_json::{Value, json};
use space::result::PhaseTime;

use super::figure::{InteractivePlot, needs_script};

/// Ranks that are shown.
const MOST_RANKS: usize = 16;
/// Intervals in which steps are gathered.
const INTERVALS: usize = 48;

/// Names of the phases, which in lower case are colours of the style sheet, in the order of a step.
const PHASES: [&str; 5] = ["FACT", "LBCAST", "RS", "UPDATE", "TRSV"];

/// The seconds of each of them.
fn seconds(time: &PhaseTime) -> [f64; 5] {
    [time.fact_s, time.lbcast_s, time.rs_s, time.update_s, time.trsv_s]
}

/// The phases of a trial along its run, a row for each rank. `None` where the ends of its steps are not recorded.
pub(super) fn timeline(trial: u64, times: &[PhaseTime], simulated: bool) -> Option<InteractivePlot> {
    let ranks = times.iter().map(|time| time.rank).max()? as usize + 1;
    let shown: Vec<usize> = match ranks {
        0..=MOST_RANKS => (0..ranks).collect(),
        // The first and the last one with them.
        _ => (0..MOST_RANKS).map(|at| at * (ranks - 1) / (MOST_RANKS - 1)).collect(),
    };
    let segments: Vec<Segment> = shown.iter().flat_map(|&rank| segments(rank, times)).collect();
    if !segments.iter().any(|segment| segment.phase < PHASES.len() - 1) {
        return None;
    }
    let of_phase = |phase: usize| segments.iter().filter(|segment| segment.phase == phase).collect();
    let traces = PHASES.iter().enumerate().filter_map(|(phase, name)| trace(name, of_phase(phase)));
    let rows: Vec<String> = shown.iter().rev().map(|rank| row_name(*rank)).collect();
    Some(InteractivePlot {
        name: "timeline".to_owned(),
        caption: html! {
            "Trial " (trial) ", what the first thread of each rank did along the run. Steps are gathered in intervals, in which each phase has as \
             much room as time; what look-ahead did of a step before it began counts in that step. Gaps: other things."
            @if simulated { " One simulated rank stands for all." }
            @if ranks > shown.len() { " Of " (ranks) " ranks " (shown.len()) " are shown." }
        },
        traces: traces.collect(),
        layout: json!({
            "barmode": "overlay", "bargap": 0.15, "height": 150 + 26 * shown.len(),
            "xaxis": { "title": { "text": "time since the start, s" }, "rangemode": "tozero" },
            "yaxis": { "type": "category", "categoryorder": "array", "categoryarray": rows, "automargin": true },
        }),
        still: needs_script(),
        is_wide: true,
    })
}

/// A part of a rank's row.
struct Segment {
    rank: usize,
    /// Index into [`PHASES`].
    phase: usize,
    begin_s: f64,
    length_s: f64,
    text: String,
}

/// The row of a rank: each interval's phases one after the other, in the part of it that they took.
fn segments(rank: usize, times: &[PhaseTime]) -> Vec<Segment> {
    let mut of_rank: Vec<&PhaseTime> = times.iter().filter(|time| time.rank as usize == rank).collect();
    of_rank.sort_by_key(|time| time.step);
    let (steps, after): (Vec<&PhaseTime>, Vec<&PhaseTime>) = of_rank.into_iter().partition(|time| time.end_s > 0.0);
    let mut found = Vec::new();
    let mut begin_s = 0.0;
    for interval in steps.chunks(steps.len().div_ceil(INTERVALS).max(1)) {
        let (first, last) = (interval[0], interval[interval.len() - 1]);
        let length_s = last.end_s - begin_s;
        let mut spent = [0.0; PHASES.len()];
        for time in interval {
            spent.iter_mut().zip(seconds(time)).for_each(|(sum, seconds)| *sum += seconds);
        }
        let all: f64 = spent.iter().sum();
        // Look-ahead of the interval before may have taken a part of them.
        let room = if all > length_s && all > 0.0 { length_s / all } else { 1.0 };
        let mut at_s = begin_s;
        for (phase, &seconds) in spent.iter().enumerate().filter(|(_, seconds)| **seconds > 0.0) {
            let steps = if first.step == last.step {
                format!("step {}", first.step)
            } else {
                format!("steps {}–{}", first.step, last.step)
            };
            let text = format!("<b>rank {rank}, {steps}</b><br>{} {seconds:.3} s of {length_s:.3} s", PHASES[phase]);
            found.push(Segment { rank, phase, begin_s: at_s, length_s: seconds * room, text });
            at_s += seconds * room;
        }
        begin_s = last.end_s;
    }
    let substitution = PHASES.len() - 1;
    let trsv_s: f64 = after.iter().map(|time| time.trsv_s).sum();
    if trsv_s > 0.0 {
        let text = format!("<b>rank {rank}</b><br>{} {trsv_s:.3} s", PHASES[substitution]);
        found.push(Segment { rank, phase: substitution, begin_s, length_s: trsv_s, text });
    }
    found
}

/// The bars of a phase.
fn trace(name: &str, of_phase: Vec<&Segment>) -> Option<Value> {
    let of = |figure: fn(&Segment) -> f64| of_phase.iter().map(|segment| figure(segment)).collect::<Vec<f64>>();
    (!of_phase.is_empty()).then(|| {
        json!({
            "name": name, "type": "bar", "orientation": "h", "base": of(|segment| segment.begin_s), "x": of(|segment| segment.length_s),
            "y": of_phase.iter().map(|segment| row_name(segment.rank)).collect::<Vec<_>>(),
            "text": of_phase.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>(), "textposition": "none",
            "hovertemplate": "%{text}<extra></extra>", "marker": { "color": format!("--{}", name.to_lowercase()), "line": { "width": 0 } },
        })
    })
}

fn row_name(rank: usize) -> String {
    format!("rank {rank}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(step: u32, rank: u32, end_s: f64) -> PhaseTime {
        PhaseTime { step, rank, fact_s: 0.1, update_s: 0.6, end_s, ..PhaseTime::default() }
    }

    #[test]
    fn phases_lie_one_after_the_other_in_their_step() {
        let trsv = PhaseTime { step: 2, rank: 0, trsv_s: 0.2, ..PhaseTime::default() };
        let plot = timeline(7, &[step(0, 0, 1.0), step(1, 0, 1.5), trsv], false).unwrap();
        let names: Vec<&Value> = plot.traces.iter().map(|trace| &trace["name"]).collect();
        assert_eq!(names, ["FACT", "UPDATE", "TRSV"]);
        assert_eq!(plot.traces[1]["base"], json!([0.1, 1.0 + 0.1 * (0.5 / 0.7)]), "less room than time: look-ahead");
        let [fact, update] = [0, 1].map(|trace| plot.traces[trace]["x"][1].as_f64().unwrap());
        assert!((fact + update - 0.5).abs() < 1e-12);
        assert_eq!((&plot.traces[2]["base"], &plot.traces[2]["x"]), (&json!([1.5]), &json!([0.2])));
        assert_eq!(plot.traces[1]["text"][0], "<b>rank 0, step 0</b><br>UPDATE 0.600 s of 1.000 s");
    }

    #[test]
    fn many_steps_and_ranks_are_gathered() {
        let times: Vec<PhaseTime> =
            (0..500).flat_map(|at| (0..64).map(move |rank| step(at, rank, f64::from(at + 1)))).collect();
        let plot = timeline(7, &times, false).unwrap();
        assert!(plot.traces[0]["x"].as_array().unwrap().len() <= INTERVALS * MOST_RANKS);
        let rows = plot.layout["yaxis"]["categoryarray"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0], &rows[15]), (16, &json!("rank 63"), &json!("rank 0")));
        assert!(plot.caption.into_string().contains("Of 64 ranks 16 are shown."));
    }

    #[test]
    fn without_ends_of_steps_there_is_none() {
        assert!(timeline(0, &[], false).is_none() && timeline(0, &[step(0, 0, 0.0)], false).is_none());
    }
}
