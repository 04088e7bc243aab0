//! The survey of ranks in place of a run.

use std::sync::Arc;

use space::Candidate;

use super::{RunError, Runner, run_threads};
use crate::host;
use crate::kernels::RankKernels;
use crate::survey::{RankSurvey, survey};

impl Runner {
    /// Surveys the ranks of a candidate, threads of this process, `repeats` times: what each found, in order.
    ///
    /// # Errors
    /// [`RunError`].
    pub fn survey(&self, candidate: &Candidate, repeats: usize) -> Result<Vec<RankSurvey>, RunError> {
        candidate.check()?;
        let kernels = RankKernels::new(&self.kernels, &candidate.engine.rank_kernels)?;
        run_threads(candidate, &Arc::default(), &host::facts().cores_allowed, |comm, cores| {
            survey(candidate, repeats, comm, cores, &kernels)
        })
    }
}
