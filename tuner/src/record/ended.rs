//! The row of a trial that has ended.

use objectives::real::{Extent, RunSpec};
use objectives::{Failure, Measurement, Observation, WindowsMeasurement};

use crate::record::session::Session;
use crate::record::{Circumstances, Identity, Outcome, Prediction, ROW_SCHEMA, Row};

impl Row {
    /// The row of `run`.
    pub fn new(
        identity: Identity,
        run: &RunSpec,
        predicted: Option<Prediction>,
        result: &Result<Observation, Failure>,
        around: Circumstances,
        session: &Session,
    ) -> Self {
        let (hpl, engine) = (&run.candidate.hpl, &run.candidate.engine);
        let (measured, sample, failure) = match result {
            Ok(Observation::Whole(measured)) => (Some(measured), None, None),
            Ok(Observation::Windows(sample)) => (None, Some(sample), None),
            Err(failure) => (None, None, Some(failure)),
        };
        let (done, estimated) = part_of_whole(sample, failure);
        let pair = sample.and_then(|sample| sample.pair.as_ref());
        let ours = session.engine == Session::OURS;
        Self {
            schema_version: ROW_SCHEMA,
            session: session.name.clone(),
            trial: identity.trial,
            repeat_of: identity.repeat_of,
            paired_with: identity.paired_with,
            strategy: identity.strategy,
            why: identity.why,
            extent: run.extent,
            engine: identity.engine,
            n: hpl.n,
            nb: hpl.nb,
            p: hpl.p,
            q: hpl.q,
            nbmin: hpl.nbmin,
            ndiv: hpl.ndiv,
            depth: hpl.depth,
            align: hpl.align,
            pmap: hpl.pmap,
            pfact: hpl.pfact,
            rfact: hpl.rfact,
            bcast: hpl.bcast,
            swap: hpl.swap.into(),
            swap_threshold: hpl.swap.threshold(),
            l1: hpl.l1,
            u: hpl.u,
            equil: hpl.equil,
            threads: engine.threads,
            huge_pages: ours.then_some(engine.huge_pages),
            kernels: ours.then(|| engine.kernels.clone()),
            rank_kernels: engine.rank_kernels.clone(),
            split: ours.then_some(engine.split),
            weights: engine.weights.clone(),
            // A map of texts to texts always has a JSON text.
            extra: (!engine.extra.is_empty()).then(|| serde_json::to_string(&engine.extra).unwrap_or_default()),
            max_clock_mhz: engine.settings.max_clock_mhz,
            package_limit_w: engine.settings.package_limit_w,
            gpu_limit_w: engine.settings.gpu_limit_w,
            predicted_rate_gflops: predicted.and_then(|p| finite(p.rate_gflops)),
            predicted_sd: predicted.and_then(|p| finite(p.sd)),
            estimated_rate_gflops: estimated.and_then(finite),
            estimated_sd: sample.and_then(|s| finite(s.estimated_sd())),
            reference_trial: identity.reference_trial,
            reference_rate_gflops: pair.and_then(|pair| finite(pair.reference.predicted_rate_gflops)),
            log_ratio: pair.and_then(|pair| finite(pair.log_ratio)),
            log_ratio_sd: pair.and_then(|pair| finite(pair.log_ratio_sd)),
            outcome: failure.map_or(Outcome::Passed, Outcome::from),
            failure_detail: failure.map(Failure::to_string),
            time_s: measured.and_then(|m| finite(m.time_s)),
            rate_gflops: measured.and_then(|m| finite(m.rate_gflops)),
            residual: residual(result),
            passed: result.is_ok(),
            wall_s: around.wall_s,
            cost_fraction: done.unwrap_or(if run.extent == Extent::Whole { 1.0 } else { 0.0 }),
            budget_left_s: around.left_s,
            steal_share: around.steal_share,
            clock_hz: around.clock_hz,
            gpu_clock_hz: around.gpu_clock_hz,
            gpu_temperature_c: around.gpu_temperature_c,
            nodes_apart: around.nodes_apart,
            energy_j: around.power.energy_j.and_then(finite),
            power_w: around.power.power_w.and_then(finite),
            gflops_per_w: around.power.gflops_per_w.and_then(finite),
            power_coverage: around.power.power_coverage.and_then(finite),
            run_energy_j: around.power.run_energy_j.and_then(finite),
            run_power_w: around.power.run_power_w.and_then(finite),
            run_power_coverage: around.power.run_power_coverage.and_then(finite),
            estimated_energy_j: around.power.estimated_energy_j.and_then(finite),
            estimated_power_w: around.power.estimated_power_w.and_then(finite),
            power_limit_w: session.objective.power_limit_w(),
            power_source: around.power.power_source,
            started_utc: identity.started_utc,
            seed: session.seed,
            command: identity.command,
            host: measured.map(|m| &m.host).or(sample.map(|s| &s.result.host)).unwrap_or(&session.host).clone(),
            nodes: identity.nodes,
            kernel: measured.map(|m| &m.kernel).or(sample.map(|s| &s.result.kernel)).cloned(),
            versions: versions(measured, sample),
            output_sha256: None,
        }
    }
}

/// `value`, where it is a number: JSON has no NaN, and a rate without a number is none.
fn finite(value: f64) -> Option<f64> {
    Some(value).filter(|value| value.is_finite())
}

/// The share of a whole run that was done, and the GFLOP/s of the whole by that: of windows, and of a run that was ended early.
fn part_of_whole(sample: Option<&WindowsMeasurement>, failure: Option<&Failure>) -> (Option<f64>, Option<f64>) {
    match failure {
        Some(Failure::Beaten { done_percent, estimated_rate_gflops, .. }) => {
            (Some(done_percent / 100.0), Some(*estimated_rate_gflops))
        }
        _ => (sample.map(WindowsMeasurement::measured_share), sample.map(|s| s.result.predicted_rate_gflops)),
    }
}

/// The scaled residual, of windows the largest.
fn residual(result: &Result<Observation, Failure>) -> Option<f64> {
    match result {
        Ok(Observation::Whole(measured)) => finite(measured.residual),
        Ok(Observation::Windows(sample)) => sample.residual().and_then(finite),
        Err(Failure::Residual { value, .. }) => value.and_then(finite),
        Err(_) => None,
    }
}

/// This program and its version, with that of our engine where it ran.
fn versions(measured: Option<&Measurement>, sample: Option<&WindowsMeasurement>) -> String {
    let version = measured.and_then(|m| m.result.as_ref()).map(|run| &run.version);
    let engine = version.or(sample.map(|s| &s.result.version)).map(|version| format!(", engine {version}"));
    format!("hpl-tune {}{}", env!("CARGO_PKG_VERSION"), engine.unwrap_or_default())
}
