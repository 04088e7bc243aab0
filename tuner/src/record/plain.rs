//! Files that somebody else may have put where they are: read only where they are regular ones, and no larger than expected.
//!
//! A pipe in their place would never end, a device would fill the memory, and a link would have a private file of the user read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::OFlag;

/// More bytes than an output, a HPL.dat or a JSON of a run has.
pub const TEXT_BYTES: u64 = 64 << 20;
/// More bytes than a journal or a table of trials has.
pub const RECORD_BYTES: u64 = 1 << 30;

/// Opens the file at `path` to be read.
///
/// # Errors
/// As the system says; what is no regular file, also a link to one.
pub fn open(path: &Path) -> io::Result<File> {
    open_with(path, OpenOptions::new().read(true))
}

/// Opens the file at `path` as `options` say.
///
/// # Errors
/// As [`open`].
pub fn open_with(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let irregular = || {
        let problem = "it is no regular file, but a link, a pipe or a device; put the file itself there";
        io::Error::new(io::ErrorKind::InvalidInput, problem)
    };
    let opened = options.custom_flags(flags.bits()).open(path);
    let is_link = |error: &io::Error| error.raw_os_error() == Some(Errno::ELOOP as i32);
    let file = opened.map_err(|error| if is_link(&error) { irregular() } else { error })?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// The bytes of the file at `path`, at most so many.
///
/// # Errors
/// As [`open`], and a larger file.
pub fn read(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let problem = format!("it has more than {most_bytes} bytes, which is no file of a run");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(bytes)
}

/// The text of the file at `path`, of so many bytes at most.
///
/// # Errors
/// As [`read`], and bytes that are no text.
pub fn text(path: &Path, most_bytes: u64) -> io::Result<String> {
    String::from_utf8(read(path, most_bytes)?).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Makes sure that what is at `path` may be read; what is not there may.
///
/// # Errors
/// As [`open`].
pub fn check(path: &Path) -> io::Result<()> {
    match open(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::stat::Mode;

    use super::*;

    #[test]
    fn pipes_devices_and_links_are_not_read() {
        let folder = tempfile::tempdir().unwrap();
        let [file, link, pipe, none] = ["file", "link", "pipe", "none"].map(|name| folder.path().join(name));
        std::fs::write(&file, "12345").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        nix::unistd::mkfifo(&pipe, Mode::S_IRUSR | Mode::S_IWUSR).unwrap();
        assert_eq!(text(&file, 5).unwrap(), "12345");
        assert_eq!(read(&file, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        for path in [&link, &pipe, &folder.path().to_path_buf(), &"/dev/zero".into()] {
            let error = read(path, TEXT_BYTES).unwrap_err();
            assert!(error.to_string().contains("no regular file"), "{}: {error}", path.display());
            assert!(check(path).is_err());
        }
        assert_eq!(read(&none, 5).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(check(&none).is_ok());
    }
}
