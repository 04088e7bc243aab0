//! The survey of ranks in place of a run.

use std::time::Instant;

use space::Candidate;

use super::job::{Job, Own};
use super::{Ranks, RunError, Runner};
use crate::Error;
use crate::comm::Comm;
use crate::kernels::{Kernels, RankKernels};
use crate::survey::{RankSurvey, survey};

/// The survey with this many repeats.
pub(super) struct Survey(pub(super) usize);

impl Job for Survey {
    /// Each rank has its own to report.
    type Outcome = ();

    fn work<C: Comm, K: Kernels>(
        &self,
        candidate: &Candidate,
        comm: &C,
        cores: &[usize],
        kernels: &K,
    ) -> Result<((), Own), Error> {
        let started = Instant::now();
        let survey = Some(survey(candidate, self.0, comm, cores, kernels)?);
        Ok(((), Own { phases: Vec::new(), spans: Vec::new(), survey, started }))
    }

    #[cfg(feature = "mpi")]
    fn order(&self) -> super::job::Order {
        super::job::Order::Survey(self.0)
    }
}

impl Runner {
    /// Surveys the ranks of a candidate `repeats` times: what each found, in order.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn survey_on(&self, ranks: &Ranks, candidate: &Candidate, repeats: usize) -> Result<Vec<RankSurvey>, RunError> {
        let candidate = self.accept(ranks, candidate, false)?;
        let kernels = RankKernels::new(&self.kernels, &candidate.engine.rank_kernels)?;
        let ((), of_ranks) = ranks.together(&candidate, &Survey(repeats), &kernels)?;
        Ok(of_ranks.into_iter().filter_map(|own| own.survey).collect())
    }
}
