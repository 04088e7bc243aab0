//! Screens of all sizes, on a terminal that is not there.

use ratatui_core::backend::TestBackend;
use ratatui_core::style::Color;
use ratatui_core::terminal::Terminal;

use super::*;
use crate::watch::model::tests::{at_work, ended};

const COLOUR: Look = Look { colour: true, ascii: false };
const PLAIN: Look = Look { colour: false, ascii: true };

/// The screen as a terminal of this size has it.
fn screen(model: &WatchModel, (width, height): (u16, u16), look: Look) -> Buffer {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame.buffer_mut(), model, look, None)).unwrap();
    terminal.backend().buffer().clone()
}

fn text(buffer: &Buffer) -> String {
    let row = |y: u16| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol().to_owned()).collect::<String>();
    (0..buffer.area.height).map(|y| row(y).trim_end().to_owned() + "\n").collect()
}

fn shows(text: &str, wanted: &[&str]) {
    for word in wanted {
        assert!(text.contains(word), "'{word}' is not in:\n{text}");
    }
}

#[test]
fn a_usual_terminal_shows_everything_that_matters() {
    let text = text(&screen(&WatchModel::new(&at_work()), (80, 24), COLOUR));
    shows(
        &text,
        &[
            "searching · at work · host-20261120-070000",
            "46 s left of 2 min",
            "If stopped    no score, only an estimate: 21.00 GFLOP/s",
            "Best          21.00 GFLOP/s at N = 1000",
            "Default       20.00 GFLOP/s",
            "Best/default  not measured",
            "Best so far   GFLOP/s by windows",
            "Running       ━━━━",
            "trial 3, windows for 12 s of about 20 s",
            "predicted 21.50 ± 1.075 GFLOP/s; bayes: expected to be best",
            "trial    GFLOP/s",
            "    2      21.00 windows",
            "Machine       trial 2: clock 2.00 GHz",
            "Nodes         █▄█",
            "q: quit",
        ],
    );
    assert!(text.chars().any(|sign| ('⠁'..='⣿').contains(&sign)), "a curve in Braille:\n{text}");
}

#[test]
fn a_wide_terminal_has_two_stacks() {
    let text = text(&screen(&WatchModel::new(&ended()), (200, 60), COLOUR));
    shows(&text, &["Result        22.50 GFLOP/s", "crashed", "segmentation fault", "8 pairs", "1×2×1t"]);
    let line = text.lines().find(|line| line.contains("Best so far")).unwrap();
    assert!(line.contains("Best          22.00 GFLOP/s"), "side by side: {line}");
}

/// As that of a final run that failed with a long message.
#[test]
fn a_wide_terminal_shows_what_it_has_room_for_of_a_long_result() {
    let mut model = WatchModel::new(&ended());
    model.outcome.value = "failed ".repeat(1000);
    for size in [(140, 24), (200, 60)] {
        shows(&text(&screen(&model, size, COLOUR)), &["Result        failed", "q: quit"]);
    }
}

#[test]
fn a_small_terminal_has_the_result_the_time_and_the_trial_under_way() {
    let text = text(&screen(&WatchModel::new(&at_work()), (40, 10), COLOUR));
    shows(
        &text,
        &["searching · at work", "46 s left", "If stopped no score", "trial 3", "Best 21.00 GFLOP/s", "q: quit"],
    );
}

#[test]
fn a_failure_has_its_reason_where_there_is_room_for_one_of_both() {
    let mut record = ended();
    record.rows.truncate(13);
    let text = text(&screen(&WatchModel::new(&record), (80, 24), COLOUR));
    shows(&text, &["   12    crashed  ", "the run ended with exit code 139"]);
}

#[test]
fn without_colour_there_is_none_and_in_ascii_nothing_else() {
    for record in [at_work(), ended()] {
        for size in [(80, 24), (200, 60), (40, 10)] {
            let model = WatchModel::new(&record);
            let coloured = screen(&model, size, COLOUR);
            assert!(coloured.content.iter().any(|cell| cell.fg != Color::Reset));
            let plain = screen(&model, size, PLAIN);
            assert!(plain.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
            assert!(plain.content.iter().all(|cell| cell.symbol().is_ascii()), "{}", text(&plain));
            assert!(plain_text_is_ascii(&model));
        }
    }
}

fn plain_text_is_ascii(model: &WatchModel) -> bool {
    super::plain(model, PLAIN).is_ascii()
}

#[test]
fn every_size_down_to_nothing_is_drawn_without_panic() {
    for record in [at_work(), ended()] {
        let model = WatchModel::new(&record);
        for width in (0..64).chain([79, 80, 139, 140, 141, 300]) {
            for height in (0..30).chain([60, 100]) {
                for look in [COLOUR, PLAIN] {
                    screen(&model, (width, height), look);
                }
            }
        }
    }
}

#[test]
fn the_text_has_whole_lines() {
    let model = WatchModel::new(&ended());
    let text = super::plain(&model, COLOUR);
    shows(
        &text,
        &[
            "Result        22.50 GFLOP/s at N = 1000, verified by the final run\n",
            "Best so far   GFLOP/s, from",
            "Trials        30, failed: 1 crashed\n",
        ],
    );
    assert!(text.lines().count() < 40, "{text}");
}

#[test]
fn a_simulated_session_says_so_first() {
    let mut model = WatchModel::new(&ended());
    model.simulated = true;
    let text = text(&screen(&model, (80, 24), PLAIN));
    assert!(text.starts_with("simulated, nothing is measured * ended"), "{text}");
}

#[test]
fn a_folder_that_does_not_answer_is_told() {
    let mut terminal = Terminal::new(TestBackend::new(80, 24)).unwrap();
    let model = WatchModel::new(&at_work());
    terminal.draw(|frame| draw(frame.buffer_mut(), &model, COLOUR, Some(12.0))).unwrap();
    shows(&text(terminal.backend().buffer()), &["q: quit   the run folder has not answered for 12 s"]);
}

#[test]
fn rows_go_to_the_most_important_parts_first() {
    let lines = |count: usize| vec![Line::from("x"); count];
    let parts = || vec![Part::text(lines(2), 2, 0), Part::text(lines(5), 1, 2), Part::text(lines(3), 1, 1)];
    for (height, expected) in [
        (0, [0, 0, 0]),
        (1, [1, 0, 0]),
        (2, [2, 0, 0]),
        (3, [2, 0, 1]),
        (4, [2, 1, 1]),
        (6, [2, 1, 3]),
        (8, [2, 3, 3]),
        (40, [2, 5, 3]),
    ] {
        assert_eq!(rows_of(&parts(), height), expected, "{height}");
    }
}
