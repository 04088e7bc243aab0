//! The files of a pack, and the list of their SHA-256 sums.

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
    let (mut files, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root.join(&folder))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
            if entry.file_type()?.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    Ok(files)
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
    use super::*;

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
