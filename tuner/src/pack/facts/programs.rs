//! Programs of a host that say their version.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use objectives::real::answer;

use crate::session::engine::programs::found;

/// The first line that the C compiler of the search path says of its version.
pub(super) fn c_compiler() -> Option<String> {
    ["cc", "gcc", "clang"].iter().find_map(|name| version(name.as_ref()))
}

/// The first line that `program --version` prints; `None` where there is no such program, or it knows no such flag.
pub(super) fn version(program: &Path) -> Option<String> {
    said(program)?.lines().map(str::trim).find(|line| !line.is_empty()).map(one_line)
}

/// What `program --version` prints; `None` where there is no such program, it knows no such flag, or does not answer.
pub(super) fn said(program: &Path) -> Option<String> {
    answer(Command::new(found(program)?).arg("--version"))
}

/// A line without control characters, its first 200 characters.
pub(super) fn one_line(line: &str) -> String {
    line.chars().filter(|c| !c.is_control()).take(200).collect()
}

/// The Rust compiler that made a program, as it is noted there.
pub(super) fn rust_compiler(program: &Path) -> Option<String> {
    noted(&std::fs::read(program).ok()?)
}

/// The note `rustc version 1.95.0 (…)` in the bytes of a program. Where a library was made by another version, it is in there
/// too: the note that stands there most often counts.
fn noted(program: &[u8]) -> Option<String> {
    const START: &[u8] = b"rustc version ";
    let mut counts = BTreeMap::<String, usize>::new();
    for at in places(program, START) {
        let note = &program[at..];
        let end = note.iter().position(|byte| !(b' '..=b'~').contains(byte)).unwrap_or(note.len()).min(100);
        // The words of this very search are in the program, too.
        if note.get(START.len()).is_some_and(u8::is_ascii_digit) {
            *counts.entry(String::from_utf8_lossy(&note[..end]).into_owned()).or_default() += 1;
        }
    }
    let (most, _) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    Some(most.replacen("rustc version", "rustc", 1))
}

/// Places of `part` in `bytes`.
fn places<'a>(bytes: &'a [u8], part: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    bytes.windows(part.len()).enumerate().filter(move |(_, window)| *window == part).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_note_of_the_compiler_is_found() {
        let program = b"\0rustc version \0..rustc version 1.95.0 (abc 2026-04-14)\0GCC: (x)\0";
        assert_eq!(noted(program).as_deref(), Some("rustc 1.95.0 (abc 2026-04-14)"));
        assert_eq!(noted(b"nothing"), None);
        let this = std::env::current_exe().unwrap();
        assert!(rust_compiler(&this).unwrap().starts_with("rustc "), "this program was made by one");
    }

    #[test]
    fn a_program_that_is_not_there_says_nothing() {
        assert_eq!(version("no-such-program".as_ref()), None);
    }

    /// A pack was not made before what a script had left in the background ended.
    #[test]
    fn a_program_that_leaves_a_process_has_said_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("launch");
        std::fs::write(&program, "#!/bin/sh\nsleep 11 &\necho launch 1.2\n").unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let begun = std::time::Instant::now();
        assert_eq!(version(&program).as_deref(), Some("launch 1.2"));
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }
}
