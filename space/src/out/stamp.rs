//! Time stamps in the form of C's `ctime`.

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// `after_s` seconds after a UTC time of RFC 3339 (`2023-10-12T18:37:13Z`, fractions allowed), as C's `ctime`
/// prints it, in local time and without the line end. `offset_s` says by how many seconds local time is ahead of UTC at a time
/// in seconds since 1970 in UTC. `None` when the text is no such time, or local time lies before 1970.
///
/// ```
/// let stamp = space::out::ctime("2023-10-12T18:37:13.5Z", 48.5, |_| 7200);
/// assert_eq!(stamp.as_deref(), Some("Thu Oct 12 20:38:02 2023"));
/// ```
pub fn ctime(rfc3339: &str, after_s: f64, offset_s: impl Fn(u64) -> i64) -> Option<String> {
    let (date, time) = rfc3339.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = fields(date, '-')?;
    let (whole, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = fields(whole, ':')?;
    let fraction: f64 = format!("0.{fraction}").parse().ok()?;
    let valid = (1970..10_000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid || hour > 23 || minute > 59 || second > 60 || !(0.0..1e9).contains(&after_s) {
        return None;
    }
    let midnight = days_before_year(year) + days_before_month(year, month) + day - 1;
    let seconds = (midnight * 24 + hour) * 3600 + minute * 60 + second + (fraction + after_s) as u64;
    seconds.checked_add_signed(offset_s(seconds)).map(stamp)
}

/// The stamp of a time in seconds since 1970-01-01 00:00:00, a Thursday.
fn stamp(seconds: u64) -> String {
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Years and months are few: walk.
    let year = (1970..).take_while(|&year| days_before_year(year) <= days).last().unwrap_or(1970);
    let of_year = days - days_before_year(year);
    let month = (1..=12).rev().find(|&month| days_before_month(year, month) <= of_year).unwrap_or(1);
    let day = of_year - days_before_month(year, month) + 1;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[(month - 1) as usize]);
    format!("{weekday} {month} {day:2} {hour:02}:{minute:02}:{second:02} {year}")
}

/// Three numbers of digits alone.
fn fields(text: &str, separator: char) -> Option<[u64; 3]> {
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok()).flatten();
    let numbers: Option<Vec<u64>> = text.split(separator).map(number).collect();
    numbers?.try_into().ok()
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400)
}

/// Days from 1970-01-01 to the first of `year` ≥ 1970.
fn days_before_year(year: u64) -> u64 {
    let leaps = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leaps(year - 1) - leaps(1969)
}

/// Days from the first of the year to the first of `month`, 1 to 12.
fn days_before_month(year: u64, month: u64) -> u64 {
    const BEFORE: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    BEFORE[(month - 1) as usize] + u64::from(month > 2 && is_leap(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_times() {
        // From `date -u -d @…`.
        for (seconds, expected) in [
            (0, "Thu Jan  1 00:00:00 1970"),
            (951_782_400, "Tue Feb 29 00:00:00 2000"),
            (1_697_135_833, "Thu Oct 12 18:37:13 2023"),
            (1_735_689_599, "Tue Dec 31 23:59:59 2024"),
            (4_107_542_400, "Mon Mar  1 00:00:00 2100"),
        ] {
            assert_eq!(stamp(seconds), expected);
        }
    }

    #[test]
    fn text_and_seconds_agree() {
        let in_utc = |text, after_s| ctime(text, after_s, |_| 0);
        assert_eq!(in_utc("2024-02-29T23:59:59Z", 1.0).as_deref(), Some("Fri Mar  1 00:00:00 2024"));
        assert_eq!(in_utc("2024-12-31T23:59:59.999Z", 0.001).as_deref(), Some("Wed Jan  1 00:00:00 2025"));
    }

    #[test]
    fn local_time_is_that_of_the_moment() {
        // One hour ahead, two from 2024-03-31T01:00:00Z on.
        let local = |text| ctime(text, 0.0, |seconds| if seconds < 1_711_846_800 { 3600 } else { 7200 });
        assert_eq!(local("2024-03-31T00:59:59Z").as_deref(), Some("Sun Mar 31 01:59:59 2024"));
        assert_eq!(local("2024-03-31T01:00:00Z").as_deref(), Some("Sun Mar 31 03:00:00 2024"));
        let behind = ctime("2024-01-01T00:00:00Z", 0.0, |_| -34_200);
        assert_eq!(behind.as_deref(), Some("Sun Dec 31 14:30:00 2023"));
        assert_eq!(ctime("1970-01-01T00:00:00Z", 0.0, |_| -1), None);
    }

    #[test]
    fn other_texts_are_no_times() {
        for text in [
            "",
            "Z",
            "T",
            "2024-13-01T00:00:00Z",
            "2024-01-01 00:00:00Z",
            "2024-01-01T00:00Z",
            "-1-1-1T1:1:1Z",
            "2024-01-01T00:00:00+01:00",
            "99999999999999999999-01-01T00:00:00Z",
            "2024-01-01T00:00:00.xZ",
            "1969-01-01T00:00:00Z",
        ] {
            assert_eq!(ctime(text, 0.0, |_| 0), None, "{text}");
        }
        assert_eq!(ctime("2024-01-01T00:00:00Z", f64::NAN, |_| 0), None);
    }
}
