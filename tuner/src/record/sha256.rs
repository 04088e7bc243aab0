//! SHA-256 of files, as lower-case hexadecimal digits.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use crate::record::plain;

/// Bytes read at a time.
const CHUNK: usize = 1 << 16;

/// That of `bytes`.
pub fn of_bytes(bytes: &[u8]) -> String {
    digits(&Sha256::digest(bytes))
}

/// That of the file at `path`.
///
/// # Errors
/// As the system says, when it cannot be read.
pub fn of_file(path: &Path) -> io::Result<String> {
    of_opened(File::open(path)?)
}

/// That of the file at `path`, which somebody else may have put there.
///
/// # Errors
/// As the system says; what is no regular file, also a link to one.
pub fn of_plain_file(path: &Path) -> io::Result<String> {
    of_opened(plain::open(path)?)
}

fn of_opened(mut file: File) -> io::Result<String> {
    let (mut hash, mut chunk) = (Sha256::new(), vec![0; CHUNK]);
    loop {
        match file.read(&mut chunk)? {
            0 => return Ok(digits(&hash.finalize())),
            count => hash.update(&chunk[..count]),
        }
    }
}

/// Whether `text` is such a hash.
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn digits(hash: &[u8]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of FIPS 180-2.
    #[test]
    fn known_hashes() {
        for (text, hash) in [
            ("", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            ("abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
        ] {
            assert_eq!(of_bytes(text.as_bytes()), hash);
            assert!(is_hash(hash) && !is_hash(&hash[1..]) && !is_hash(&hash.to_uppercase()));
        }
    }

    #[test]
    fn a_file_has_the_hash_of_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large");
        let bytes: Vec<u8> = (0..3 * CHUNK + 1).map(|i| i as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(of_file(&path).unwrap(), of_bytes(&bytes));
        assert!(of_file(&folder.path().join("none")).is_err());
    }
}
