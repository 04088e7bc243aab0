//! `hpl-tune compare`: two sets of runs, and whether the second is slower.

use std::io::Write;

use objectives::real::printable;

use crate::cli::compare::CompareArgs;
use crate::compare::report::Report;
use crate::compare::sides::{NoSides, sides};
use crate::compare::source::read;
use crate::compare::text::text;
use crate::exit::{self, bad_input};
use crate::search::progress::say;

/// Reads both sides and prints how they compare.
///
/// # Errors
/// Files that cannot be read or are damaged, and sides of which nothing compares.
pub fn compare(args: &CompareArgs) -> anyhow::Result<u8> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    let [side_a, side_b] = match sides(&a, &b) {
        Ok(sides) => sides,
        Err(error @ NoSides::Wrong { .. }) => {
            say(&format!("hpl-tune: {error}"));
            return Ok(exit::RESIDUAL);
        }
        Err(error) => return Err(bad_input(error)),
    };
    let report =
        Report::new(&side_a, &side_b, args.tolerance).ok_or_else(|| bad_input("no run of a side has passed"))?;
    let said = if args.json { report.json()? } else { printable(&text(&report)).into_owned() };
    let mut out = std::io::stdout().lock();
    out.write_all(said.as_bytes())?;
    out.flush()?;
    Ok(report.exit_code)
}
