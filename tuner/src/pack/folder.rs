//! The files of a pack, and the list of their SHA-256 sums.

use std::fs::DirEntry;
use std::io;
use std::path::Path;

use crate::record::sha256;

/// The list of sums, in the form that `sha256sum -c` reads.
pub const SUMS: &str = "SHA256SUMS";

/// Paths of all files below `root`, relative to it, in the order of their names. What is no folder counts as a file; links
/// are not followed.
///
/// # Errors
/// As the system says, when a folder cannot be listed.
pub fn files_below(root: &Path) -> io::Result<Vec<String>> {
    let Below { files, unlisted } = below(root);
    unlisted.into_iter().next().map_or(Ok(files), |(_, error)| Err(error))
}

/// What lies below a folder.
#[derive(Debug, Default)]
pub struct Below {
    /// Paths of the files, as [`files_below`] gives them.
    pub files: Vec<String>,
    /// Paths of folders that cannot be listed, `.` for that at the top, and why.
    pub unlisted: Vec<(String, io::Error)>,
}

/// What lies below `root`, as far as it can be listed.
pub fn below(root: &Path) -> Below {
    let (mut found, mut folders) = (Below::default(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        match entries(root, &folder) {
            Ok(entries) => {
                for (path, is_folder) in entries {
                    if is_folder { folders.push(path) } else { found.files.push(path) }
                }
            }
            Err(error) => found.unlisted.push((if folder.is_empty() { ".".to_owned() } else { folder }, error)),
        }
    }
    found.files.sort();
    found
}

/// Paths of what is in a folder below `root`, and whether each is a folder.
fn entries(root: &Path, folder: &str) -> io::Result<Vec<(String, bool)>> {
    let entry = |entry: io::Result<DirEntry>| -> io::Result<(String, bool)> {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
        Ok((path, entry.file_type()?.is_dir()))
    };
    std::fs::read_dir(root.join(folder))?.map(entry).collect()
}

/// The list of all files below `root` but itself.
///
/// # Errors
/// As the system says, when a file cannot be read.
pub fn sums(root: &Path) -> io::Result<String> {
    let mut text = String::new();
    for path in files_below(root)?.into_iter().filter(|path| path != SUMS) {
        text += &format!("{}  {path}\n", sha256::of_file(&root.join(&path))?);
    }
    Ok(text)
}

/// Hashes and paths of a list of sums.
///
/// # Errors
/// The number of the first line that is none, from 1.
pub fn parse_sums(text: &str) -> Result<Vec<(String, String)>, usize> {
    let line = |(index, line): (usize, &str)| {
        let (hash, path) = line.split_once("  ").ok_or(index + 1)?;
        let inside = !path.starts_with('/') && path.split('/').all(|part| !part.is_empty() && part != "..");
        if sha256::is_hash(hash) && inside { Ok((hash.to_owned(), path.to_owned())) } else { Err(index + 1) }
    };
    text.lines().enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use nix::unistd::geteuid;

    use super::*;

    #[test]
    fn a_folder_that_cannot_be_listed_hides_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let [closed, open, none] = ["closed", "open", "none"].map(|name| folder.path().join(name));
        [&closed, &open].into_iter().for_each(|path| create_dir(path).unwrap());
        write(open.join("a"), "a").unwrap();
        set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
        let found = below(folder.path());
        set_permissions(&closed, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(found.files, ["open/a"]);
        // An administrator may list each.
        let unlisted: Vec<String> = found.unlisted.into_iter().map(|(path, _)| path).collect();
        assert_eq!(unlisted, if geteuid().is_root() { vec![] } else { vec!["closed"] });
        let found = below(&none);
        assert_eq!((found.files.len(), found.unlisted[0].0.as_str()), (0, "."));
        assert!(files_below(&none).is_err());
    }

    #[test]
    fn the_list_comes_back_and_wrong_lines_are_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("record")).unwrap();
        for name in ["b", "a", "record/c", SUMS] {
            std::fs::write(folder.path().join(name), name).unwrap();
        }
        let text = sums(folder.path()).unwrap();
        let paths: Vec<String> = parse_sums(&text).unwrap().into_iter().map(|(_, path)| path).collect();
        assert_eq!(paths, ["a", "b", "record/c"]);
        let hash = sha256::of_bytes(b"");
        for bad in ["x  a", &format!("{hash} a"), &format!("{hash}  ../a"), &format!("{hash}  /a")] {
            assert_eq!(parse_sums(&format!("{hash}  good\n{bad}\n")), Err(2), "{bad}");
        }
    }
}
