//! The file of `--result`.

use std::io;
use std::path::{Path, PathBuf};

use crate::program::files;

/// The file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write to --result {}: {source}", path.display())]
pub(super) struct ResultUnwritten {
    path: PathBuf,
    source: io::Error,
}

/// Refuses a file that cannot be written, before hours of work; `None` without the flag.
pub(super) fn check(result: Option<&Path>) -> Result<(), ResultUnwritten> {
    result.map_or(Ok(()), |path| files::check_writable(path).map_err(unwritten(path)))
}

/// Whether this is the run whose result `--result` asks for: without it the program has failed.
pub(super) fn is_asked_for(result: Option<&Path>, is_last: bool) -> bool {
    is_last && result.is_some()
}

/// Writes the file, if the flag is given and this was the last run. Where that fails, what the run has found is still to be printed.
pub(super) fn write_last(
    result: Option<&Path>,
    is_last: bool,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), ResultUnwritten> {
    match result {
        Some(path) if is_last => write(path).map_err(unwritten(path)),
        _ => Ok(()),
    }
}

fn unwritten(path: &Path) -> impl FnOnce(io::Error) -> ResultUnwritten {
    let path = path.to_owned();
    move |source| ResultUnwritten { path, source }
}
