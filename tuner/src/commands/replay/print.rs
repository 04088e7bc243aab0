//! Reports of replays, for people and for programs.

use std::io::Write;

use objectives::real::printable;
use serde::Serialize;

use crate::cli::replay::ReplayArgs;
use crate::exit;

/// Version of the JSON that `--json` prints.
pub(super) const JSON_SCHEMA: u32 = 1;

/// Prints a report as JSON, or its table.
pub(super) fn print(args: &ReplayArgs, report: &impl Serialize, table: &str) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    match args.json {
        true => writeln!(out, "{}", serde_json::to_string_pretty(report)?)?,
        // The landscape may be of somebody else.
        false => out.write_all(printable(table).as_bytes())?,
    }
    out.flush()?;
    Ok(exit::DONE)
}
