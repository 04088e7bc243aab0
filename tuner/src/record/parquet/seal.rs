//! A checksum of the whole file, kept in its footer's metadata.
//!
//! Parquet has none that readers check, and a flipped bit can make a decoder ask for 2⁶¹ bytes, which ends
//! the process. The checksum is taken with its own digits blank.

pub(super) const KEY: &str = "hpl-tune checksum";
pub(super) const BLANK: &str = "----------------";

/// Write the checksum of `file` over the blank digits in it.
pub(super) fn close(file: &mut [u8]) {
    let digits = format!("{:016x}", fnv1a(file));
    if let Some(place) = place(file) {
        file[place].copy_from_slice(digits.as_bytes());
    }
}

/// Whether `file` has a checksum and another content.
pub(super) fn broken(file: &[u8]) -> bool {
    let Some(place) = place(file) else { return false };
    let mut blank = file.to_vec();
    blank[place.clone()].copy_from_slice(BLANK.as_bytes());
    file[place] != *format!("{:016x}", fnv1a(&blank)).as_bytes()
}

/// Where the digits are: after the last key, behind the two bytes with type and length of a text.
fn place(file: &[u8]) -> Option<std::ops::Range<usize>> {
    let start = file.windows(KEY.len()).rposition(|window| window == KEY.as_bytes())? + KEY.len() + 2;
    let end = start + BLANK.len();
    (end <= file.len()).then_some(start..end)
}

/// FNV-1a, 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
