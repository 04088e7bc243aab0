//! What power a simulated run takes.

use space::result::PhaseTime;
use space::{Candidate, RunResult};

use super::answer::{START_S, SimulatedRun};
use super::{SimulatedCluster, SimulatedPower};

impl SimulatedCluster {
    /// The power of a run of `candidate`: its nodes are busy while they generate, check, factor and update, and idle while they start and
    /// wait for messages. `None` where the cluster says nothing of it, and of a run that does not end.
    pub fn power(&self, candidate: &Candidate, run: &SimulatedRun) -> Option<SimulatedPower> {
        let of_node = self.at(&candidate.engine.settings).power?;
        let nodes = self.node_of(candidate.hpl.ranks().saturating_sub(1), candidate.engine.threads) + 1;
        let (steps_s, timed_s, phases, other_s, whole) = match run {
            SimulatedRun::Whole(result, _) => {
                let RunResult { time_s, generate_s, check_s, rate_gflops, phases, .. } = &**result;
                (*time_s, *time_s, phases, generate_s + check_s, Some(*rate_gflops))
            }
            SimulatedRun::Windows(result) => {
                let other_s = result.generate_s + result.check_s;
                let timed = result.windows.iter().map(|window| window.prologue_s + window.step_s.iter().sum::<f64>());
                (result.wall_s - START_S - other_s, timed.sum(), &result.phases, other_s, None)
            }
            // The power of two runs in turn is that of neither.
            SimulatedRun::Pair(_) | SimulatedRun::BreaksOff(_) | SimulatedRun::Hangs => return None,
        };
        let computing = |phase: &PhaseTime| phase.fact_s + phase.update_s + phase.trsv_s;
        let busy = (phases.iter().map(computing).sum::<f64>() / timed_s).clamp(0.0, 1.0);
        let watts = |busy: f64| nodes as f64 * of_node.watts(busy);
        let core_w = watts(busy);
        let run_s = START_S + other_s + steps_s;
        let joules = START_S * watts(0.0) + other_s * watts(1.0) + steps_s * core_w;
        Some(SimulatedPower {
            core_s: whole.map(|_| steps_s),
            core_w,
            rate_gflops: whole,
            run_s,
            run_w: joules / run_s,
        })
    }
}
