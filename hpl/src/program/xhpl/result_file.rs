//! The file of `--result`.

use std::io;
use std::path::Path;

use super::{Args, XhplError};
use crate::program::files;

/// Refuses a file that cannot be written, before hours of work.
pub(super) fn check(args: &Args) -> Result<(), XhplError> {
    args.result.as_deref().map_or(Ok(()), |path| files::check_writable(path).map_err(unwritten(path)))
}

/// Whether this is the run whose result `--result` asks for: without it the program has failed.
pub(super) fn is_asked_for(args: &Args, is_last: bool) -> bool {
    is_last && args.result.is_some()
}

/// Writes the file, if the flag is given and this was the last run. Where that fails, what the run has found is still to be printed.
pub(super) fn write_last(
    args: &Args,
    is_last: bool,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), XhplError> {
    match &args.result {
        Some(path) if is_last => write(path).map_err(unwritten(path)),
        _ => Ok(()),
    }
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> XhplError {
    let name = format!("--result {}", path.display());
    move |source| XhplError::Unwritten { name, source }
}
