//! Exit codes, which are API: 0 done, 1 unexpected, 2 usage or bad input, 3 residual failed, 4 no trial
//! succeeded, 5 records not written, 6 a comparison, an acceptance or a check says no, or trials succeeded and the final run did
//! not, 130 stopped by a signal.

use space::nearest;

use crate::error::RecordError;

/// Everything went well.
pub const DONE: u8 = 0;
/// Something that should not happen.
pub const UNEXPECTED: u8 = 1;
/// A flag, a file or a machine that cannot be used as asked.
pub const BAD_INPUT: u8 = 2;
/// A run finished with a wrong solution.
pub const RESIDUAL: u8 = 3;
/// No trial succeeded.
pub const NO_TRIAL: u8 = 4;
/// Records could not be written.
pub const NOT_WRITTEN: u8 = 5;
/// Trials succeeded, but no final run: the best is not verified by a run of its own.
pub const NO_FINAL: u8 = 6;
/// Nodes that are slower than the others, or have less (`hpl-tune nodes`).
pub const NOT_ACCEPTED: u8 = NO_FINAL;
/// A pack that lacks something, a file that does not hold, or a machine that does not reach what was promised (`hpl-tune pack`,
/// `hpl-tune verify`), or runs that have become slower (`hpl-tune compare`).
pub const CHECK_FAILED: u8 = NO_FINAL;
/// Stopped by SIGINT, SIGTERM, SIGHUP or SIGQUIT.
pub const INTERRUPTED: u8 = 130;

/// Input that cannot be used; the message names it and the way out.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct BadInput(pub String);

/// Wraps an error of the user's input, so that the program ends with [`BAD_INPUT`].
pub fn bad_input(error: impl ToString) -> anyhow::Error {
    BadInput(error.to_string()).into()
}

/// The exit code of an error.
pub fn code(error: &anyhow::Error) -> u8 {
    match error.downcast_ref::<RecordError>() {
        Some(RecordError::Write { .. }) => NOT_WRITTEN,
        Some(_) => BAD_INPUT,
        None if error.is::<BadInput>() => BAD_INPUT,
        None => UNEXPECTED,
    }
}

/// Whether the reader of the standard output has closed it.
pub fn closed_pipe(error: &anyhow::Error) -> bool {
    let closed = |e: &std::io::Error| e.kind() == std::io::ErrorKind::BrokenPipe;
    error.chain().any(|e| e.downcast_ref().is_some_and(closed))
}

/// The message of an error with its causes, without those that an outer message repeats.
pub fn message(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += &format!(": {cause}");
        }
    }
    // Readers of TOML and JSON list what they know.
    let hint = mistyped(&text).map(|(word, known)| nearest::hint(word, known)).unwrap_or_default();
    text + &hint
}

/// The key that a reader does not know, and those that it knows, in ``unknown field `x`, expected `a` or `b` ``.
fn mistyped(message: &str) -> Option<(&str, Vec<&str>)> {
    let (_, rest) = message.split_once("unknown field `")?;
    let (word, rest) = rest.split_once('`')?;
    let line = rest.lines().next()?;
    Some((word, line.split('`').skip(1).step_by(2).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_key_is_named() {
        let error = anyhow::anyhow!("space.toml: unknown field `fixd`, expected one of `values`, `fixed`, `min`\n");
        assert!(message(&error).ends_with("; did you mean 'fixed'?"), "{}", message(&error));
        let far = anyhow::anyhow!("unknown field `frobs`, expected `n` or `nb`");
        assert!(!message(&far).contains("did you mean"));
        assert_eq!(message(&anyhow::anyhow!("unknown field `x")), "unknown field `x");
    }

    #[test]
    fn a_cause_is_told_once() {
        let error = anyhow::Error::new(std::io::Error::other("no memory")).context("rank 0: no memory; lower N");
        assert_eq!(message(&error.context("cannot run")), "cannot run: rank 0: no memory; lower N");
    }
}
