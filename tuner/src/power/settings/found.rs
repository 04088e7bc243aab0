//! `node-settings.json`: what a node was found with, from the first change until it is put back.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use hpl::machine::controls::{GpuControl, NodeControls, put_back, put_back_gpus};
use hpl::program::files::{sync_folder, write_atomically};
use serde::{Deserialize, Serialize};

/// Version of the file.
const SCHEMA: u32 = 3;

/// What a node was found with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundSettings {
    schema_version: u32,
    /// Name of the node; none before version 3.
    #[serde(default)]
    host: Option<String>,
    /// The boot of the system; after another one the kernel has its own settings.
    boot_id: Option<String>,
    files: Vec<FoundFile>,
    /// Accelerators whose power limit is set; none in version 1.
    #[serde(default)]
    gpus: Vec<FoundGpu>,
}

/// The power limit of an accelerator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FoundGpu {
    /// Its number in the driver's library, which is the same until the next boot.
    gpu: usize,
    /// In milliwatts.
    found_mw: u32,
}

/// A file of the system that sets something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct FoundFile {
    path: PathBuf,
    found: String,
}

/// What became of the settings that a file names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Restored {
    /// There was nothing to put back.
    Nothing,
    /// They are as they were found.
    Done,
    /// The system has been started anew since, and has its own settings.
    Rebooted,
}

impl FoundSettings {
    /// Its name in a run folder.
    pub const NAME: &str = "node-settings.json";

    /// What `controls` were found with, below `root`.
    pub fn of(controls: &NodeControls, root: &Path) -> Self {
        let file = |control: &hpl::machine::controls::Control| FoundFile {
            path: control.path.clone(),
            found: control.found.clone(),
        };
        let gpu = |control: &GpuControl| FoundGpu { gpu: control.gpu, found_mw: control.found_mw };
        Self {
            schema_version: SCHEMA,
            host: kernel(root, "hostname"),
            boot_id: kernel(root, "random/boot_id"),
            files: controls.all().map(file).collect(),
            gpus: controls.gpus().iter().map(gpu).collect(),
        }
    }

    /// Writes it to `path`, so that it survives a crash of the system.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, &serde_json::to_vec_pretty(self)?)
    }

    /// Puts back what the file at `path` says, and takes it away then. Of several processes one does it, while the others wait.
    ///
    /// # Errors
    /// What could not be put back and how the user can, in words; the file stays then.
    pub fn restore(path: &Path, root: &Path) -> Result<Restored, String> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
        let mut file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Restored::Nothing),
            Err(error) => return Err(named(&error)),
        };
        // A file system without locks has one user at a time, hopefully.
        let _ = file.lock();
        let opened = file.metadata().map_err(|error| named(&error))?;
        let same = fs::metadata(path).is_ok_and(|now| (now.dev(), now.ino()) == (opened.dev(), opened.ino()));
        if !same {
            // Another process has done it meanwhile.
            return Ok(Restored::Nothing);
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| named(&error))?;
        let found: Self = serde_json::from_str(&text).map_err(|error| named(&error))?;
        let (here, boot_id) = (kernel(root, "hostname"), kernel(root, "random/boot_id"));
        let rebooted = found.boot_id != boot_id;
        // A container has another name each time, and the boot of its node.
        let is_known = boot_id.is_some() && !rebooted;
        if let (Some(other), Some(here)) = (&found.host, &here)
            && other != here
            && !is_known
        {
            let path = path.display();
            return Err(format!(
                "those of {other} have not been put back, and this is {here}: resume on {other}, which puts them back, or start it anew and \
                 remove {path}, which says what it was found with"
            ));
        }
        if !rebooted {
            let gpus: Vec<(usize, u32)> = found.gpus.iter().map(|gpu| (gpu.gpu, gpu.found_mw)).collect();
            let failed: Vec<String> = found
                .files
                .iter()
                .filter_map(|file| put_back(root, &file.path, &file.found).err())
                .chain(put_back_gpus(root, &gpus))
                .collect();
            if !failed.is_empty() {
                return Err(format!(
                    "not put back: {}; {} says what the node was found with, a reboot brings the kernel's own settings",
                    failed.join("; "),
                    path.display()
                ));
            }
        }
        fs::remove_file(path).map_err(|error| named(&error))?;
        sync_folder(path);
        Ok(if rebooted { Restored::Rebooted } else { Restored::Done })
    }
}

/// What the kernel says of the node.
fn kernel(root: &Path, name: &str) -> Option<String> {
    let text = fs::read_to_string(root.join("proc/sys/kernel").join(name)).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The session of a container that was started anew was refused, by the name of one that is gone.
    #[test]
    fn a_node_of_another_name_is_the_same_until_its_next_boot() {
        let home = tempfile::tempdir().unwrap();
        let kernel = home.path().join("proc/sys/kernel");
        fs::create_dir_all(kernel.join("random")).unwrap();
        fs::write(kernel.join("hostname"), "b\n").unwrap();
        let record = home.path().join(FoundSettings::NAME);
        let found = FoundSettings {
            schema_version: SCHEMA,
            host: Some("a".into()),
            boot_id: Some("1".into()),
            files: Vec::new(),
            gpus: Vec::new(),
        };
        let restored = |boot: &str| {
            fs::write(kernel.join("random/boot_id"), boot).unwrap();
            found.write(&record).unwrap();
            FoundSettings::restore(&record, home.path())
        };
        assert_eq!(restored("1\n"), Ok(Restored::Done));
        assert!(restored("2\n").unwrap_err().contains("those of a have not been put back, and this is b"));
    }
}
