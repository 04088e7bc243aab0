//! The files in which a system describes itself.

use std::path::{Path, PathBuf};

/// A system whose /proc, /sys and /etc are read.
#[derive(Debug, Clone)]
pub struct System {
    root: PathBuf,
}

impl System {
    /// That of this host.
    pub fn here() -> Self {
        Self::at(Path::new("/"))
    }

    /// One whose files lie below `root`.
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_path_buf() }
    }

    /// The text of a file, without blanks around it; `None` when it cannot be read or is empty.
    pub(crate) fn text(&self, path: &str) -> Option<String> {
        let bytes = std::fs::read(self.root.join(path)).ok()?;
        let text = String::from_utf8_lossy(&bytes).trim_matches(['\0', ' ', '\n', '\t']).to_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Names in a folder, in order; none where there is no such folder.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        self.listed(path).unwrap_or_default()
    }

    /// Names in a folder, in order; `None` where it cannot be listed.
    pub(super) fn listed(&self, path: &str) -> Option<Vec<String>> {
        let entries = std::fs::read_dir(self.root.join(path)).ok()?;
        let mut names: Vec<String> =
            entries.filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned())).collect();
        names.sort();
        Some(names)
    }

    /// The last part of what a link leads to.
    pub(super) fn link(&self, path: &str) -> Option<String> {
        let target = std::fs::read_link(self.root.join(path)).ok()?;
        Some(target.file_name()?.to_string_lossy().into_owned())
    }

    pub(super) fn is_here(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// The value of `name : value`, first occurrence.
pub(super) fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let value = |line: &'a str| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name && !value.trim().is_empty()).then(|| value.trim())
    };
    text.lines().find_map(value)
}
