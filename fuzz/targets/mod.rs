//! What is fuzzed: each input that the programs read, as a function of its bytes.
//!
//! A target reads its bytes as the programs do, and panics where a promise is broken: a reader panics, or what was read,
//! written and read again is not the same. `fuzz/src/main.rs` runs a target under libFuzzer, with bounds of memory and time;
//! `tests/fuzz_corpora.rs` runs each on the files of `fuzz/corpus`.

mod job;
mod outputs;
mod records;
mod settings;

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// An input that the programs read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    /// Its name, that of its folder in `fuzz/corpus`.
    pub(crate) name: &'static str,
    /// Reads it.
    pub(crate) run: fn(&[u8]),
    /// Memory that it may take, in MiB, whatever it holds.
    pub(crate) memory_mib: usize,
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run, memory_mib: 64 }
}

/// All targets.
pub(crate) const TARGETS: [Target; 18] = [
    target("hpl_dat", settings::hpl_dat),
    target("machine", settings::machine),
    target("space", settings::limits),
    target("weights", settings::weights),
    target("engine_params", settings::engine_params),
    target("engine_profile", settings::engine_profile),
    target("cluster", settings::cluster),
    target("site", settings::site),
    target("flags", settings::flags),
    target("hpl_out", outputs::hpl_out),
    target("engine_output", outputs::engine_output),
    target("power_log", outputs::power_log),
    target("session", records::session),
    target("journal", records::journal),
    target("report", records::report),
    target("trial", records::trial),
    target("job", job::job),
    // The program decodes in a child that may take 2 GiB and is ended beyond.
    Target { name: "parquet", run: records::parquet, memory_mib: 2048 },
];

/// The text of a file that must be UTF-8.
fn utf8(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

/// What JSON holds comes back when it is written and read again.
fn json_comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(data: &[u8]) -> Option<T> {
    let read: T = serde_json::from_slice(data).ok()?;
    let written = serde_json::to_vec(&read).expect("what was read can be written");
    let again: T = serde_json::from_slice(&written).expect("what was written can be read");
    assert_eq!(again, read);
    Some(read)
}
