//! A range of steps, `10..14` or `all`.

use std::str::FromStr;

/// Number of steps shown by default.
const DEFAULT: u32 = 4;

/// The steps that a timeline shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StepRange {
    /// Four steps in the middle of the run.
    #[default]
    Middle,
    /// All steps.
    All,
    /// From the first to the last of these, both included.
    Of(u32, u32),
}

/// The text is not a range of steps.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a range of steps; write FIRST..LAST, as in 10..14, or all")]
pub struct NoSteps(String);

/// A step of the range is not in the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("step {asked} is not in the run, which has {steps} steps, counted from 0")]
pub struct NotInRun {
    /// The step.
    pub asked: u32,
    /// Number of steps of the run.
    pub steps: u32,
}

impl StepRange {
    /// First and last step of a run of `steps` ≥ 1 steps.
    pub fn of(self, steps: u32) -> (u32, u32) {
        let end = steps.saturating_sub(1);
        match self {
            Self::Middle => {
                let first = (steps / 2).saturating_sub(DEFAULT / 2);
                (first, end.min(first + DEFAULT - 1))
            }
            Self::All => (0, end),
            Self::Of(first, last) => (first.min(end), last.min(end)),
        }
    }

    /// Checks that a run of `steps` steps has the chosen steps.
    ///
    /// # Errors
    /// [`NotInRun`].
    pub fn check(self, steps: u32) -> Result<(), NotInRun> {
        match self {
            Self::Of(_, asked) if asked >= steps => Err(NotInRun { asked, steps }),
            _ => Ok(()),
        }
    }
}

impl FromStr for StepRange {
    type Err = NoSteps;

    fn from_str(text: &str) -> Result<Self, NoSteps> {
        if text == "all" {
            return Ok(Self::All);
        }
        let parse = || {
            let (first, last) = text.split_once("..")?;
            let (first, last) = (first.parse().ok()?, last.parse().ok()?);
            (first <= last).then_some(Self::Of(first, last))
        };
        parse().ok_or_else(|| NoSteps(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts() {
        assert_eq!("10..14".parse(), Ok(StepRange::Of(10, 14)));
        assert_eq!("3..3".parse(), Ok(StepRange::Of(3, 3)));
        assert_eq!("all".parse(), Ok(StepRange::All));
        for text in ["", "..", "4..3", "10", "1..x", "-1..3", "1..99999999999"] {
            let error = text.parse::<StepRange>().unwrap_err().to_string();
            assert!(error.contains("FIRST..LAST"), "{error}");
        }
    }

    #[test]
    fn every_run_has_a_middle() {
        for steps in 1..50 {
            let (first, last) = StepRange::Middle.of(steps);
            assert!(first <= last && last < steps && last - first == steps.min(DEFAULT) - 1, "{steps}");
            assert_eq!(StepRange::All.of(steps), (0, steps - 1));
        }
    }

    #[test]
    fn steps_beyond_the_run_are_refused() {
        StepRange::Of(3, 7).check(8).unwrap();
        let error = StepRange::Of(3, 8).check(8).unwrap_err();
        assert_eq!(error.to_string(), "step 8 is not in the run, which has 8 steps, counted from 0");
    }
}
