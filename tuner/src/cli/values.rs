//! Values of flags as users write them: times, shares, per cent, kernels.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use clap::builder::{PathBufValueParser, TypedValueParser};
use space::KernelChoice;

/// What a session makes as large as possible, as users name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObjectiveName {
    /// The rate in GFLOP/s
    Gflops,
    /// The rate by the mean power of the whole run, in GFLOPS/W
    GflopsPerWatt,
}

/// Parses a power with its unit, W, kW or MW, to whole watts.
pub(super) fn watts(text: &str) -> Result<u64, String> {
    let wrong = || format!("'{text}' is not a power; write it with its unit, as 800W, 10kW or 2.5MW");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let times = match &text[digits.len()..] {
        "W" => 1.0,
        "kW" => 1e3,
        "MW" => 1e6,
        _ => return Err(wrong()),
    };
    let watts = digits.trim_end().parse::<f64>().map_err(|_| wrong())? * times;
    if (1.0..1e9).contains(&watts) {
        Ok(watts.round() as u64)
    } else {
        Err(format!("{}, from 1W to below 1000MW", wrong()))
    }
}

/// The longest time of a flag, a year: more is a mistake, and sums of far more would overflow.
const LONGEST: Duration = Duration::from_hours(366 * 24);

/// Parses a duration such as `90s`, `2m`, `1h30m`; a bare number counts seconds.
///
/// # Errors
/// A sentence that names what was expected.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("'{text}' is not a time; write it as 90s, 2m, 4h or 1h30m");
    let negative = || format!("'{text}' is negative; give a time above zero");
    // Seconds alone may have any number of digits: a session gives its calibration a part of its budget.
    let time = match text.strip_suffix('s').unwrap_or(text).parse::<f64>() {
        // What no duration can hold is too long, too.
        Ok(seconds) if seconds >= 0.0 => Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX),
        Ok(seconds) if seconds < 0.0 => return Err(negative()),
        Ok(_) => return Err(wrong()),
        Err(_) => {
            let span: jiff::SignedDuration = text.parse().map_err(|_| wrong())?;
            Duration::try_from(span).map_err(|_| negative())?
        }
    };
    if time > LONGEST {
        return Err(format!("'{text}' is too long; give at most {}h, a year", LONGEST.as_secs() / 3600));
    }
    Ok(time)
}

/// Parses a share of a whole.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..0.9).contains(share));
    share.ok_or_else(|| format!("'{text}' is not a share; give a number from 0 to below 0.9"))
}

/// Parses a ratio of two standard deviations.
pub(super) fn ratio(text: &str) -> Result<f64, String> {
    let ratio = text.parse().ok().filter(|ratio| (0.0..=2.0).contains(ratio));
    ratio.ok_or_else(|| format!("'{text}' is not a ratio; give a number from 0 to 2"))
}

/// Parses a gain in per cent, with its sign or without, to a share.
pub(super) fn percent(text: &str) -> Result<f64, String> {
    share_of_percent(text, 0.01..=50.0)
        .ok_or_else(|| format!("'{text}' is not a gain; give per cent from 0.01 to 50, as 0.5%"))
}

/// Parses a tolerance in per cent, with its sign or without, to a share.
pub(super) fn tolerance(text: &str) -> Result<f64, String> {
    share_of_percent(text, 0.0..=90.0)
        .ok_or_else(|| format!("'{text}' is not a tolerance; give per cent from 0 to 90, as 1%"))
}

fn share_of_percent(text: &str, within: RangeInclusive<f64>) -> Option<f64> {
    let number = text.trim_end().trim_end_matches('%').trim_end();
    let percent = number.parse::<f64>().ok().filter(|percent| within.contains(percent))?;
    Some(percent / 100.0)
}

/// Parses the choice of kernels; a path becomes absolute, so that a trial's command works from any folder.
pub(super) fn kernel_choice(text: &str) -> Result<KernelChoice, String> {
    match KernelChoice::from(text.to_owned()) {
        KernelChoice::Blas(path) => path.canonicalize().map(KernelChoice::Blas).map_err(|error| {
            format!(
                "no library at '{text}' ({error}); give auto, builtin, or the path of a BLAS such as libopenblas.so.0"
            )
        }),
        choice => Ok(choice),
    }
}

/// Parses the path of a file that will be written, whatever bytes are in its name.
pub(super) fn file_to_write() -> impl TypedValueParser<Value = PathBuf> {
    PathBufValueParser::new().try_map(to_write)
}

/// The path of a file that will be written: what is to be said there is measured first, and must not be lost.
pub(super) fn to_write(path: PathBuf) -> Result<PathBuf, String> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if path.is_dir() {
        return Err(format!("'{}' is a folder; give a file in it", path.display()));
    }
    match folder.is_dir() {
        true => Ok(path),
        false => Err(format!("there is no folder '{}'; make it first", folder.display())),
    }
}

/// Seconds between two clocks.
pub(super) fn offset(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && seconds.abs() < 1e9);
    seconds.ok_or_else(|| format!("'{text}' is not a number of seconds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_write_them() {
        for (text, seconds) in [("90s", 90.0), ("2m", 120.0), ("4h", 14400.0), ("1h30m", 5400.0), ("45", 45.0)] {
            assert_eq!(duration(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        // What a session of 33 s gives its calibration, as it writes it: nanoseconds alone have no place for all digits.
        assert_eq!(duration(&format!("{}s", 0.1 * 33.0)).unwrap().as_secs_f64(), 3.3);
        for text in ["", "s", "2x", "-5s", "-5", "-1h", "soon", "NaN", "NaNs"] {
            assert!(duration(text).is_err(), "{text}");
        }
        assert_eq!(duration("8784h"), Ok(LONGEST));
        for text in ["8785h", "99999999h", "31622401", "1e300", "inf"] {
            assert_eq!(duration(text), Err(format!("'{text}' is too long; give at most 8784h, a year")));
        }
    }

    #[test]
    fn a_file_is_written_into_a_folder_that_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert_eq!(to_write("machine.toml".into()), Ok(PathBuf::from("machine.toml")));
        assert_eq!(to_write(at("new.toml")), Ok(at("new.toml")));
        assert!(to_write(at("none/new.toml")).unwrap_err().contains("make it first"));
        assert!(to_write(folder.path().to_path_buf()).unwrap_err().contains("is a folder"));
    }

    #[test]
    fn powers_have_a_unit() {
        for (text, power) in [("800W", 800), ("10kW", 10_000), ("2.5MW", 2_500_000), ("1.5 kW", 1500)] {
            assert_eq!(watts(text), Ok(power), "{text}");
        }
        for text in ["", "800", "10KW", "kW", "-1kW", "NaNW", "0.1W", "1e9kW", "10 kWh"] {
            assert!(watts(text).unwrap_err().contains("as 800W, 10kW or 2.5MW"), "{text}");
        }
    }

    #[test]
    fn gains_are_per_cent() {
        for (text, share) in [("0.5%", 0.005), ("2", 0.02), ("1.5 %", 0.015)] {
            assert_eq!(percent(text), Ok(share), "{text}");
        }
        for text in ["", "%", "0", "-1%", "51", "NaN", "half"] {
            assert!(percent(text).is_err(), "{text}");
        }
        assert_eq!((tolerance("0"), tolerance("2.5%")), (Ok(0.0), Ok(0.025)));
        for text in ["", "%", "-1%", "91", "NaN", "half"] {
            assert!(tolerance(text).is_err(), "{text}");
        }
    }
}
