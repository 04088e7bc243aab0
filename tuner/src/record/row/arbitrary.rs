//! Rows for tests: one to read, and any that could be.

use objectives::real::{Extent, RunSpec};
use objectives::{Measurement, Observation, WindowsMeasurement};
use proptest::option::of;
use proptest::prelude::*;
use space::WindowsResult;
use space::params::Coded;
use space::windows::WindowResult;

use super::*;
use crate::report::summary::tests::session;

/// A passed run of NB 64 + 8 × its number.
pub(crate) fn row(trial: u64) -> Row {
    let hpl = HplParams { nb: 64 + 8 * trial as usize, ..HplParams::baseline(1000, 1, 2) };
    row_of(trial, &Candidate { hpl, engine: EngineParams::default() })
}

fn around(wall_s: f64, left_s: f64) -> Circumstances {
    Circumstances { wall_s, left_s, steal_share: Some(0.01), clock_hz: Some(2e9), ..Circumstances::default() }
}

/// Who a trial of the strategy `bayes` is.
pub(crate) fn identity(trial: u64) -> Identity {
    Identity {
        trial,
        repeat_of: None,
        paired_with: None,
        reference_trial: None,
        strategy: "bayes".into(),
        why: "expected improvement".into(),
        engine: "ours".into(),
        started_utc: "2026-11-20T07:00:00Z".into(),
        command: "hpl-tune run --dat HPL.dat".into(),
        nodes: None,
    }
}

/// A whole run at this rate, in GFLOP/s, whose residual passed.
pub(crate) fn passed_run(rate_gflops: f64) -> Measurement {
    Measurement {
        rate_gflops,
        time_s: 0.033,
        residual: 0.0034,
        passed: true,
        wall_s: 0.5,
        generate_s: 0.01,
        check_s: 0.01,
        started_utc: String::new(),
        command: Vec::new(),
        kernel: "builtin 0.1.0".into(),
        host: "host".into(),
        result: None,
    }
}

/// A passed run of `candidate` at 20 GFLOP/s + its number.
pub(crate) fn row_of(trial: u64, candidate: &Candidate) -> Row {
    let identity = identity(trial);
    let measured = Measurement {
        started_utc: identity.started_utc.clone(),
        command: vec![identity.command.clone()],
        ..passed_run(20.0 + trial as f64)
    };
    let predicted = Some(Prediction { rate_gflops: 20.5, sd: 0.05 });
    let observed = Ok(Observation::Whole(measured));
    Row::new(identity, &RunSpec::whole(candidate), predicted, &observed, around(0.5, 100.0 - trial as f64), &session())
}

/// Windows of a run of NB `nb` that pass, with an estimate of `rate` GFLOP/s.
pub(crate) fn windows(trial: u64, nb: usize, rate: f64) -> Row {
    let base = row(0);
    let mut candidate = base.candidate();
    candidate.hpl.nb = nb;
    let predicted_time_s = space::flops::rate_gflops(candidate.hpl.n, 1.0) / rate;
    let window = WindowResult {
        first: 0,
        steps: 1,
        prologue_s: 0.0,
        step_s: vec![predicted_time_s / 10.0],
        residual: Some(1e-3),
        passed: Some(true),
    };
    let result = WindowsResult {
        windows_schema_version: space::windows::WINDOWS_SCHEMA,
        candidate: candidate.clone(),
        windows: vec![window],
        passed: true,
        generate_s: 0.0,
        check_s: 0.0,
        wall_s: 0.1,
        phases: Vec::new(),
        predicted_time_s,
        predicted_rate_gflops: rate,
        predicted_spread_s: predicted_time_s / 100.0,
        predicted_trsv_s: 0.0,
        started_utc: base.started_utc.clone(),
        host: "host".into(),
        kernel: "builtin 0.1.0".into(),
        version: "0".into(),
    };
    let observed =
        Ok(Observation::Windows(WindowsMeasurement { result, wall_s: 0.1, command: Vec::new(), pair: None }));
    Row::new(
        identity(trial),
        &RunSpec { extent: Extent::Windows, ..RunSpec::whole(&candidate) },
        None,
        &observed,
        around(0.1, 50.0),
        &session(),
    )
}

fn any_coded<T: Coded + std::fmt::Debug>() -> impl Strategy<Value = T> {
    proptest::sample::select(T::ALL.iter().map(|(value, _)| *value).collect::<Vec<_>>())
}

fn any_finite() -> impl Strategy<Value = f64> {
    any::<f64>().prop_filter("JSON has no infinity", |value| value.is_finite())
}

fn any_outcome() -> impl Strategy<Value = Outcome> {
    use Outcome::*;
    proptest::sample::select(vec![
        Passed,
        Infeasible,
        Launch,
        TimedOut,
        Crashed,
        Killed,
        OutOfMemory,
        Residual,
        Beaten,
        Skipped,
        Output,
    ])
}

fn any_kernels() -> impl Strategy<Value = KernelChoice> {
    any::<String>().prop_map(KernelChoice::from)
}

fn any_share() -> impl Strategy<Value = Share> {
    (0.0..1e300).prop_map(|value| Share::new(value).unwrap())
}

fn any_weights() -> impl Strategy<Value = Weights> {
    let speeds = || proptest::collection::vec(any_share(), 0..3);
    (speeds(), speeds()).prop_map(|(rows, columns)| Weights { rows, columns })
}

/// Any row with finite numbers and any text.
pub(crate) fn any_row() -> impl Strategy<Value = Row> {
    let identity = (any::<u64>(), of(any::<u64>()), of(any::<u64>()), any::<String>(), any::<String>());
    let sizes = proptest::array::uniform10(0..1_000_000_usize);
    let words = (
        (any_coded(), any_coded(), any_coded(), any_coded(), any_coded(), any_coded()),
        proptest::sample::select(vec![SwapName::BinExch, SwapName::Long, SwapName::Mix]),
        proptest::sample::select(vec![Extent::Windows, Extent::Whole]),
        (of(any_kernels()), any::<bool>(), of(any::<bool>()), of(any::<String>())),
        (of(any_share()), any_weights(), proptest::collection::vec(any_kernels(), 0..3)),
    );
    let numbers = (proptest::array::uniform7(of(any_finite())), proptest::array::uniform3(any_finite()));
    let outcome = (any_outcome(), of(any::<String>()), any::<bool>(), any::<u64>(), any::<String>());
    let power =
        (proptest::array::uniform7(of(any_finite())), of(any::<String>()), (of(any::<u32>()), of(any::<u32>())));
    (identity, sizes, words, numbers, outcome, power).prop_map(|(identity, sizes, words, numbers, outcome, power)| {
        let (power, power_source, clock) = power;
        let [n, nb, p, q, nbmin, ndiv, depth, align, swap_threshold, threads] = sizes;
        let ((pmap, pfact, rfact, bcast, l1, u), swap, extent, engine, (split, weights, rank_kernels)) = words;
        let (kernels, equil, huge_pages, extra) = engine;
        let (rates, fixed) = numbers;
        let [predicted_rate_gflops, predicted_sd, estimated_rate_gflops, estimated_sd, time_s, rate_gflops, residual] =
            rates;
        Row {
            trial: identity.0,
            repeat_of: identity.1,
            paired_with: identity.2,
            strategy: identity.3,
            why: identity.4,
            extent,
            n,
            nb,
            p,
            q,
            nbmin,
            ndiv,
            depth,
            align,
            pmap,
            pfact,
            rfact,
            bcast,
            swap,
            swap_threshold,
            l1,
            u,
            equil,
            threads,
            huge_pages,
            kernels,
            rank_kernels,
            split,
            weights,
            extra,
            predicted_rate_gflops,
            predicted_sd,
            estimated_rate_gflops,
            estimated_sd,
            reference_trial: identity.1.map(|trial| trial / 2),
            reference_rate_gflops: power[0],
            log_ratio: power[1],
            log_ratio_sd: power[2],
            outcome: outcome.0,
            failure_detail: outcome.1,
            passed: outcome.2,
            seed: outcome.3,
            command: outcome.4,
            time_s,
            rate_gflops,
            residual,
            wall_s: fixed[0],
            cost_fraction: fixed[1],
            budget_left_s: fixed[2],
            max_clock_mhz: clock.0,
            package_limit_w: clock.1,
            gpu_limit_w: clock.0.map(|mhz| mhz / 4 + 1),
            energy_j: power[0],
            power_w: power[1],
            gflops_per_w: power[2],
            power_coverage: power[3],
            run_energy_j: power[4],
            run_power_w: power[5],
            run_power_coverage: power[6],
            power_source,
            nodes_apart: identity.2.map(|trial| format!("n{trial}: clock 1.90 GHz, of the others 2.60 GHz")),
            ..row(0)
        }
    })
}
