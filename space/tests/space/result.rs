//! `result.json` and `engine-params.toml` as they are stored.

use proptest::collection::vec;
use proptest::prelude::*;
use space::result::{PhaseTime, RESULT_SCHEMA};
use space::{EngineParams, KernelChoice, RunResult};

use crate::strategies::candidate;

proptest! {
    #[test]
    fn round_trip(candidate in candidate(), time_s in 1e-9..1e9f64, residual in proptest::option::of(0.0..1e9f64),
                  info in 0..9usize, phases in vec((0..9u32, 0.0..9.0f64), 0..5), text in "\\PC{0,20}") {
        let result = RunResult {
            schema_version: RESULT_SCHEMA,
            candidate,
            time_s,
            rate_gflops: 1.0 / time_s,
            residual,
            passed: residual.is_some_and(|residual| residual < 16.0),
            info,
            generate_s: time_s / 3.0,
            check_s: time_s / 7.0,
            phases: phases.iter().map(|&(step, fact_s)| PhaseTime { step, fact_s, ..PhaseTime::default() }).collect(),
            started_utc: text.clone(),
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
