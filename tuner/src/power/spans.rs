//! The spans of a run over which power is averaged.

use objectives::Measurement;
use objectives::real::GuardRecord;

use super::stamps::{TimeSpan, WHOLE_SECONDS, of_result, printed};

/// Time zones differ by whole quarters of an hour.
const ZONE_S: f64 = 900.0;

/// The spans of a run, in seconds since 1970, UTC.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunSpans {
    /// From the start of its command to its end.
    pub job: [f64; 2],
    /// The core phase (factorization and back substitution, what HPL times), where its time is known.
    pub core: Option<CoreSpan>,
}

/// When the core phase was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreSpan {
    /// A span that surely lies in it.
    pub inside: [f64; 2],
    /// How long it took, in seconds.
    pub length_s: f64,
}

impl RunSpans {
    /// Those of a run by the record of its guard. `measured`: its result, where it is a whole run that passed; `output`: what it printed.
    /// `None` where the start of the command is no time.
    pub fn new(guard: &GuardRecord, measured: Option<&Measurement>, output: &str) -> Option<Self> {
        let job = TimeSpan::new(guard.started_utc.parse().ok()?, guard.wall_s)?.unix_s();
        let core = measured.and_then(|measured| match &measured.result {
            Some(result) => {
                let inside = of_result(result)?.unix_s();
                Some(CoreSpan { inside, length_s: result.time_s })
            }
            None => of_printed(output, job, measured.time_s),
        });
        Some(Self { job, core })
    }
}

/// By the stamps that HPL prints: whole seconds of a local time. The zone is the one by which both lie in the job; of several that
/// fit, UTC. The second in which the phase begins is left out, as it may have begun at its end.
fn of_printed(output: &str, job: [f64; 2], length_s: f64) -> Option<CoreSpan> {
    let utc = |time: jiff::civil::DateTime| {
        let zoned = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        Some(zoned.timestamp().as_duration().as_secs_f64())
    };
    let [start, end] = printed(output)?;
    let (start_s, end_s) = (utc(start)?, utc(end)?);
    let first = ((job[0] - WHOLE_SECONDS - start_s) / ZONE_S).ceil();
    let last = ((job[1] + WHOLE_SECONDS - end_s) / ZONE_S).floor();
    let zone = if (first..=last).contains(&0.0) { 0.0 } else { first };
    let known = zone == 0.0 || first == last;
    let inside = [start_s + zone * ZONE_S + 1.0, end_s + zone * ZONE_S];
    (first <= last && known && inside[0] < inside[1]).then_some(CoreSpan { inside, length_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(start: &str, end: &str) -> String {
        format!("HPL_pdgesv() start time {start}\n\nHPL_pdgesv() end time   {end}\n")
    }

    #[test]
    fn local_stamps_are_put_into_their_job() {
        let utc = output("Tue Nov 24 08:00:10 2026", "Tue Nov 24 08:01:30 2026");
        let start_s = "2026-11-24T08:00:00Z".parse::<jiff::Timestamp>().unwrap().as_duration().as_secs_f64();
        let job = [start_s + 0.25, start_s + 100.25];
        let expected = Some(CoreSpan { inside: [start_s + 11.0, start_s + 90.0], length_s: 80.4 });
        assert_eq!(of_printed(&utc, job, 80.4), expected);
        // India is half an hour off, Nepal a quarter.
        for local in ["13:30:10|13:31:30", "13:45:10|13:46:30", "02:00:10|02:01:30"] {
            let (start, end) = local.split_once('|').unwrap();
            let text = output(&format!("Tue Nov 24 {start} 2026"), &format!("Tue Nov 24 {end} 2026"));
            assert_eq!(of_printed(&text, job, 80.4), expected, "{local}");
        }
        let other = output("Tue Nov 24 09:05:10 2026", "Tue Nov 24 09:06:30 2026");
        assert_eq!(of_printed(&other, job, 80.4), None, "five minutes are no zone");
        assert_eq!(of_printed("nothing", job, 80.4), None);
    }

    #[test]
    fn in_a_job_with_room_for_two_zones_only_utc_is_known() {
        let job = [1_000_000_000.0, 1_000_003_600.0];
        let stamp = |seconds: u64| space::out::ctime("2001-09-09T01:46:40Z", seconds as f64, |_| 0).unwrap();
        let utc = output(&stamp(1000), &stamp(1100));
        assert_eq!(of_printed(&utc, job, 100.0).unwrap().inside, [1_000_001_001.0, 1_000_001_100.0]);
        let local = output(&stamp(1000 + 7200), &stamp(1100 + 7200));
        assert_eq!(of_printed(&local, job, 100.0), None);
    }
}
