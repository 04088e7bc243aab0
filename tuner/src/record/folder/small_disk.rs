//! A file system of 64 KiB for tests of a full disk.

use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) struct SmallDisk {
    folder: tempfile::TempDir,
}

impl SmallDisk {
    /// Fails where this user may not mount: tests that do are ignored, and `tests/run` runs them where it is permitted.
    pub(crate) fn mount() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        let output = mount.args(["-t", "tmpfs", "-o", "size=64k", "tmpfs"]).arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Take all space that is left.
    pub(crate) fn fill(&self) -> PathBuf {
        let ballast = self.path().join("ballast");
        let mut size = 0;
        while std::fs::write(&ballast, vec![0; size + 4096]).is_ok() {
            size += 4096;
        }
        ballast
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let status = Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "{} stays mounted", self.path().display());
    }
}
