//! Reads results in the output of HPL 2.0 to 2.3, HPCC and NVIDIA's HPL, also if it is cut off or mixed with other text.

use crate::params::Coded;
use crate::{Bcast, Form, HplParams, Looking, Pmap, Swap};

/// One result line with the check that follows it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OutRecord {
    /// What was run. SWAP, L1, U, EQUIL and ALIGN are those of the last banner, or without one those of
    /// [`HplParams::baseline`]; so is all behind DEPTH where the T/V code ends there.
    pub params: HplParams,
    /// Time in seconds, to two decimals.
    pub time_s: f64,
    /// GFLOP/s, to three to five decimals.
    pub rate_gflops: f64,
    /// Scaled residual; `None` when there is no check, or it is no finite number.
    pub residual: Option<f64>,
    /// The verdict; `None` when there is none.
    pub passed: Option<bool>,
}

/// All complete results in the text, in order. Lines that are not part of a result are passed over, and so is
/// a line that was cut off.
pub fn parse(text: &str) -> Vec<OutRecord> {
    let mut banner = HplParams::baseline(0, 1, 1);
    let mut records: Vec<OutRecord> = Vec::new();
    // Whether a check would belong to the last record.
    let mut open = false;
    for line in text.lines().map(str::trim) {
        if let Some(record) = result_line(line, &banner) {
            records.push(record);
            open = true;
        } else if is_result_like(line) {
            open = false;
        } else if open && line.starts_with(MIXED_PRECISION) {
            records.pop();
            open = false;
        } else if let (Some((residual, passed)), true, Some(record)) = (check_line(line), open, records.last_mut()) {
            record.passed = Some(passed && record.passed != Some(false));
            record.residual = residual;
        } else {
            banner_line(line, &mut banner);
        }
    }
    records
}

/// What rocHPL-MxP prints behind a result line. Its score is none of HPL.
const MIXED_PRECISION: &str = "HPLMXP_";

/// Whether a new result begins here: a heading, or a result line that cannot be read.
fn is_result_like(line: &str) -> bool {
    ["T/V", "WR", "WC"].iter().any(|start| line.starts_with(start))
}

/// `WR11C2R4        8000   128     1     2               3.50             9.7500e+01`, perhaps more after it.
fn result_line(line: &str, banner: &HplParams) -> Option<OutRecord> {
    let mut words = line.split_ascii_whitespace();
    let mut params = tv_params(words.next()?, banner)?;
    for size in [&mut params.n, &mut params.nb, &mut params.p, &mut params.q] {
        *size = digits(words.next()?)?;
    }
    let (time, rate) = (words.next()?, words.next()?);
    // All versions print an exponent of at least two digits: a shorter one was cut off.
    let (_, exponent) = rate.split_once(['e', 'E'])?;
    if !(exponent.starts_with(['+', '-']) && exponent.len() >= 3) {
        return None;
    }
    let time_s = time.parse::<f64>().ok().filter(|time| time.is_finite() && *time >= 0.0)?;
    let rate_gflops = rate.parse::<f64>().ok().filter(|rate| rate.is_finite() && *rate >= 0.0)?;
    let valid = params.nb >= 1 && params.p >= 1 && params.q >= 1;
    valid.then_some(OutRecord { params, time_s, rate_gflops, residual: None, passed: None })
}

/// The T/V code: `W`, `R` or `C`, DEPTH with one digit of BCAST, RFACT, NDIV, PFACT, NBMIN. NVIDIA's HPL, which takes nothing of the
/// rest from HPL.dat, prints no more than DEPTH: `WC0`.
fn tv_params(code: &str, banner: &HplParams) -> Option<HplParams> {
    let rest = code.strip_prefix('W')?;
    let (pmap, rest) = match rest.strip_prefix('R') {
        Some(rest) => (Pmap::Row, rest),
        None => (Pmap::Column, rest.strip_prefix('C')?),
    };
    if let Some(depth) = digits(rest) {
        return Some(HplParams { pmap, depth, ..*banner });
    }
    let (depth_bcast, rfact, rest) = at_letter(rest)?;
    let (ndiv, pfact, nbmin) = at_letter(rest)?;
    let (depth, bcast) = depth_bcast.split_at_checked(depth_bcast.len().checked_sub(1)?)?;
    Some(HplParams {
        pmap,
        depth: digits(depth)?,
        bcast: Bcast::from_code(digits(bcast)?)?,
        rfact,
        ndiv: digits(ndiv)?,
        pfact,
        nbmin: digits(nbmin)?,
        ..*banner
    })
}

/// The text before the first letter of a looking variant, the variant, and the text after it.
fn at_letter(text: &str) -> Option<(&str, Looking, &str)> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let looking = match text.as_bytes()[at] {
        b'L' => Looking::Left,
        b'C' => Looking::Crout,
        b'R' => Looking::Right,
        _ => return None,
    };
    Some((&text[..at], looking, &text[at + 1..]))
}

/// A number of digits alone, of which there is at least one, that HPL holds (a C `int`): of a longer one its columns would
/// run into each other.
fn digits(text: &str) -> Option<usize> {
    let number = text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i32>().ok()).flatten()?;
    usize::try_from(number).ok()
}

/// `||Ax-b||_oo/(…)=   2.11204902e-03 ...... PASSED`: residual and verdict. Only a finite residual passes. NVIDIA's HPL-MxP, whose
/// results are none of HPL, has `EPS` in the place of `eps`.
fn check_line(line: &str) -> Option<(Option<f64>, bool)> {
    let (left, verdict) = line.strip_prefix("||Ax-b||_oo")?.split_once(" ...... ")?;
    if left.contains("EPS") {
        return None;
    }
    let residual = left.rsplit_once('=')?.1.trim().parse::<f64>().ok().filter(|residual| residual.is_finite());
    match verdict {
        "PASSED" => residual.map(|residual| (Some(residual), true)),
        "FAILED" => Some((residual, false)),
        _ => None,
    }
}

/// Takes a parameter from the banner that result lines do not contain.
fn banner_line(line: &str, banner: &mut HplParams) {
    let Some((name, value)) = line.split_once(':') else { return };
    let value = value.trim();
    match name.trim_end() {
        "SWAP" => banner.swap = swap(value).unwrap_or(banner.swap),
        "L1" => banner.l1 = form(value).unwrap_or(banner.l1),
        "U" => banner.u = form(value).unwrap_or(banner.u),
        "EQUIL" if value == "yes" || value == "no" => banner.equil = value == "yes",
        "ALIGN" => {
            let words = value.strip_suffix(" double precision words").and_then(digits);
            banner.align = words.filter(|&words| words >= 1).unwrap_or(banner.align);
        }
        _ => {}
    }
}

fn swap(value: &str) -> Option<Swap> {
    match value {
        "Binary-exchange" => Some(Swap::BinExch),
        "Spread-roll (long)" => Some(Swap::Long),
        _ => {
            let threshold = value.strip_prefix("Mix (threshold = ")?.strip_suffix(')')?;
            Some(Swap::Mix { threshold: digits(threshold)? })
        }
    }
}

fn form(value: &str) -> Option<Form> {
    match value {
        "transposed form" => Some(Form::Transposed),
        "no-transposed form" => Some(Form::NotTransposed),
        _ => None,
    }
}
