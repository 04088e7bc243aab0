//! Machines of many cores and nodes, described by a file: what the tuner takes before its first run.

use crate::machines::{begin, machine};

const TUNER: &str = env!("CARGO_BIN_EXE_hpl-tune");

/// Memory that was over 24 GB at 64 cores, when every rank of every candidate was walked.
#[test]
fn the_memory_of_the_tuner_does_not_grow_with_the_ranks() {
    for (nodes, cores) in [(1, 64), (8, 128)] {
        let begun = begin(&[], TUNER, &machine(nodes, cores, 2, 4 << 30));
        let searching = begun.said.last().is_some_and(|line| line.starts_with("searching"));
        assert!(searching, "{nodes} × {cores}: {:?}", begun.said);
        // Seconds where nothing else runs; it was killed after more than two minutes.
        assert!(begun.seconds < 90.0, "{nodes} × {cores}: {} s", begun.seconds);
        assert!(begun.peak_bytes < 200 << 20, "{nodes} × {cores}: {} bytes", begun.peak_bytes);
    }
}
