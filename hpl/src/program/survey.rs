//! The survey of the ranks instead of a run.

use space::Candidate;
use space::workspace::{RunShape, Workspace};

use super::job::Job;
use super::{Ranks, RunError, Runner};
use crate::measure::survey::RankSurvey;

/// Checks that each rank of the grid has memory for a run on this rank alone, with `free_bytes` for all ranks together.
fn check_memory_each(Candidate { hpl, engine }: &Candidate, free_bytes: u64) -> Result<(), RunError> {
    let (n, nb) = (hpl.n, hpl.nb);
    let ranks = hpl.ranks().max(1) as u64;
    let cores = hpl.ranks().saturating_mul(engine.threads);
    let shape = RunShape { p: 1, q: 1, ..RunShape::on_hosts(hpl, engine.threads, cores) };
    let (of_each, free_each) = (Workspace::Hpl.bytes(shape), free_bytes / ranks);
    if of_each <= free_each {
        return Ok(());
    }
    let (needed_bytes, largest_n) = (of_each.saturating_mul(ranks), Workspace::Hpl.largest_n(free_each, nb, shape));
    Err(RunError::TooLargeEach { n, nb, ranks: hpl.ranks(), needed_bytes, free_bytes, largest_n })
}

impl Runner {
    /// Surveys the ranks of a candidate `repeats` times; returns the measurements of each rank, in order. Each rank executes
    /// runs of the candidate's order alone; their memory is checked unless `force`.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn survey_on(
        &self,
        ranks: &Ranks,
        candidate: &Candidate,
        repeats: usize,
        force: bool,
    ) -> Result<Vec<RankSurvey>, RunError> {
        // Each rank works in a group of its own, whose first rank has the first device of its host.
        if !candidate.engine.device.is_none() {
            return Err(RunError::SurveyOfDevices);
        }
        let candidate = self.accept(ranks, candidate, true)?;
        if !force {
            check_memory_each(&candidate, ranks.free_memory(candidate.hpl.ranks()).in_equal_parts())?;
        }
        let kernels = ranks.kernels(&self.kernels, &candidate.engine.rank_kernels)?;
        let (_, of_ranks) = ranks.run_on_all(&candidate, &Job::Survey(repeats), &kernels, &())?;
        Ok(of_ranks.into_iter().filter_map(|report| report.survey).collect())
    }
}

#[cfg(test)]
mod tests {
    use space::{DeviceChoice, EngineParams, HplParams, KernelChoice};

    use super::super::memory::{FreeMemory, check_memory};
    use super::*;

    #[test]
    fn devices_are_not_surveyed() {
        let engine = EngineParams { device: DeviceChoice::Reference, ..EngineParams::default() };
        let candidate = Candidate { hpl: HplParams::baseline(100, 1, 1), engine };
        let runner = Runner::new(&KernelChoice::Builtin).unwrap();
        let refused = runner.survey_on(&Ranks::threads(), &candidate, 1, false).unwrap_err();
        assert!(matches!(refused, RunError::SurveyOfDevices), "{refused}");
    }

    #[test]
    fn memory_for_a_run_of_each_rank_is_needed() {
        let hpl = HplParams { nb: 128, ..HplParams::baseline(10_000, 1, 8) };
        // The matrix of one run takes 0.8 GB, those of eight ranks 6.4 GB.
        let one_run = Candidate { hpl, engine: EngineParams::default() };
        let message = check_memory_each(&one_run, 5_000_000_000).unwrap_err().to_string();
        assert!(message.contains("each of 8 ranks runs N=10000") && message.contains("lower N to"), "{message}");
        assert!(
            check_memory(&one_run, &FreeMemory::OneProcess(5_000_000_000)).is_ok(),
            "one run of all ranks would fit"
        );
        assert!(check_memory_each(&one_run, 8_000_000_000).is_ok());
    }
}
