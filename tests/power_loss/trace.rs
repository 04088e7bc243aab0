//! What a program asked the system to do with files, as `strace` recorded it: nothing that it wrote is left out.

use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

/// Calls that change a file, a folder, or what of them is on the disk.
const CALLS: &str = "open,openat,creat,write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,copy_file_range,sendfile,\
    rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,mkdir,mkdirat,rmdir,\
    fsync,fdatasync,sync,syncfs,sync_file_range";

/// One call that succeeded. Paths are absolute.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Call {
    /// A file is made, where there is none.
    Create(PathBuf),
    /// A file is made, or emptied.
    Empty(PathBuf),
    /// A folder is made.
    MakeFolder(PathBuf),
    /// Bytes are added to a file.
    Write(PathBuf, Vec<u8>),
    /// A file gets this length.
    Truncate(PathBuf, u64),
    /// What was written to a file, or which names a folder has, is on the disk from now on.
    Sync(PathBuf),
    /// A file gets another name.
    Rename(PathBuf, PathBuf),
    /// A file or an empty folder is removed.
    Remove(PathBuf),
    /// Text appears on standard error.
    Say(String),
}

/// `command` under `strace`, which writes to `log`; `more` are flags of it. The process that is started is that of the command.
pub(super) fn traced(command: &Command, log: &Path, more: &[&str]) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-D", "-y", "-xx", "-s", "16777216", "-o"]).arg(log).args(more);
    strace.arg(command.get_program()).args(command.get_args());
    strace
}

/// `command` with all that it and its children write recorded in `log`.
pub(super) fn recorded(command: &Command, log: &Path) -> Command {
    traced(command, log, &["-f", "--seccomp-bpf", "-e", &format!("trace={CALLS}")])
}

/// The calls below `home` that succeeded, and what was said on standard error, in the order in which they returned. `None` where a kill
/// came in the middle of a call that changes something: whether it has is not in the log.
pub(super) fn read(log: &Path, home: &Path) -> Option<Vec<Call>> {
    let mut begun = std::collections::HashMap::new();
    let mut calls = Vec::new();
    for line in fs::read_to_string(log).unwrap().lines() {
        let (process, call) = line.split_once(char::is_whitespace).unwrap();
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(process.to_owned(), first.to_owned());
        } else if call.ends_with("= ?") && !is_sync(call) {
            return None;
        } else if let Some(rest) = call.strip_prefix("<... ") {
            let rest = rest.split_once(" resumed>").unwrap().1;
            calls.extend(of_line(&(begun.remove(process).unwrap() + rest), home));
        } else {
            calls.extend(of_line(call, home));
        }
    }
    begun.values().all(|call| is_sync(call)).then_some(calls)
}

/// Whether a call only waits for the disk.
fn is_sync(call: &str) -> bool {
    let name = call.trim_start_matches("<... ");
    ["fsync", "fdatasync", "sync"].iter().any(|sync| name.starts_with(sync))
}

/// `name(argument, …) = result`, where a descriptor is `3<path>` and a text is in quotes; each byte is `\x` and two digits.
fn of_line(line: &str, home: &Path) -> Option<Call> {
    let (call, result) = line.rsplit_once(" = ").or_else(|| line.rsplit_once("= "))?;
    let (name, arguments) = call.trim_end().strip_suffix(')')?.split_once('(')?;
    if result.starts_with('-') || result.starts_with('?') {
        return None;
    }
    let arguments: Vec<&str> = arguments.split(", ").collect();
    // The second of `*at` calls, relative to the first.
    let at = |place: usize| {
        let name = String::from_utf8(quoted(arguments[place + 1])?).ok()?;
        let mut path = described(arguments[place])?;
        for part in Path::new(&name).components() {
            if part == Component::ParentDir {
                path.pop();
            } else {
                path.push(part)
            }
        }
        Some(path)
    };
    let path = |place: usize| Some(PathBuf::from(String::from_utf8(quoted(arguments[place])?).ok()?));
    let call = match name {
        "openat" if arguments[2].contains("O_TRUNC") => Call::Empty(at(0)?),
        "openat" if arguments[2].contains("O_CREAT") => Call::Create(at(0)?),
        "openat" => return None,
        "write" if arguments[0].starts_with("2<") => {
            return Some(Call::Say(String::from_utf8(quoted(arguments[1])?).ok()?));
        }
        "write" => {
            let bytes = quoted(arguments[1])?;
            let written = result.parse().ok()?;
            Call::Write(described(arguments[0])?, bytes[..written].to_vec())
        }
        "ftruncate" => Call::Truncate(described(arguments[0])?, arguments[1].parse().ok()?),
        "fsync" | "fdatasync" => Call::Sync(described(arguments[0])?),
        "rename" => Call::Rename(path(0)?, path(1)?),
        "renameat" | "renameat2" => Call::Rename(at(0)?, at(2)?),
        "unlink" | "rmdir" => Call::Remove(path(0)?),
        "unlinkat" => Call::Remove(at(0)?),
        "mkdir" => Call::MakeFolder(path(0)?),
        "mkdirat" => Call::MakeFolder(at(0)?),
        _ => {
            let text = String::from_utf8_lossy(&unescaped(line)).into_owned();
            assert!(!text.contains(home.to_str().unwrap()), "a call that is not understood: {text}");
            return None;
        }
    };
    let (Call::Create(path)
    | Call::Empty(path)
    | Call::MakeFolder(path)
    | Call::Write(path, _)
    | Call::Truncate(path, _)
    | Call::Sync(path)
    | Call::Rename(path, _)
    | Call::Remove(path)) = &call
    else {
        unreachable!("what is said is returned above")
    };
    path.starts_with(home).then_some(call)
}

/// The path behind a descriptor.
fn described(argument: &str) -> Option<PathBuf> {
    let path = argument.split_once('<')?.1.strip_suffix('>')?;
    Some(PathBuf::from(String::from_utf8(unescaped(path)).ok()?))
}

/// The bytes of a text in quotes; `None` for what is none, or cut short.
fn quoted(argument: &str) -> Option<Vec<u8>> {
    Some(unescaped(argument.strip_prefix('"')?.strip_suffix('"')?))
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len() / 4);
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let digits = after.strip_prefix(b"x").filter(|after| first == b'\\' && after.len() >= 2);
        let byte = digits.and_then(|after| u8::from_str_radix(std::str::from_utf8(&after[..2]).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = if byte.is_some() { &after[3..] } else { after };
    }
    bytes
}
