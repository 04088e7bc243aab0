//! A pack as one file: a tar archive, compressed by zstd.

use std::io;
use std::path::Path;

use tar::{Builder, EntryType, Header};

use super::folder::files_below;

/// Level of the compression: the default of zstd's program.
const LEVEL: i32 = 3;

/// The archive of the folder at `root`: its files below `name`, in the order of their names, of nobody in particular and with
/// the time `unix_s`, so that equal folders have equal archives.
///
/// # Errors
/// As the system says, when a file cannot be read.
pub fn archive(root: &Path, name: &str, unix_s: u64) -> io::Result<Vec<u8>> {
    let mut tar = Builder::new(Vec::new());
    for path in files_below(root)? {
        let bytes = std::fs::read(root.join(&path))?;
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Regular);
        header.set_mode(if path.ends_with("run.sh") { 0o755 } else { 0o644 });
        header.set_mtime(unix_s);
        header.set_size(bytes.len() as u64);
        tar.append_data(&mut header, Path::new(name).join(&path), &bytes[..])?;
    }
    zstd::encode_all(&tar.into_inner()?[..], LEVEL)
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn the_archive_holds_the_files() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("hpl")).unwrap();
        for (name, text) in [("HPL.out", "out"), ("run.sh", "#!/bin/sh\n"), ("hpl/cert-1-hpl.input", "in")] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let packed = archive(folder.path(), "pack", 1_000_000_000).unwrap();
        assert_eq!(packed, archive(folder.path(), "pack", 1_000_000_000).unwrap());
        let plain = zstd::decode_all(&packed[..]).unwrap();
        let mut found = Vec::new();
        for entry in tar::Archive::new(&plain[..]).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            found.push((entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text));
        }
        let expected = [
            ("pack/HPL.out", 0o644, "out"),
            ("pack/hpl/cert-1-hpl.input", 0o644, "in"),
            ("pack/run.sh", 0o755, "#!/bin/sh\n"),
        ];
        assert_eq!(found, expected.map(|(name, mode, text)| (name.to_owned(), mode, text.to_owned())));
    }
}
