//! What the user sees while a session runs: a bar on a terminal, plain lines elsewhere, nothing when quiet.

use std::io::Write;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress of a session on standard error.
pub struct Progress {
    out: Out,
    total_s: f64,
    phase: String,
    best: String,
}

enum Out {
    Quiet,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Progress over a budget of `total_s` seconds.
    pub fn new(total_s: f64, quiet: bool) -> Self {
        let out = if quiet {
            Out::Quiet
        } else {
            let bar = ProgressBar::with_draw_target(Some(total_s.ceil() as u64), ProgressDrawTarget::stderr());
            let style = ProgressStyle::with_template("{bar:16} {wide_msg}").expect("the template is well formed");
            bar.set_style(style.progress_chars("=> "));
            // Hidden where no bar can be drawn: not a terminal, or a dumb one.
            if bar.is_hidden() { Out::Lines } else { Out::Bar(bar) }
        };
        Self { out, total_s, phase: String::new(), best: String::new() }
    }

    /// Prints a line that stays.
    pub fn line(&self, text: &str) {
        match &self.out {
            Out::Quiet => {}
            Out::Lines => say(text),
            Out::Bar(bar) => bar.println(text),
        }
    }

    /// Prints a warning, also when quiet.
    pub fn warn(&self, text: &str) {
        match &self.out {
            Out::Quiet | Out::Lines => say(&format!("warning: {text}")),
            Out::Bar(bar) => bar.println(format!("warning: {text}")),
        }
    }

    /// Names what is being done now.
    pub fn phase(&mut self, phase: &str) {
        if self.phase != phase {
            phase.clone_into(&mut self.phase);
            if matches!(self.out, Out::Lines) {
                self.line(&format!("{phase} …"));
            }
        }
    }

    /// Shows the best score so far.
    pub fn best(&mut self, text: String) {
        self.best = text;
    }

    /// Redraws with the time left.
    pub fn tick(&self, left_s: f64) {
        if let Out::Bar(bar) = &self.out {
            bar.set_position((self.total_s - left_s).clamp(0.0, self.total_s) as u64);
            let best = if self.best.is_empty() { String::new() } else { format!(" · best {}", self.best) };
            bar.set_message(format!("{}{best} · {} left", self.phase, human(left_s)));
        }
    }

    /// Clears the bar; what follows goes to standard output.
    pub fn end(&self) {
        if let Out::Bar(bar) = &self.out {
            bar.finish_and_clear();
        }
    }
}

/// Prints a line on standard error. A closed standard error must not end a session.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A time as people say it: `45 s`, `3 min 20 s`, `2 h 5 min`.
pub fn human(seconds: f64) -> String {
    let s = Duration::try_from_secs_f64(seconds.max(0.0)).map_or(0, |d| d.as_secs());
    match s {
        0..60 => format!("{s} s"),
        60..3600 if s.is_multiple_of(60) => format!("{} min", s / 60),
        60..3600 => format!("{} min {} s", s / 60, s % 60),
        _ if s % 3600 < 60 => format!("{} h", s / 3600),
        _ => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_as_people_say_them() {
        assert_eq!(human(45.9), "45 s");
        assert_eq!(human(200.0), "3 min 20 s");
        assert_eq!(human(7500.0), "2 h 5 min");
        assert_eq!(human(14400.0), "4 h");
        assert_eq!(human(f64::NAN), "0 s");
    }
}
