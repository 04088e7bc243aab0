//! Files that are written completely or not at all.

use std::ffi::OsString;
use std::fs::{self, DirEntry, File, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::NamedTempFile;

/// Writes `bytes` to `path` atomically: a reader finds the old or the new file, also after a crash. The data is
/// written to a temporary file in the same folder, fsynced, then renamed.
///
/// # Errors
/// The system's error of any step; the temporary file is then removed, which frees its space on a full disk.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = temporary_beside(path)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    sync_folder(path);
    Ok(())
}

/// Checks that [`write_atomically`] can make a file at `path`, before the work whose result it is to hold.
///
/// # Errors
/// That of a folder, a device or a pipe at this place, or the system's error of making a file in its folder.
pub fn check_writable(path: &Path) -> io::Result<()> {
    // Also of a folder that is not there: no file can be renamed to it.
    let text = path.as_os_str().as_encoded_bytes();
    if text.ends_with(b"/") || text.ends_with(b"/.") {
        return Err(ErrorKind::IsADirectory.into());
    }
    match path.metadata() {
        Ok(about) if about.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        // Renamed over, /dev/null would be a file from then on.
        Ok(about) if !about.is_file() => {
            return Err(io::Error::new(ErrorKind::InvalidInput, "it is no regular file; name another"));
        }
        _ => {}
    }
    // Removed when it is dropped.
    temporary_beside(path).map(drop)
}

/// A new file in the folder of `path`, with a hidden name that begins with its name.
fn temporary_beside(path: &Path) -> io::Result<NamedTempFile> {
    let mut hidden = OsString::from(".");
    hidden.push(path.file_name().unwrap_or_default());
    hidden.push(".");
    tempfile::Builder::new()
        .prefix(&hidden)
        .suffix(".tmp")
        // Reduced by the umask, as for any other file.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder_of(path))
}

/// A file without a name for what a child prints: in the `usual` folder of temporary files, or where there is no such one in `folder`, as
/// TMPDIR may name one of the node from which a job was submitted.
///
/// # Errors
/// The system's error of making it in `folder`.
pub fn nameless_file(usual: &Path, folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(usual).or_else(|_| tempfile::tempfile_in(folder))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Syncs the folder of `path`, so that the name of the file survives a crash. Errors of file systems that cannot sync a
/// folder are ignored.
pub fn sync_folder(path: &Path) {
    sync_names(folder_of(path));
}

fn sync_names(folder: &Path) {
    if let Ok(folder) = File::open(folder) {
        let _ = folder.sync_all();
    }
}

/// Files larger than this are left to the system by [`sync_contents`]: no program prints as much, and to wait for what else a run may
/// leave would take a part of the budget.
const LARGEST_SYNCED: u64 = 64 << 20;

/// Syncs the files in `folder`, then their names, so that what reads them after a power loss finds them whole. Folders in it and files
/// of more than 64 MiB are left out.
///
/// # Errors
/// The system's error; the other files are synced all the same.
pub fn sync_contents(folder: &Path) -> io::Result<()> {
    let sync = |entry: io::Result<DirEntry>| {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() && about.len() <= LARGEST_SYNCED { File::open(entry.path())?.sync_all() } else { Ok(()) }
    };
    let results: Vec<io::Result<()>> = fs::read_dir(folder)?.map(sync).collect();
    sync_names(folder);
    results.into_iter().collect()
}

#[cfg(test)]
mod tests {
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

    /// On a node without the folder that TMPDIR names no launcher was started.
    #[test]
    fn a_missing_folder_of_temporary_files_is_no_error() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = nameless_file(Path::new("/no/such/folder"), folder.path()).unwrap();
        file.write_all(b"said").unwrap();
        assert!(names(folder.path()).is_empty());
        assert!(nameless_file(Path::new("/no/such/folder"), Path::new("/nor/this")).is_err());
    }

    #[test]
    fn what_cannot_be_written_is_found_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result.json");
        check_writable(&path).unwrap();
        fs::write(&path, "earlier").unwrap();
        check_writable(&path).unwrap();
        assert_eq!(names(folder.path()), ["result.json"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), "earlier");
        let kind = |path: &Path| check_writable(path).unwrap_err().kind();
        assert_eq!(kind(folder.path()), ErrorKind::IsADirectory);
        assert_eq!(kind(&folder.path().join("none/result.json")), ErrorKind::NotFound);
        for name in ["none/", "none/."] {
            assert_eq!(kind(&folder.path().join(name)), ErrorKind::IsADirectory, "{name}");
        }
        // Also for root, who could replace it.
        assert_eq!(kind(Path::new("/dev/null")), ErrorKind::InvalidInput);
    }
}
