//! Reading HPL.dat.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Maximum size of an HPL.dat in bytes.
pub(super) const MAX_DAT: u64 = 1 << 20;

/// The text of an HPL.dat, whose comments may be in any encoding; `None` if it is longer than any.
pub(super) fn dat_text(path: &Path) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_DAT + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= MAX_DAT).then(|| String::from_utf8_lossy(&bytes).into_owned()))
}
