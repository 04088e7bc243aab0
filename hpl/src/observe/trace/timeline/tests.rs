use super::*;
use crate::observe::phases::Phase;
use crate::plan::Part;

/// Two ranks of two threads; each step takes 10 ms, and look-ahead factors the next panel in the first half.
fn spans(steps: u32) -> Vec<Span> {
    let mut spans = Vec::new();
    for (rank, step) in (0..2).flat_map(|rank| (0..steps).map(move |step| (rank, step))) {
        let start_s = f64::from(step) * 0.01;
        let mut add = |thread, step, phase, part, from: f64, to: f64| {
            spans.push(Span { rank, thread, step, phase, part, start_s: start_s + from, end_s: start_s + to });
        };
        add(0, step, Phase::Update, Some(Part::LookAhead), 0.0, 0.002);
        if step + 1 < steps {
            add(0, step + 1, Phase::Fact, None, 0.002, 0.004);
            add(0, step + 1, Phase::Lbcast, None, 0.004, 0.005);
        }
        add(0, step, Phase::Update, Some(Part::Rest), 0.005, 0.009);
        // Two slabs without a gap.
        add(1, step, Phase::Update, Some(Part::Rest), 0.0, 0.004);
        add(1, step, Phase::Update, Some(Part::Rest), 0.004, 0.0075);
    }
    let (rank, thread, step, phase, part) = (0, 0, steps, Phase::Trsv, None);
    let start_s = f64::from(steps) * 0.01;
    spans.push(Span { rank, thread, step, phase, part, start_s, end_s: start_s + 0.001 });
    spans
}

fn draw(shown: StepRange) -> String {
    let timeline = TracePicture { spans: &spans(20), steps: 20, shown, title: "N < 1 & \"x\"", subtitle: "sub" };
    timeline.draw().unwrap()
}

/// Value of an attribute of an element.
fn attribute(element: &str, name: &str) -> f64 {
    let from = element.find(&format!(" {name}=\"")).unwrap() + name.len() + 3;
    element[from..].split('"').next().unwrap().parse().unwrap()
}

/// Lines that have a rectangle of this class and a text under the pointer.
fn blocks<'a>(svg: &'a str, class: &str) -> Vec<&'a str> {
    let start = format!("<rect class=\"{class}\"");
    svg.lines().filter(|line| line.starts_with(&start) && line.contains("<title>")).collect()
}

#[test]
fn blocks_are_drawn_at_their_time_stamps() {
    let svg = draw(StepRange::Of(4, 7));
    // 40 ms over the width of the lanes.
    let per_ms = (WIDTH - LEFT - RIGHT) / 40.0;
    let facts = blocks(&svg, "fact");
    assert_eq!(facts.len(), 8, "four panels on two ranks");
    for (fact, step) in facts.iter().zip([5, 6, 7, 8, 5, 6, 7, 8]) {
        let expected = LEFT + (f64::from(step - 1) * 10.0 + 2.0 - 40.0) * per_ms;
        assert!(
            (attribute(fact, "x") - expected).abs() < 0.02 && (attribute(fact, "width") - 2.0 * per_ms).abs() < 0.02
        );
        assert!(fact.contains(&format!("panel {step}, 2.000 ms")), "{fact}");
    }
    // Slabs side by side are one block.
    assert_eq!(blocks(&svg, "rest").len(), 2 * 4 * 2);
    assert!(blocks(&svg, "rest").iter().any(|block| block.contains("thread 1") && block.contains("7.500 ms")));
    // Rank by rank: FACT and both updates of thread 0, and thread 1, as shares of the 10 ms of a step.
    let shares: Vec<&str> =
        svg.lines().filter(|line| line.contains(" %</text>")).filter_map(|line| line.rsplit('>').nth(1)).collect();
    assert_eq!(shares, ["80.0 %</text", "75.0 %</text", "80.0 %</text", "75.0 %</text"]);
}

#[test]
fn blocks_are_inside_the_picture_and_do_not_overlap() {
    for shown in [StepRange::Middle, StepRange::All, StepRange::Of(0, 0), StepRange::Of(19, 19)] {
        let svg = draw(shown);
        let mut positions: Vec<(f64, f64, f64)> = ["fact", "lbcast", "ahead", "rest", "rs", "trsv"]
            .iter()
            .flat_map(|class| blocks(&svg, class))
            .map(|block| (attribute(block, "y"), attribute(block, "x"), attribute(block, "width")))
            .collect();
        positions.sort_by(|a, b| a.partial_cmp(b).unwrap());
        for &(_, x, width) in &positions {
            assert!(x >= LEFT && x + width <= WIDTH - RIGHT + 0.3, "{shown:?}: {x} {width}");
        }
        let lanes = positions.chunk_by(|a, b| a.0 == b.0);
        assert!(lanes.clone().count() == 4);
        assert!(lanes.clone().all(|lane| lane.windows(2).all(|pair| pair[0].1 + pair[0].2 <= pair[1].1 + 0.02)));
    }
}

#[test]
fn the_ends_of_the_run_belong_to_its_first_and_last_step() {
    assert!(draw(StepRange::All).contains("back substitution, 1.000 ms"));
    assert!(draw(StepRange::Of(19, 19)).contains("back substitution, 1.000 ms"));
    assert!(!draw(StepRange::Of(0, 18)).contains("back substitution"));
    let mut all = spans(3);
    all.push(Span { end_s: 0.0, start_s: 0.0, ..all[0] });
    let none = TracePicture { spans: &[], steps: 0, shown: StepRange::Middle, title: "", subtitle: "" };
    assert_eq!(none.draw(), None);
}

#[test]
fn texts_are_escaped_and_the_legend_has_only_kinds_in_the_picture() {
    let svg = draw(StepRange::Middle);
    assert!(svg.contains("N &lt; 1 &amp; &quot;x&quot;") && !svg.contains("N < 1"));
    assert!(svg.contains("UPDATE look-ahead") && !svg.contains("row swap"));
}
