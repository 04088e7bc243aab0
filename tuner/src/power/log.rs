//! A meter's file: CSV with the columns `time` and `watts`.

use jiff::Timestamp;
use space::stats::median;

/// A reading longer than this many times the usual one stands after a gap.
const GAP: f64 = 1.5;

/// The last time that is read, in the year 2286; later ones are no times of a run, and have no room for [`SHORTEST_S`].
const LAST_S: f64 = 1e10;

/// A reading is at least as long, in seconds; no meter is faster.
const SHORTEST_S: f64 = 1e-5;

/// The mean power over a span of time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Start of the span in seconds since 1970, UTC.
    pub start_s: f64,
    /// Its end.
    pub end_s: f64,
    /// Mean power in watts.
    pub watts: f64,
}

/// Why a file is no list of readings. Lines count from 1.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum LogError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Unreadable(String),
    /// Its first line names no such columns.
    #[error("line 1: no column {name}; the first line names the columns, time and watts among them")]
    Column {
        /// What is missing.
        name: &'static str,
    },
    /// A line that cannot be read.
    #[error("line {line}: {problem}")]
    Line {
        /// Where.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// There are too few.
    #[error("it has {0} readings; at least 2 are needed, as a reading is the mean since the one before")]
    TooFew(usize),
}

/// Reads a meter's file; `offset_s` is added to its times. Each reading is the mean power since the one before it, so the
/// first is a start alone; one after a gap counts for the usual distance before its time.
///
/// # Errors
/// [`LogError`] with the line.
pub fn parse(text: &str, offset_s: f64) -> Result<Vec<Reading>, LogError> {
    let mut reader =
        csv::ReaderBuilder::new().flexible(true).trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
    let line_of = |error: &csv::Error| error.position().map_or(0, csv::Position::line);
    let named = reader.headers().map_err(|error| LogError::Line { line: 1, problem: error.to_string() })?.clone();
    let column = |name: &'static str| {
        let place = named.iter().position(|found| found.eq_ignore_ascii_case(name));
        place.ok_or(LogError::Column { name })
    };
    let (time, watts) = (column("time")?, column("watts")?);
    let mut points: Vec<(f64, f64)> = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| LogError::Line { line: line_of(&error), problem: error.to_string() })?;
        let line = record.position().map_or(0, |start| line_at(text, start));
        let wrong = |problem: String| LogError::Line { line, problem };
        let cell = |place: usize, name: &str| record.get(place).ok_or_else(|| wrong(format!("no {name}")));
        let time_s = seconds(cell(time, "time")?).map_err(wrong)? + offset_s;
        if !(0.0..=LAST_S).contains(&time_s) {
            return Err(wrong("its time, with --power-offset, is not between the years 1970 and 2286".to_owned()));
        }
        let text = cell(watts, "watts")?;
        let watts = text.parse::<f64>().ok().filter(|watts| watts.is_finite() && *watts >= 0.0);
        let watts = watts.ok_or_else(|| wrong(format!("watts must be a number from 0, found '{}'", shorten(text))))?;
        if points.last().is_some_and(|(last_s, _)| time_s < last_s + SHORTEST_S) {
            return Err(wrong("its time is not after that of the line before; sort the readings by time".to_owned()));
        }
        points.push((time_s, watts));
    }
    if points.len() < 2 {
        return Err(LogError::TooFew(points.len()));
    }
    let usual_s = usual_s(&points);
    let reading = |pair: &[(f64, f64)]| {
        let (from_s, (end_s, watts)) = (pair[0].0, pair[1]);
        let start_s = if end_s - from_s > GAP * usual_s { end_s - usual_s } else { from_s };
        Reading { start_s, end_s, watts }
    };
    Ok(points.windows(2).map(reading).collect())
}

/// The line of a record that is read from `start` on: empty lines and comments before it are passed over.
fn line_at(text: &str, start: &csv::Position) -> u64 {
    let from = usize::try_from(start.byte()).ok().and_then(|byte| text.get(byte..)).unwrap_or("");
    let before = from.lines().take_while(|line| line.trim().is_empty() || line.starts_with('#')).count();
    start.line() + before as u64
}

/// Usual length of the readings, in seconds: their median.
pub fn interval_s(readings: &[Reading]) -> f64 {
    let lengths: Vec<f64> = readings.iter().map(|reading| reading.end_s - reading.start_s).collect();
    median(&lengths).unwrap_or(0.0)
}

fn usual_s(points: &[(f64, f64)]) -> f64 {
    let lengths: Vec<f64> = points.windows(2).map(|pair| pair[1].0 - pair[0].0).collect();
    median(&lengths).unwrap_or(0.0)
}

/// A time in seconds since 1970: RFC 3339 with its zone, or that number itself.
fn seconds(text: &str) -> Result<f64, String> {
    if let Some(number) = text.parse::<f64>().ok().filter(|number| number.is_finite()) {
        return Ok(number);
    }
    text.parse::<Timestamp>().map(|time| time.as_duration().as_secs_f64()).map_err(|_| {
        format!(
            "time must be RFC 3339 with its zone, as 2026-11-24T08:00:00Z, or seconds since 1970 in UTC, found '{}'",
            shorten(text)
        )
    })
}

fn shorten(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_are_means_since_the_one_before() {
        let text = "# meter 7\nTime, volts, Watts\n2026-11-24T08:00:00Z, 230, 100\n2026-11-24T08:00:01Z, 230, 110\n\
                    2026-11-24T09:00:02+01:00, 230, 120\n1795507206, 229, 130\n";
        let readings = parse(text, 0.5).unwrap();
        let start_s = 1_795_507_200.5;
        let reading = |from: f64, to: f64, watts: f64| Reading { start_s: start_s + from, end_s: start_s + to, watts };
        // The last one stands after a gap of four seconds.
        assert_eq!(readings, [reading(0.0, 1.0, 110.0), reading(1.0, 2.0, 120.0), reading(5.0, 6.0, 130.0)]);
        assert_eq!(interval_s(&readings), 1.0);
    }

    /// After a gap the start is found from the end, which has fewer digits the later it is.
    #[test]
    fn no_reading_is_of_length_zero() {
        let readings = parse("time,watts\n1,2\n1.0001,2\n1.0002,2\n9999999999,3\n", 0.0).unwrap();
        assert!(readings.iter().all(|reading| reading.start_s < reading.end_s), "{readings:?}");
        let message = parse("time,watts\n1,2\n1.000001,2\n", 0.0).unwrap_err().to_string();
        assert!(message.contains("line 3: its time is not after"), "{message}");
    }

    #[test]
    fn wrong_files_are_named_with_their_line() {
        for (text, words) in [
            ("", "line 1: no column time"),
            ("time,volts\n1,2\n", "line 1: no column watts"),
            ("time,watts\n1,2\nsoon,3\n", "line 3: time must be RFC 3339"),
            ("time,watts\n1,2\n2026-11-24T08:00:00,3\n", "line 3: time must be RFC 3339 with its zone"),
            ("time,watts\n1,2\n2,many\n", "line 3: watts must be a number from 0, found 'many'"),
            ("time,watts\n1,2\n2,-3\n", "line 3: watts"),
            ("time,watts\n1,2\n2,NaN\n", "line 3: watts"),
            ("time,watts\n1,2\n3\n", "line 3: no watts"),
            ("time,watts\n1,2\n\n# late\n1,3\n", "line 5: its time is not after"),
            ("time,watts\n1,2\n", "1 readings"),
            ("time,watts\n1,2\n2e40,3\n", "line 3: its time, with --power-offset, is not between"),
            ("time,watts\n-1,2\n2,3\n", "line 2: its time, with --power-offset, is not between"),
        ] {
            let message = parse(text, 0.0).unwrap_err().to_string();
            assert!(message.contains(words), "{text}: {message}");
        }
    }
}
