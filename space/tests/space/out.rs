//! HPL.out: Netlib's exact text, and reading what the versions print.

use proptest::collection::vec;
use proptest::prelude::*;
use space::dat::HplDat;
use space::out::{self, Norms, Tally};
use space::{Bcast, Candidate, EngineParams, HplParams, Looking, Pmap, RunResult, Swap};

use crate::strategies::params;

/// A published output of Netlib's HPL 2.3 (8 ranks on one server, October 2023).
const NETLIB: &str = "\
================================================================================
HPLinpack 2.3  --  High-Performance Linpack benchmark  --   December 2, 2018
Written by A. Petitet and R. Clint Whaley,  Innovative Computing Laboratory, UTK
Modified by Piotr Luszczek, Innovative Computing Laboratory, UTK
Modified by Julien Langou, University of Colorado Denver
================================================================================

An explanation of the input/output parameters follows:
T/V    : Wall time / encoded variant.
N      : The order of the coefficient matrix A.
NB     : The partitioning blocking factor.
P      : The number of process rows.
Q      : The number of process columns.
Time   : Time in seconds to solve the linear system.
Gflops : Rate of execution for solving the linear system.

The following parameter values will be used:

N      :   10240\x20
NB     :     128\x20
PMAP   : Row-major process mapping
P      :       2\x20
Q      :       4\x20
PFACT  :   Right\x20
NBMIN  :       4\x20
NDIV   :       2\x20
RFACT  :   Crout\x20
BCAST  :   1ring\x20
DEPTH  :       0\x20
SWAP   : Mix (threshold = 32)
L1     : transposed form
U      : transposed form
EQUIL  : yes
ALIGN  : 8 double precision words

--------------------------------------------------------------------------------

- The matrix A is randomly generated for each test.
- The following scaled residual check will be computed:
      ||Ax-b||_oo / ( eps * ( || x ||_oo * || A ||_oo + || b ||_oo ) * N )
- The relative machine precision (eps) is taken to be               1.110223e-16
- Computational tests pass if scaled residuals are less than                16.0

================================================================================
T/V                N    NB     P     Q               Time                 Gflops
--------------------------------------------------------------------------------
WR00C2R4       10240   128     2     4              48.50             1.4762e+01
HPL_pdgesv() start time Thu Oct 12 18:37:13 2023

HPL_pdgesv() end time   Thu Oct 12 18:38:01 2023

--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   2.11204902e-03 ...... PASSED
================================================================================

Finished      1 tests with the following results:
              1 tests completed and passed residual checks,
              0 tests completed and failed residual checks,
              0 tests skipped because of illegal input values.
--------------------------------------------------------------------------------

End of Tests.
================================================================================
";

/// The parameters of that output.
fn netlib_params() -> HplParams {
    HplParams {
        bcast: Bcast::OneRing,
        depth: 0,
        swap: Swap::Mix { threshold: 32 },
        ..HplParams::baseline(10_240, 2, 4)
    }
}

fn netlib_result() -> RunResult {
    RunResult {
        schema_version: 1,
        candidate: Candidate { hpl: netlib_params(), engine: EngineParams::default() },
        time_s: 48.4981,
        rate_gflops: 14.7620,
        residual: Some(2.112_049_02e-3),
        passed: true,
        info: 0,
        generate_s: 0.5,
        check_s: 0.5,
        fma_peak_gflops: None,
        device: None,
        fma_peak_share: None,
        x_hash: None,
        phases: Vec::new(),
        started_utc: "2023-10-12T18:37:12.6Z".to_owned(),
        core_started_utc: None,
        host: String::new(),
        kernel: String::new(),
        version: String::new(),
    }
}

#[test]
fn a_report_is_netlibs_text() {
    assert_eq!(out::report(&HplDat::single(&netlib_params()), &[netlib_result()], |_| 0), NETLIB);
}

#[test]
fn netlibs_text_is_read() {
    let records = out::parse(NETLIB);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].params, netlib_params());
    assert_eq!((records[0].time_s, records[0].rate_gflops), (48.5, 14.762));
    assert_eq!((records[0].residual, records[0].passed), (Some(2.112_049_02e-3), Some(true)));
}

#[test]
fn long_lists_continue_on_the_next_line() {
    let mut dat = HplDat::single(&netlib_params());
    dat.ns = (1..=17).collect();
    let header = out::header(&dat);
    let lines: Vec<_> = header.lines().skip_while(|line| !line.starts_with("N      :  ")).take(4).collect();
    assert_eq!(lines[0], "N      :       1        2        3        4        5        6        7        8 ");
    assert_eq!(lines[1], "               9       10       11       12       13       14       15       16 ");
    assert_eq!(lines[2], "              17 ");
    assert!(lines[3].starts_with("NB     :"));
}

/// A published failure under HPL 2.3 (one GPU, February 2024).
#[test]
fn a_failure_is_netlibs_text_with_its_norms() {
    let norms = Norms {
        r_inf: 5455.998041,
        a_inf: 6229.846527,
        a_1: 6230.505776,
        x_inf: 790.874477,
        x_1: 203978.961025,
        b_inf: 0.499978,
    };
    let expected = "\
--------------------------------------------------------------------------------
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.05852126e+08 ...... FAILED
||Ax-b||_oo  . . . . . . . . . . . . . . . . . =        5455.998041
||A||_oo . . . . . . . . . . . . . . . . . . . =        6229.846527
||A||_1  . . . . . . . . . . . . . . . . . . . =        6230.505776
||x||_oo . . . . . . . . . . . . . . . . . . . =         790.874477
||x||_1  . . . . . . . . . . . . . . . . . . . =      203978.961025
||b||_oo . . . . . . . . . . . . . . . . . . . =           0.499978
";
    assert_eq!(out::residual(4.05852126e8, 16.0, Some(&norms)), expected);
}

#[test]
fn without_a_check_there_is_one_heading_and_no_verdict() {
    let dat = HplDat { threshold: 0.0, ..HplDat::single(&netlib_params()) };
    let text = out::report(&dat, &[netlib_result(), netlib_result()], |_| 0);
    assert_eq!(text.matches("T/V      ").count(), 1);
    assert!(text.contains("              2 tests completed without checking,\n              0 tests skipped"));
    assert!(!text.contains("residual"));
    assert!(out::parse(&text).iter().all(|record| record.passed.is_none() && record.residual.is_none()));
}

#[test]
fn a_zero_pivot_is_skipped_and_counted() {
    let singular = RunResult { residual: None, passed: false, info: 7, ..netlib_result() };
    let text = out::report(&HplDat::single(&netlib_params()), &[singular], |_| 0);
    assert!(text.contains(">>> Error code returned by solve is 7, skip <<<\n"));
    assert!(text.contains("              1 tests skipped because"));
    assert_eq!(out::parse(&text)[0].passed, None);
}

#[test]
fn other_versions_are_read() {
    // HPCC's HPL 2.0, HPL 2.2, Intel's: seen in published logs.
    let cases = [
        ("WR11C2R4        5120   128     2     2              26.71              3.352e+00", 3.352),
        ("WR01C2R4      100000   192     6     8             680.50            9.79690e+02", 979.69),
        ("WC03L12R16    299008  1024     2     4              52.88       3.370e+05 ( 4.213e+04)", 337_000.0),
    ];
    let check = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0034961 ...... PASSED";
    for (line, rate_gflops) in cases {
        let records = out::parse(&format!("{line}\r\n{check}\r\n"));
        assert_eq!(records.len(), 1, "{line}");
        assert_eq!((records[0].rate_gflops, records[0].passed), (rate_gflops, Some(true)));
        assert_eq!(records[0].residual, Some(0.003_496_1));
    }
    let last = out::parse(cases[2].0)[0].params;
    assert_eq!((last.bcast, last.rfact, last.ndiv, last.nbmin), (Bcast::TwoRingM, Looking::Left, 12, 16));
}

/// NVIDIA's HPL prints DEPTH alone; rocHPL-MxP the same, with a score that is none of HPL.
#[test]
fn a_short_code_is_a_result_and_mixed_precision_is_none() {
    let line = "WC0           125440  2560     1     2               7.31              1.800e+05\n";
    let check = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0034961 ...... PASSED\n";
    let found = out::parse(&format!("{line}{check}"));
    let [record] = &found[..] else { panic!("{found:?}") };
    assert_eq!((record.params.n, record.params.nb, record.params.q, record.params.depth), (125_440, 2560, 2, 0));
    assert_eq!((record.params.pmap, record.rate_gflops, record.passed), (Pmap::Column, 180_000.0, Some(true)));
    let mixed = format!("{line}HPLMXP_pdgesv() start time Mon Jun 12 10:00:00 2023\n\n{check}{line}");
    let found = out::parse(&mixed);
    assert!(found.len() == 1 && found[0].passed.is_none(), "{found:?}");
    assert_eq!(out::parse(&line.replace("WC0", "WC")), []);
}

/// Of outputs that are joined: what HPL-MxP checks is not the result of HPL before it.
#[test]
fn the_check_of_mixed_precision_belongs_to_no_result_of_hpl() {
    let line = "WC0           125440  2560     1     2               7.31              1.800e+05\n";
    let check = "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0034961 ...... PASSED\n";
    let mixed = |verdict: &str| {
        format!("  ||Ax-b||_oo / (EPS * (||A||_oo * ||x||_oo + ||b||_oo) * N) =    2.179408E-05 ...... {verdict}\n")
    };
    let only = |text: String| {
        let found = out::parse(&text);
        assert_eq!(found.len(), 1, "{found:?}");
        (found[0].residual, found[0].passed)
    };
    assert_eq!(only(format!("{line}{}", mixed("PASSED"))), (None, None));
    assert_eq!(only(format!("{line}{check}{}", mixed("FAILED"))), (Some(0.003_496_1), Some(true)));
}

/// The columns of N are 12 wide: of a longer one the T/V code would be a part.
#[test]
fn a_size_that_hpl_cannot_hold_is_no_result() {
    let line = |n: &str| out::parse(&format!("WC00C2R2 {n} 384 2 2 250.00 2.6667e+03\n")).len();
    assert_eq!(["2147483647", "2147483648", "111111111110"].map(line), [1, 0, 0]);
}

#[test]
fn a_verdict_without_a_number_never_passes() {
    let line = "WR11C2R4        5120   128     2     2              26.71              3.352e+00\n";
    let check = |value: &str, verdict: &str| {
        let text = format!("{line}||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)= {value} ...... {verdict}\n");
        let record = out::parse(&text)[0];
        (record.residual, record.passed)
    };
    assert_eq!(check("-nan", "FAILED"), (None, Some(false)));
    assert_eq!(check("nan", "PASSED"), (None, None));
    assert_eq!(check("", "PASSED"), (None, None));
    assert_eq!(check("0.003", "PASS"), (None, None));
    assert_eq!(check("17.5", "FAILED"), (Some(17.5), Some(false)));
}

#[test]
fn a_check_belongs_to_its_own_result() {
    // The second result line is damaged: its failure is not the first one's.
    let text = NETLIB.replace("================\n\nFinished", "================\nWR00C2R4  10240   1x8\n\nFinished")
        + "||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=   4.05852126e+08 ...... FAILED\n";
    assert_eq!(out::parse(&text)[0].passed, Some(true));
}

proptest! {
    #[test]
    fn results_round_trip(params in params(), time_s in 0.0..1e6f64, rate in 1e-9..1e9f64, r in 0.0..100.0f64) {
        let mut text = out::header(&HplDat::single(&params)) + &out::heading();
        text += &out::result(&params, time_s, rate, "Thu Jan  1 00:00:00 1970", "Thu Jan  1 00:00:00 1970");
        text += &out::residual(r, 16.0, None);
        text += &out::footer(&Tally { passed: 1, ..Tally::default() }, 16.0);
        let records = out::parse(&text);
        prop_assert_eq!(records.len(), 1);
        let record = records[0];
        prop_assert_eq!(record.params, params);
        prop_assert!((record.time_s - time_s).abs() <= 0.005 + 1e-9);
        prop_assert!((record.rate_gflops / rate - 1.0).abs() <= 0.5001e-4);
        prop_assert!((record.residual.unwrap() - r).abs() <= 0.5001e-8 * r);
        prop_assert_eq!(record.passed, Some(r < 16.0));
    }

    /// Output that ends anywhere gives a whole result or none, and a verdict that is there.
    #[test]
    fn a_torn_text_gives_whole_results(at in 0..NETLIB.len()) {
        let whole = out::parse(NETLIB)[0];
        for record in out::parse(&NETLIB[..at]) {
            prop_assert_eq!((record.params, record.time_s, record.rate_gflops),
                            (whole.params, whole.time_s, whole.rate_gflops));
            prop_assert!(record.passed.is_none() || record == whole);
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC*", lines in vec("W[RC][0-9LCR é]{0,9} [0-9 .e+-]{0,40}", 0..4)) {
        out::parse(&text);
        out::parse(&lines.join("\n"));
    }
}
