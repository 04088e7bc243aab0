//! The energy of the whole run of which a trial has measured windows.

use objectives::Observation;
use objectives::energy::{PhasePower, SpanEnergy, WorkTimes, predicted_energy_j};
use objectives::real::{Extent, RESULT};
use objectives::settings::power_factor;
use space::{RunResult, WindowsResult};

use crate::power::RunPower;
use crate::record::store::Store;
use crate::record::{Finished, ShortRow};

/// Trials whose energies the powers of the phases are fitted to: the last ones.
const TRIALS: usize = 16;

/// `power` with the energy and the mean power that the core phase of the whole run is predicted to take, where the trial has measured windows
/// of it alone in `wall_s` seconds: the energy of two in turn is that of both.
pub(super) fn with_estimate(power: RunPower, observed: Option<&Observation>, wall_s: f64, store: &Store) -> RunPower {
    let (Some(Observation::Windows(sample)), Some(watts)) = (observed, power.run_power_w) else { return power };
    let (run, found) = (&sample.result, store.session().settings.as_found());
    let joules = watts * wall_s;
    let factor = power_factor(&run.candidate.engine.settings, &found);
    let own = SpanEnergy { work: WorkTimes::of_windows(run, wall_s), joules: joules / factor };
    let passed =
        store.rows().iter().rev().filter(|row| row.passed() && row.power_source() == power.power_source.as_deref());
    let known = passed.take(TRIALS).flat_map(|row| {
        let factor = power_factor(&row.shared().engine.settings, &found);
        spans(row, store).into_iter().map(move |span| SpanEnergy { joules: span.joules / factor, ..span })
    });
    let spans: Vec<SpanEnergy> = known.chain([own]).collect();
    let energy_j = PhasePower::fit(&spans).and_then(|fitted| predicted_energy_j(run, wall_s, joules, &fitted));
    RunPower {
        estimated_energy_j: energy_j,
        estimated_power_w: energy_j.map(|energy_j| energy_j / run.predicted_time_s),
        ..power
    }
}

/// The spans of a trial whose energy is known; none where its result is gone, or its engine reports no phases.
fn spans(row: &ShortRow, store: &Store) -> Vec<SpanEnergy> {
    let Ok(text) = std::fs::read(store.folder().trial(row.trial()).join(RESULT)) else { return Vec::new() };
    let run_j = row.run_power_w().map(|watts| watts * row.wall_s());
    let span = |work: WorkTimes, joules: Option<f64>| joules.map(|joules| SpanEnergy { work, joules });
    match row.extent() {
        Extent::Windows => {
            let Ok(run) = serde_json::from_slice::<WindowsResult>(&text) else { return Vec::new() };
            span(WorkTimes::of_windows(&run, row.wall_s()), run_j).into_iter().collect()
        }
        Extent::Whole => {
            let Ok(run) = serde_json::from_slice::<RunResult>(&text) else { return Vec::new() };
            let core = span(WorkTimes::of_core(&run), row.power_w().map(|watts| watts * run.time_s));
            core.into_iter().chain(span(WorkTimes::of_run(&run, row.wall_s()), run_j)).collect()
        }
    }
}
