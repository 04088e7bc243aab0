//! What makes a calibration doubtful: other load on the machine, measurements that vary, forms that do not fit them.

use hpl::machine::host::HostFacts;
use hpl::measure::probe::Sample;
use space::counted;
use space::machine::{PhaseRate, Rate, RateKernel};

use super::runs::Runs;

/// Spread of repeats, or error of a fit, above which a warning is given.
const INACCURATE: f64 = 0.1;

/// Load per core before the calibration above which a warning is given.
pub const BUSY: f64 = 0.3;

/// Share of time taken by the hypervisor above which a warning is given.
const STOLEN: f64 = 0.02;

/// Share of disturbed rounds above which a warning is given.
const DISTURBED: f64 = 0.2;

/// Warnings about other load on the machine, of whose logical CPUs so many are `online`: the load of one of which runs have a part may be beside
/// them.
pub(super) fn disturbances(before: &HostFacts, after: &HostFacts, cores: usize, online: Option<usize>) -> Vec<String> {
    let mut warnings = Vec::new();
    let is_busy = |load: &f64| *load > BUSY * cores as f64 && !before.is_part(online);
    if let Some(load) = before.load.filter(is_busy) {
        warnings.push(format!("the load was {load:.1} on {cores} cores before the calibration; end other work"));
    }
    let stolen = before.cpu_times.zip(after.cpu_times).and_then(|(before, after)| after.stolen_since(&before));
    if let Some(stolen) = stolen.filter(|stolen| *stolen > STOLEN) {
        warnings.push(format!("time taken by the hypervisor: {:.1} %", 100.0 * stolen));
    }
    warnings
}

/// Whether other threads ran on the cores while they were measured.
pub(super) fn interruptions(samples: &[Sample]) -> Option<String> {
    let sum = |of: fn(&Sample) -> usize| samples.iter().map(of).sum::<usize>() as f64;
    let share = sum(|s| s.disturbed) / sum(|s| s.rounds);
    (share > DISTURBED).then(|| {
        format!(
            "other processes ran during {:.0} % of the measurements and will slow real runs; end them",
            100.0 * share
        )
    })
}

/// Whether runs of the engine gave wrong results: these are left out, and runs of a session with the same kernels may fail as they did.
pub(super) fn failed_runs(runs: &Runs) -> Option<String> {
    let Runs { made, failed, .. } = runs;
    (*failed > 0).then(|| {
        format!(
            "the residual of {failed} of {made} runs FAILED, which are left out: kernels, memory or processor compute wrongly; try \
             other kernels by --blas"
        )
    })
}

/// Whether a CPU quota lets the core of runs compute in a `share` of the time alone.
pub(super) fn paused(share: f64) -> Option<String> {
    (share < 1.0).then(|| {
        format!(
            "the CPU quota of the control group pauses runs for {:.0} % of the time, which the rates contain; give the container or \
             job one CPU or more (docker run --cpus, cpu limits of a pod, cpu.max)",
            100.0 * (1.0 - share)
        )
    })
}

/// Whether other processes, or a quota by which runs are paused, took cores from the runs of the engine.
pub(super) fn interrupted_runs(runs: &Runs, is_paused: bool) -> Option<String> {
    let share = runs.disturbed_share();
    let outcome = if runs.are_too_disturbed() {
        "so that their phases are not used and the model does not distinguish most variants"
    } else {
        "which are left out"
    };
    let (what, way_out) = if is_paused { ("the CPU quota", "") } else { ("other processes", "; end them") };
    (share > DISTURBED)
        .then(|| format!("{what} took cores during {:.0} % of the runs that passed, {outcome}{way_out}", 100.0 * share))
}

/// Whether the machine was slowed at times without losing cores.
pub(super) fn slowed_runs(slowed: usize, runs: usize) -> Option<String> {
    let share = slowed as f64 / runs.max(1) as f64;
    (share > DISTURBED).then(|| {
        format!(
            "the machine was more than 10 % slower during {:.0} % of the runs although no other process used its cores, as on \
            virtual machines that share caches, memory or cores; these runs are left out, and real runs will vary as much",
            100.0 * share
        )
    })
}

/// The phases whose runs vary, or do not fit their form.
pub(super) fn inaccurate_phases(phases: &[PhaseRate]) -> Vec<String> {
    let list = |of: fn(&PhaseRate) -> f64| {
        let word = |rate: &PhaseRate| {
            let threads = counted(rate.threads, "thread");
            format!("{:?} with {threads} {:.0} %", rate.phase, 100.0 * of(rate)).to_lowercase()
        };
        let words: Vec<String> = phases.iter().filter(|rate| of(rate) > INACCURATE).map(word).collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    let spread =
        list(|rate| rate.spread).map(|words| format!("times of runs differ from the fitted phases by: {words}"));
    let error = list(|rate| rate.fit_error).map(|words| format!("mean error of the phases: {words}"));
    spread.into_iter().chain(error).collect()
}

/// Warnings about inaccurate rates: the worst spread and the worst fit of each kernel.
pub(super) fn inaccurate_rates(rates: &[Rate]) -> Vec<String> {
    let worst =
        |of: fn(&Rate) -> f64, kernel| rates.iter().filter(|rate| rate.kernel == kernel).map(of).fold(0.0, f64::max);
    let list = |of: fn(&Rate) -> f64| {
        let inaccurate =
            RateKernel::ALL.into_iter().map(|kernel| (kernel, worst(of, kernel))).filter(|&(_, w)| w > INACCURATE);
        let words: Vec<String> =
            inaccurate.map(|(kernel, worst)| format!("{kernel:?} {:.0} %", 100.0 * worst).to_lowercase()).collect();
        (!words.is_empty()).then(|| words.join(", "))
    };
    let spread = list(|rate| rate.spread).map(|words| format!("repeats differ by up to: {words}"));
    let error = list(|rate| rate.fit_error).map(|words| format!("largest error of the fits: {words}"));
    spread.into_iter().chain(error).collect()
}

#[cfg(test)]
mod tests {
    use hpl::measure::probe::Quantity;

    use super::*;

    #[test]
    fn the_load_of_cores_that_others_have_is_no_warning() {
        let facts = hpl::machine::host::facts();
        let busy = HostFacts {
            load: Some(9.0),
            cores_allowed: vec![0, 1],
            cores_physical: 2,
            cpus_allowed: 2,
            cpu_times: None,
            ..facts
        };
        let warnings = |facts: &HostFacts, online| disturbances(facts, facts, 2, online).len();
        assert_eq!([Some(2), None, Some(8)].map(|online| warnings(&busy, online)), [1, 1, 0]);
        assert_eq!(warnings(&HostFacts { cores_physical: 8, ..busy }, None), 0, "a quota");
    }

    #[test]
    fn doubts_are_told() {
        let sample = |disturbed| Sample {
            quantity: Quantity::Copy,
            threads: 1,
            sizes: vec![1],
            time_s: 1.0,
            spread: 0.0,
            rounds: 10,
            disturbed,
        };
        assert_eq!(interruptions(&[sample(0), sample(3)]), None);
        assert!(interruptions(&[sample(2), sample(8)]).unwrap().contains("50 %"));
        let of_runs = |failed| failed_runs(&Runs { made: 40, failed, ..Runs::default() });
        assert_eq!(of_runs(0), None);
        assert!(of_runs(3).unwrap().starts_with("the residual of 3 of 40 runs FAILED"));
        let of_disturbed =
            |disturbed, failed| interrupted_runs(&Runs { made: 10, disturbed, failed, ..Runs::default() }, false);
        assert_eq!(of_disturbed(2, 0), None);
        assert!(of_disturbed(5, 0).unwrap().contains("50 % of the runs that passed, which are left out"));
        assert!(of_disturbed(5, 4).unwrap().contains("83 % of the runs that passed, so that their phases are not"));
        let by_quota = interrupted_runs(&Runs { made: 10, disturbed: 10, ..Runs::default() }, true).unwrap();
        assert!(by_quota.starts_with("the CPU quota took") && !by_quota.contains("end them"), "{by_quota}");
        assert_eq!(paused(1.0), None);
        assert!(paused(0.25).unwrap().contains("pauses runs for 75 % of the time"));
        assert_eq!(slowed_runs(2, 20), None);
        assert!(slowed_runs(10, 40).unwrap().contains("25 %"));
        let rate = |spread, fit_error| Rate {
            kernel: RateKernel::Dgemm,
            threads: 2,
            coefficients: Vec::new(),
            valid: vec![[1.0, 2.0]; 3],
            spread,
            fit_error,
            date: String::new(),
            origin: String::new(),
        };
        assert!(inaccurate_rates(&[rate(0.05, 0.05)]).is_empty());
        let told = inaccurate_rates(&[rate(0.2, 0.05), rate(0.15, 0.3)]);
        assert_eq!(told, ["repeats differ by up to: dgemm 20 %", "largest error of the fits: dgemm 30 %"]);
    }
}
