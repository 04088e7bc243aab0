//! `--windows`: some steps of each run instead of the whole run.

use crate::plan::windows::Windows;
use crate::program::{self, Ranks, RunOptions, Runner};
use space::dat::HplDat;
use space::{Candidate, out};

use super::result_file::{is_asked_for, write_last};
use super::{Args, Out, XhplError, json, skipped};

/// Checks that all runs have the windows.
pub(super) fn check(windows: &Windows, candidates: &[Candidate]) -> Result<(), XhplError> {
    let refused = candidates.iter().find_map(|Candidate { hpl, .. }| Some((windows.of(hpl).err()?, *hpl)));
    refused.map_or(Ok(()), |(error, hpl)| Err(XhplError::Window(error, hpl)))
}

/// Measures the windows of all runs.
pub(super) fn measure_all(
    windows: &Windows,
    dat: &HplDat,
    candidates: &[Candidate],
    ranks: &Ranks,
    runner: &Runner,
    args: &Args,
    out: &mut Out,
) -> Result<(), XhplError> {
    for (index, candidate) in candidates.iter().enumerate() {
        let is_last = index + 1 == candidates.len();
        let options = RunOptions { threshold: dat.threshold, force: args.force, watch: &() };
        let (text, written) = match runner.measure_windows_on(ranks, candidate, windows, &options) {
            Ok(result) => {
                let written = write_last(args.result.as_deref(), is_last, |path| program::write_windows(path, &result));
                (if args.json { json(&result) } else { out::windows(&result) }, written)
            }
            // The memory was free at the start, but other processes use it now, or the system refuses it, or that of a device is
            // too small.
            Err(error) if error.lacks_memory() && !is_asked_for(args.result.as_deref(), is_last) => {
                (skipped(candidate, &error, args.json), Ok(()))
            }
            Err(error) => return Err(error.into()),
        };
        out.write(&text)?;
        written?;
    }
    Ok(())
}
