//! Whose a run folder is, and who else may write in it: a resume runs what the folder says.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::Path;

use hpl::program::files::sync_folder;
use nix::sys::stat::{Mode, umask};
use nix::unistd::geteuid;

use crate::error::RecordError;

/// Files that a resume reads and trusts, besides the folder itself.
const TRUSTED: [&str; 9] = [
    "session.toml",
    "engine.toml",
    "machine.toml",
    "limits.toml",
    "space.toml",
    "journal.jsonl",
    "earlier.jsonl",
    "trials",
    "phases",
];

/// Mode of a folder that others may read, and the bits that let others write, or enter a folder.
const SHARED: u32 = 0o755;
const OTHERS_WRITE: u32 = 0o022;
const OTHERS_ENTER: u32 = 0o011;

/// Makes the folder with mode 0700, and those above it with the usual one, which are on the disk then.
pub(super) fn make_private(root: &Path) -> io::Result<()> {
    root.parent().map_or(Ok(()), make_synced)?;
    match DirBuilder::new().mode(0o700).create(root) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && root.is_dir() => Ok(()),
        made => made,
    }
}

/// As [`fs::create_dir_all`]; each name that is new is synced.
fn make_synced(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    path.parent().map_or(Ok(()), make_synced)?;
    // Another session may have made it meanwhile.
    fs::create_dir_all(path)?;
    sync_folder(path);
    Ok(())
}

/// What this process and its children make from now on, nobody but this user may write, whatever the umask says; it stays
/// as strict as it is otherwise.
pub(super) fn let_others_write_nothing() {
    let before = umask(Mode::from_bits_truncate(OTHERS_WRITE));
    umask(before | Mode::from_bits_truncate(OTHERS_WRITE));
}

/// What this process and its children make from now on all users may read, and others may not write, also where the umask is stricter.
pub(super) fn let_others_read() {
    umask(Mode::from_bits_truncate(OTHERS_WRITE));
}

/// Takes the right to write from others. A file system without modes is reported again at a resume.
pub(super) fn keep_others_out(root: &Path) {
    let Ok(about) = fs::metadata(root) else { return };
    let mode = about.mode() & 0o7777;
    if mode & OTHERS_WRITE != 0 {
        let _ = fs::set_permissions(root, Permissions::from_mode(mode & !OTHERS_WRITE));
    }
}

/// Lets everybody read.
pub(super) fn share(root: &Path) -> io::Result<()> {
    fs::set_permissions(root, Permissions::from_mode(SHARED))
}

/// Refuses a folder of another user, also to root: what root writes in it would follow that user's links.
pub(super) fn is_mine(path: &Path) -> Result<(), RecordError> {
    mine(path, &fs::metadata(path).map_err(RecordError::read(path))?)
}

fn mine(path: &Path, about: &Metadata) -> Result<(), RecordError> {
    let (owner, you) = (about.uid(), geteuid().as_raw());
    if owner == you { Ok(()) } else { Err(RecordError::NotYours { path: path.to_path_buf(), owner, you }) }
}

/// Refuses what others own or may write: the folder, and the files that a resume trusts. What lies in a folder that nobody else
/// may enter is out of their reach.
pub(super) fn check(root: &Path) -> Result<(), RecordError> {
    is_mine(root)?;
    let entered = fs::metadata(root).map_err(RecordError::read(root))?.mode() & OTHERS_ENTER != 0;
    let trusted = TRUSTED.map(|name| root.join(name));
    for path in [root].into_iter().chain(trusted.iter().map(AsRef::as_ref)) {
        let about = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            about => about.map_err(RecordError::read(path))?,
        };
        mine(path, &about)?;
        if about.mode() & OTHERS_WRITE != 0 && (entered || path == root) {
            return Err(RecordError::Open { path: path.to_path_buf(), mode: about.mode() & 0o777 });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::error::RecordError;
    use crate::record::folder::RunFolder;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_run_folder_is_its_users_alone_unless_it_is_shared() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("runs/new");
        let (folder, _lock) = RunFolder::create(&root).unwrap();
        assert_eq!(mode(&root), 0o700);
        folder.share().unwrap();
        assert_eq!(mode(&root), 0o755);
        folder.check_owner().unwrap();
        // One that was made before keeps what its user allowed to read.
        let root = parent.path().join("old");
        fs::create_dir(&root).unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o775)).unwrap();
        let _made = RunFolder::create(&root).unwrap();
        assert_eq!(mode(&root), 0o755);
    }

    #[test]
    fn what_others_may_write_is_refused_by_name() {
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("run");
        let (folder, _lock) = RunFolder::create(&root).unwrap();
        fs::write(folder.engine_toml(), "").unwrap();
        fs::set_permissions(folder.engine_toml(), Permissions::from_mode(0o664)).unwrap();
        // As a umask of 002 leaves it, where nobody else comes.
        folder.check_owner().unwrap();
        fs::set_permissions(folder.engine_toml(), Permissions::from_mode(0o644)).unwrap();
        folder.share().unwrap();
        for path in [root.clone(), folder.engine_toml()] {
            let before = mode(&path);
            fs::set_permissions(&path, Permissions::from_mode(before | 0o020)).unwrap();
            let error = folder.check_owner().unwrap_err();
            assert!(matches!(&error, RecordError::Open { path: named, .. } if *named == path), "{error}");
            assert!(error.to_string().contains("chmod"), "{error}");
            fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
        }
        folder.check_owner().unwrap();
    }

    #[test]
    fn what_belongs_to_another_user_is_refused() {
        // Root owns its own file system and no test's folder but root's; who is root looks at a file of nobody.
        let (file, _parent);
        if geteuid().is_root() {
            let parent = tempfile::tempdir().unwrap();
            std::os::unix::fs::chown(parent.path(), Some(65_534), None).unwrap();
            file = parent.path().to_path_buf();
            _parent = Some(parent);
        } else {
            (file, _parent) = (Path::new("/").to_path_buf(), None);
        }
        assert!(matches!(is_mine(&file), Err(RecordError::NotYours { .. })));
        assert!(matches!(RunFolder::create(&file), Err(RecordError::NotYours { .. } | RecordError::Exists { .. })));
    }
}
