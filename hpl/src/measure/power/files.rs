//! Numbers and names in files of the system.

use std::path::{Path, PathBuf};
use std::{fs, io};

/// The number at the beginning of a file.
///
/// # Errors
/// A file that cannot be read, or begins with something else.
pub(super) fn number(path: &Path) -> io::Result<f64> {
    let text = fs::read_to_string(path)?;
    let first = text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
    first.filter(|value| value.is_finite() && *value >= 0.0).ok_or_else(|| io::Error::other("it has no number"))
}

/// The text of a file without the white space around it; `None` where it is empty or cannot be read.
pub(super) fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// What a folder holds, sorted by name; nothing where there is no such folder.
pub(super) fn entries(folder: &Path) -> Vec<(String, PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut named: Vec<_> =
        entries.map(|entry| (entry.file_name().to_string_lossy().into_owned(), entry.path())).collect();
    named.sort();
    named
}
