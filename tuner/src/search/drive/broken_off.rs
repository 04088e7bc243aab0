//! Runs that are ended: by what ends this program, too, which says nothing of their candidates, or as they are not worth their end.

use std::path::Path;
use std::time::{Duration, Instant};

use objectives::real::GuardRecord;
use objectives::{Failure, Observation};

use crate::search::interrupt::Interrupt;

/// The end of a job reaches its runs and this program within so long.
const SAME_END: Duration = Duration::from_secs(5);

/// Whether a run ended as one does that is ended from outside: launchers say that by codes of many kinds.
pub(super) fn broke_off(outcome: &Result<Observation, Failure>) -> bool {
    use Failure::{Crashed, Killed, Launch, Output};
    matches!(outcome, Err(Crashed { .. } | Killed { .. } | Launch { .. } | Output { .. }))
}

/// Whether a run that ended `since_end` ago broke off as this program is asked to end. What asks it may have ended the run a moment earlier;
/// where both are `in_job`, one of Slurm, that is waited for.
pub(super) fn ended_with_session(
    outcome: &Result<Observation, Failure>,
    since_end: Duration,
    in_job: bool,
    interrupt: &Interrupt,
) -> bool {
    let most = if in_job { SAME_END.saturating_sub(since_end) } else { Duration::ZERO };
    broke_off(outcome) && interrupt.asked_within(most)
}

/// Time since the end of a run in `folder`, which was `seen` running last; none where nothing says it. Many may have ended at the same moment,
/// and are looked at in turn. The file server that says it may have another clock.
pub(super) fn since_end(folder: &Path, seen: Instant) -> Duration {
    let written = std::fs::metadata(GuardRecord::path(folder)).and_then(|about| about.modified());
    written.ok().and_then(|written| written.elapsed().ok()).unwrap_or_default().min(seen.elapsed())
}

/// The outcome of a run that was ended for `why`, and had the outcome `end` then. One that had passed counts: its processes may not have
/// come to their end for the loss of a node.
pub(super) fn unless_passed(why: Failure, end: Option<Result<Observation, Failure>>) -> Result<Observation, Failure> {
    match end {
        Some(Ok(observed)) => Ok(observed),
        _ => Err(why),
    }
}
