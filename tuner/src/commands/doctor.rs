//! `hpl-tune doctor`: the look at the machine before a session, at length.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use hpl::machine::host::facts;
use hpl::measure::power::PowerSensors;

use crate::cli::doctor::DoctorArgs;
use crate::doctor::advice::{DOCTOR_SCHEMA, DoctorReport, text};
use crate::doctor::around::Around;
use crate::doctor::{power, settings};
use crate::exit;
use crate::pack::facts::{Facts, System};

/// Looks and prints; advice is not an error.
///
/// # Errors
/// A standard output that is closed.
pub fn doctor(args: &DoctorArgs) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let (host, system) = (facts(), System::here());
    let mut checks = settings::lines(&host, &Facts::read(&system), &system);
    checks.push(power::line(&PowerSensors::find(&args.power_root)));
    checks.extend(Around::look(Path::new(&program), &host.cores_allowed).lines());
    let report = DoctorReport { schema_version: DOCTOR_SCHEMA, host: &host.hostname, checks: &checks };
    let said = if args.json { serde_json::to_string_pretty(&report)? + "\n" } else { text(&checks) };
    let mut out = std::io::stdout().lock();
    out.write_all(said.as_bytes())?;
    out.flush()?;
    Ok(exit::DONE)
}
