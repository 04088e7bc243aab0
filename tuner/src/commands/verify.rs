//! `hpl-tune verify`: what does not hold in a pack or a run folder.

use std::io::Write;

use objectives::real::printable;

use crate::cli::pack::VerifyArgs;
use crate::commands::pack::refused;
use crate::exit;
use crate::pack::verify::verify as look;
use crate::record::decode::Decoder;

/// Verifies the folder and prints what does not hold, a line each.
///
/// # Errors
/// A folder that is neither, one of a session at work, or a standard output that is closed.
pub fn verify(args: &VerifyArgs) -> anyhow::Result<u8> {
    let checked = look(&args.folder, &Decoder::child()?).map_err(refused)?;
    let mut out = std::io::stdout().lock();
    for finding in &checked.findings {
        writeln!(out, "{}", printable(&finding.to_string()))?;
    }
    let holds = checked.findings.is_empty();
    if !args.quiet {
        for what in &checked.looked_at {
            writeln!(out, "looked at: {what}")?;
        }
        let folder = args.folder.display();
        match checked.findings.len() {
            0 => writeln!(out, "{folder}: {}, all checks passed", checked.what)?,
            1 => writeln!(out, "{folder}: {}, 1 check failed", checked.what)?,
            count => writeln!(out, "{folder}: {}, {count} checks failed", checked.what)?,
        }
    }
    out.flush()?;
    Ok(if holds { exit::DONE } else { exit::CHECK_FAILED })
}
