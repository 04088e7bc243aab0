//! When a job and the core phase of its run began and ended.
//!
//! The core phase is what HPL times: factorization and back substitution (\[Green500\], aspect 1).

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use space::RunResult;

use objectives::real::GuardRecord;

/// How far the stamps of a run may lie outside of its job, in seconds: HPL prints whole ones.
pub(super) const WHOLE_SECONDS: f64 = 1.0;

/// A span of time; ends are in UTC, RFC 3339.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TimeSpan {
    /// Its start.
    pub start_utc: Timestamp,
    /// Its end.
    pub end_utc: Timestamp,
}

impl TimeSpan {
    /// From `start_utc` on, `seconds` long; `None` where that is no time.
    pub fn new(start_utc: Timestamp, seconds: f64) -> Option<Self> {
        let long = SignedDuration::try_from_secs_f64(seconds).ok()?;
        Some(Self { start_utc, end_utc: start_utc.checked_add(long).ok()? })
    }

    /// Start and end in seconds since 1970 in UTC.
    pub fn unix_s(&self) -> [f64; 2] {
        [&self.start_utc, &self.end_utc].map(|time| time.as_duration().as_secs_f64())
    }

    /// Its length in seconds.
    pub fn seconds(&self) -> f64 {
        let [start, end] = self.unix_s();
        end - start
    }
}

/// The stamps of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stamps {
    /// From the start of its command to its end; `None` where the record of its guard is gone.
    pub job: Option<TimeSpan>,
    /// The core phase; `None` where the engine did not print it in UTC.
    pub core: Option<TimeSpan>,
    /// Why that is missing, and the way out.
    pub core_missing: Option<String>,
}

impl Stamps {
    /// Those of a run whose guard wrote `guard`, and which is one of our engine with `result`, or has printed `output`.
    pub fn new(guard: Option<&GuardRecord>, result: Option<&RunResult>, output: &str) -> Self {
        let job = guard.and_then(|guard| TimeSpan::new(guard.started_utc.parse().ok()?, guard.wall_s));
        let core = match result {
            Some(result) => of_result(result).ok_or("result.json has no time that can be read".to_owned()),
            None => of_output(output, job.as_ref()),
        };
        Self { job, core_missing: core.as_ref().err().cloned(), core: core.ok() }
    }
}

pub(super) fn of_result(result: &RunResult) -> Option<TimeSpan> {
    let (time, before_s) = result.core_start();
    let before = TimeSpan::new(time.parse().ok()?, before_s)?;
    TimeSpan::new(before.end_utc, result.time_s)
}

/// Start and end that HPL has printed last, `HPL_pdgesv() start time Thu Oct 12 18:37:13 2023`: in the local time of the run,
/// which counts as UTC where that lies inside of the job.
fn of_output(output: &str, job: Option<&TimeSpan>) -> Result<TimeSpan, String> {
    let [start, end] = printed(output)
        .ok_or("the program prints no HPL_pdgesv() start time and end time; our engine and Netlib's HPL 2.3 do")?;
    let utc = |time: DateTime| time.to_zoned(jiff::tz::TimeZone::UTC).map(|zoned| zoned.timestamp());
    let (Ok(start_utc), Ok(end_utc)) = (utc(start), utc(end)) else {
        return Err("its time stamps cannot be read".to_owned());
    };
    let span = TimeSpan { start_utc, end_utc };
    let job = job.ok_or("guard.json is gone, so the time zone of the stamps is unknown")?;
    let ([start, end], [first, last]) = (span.unix_s(), job.unix_s());
    if start < first - WHOLE_SECONDS || end > last + WHOLE_SECONDS || end < start {
        return Err("the program prints local time; run the session with TZ=UTC0 in its environment".to_owned());
    }
    Ok(span)
}

/// What stands in front of the stamps of an output.
const NAMES: [&str; 2] = ["HPL_pdgesv() start time", "HPL_pdgesv() end time"];

/// Whether an output has stamps.
pub fn has_stamps(output: &str) -> bool {
    output.lines().any(|line| NAMES.iter().any(|name| line.trim().starts_with(name)))
}

/// The last stamps that an output has, without a zone. The name of the day says nothing that the date does not.
pub fn printed(output: &str) -> Option<[DateTime; 2]> {
    let stamp = |name: &str| {
        let text = output.lines().rev().find_map(|line| line.trim().strip_prefix(name))?;
        let (_day, date) = text.trim().split_once(' ')?;
        DateTime::strptime("%b %e %H:%M:%S %Y", date.trim()).ok()
    };
    let [start, end] = NAMES.map(stamp);
    Some([start?, end?])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn output(start: &str, end: &str) -> String {
        format!("x\nHPL_pdgesv() start time {start}\n\nHPL_pdgesv() end time   {end}\n\n")
    }

    #[test]
    fn stamps_in_utc_lie_inside_of_their_job() {
        let job = TimeSpan::new(at("2026-11-24T08:00:00.25Z"), 100.0).unwrap();
        let printed = output("Tue Nov 24 08:00:10 2026", "Tue Nov 24 08:01:30 2026");
        let core = of_output(&printed, Some(&job)).unwrap();
        assert_eq!((core.start_utc, core.seconds()), (at("2026-11-24T08:00:10Z"), 80.0));
        let local = output("Tue Nov 24 09:00:10 2026", "Tue Nov 24 09:01:30 2026");
        assert!(of_output(&local, Some(&job)).unwrap_err().contains("TZ=UTC0"));
        assert!(of_output(&printed, None).unwrap_err().contains("guard.json"));
        assert!(of_output("nothing", Some(&job)).is_err());
    }

    #[test]
    fn days_of_one_digit_are_read() {
        let stamps = printed(&output("Sun Nov  1 08:00:10 2026", "Sun Nov  1 08:00:11 2026")).unwrap();
        assert_eq!(stamps[0], jiff::civil::date(2026, 11, 1).at(8, 0, 10, 0));
        assert_eq!(printed("HPL_pdgesv() start time soon\nHPL_pdgesv() end time x\n"), None);
    }
}
