//! Another HPL reads what we write: Debian's `hpcc`, Netlib HPL inside a larger suite.

use std::process::Command;

use space::params::Looking;
use space::{HplParams, Swap};

/// Its input has the lines of HPL.dat.
#[test]
#[ignore = "needs hpcc: tests/run --install"]
fn hpcc_runs_an_exported_hpl_dat() {
    let folder = tempfile::tempdir().unwrap();
    let params = HplParams {
        nb: 48,
        nbmin: 8,
        ndiv: 3,
        depth: 0,
        pfact: Looking::Left,
        swap: Swap::BinExch,
        ..HplParams::baseline(400, 1, 2)
    };
    let text = space::dat::HplDat::single(&params).write().unwrap();
    std::fs::write(folder.path().join("hpccinf.txt"), text).unwrap();
    let output = Command::new("mpirun")
        .args(["--allow-run-as-root", "--oversubscribe", "-np", "2", "hpcc"])
        .env("OPENBLAS_NUM_THREADS", "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(folder.path().join("hpccoutf.txt")).unwrap();
    let records = space::out::parse(&text);
    assert_eq!(records.len(), 1, "{text}");
    assert_eq!(records[0].passed, Some(true));
    let read = &records[0].params;
    assert_eq!((read.n, read.nb, read.p, read.q), (params.n, params.nb, params.p, params.q));
    assert_eq!((read.nbmin, read.ndiv, read.depth), (params.nbmin, params.ndiv, params.depth));
    assert_eq!((read.pfact, read.rfact, read.bcast), (params.pfact, params.rfact, params.bcast));
}

#[test]
#[ignore = "needs hpcc: tests/run --install"]
fn hpcc_is_tuned_through_its_profile() {
    let rows = crate::engine::tuned_for_three_trials("hpcc", &["--ranks", "2"]);
    for row in &rows {
        assert_eq!(row.engine, "hpcc");
        assert!(row.residual.unwrap() < 16.0 && row.rate_gflops.unwrap() > 0.01);
    }
}
