//! Compiled kernels kept on disk, so that they are compiled once for a source, a compiler and a device.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// The file of one compiled source, in `$XDG_CACHE_HOME/hpl-tune` or `~/.cache/hpl-tune`. Without such a folder, or where it
/// cannot be written, nothing is kept.
pub(super) struct CodeCache(Option<PathBuf>);

impl CodeCache {
    /// For code that depends on nothing but `parts`.
    pub(super) fn of(parts: &[&[u8]]) -> Self {
        let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let caches = folder("XDG_CACHE_HOME").or_else(|| folder("HOME").map(|home| home.join(".cache")));
        Self(caches.map(|caches| caches.join("hpl-tune").join(file_name(parts))))
    }

    /// The code; `None` where there is none, or the file is damaged.
    pub(super) fn read(&self) -> Option<Vec<u8>> {
        let mut code = fs::read(self.0.as_ref()?).ok()?;
        let hash = code.split_off(code.len().checked_sub(Sha256::output_size())?);
        (Sha256::digest(&code)[..] == hash[..]).then_some(code)
    }

    /// Keeps `code`, if that is possible.
    pub(super) fn write(&self, code: &[u8]) {
        let _ = self.0.as_ref().map(|path| write(path, code));
    }
}

/// A name that other parts, or parts divided otherwise, do not have.
fn file_name(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digits: String = hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("kernels-{digits}")
}

/// Writes code and hash under another name first: other processes may read and write the file.
fn write(path: &Path, code: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(code)?;
    file.write_all(&Sha256::digest(code))?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_file_is_no_code() {
        let folder = tempfile::tempdir().unwrap();
        let cache = CodeCache(Some(folder.path().join("a/b")));
        assert_eq!(cache.read(), None);
        cache.write(b"code");
        assert_eq!(cache.read().as_deref(), Some(&b"code"[..]));
        let path = cache.0.as_ref().unwrap();
        let mut bytes = fs::read(path).unwrap();
        bytes[1] ^= 1;
        fs::write(path, &bytes).unwrap();
        assert_eq!(cache.read(), None);
        fs::write(path, &bytes[..10]).unwrap();
        assert_eq!(cache.read(), None);
        cache.write(b"");
        assert_eq!(cache.read().as_deref(), Some(&b""[..]));
        CodeCache(None).write(b"code");
        CodeCache(Some(PathBuf::from("/proc/none/a"))).write(b"code");
    }

    #[test]
    fn other_parts_have_another_name() {
        let names = [&[&b"ab"[..], b"c"][..], &[b"a", b"bc"], &[b"abc"], &[b"ab", b"c", b""]].map(file_name);
        assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])), "{names:?}");
    }
}
