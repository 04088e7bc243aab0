//! Files that are written completely or not at all.

use std::ffi::OsString;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes `bytes` to `path` atomically: a reader finds the old or the new file, also after a crash. The data is
/// written to a temporary file in the same folder, fsynced, then renamed.
///
/// # Errors
/// The system's error of any step; the temporary file is then removed, which frees its space on a full disk.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(".");
    let mut file = tempfile::Builder::new()
        .prefix(&hidden)
        .suffix(".tmp")
        // Reduced by the umask, as for any other file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(path);
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder of `path`, so that the name of the file survives a crash. Errors of file systems that cannot sync a
/// folder are ignored.
pub fn sync_folder(path: &Path) {
    if let Ok(folder) = File::open(folder_of(path)) {
        let _ = folder.sync_all();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<OsString> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    }

    #[test]
    fn replaces_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        for text in ["first, longer", "second"] {
            write_atomically(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(folder.path()), ["result.json"]);
    }

    #[test]
    fn a_failure_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        // A folder with this name: the rename fails after the temporary file was written.
        let taken = folder.path().join("result.json");
        fs::create_dir_all(taken.join("full")).unwrap();
        write_atomically(&taken, b"x").unwrap_err();
        assert_eq!(names(folder.path()), ["result.json"]);

        let missing = folder.path().join("none/result.json");
        let error = write_atomically(&missing, b"x").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }
}
