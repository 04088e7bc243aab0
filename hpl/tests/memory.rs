//! The memory of a run, compared with the memory check before it.
//!
//! The measured peak is that of the largest child process so far, so this file has one test with growing runs.

use std::process::{Command, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use space::dat::HplDat;
use space::order::required_bytes;
use space::{HplParams, Swap};

/// Memory of [A | b] in bytes.
fn matrix_bytes(hpl: &HplParams) -> u64 {
    (8 * hpl.n * (hpl.n + 1)) as u64
}

/// Largest resident memory of any child that has ended, in bytes.
fn peak_bytes() -> u64 {
    // In KiB on Linux.
    getrusage(UsageWho::RUSAGE_CHILDREN).unwrap().max_rss() as u64 * 1024
}

#[test]
fn a_run_uses_the_required_memory() {
    let mut before = 0;
    let mix = Swap::Mix { threshold: 64 };
    for (n, nb, p, q, depth, swap) in [
        (1300, 64, 1, 1, 0, mix),
        (1800, 64, 2, 1, 0, mix),
        (2400, 96, 1, 2, 2, mix),
        (3200, 96, 2, 2, 1, mix),
        (4200, 128, 2, 1, 3, mix),
        (5600, 128, 4, 1, 0, Swap::BinExch),
    ] {
        let hpl = HplParams { nb, depth, swap, ..HplParams::baseline(n, p, q) };
        let (matrix, required) = (matrix_bytes(&hpl), required_bytes(n, p, q, nb, depth));
        assert!(matrix > before, "N={n} alone needs more than all runs before it");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("HPL.dat"), HplDat::single(&hpl).write().unwrap()).unwrap();
        let mut run = Command::new(env!("CARGO_BIN_EXE_xhpl"));
        run.arg("--force").current_dir(&folder).stdout(Stdio::null()).stderr(Stdio::null());
        assert!(run.status().unwrap().success());
        let peak = peak_bytes();
        let message = format!(
            "{peak} bytes of {required}, {matrix} of them the matrix: N={n} NB={nb} P={p} Q={q} DEPTH={depth} {swap:?}"
        );
        println!("{message}");
        assert!(peak > matrix && peak <= required, "{message}");
        assert!(peak as f64 > 0.85 * required as f64, "{message}");
        before = required;
    }
}
