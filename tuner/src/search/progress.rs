//! What the user sees while a session runs: a bar on a terminal, plain lines elsewhere, nothing when quiet.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use objectives::real::printable;

use crate::record::now::human;

/// Characters of a reason that was said before.
const LONGEST_AGAIN: usize = 80;

/// Progress of a session on standard error.
pub struct Progress {
    out: Out,
    total_s: f64,
    phase: String,
    now: String,
    best: String,
    warned: HashSet<String>,
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
        Self { out, total_s, phase: String::new(), now: String::new(), best: String::new(), warned: HashSet::new() }
    }

    /// Prints a line that stays.
    pub fn line(&self, text: &str) {
        match &self.out {
            Out::Quiet => {}
            Out::Lines => say(text),
            Out::Bar(bar) => bar.println(printable(text)),
        }
    }

    /// Prints a warning, also when quiet.
    pub fn warn(&self, text: &str) {
        match &self.out {
            Out::Quiet | Out::Lines => say(&format!("warning: {text}")),
            Out::Bar(bar) => bar.println(printable(&format!("warning: {text}"))),
        }
    }

    /// Prints a warning that was not printed before.
    pub fn warn_once(&mut self, text: &str) {
        if self.is_first(text) {
            self.warn(text);
        }
    }

    /// Whether there was no warning about this before.
    pub fn is_first(&mut self, about: &str) -> bool {
        self.warned.insert(about.to_owned())
    }

    /// The text whole the first time, and its beginning when it comes again: all trials may fail for one reason.
    pub fn whole_once<'t>(&mut self, text: &'t str) -> Cow<'t, str> {
        match text.char_indices().nth(LONGEST_AGAIN) {
            Some((end, _)) if !self.is_first(text) => format!("{}…", &text[..end]).into(),
            _ => text.into(),
        }
    }

    /// Names what is being done now.
    pub fn phase(&mut self, phase: &str) {
        if self.phase != phase {
            phase.clone_into(&mut self.phase);
            self.now.clear();
            if matches!(self.out, Out::Lines) {
                self.line(&format!("{phase} …"));
            }
        }
    }

    /// Says in the bar what the phase is at.
    pub fn now(&mut self, now: &str) {
        if self.now != now {
            now.clone_into(&mut self.now);
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
            let now = if self.now.is_empty() { String::new() } else { format!(": {}", self.now) };
            let message = format!("{}{now}{best} · {} left", self.phase, human(left_s));
            bar.set_message(printable(&message).into_owned());
        }
    }

    /// Clears the bar; what follows goes to standard output.
    pub fn end(&self) {
        if let Out::Bar(bar) = &self.out {
            bar.finish_and_clear();
        }
    }
}

/// Prints a line on standard error, which may have words of files of others. A closed standard error must not end a session.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", printable(text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_is_said_once() {
        let mut progress = Progress::new(1.0, true);
        let long = "ä".repeat(2 * LONGEST_AGAIN);
        assert_eq!(progress.whole_once(&long), long);
        assert_eq!(progress.whole_once(&long), "ä".repeat(LONGEST_AGAIN) + "…");
        let short = [(); 2].map(|()| progress.whole_once("short"));
        assert_eq!(short, ["short", "short"]);
    }
}
