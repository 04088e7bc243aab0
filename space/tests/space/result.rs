//! `result.json` and `engine-params.toml` as they are stored.

use proptest::collection::vec;
use proptest::prelude::*;
use space::result::{PhaseTime, RESULT_SCHEMA};
use space::{Candidate, EngineParams, HplParams, KernelChoice, RunResult, Share};

use crate::strategies::candidate;

proptest! {
    #[test]
    fn engine_params_come_back(candidate in candidate()) {
        let text = toml::to_string(&candidate.engine).unwrap();
        prop_assert_eq!(toml::from_str::<EngineParams>(&text).unwrap(), candidate.engine);
    }

    #[test]
    fn round_trip(candidate in candidate(), time_s in 1e-9..1e9f64, residual in proptest::option::of(0.0..1e9f64),
                  info in 0..9usize, phases in vec((0..9u32, 0.0..9.0f64), 0..5), text in "\\PC{0,20}") {
        let result = RunResult {
            schema_version: RESULT_SCHEMA,
            candidate,
            time_s,
            rate_gflops: 1.0 / time_s,
            fma_peak_gflops: residual,
            device: None,
            fma_peak_share: residual.map(|peak| peak / 2.0),
            residual,
            passed: residual.is_some_and(|residual| residual < 16.0),
            info,
            generate_s: time_s / 3.0,
            check_s: time_s / 7.0,
            x_hash: (info == 0).then(|| text.clone()),
            phases: phases.iter().map(|&(step, fact_s)| PhaseTime { step, fact_s, ..PhaseTime::default() }).collect(),
            started_utc: text.clone(),
            core_started_utc: None,
            host: text.clone(),
            kernel: text.clone(),
            version: text,
        };
        let json = serde_json::to_string(&result).unwrap();
        prop_assert_eq!(serde_json::from_str::<RunResult>(&json).unwrap(), result);
    }
}

#[test]
fn engine_params_are_strict_about_keys_and_complete_by_default() {
    let parsed: EngineParams = toml::from_str("threads = 2\nkernels = \"/usr/lib/libblas.so\"").unwrap();
    assert_eq!(parsed.kernels, KernelChoice::Blas("/usr/lib/libblas.so".into()));
    assert!(parsed.huge_pages);
    assert_eq!(toml::from_str::<EngineParams>(&toml::to_string(&parsed).unwrap()).unwrap(), parsed);
    assert!(toml::from_str::<EngineParams>("thread = 2").unwrap_err().to_string().contains("thread"));
}

#[test]
fn shares_are_checked_when_read() {
    let parsed: EngineParams = toml::from_str("split = 0.5\n[weights]\ncolumns = [1, 0, 2.5]").unwrap();
    assert_eq!(parsed.split.get(), 0.5);
    assert_eq!(parsed.weights.columns.iter().map(|share| share.get()).collect::<Vec<_>>(), [1.0, 0.0, 2.5]);
    assert!(parsed.weights.rows.is_empty() && !parsed.weights.is_empty());
    for bad in ["split = -0.5", "split = nan", "[weights]\nrows = [1, inf]"] {
        let message = toml::from_str::<EngineParams>(bad).unwrap_err().to_string();
        assert!(message.contains("a share must be a finite number of at least 0, found"), "{message}");
    }
    let many: EngineParams = toml::from_str("[weights]\nrows = [1, 1, 1, 0.5]\ncolumns = [1, 1, 2]").unwrap();
    assert_eq!(many.weights.to_string(), "rows 1×3:0.5 columns 1:1:2");
    assert!(toml::from_str::<EngineParams>("[weights]\nrow = [1]").unwrap_err().to_string().contains("row"));
    assert_eq!(Share::new(-0.0).unwrap().get().to_bits(), 0);
    assert_eq!(toml::to_string(&EngineParams::default()).unwrap().find("weights"), None);
}

#[test]
fn rules_of_shares_name_the_way_out() {
    let check = |text: &str| {
        let engine = toml::from_str(text).unwrap();
        Candidate { hpl: HplParams::baseline(1000, 2, 3), engine }.check().map_err(|rule| rule.to_string())
    };
    assert_eq!(check("split = 0.99\n[weights]\nrows = [0, 1]\ncolumns = [1, 2, 3]"), Ok(()));
    assert_eq!(check("split = 1").unwrap_err(), "split must be at least 0 and below 1, found 1");
    let kernels = check("rank_kernels = [\"builtin\", \"builtin-avx2\"]").unwrap_err();
    assert_eq!(kernels, "rank_kernels must hold P·Q=6 kernels or none, found 2");
    assert!(check(&format!("rank_kernels = [{}]", ["\"auto\""; 6].join(", "))).unwrap_err().contains("auto"));
    let long = check("[weights]\nrows = [1, 1, 1]").unwrap_err();
    assert_eq!(long, "weights.rows must hold P=2 speeds or none, found 3");
    let none = check("[weights]\ncolumns = [0, 0, 0]").unwrap_err();
    assert_eq!(none, "weights.columns are all 0, so that no process would own the matrix; make one of them positive");
}
