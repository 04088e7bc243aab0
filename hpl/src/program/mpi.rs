//! Refusal to run as one of several MPI processes.

use crate::comm::mpi::Calls;

/// Environment variables in which launchers set the size of the world: Open MPI, PMI (MPICH, Intel, srun --mpi=pmi2), MVAPICH.
const SIZE_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];
/// The tasks of a step of Slurm, which srun sets with any --mpi, and sbatch does not.
const STEP_TASKS: &str = "SLURM_STEP_NUM_TASKS";
/// Set in the shell of srun --pty: the first task of its step is the only one that can be typed to.
const STEP_TERMINAL: &str = "SLURM_PTY_PORT";

/// The program was started as one of several processes, each of which would solve the whole problem.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{variable}={size}: started as one of {size} processes, but this program {}; start it once, without mpirun or srun: its \
     P×Q ranks are threads of one process. For ranks that are processes: hpl-tune mpi-setup",
    built()
)]
pub struct UnderMpi {
    /// The environment variable with the number of processes.
    pub variable: &'static str,
    /// Processes started by the launcher.
    pub size: u64,
}

/// The MPI of this program, for the error message.
fn built() -> &'static str {
    if Calls::exist() { "is for another MPI, which finds only this process" } else { "has no MPI" }
}

/// Refuses when the environment, read by `variable`, has more than one process.
///
/// # Errors
/// [`UnderMpi`].
pub fn refuse_mpi(variable: impl Fn(&str) -> Option<String>) -> Result<(), UnderMpi> {
    let size = |name: &'static str| Some((name, variable(name)?.trim().parse::<u64>().ok()?));
    let mut sizes: Vec<_> = SIZE_VARIABLES.into_iter().filter_map(size).collect();
    // mpirun may start its own processes on other nodes as a step; their number is not that of the ranks, which it sets.
    if sizes.is_empty() && variable(STEP_TERMINAL).is_none() {
        sizes.extend(size(STEP_TASKS));
    }
    match sizes.into_iter().find(|&(_, size)| size > 1) {
        Some((variable, size)) => Err(UnderMpi { variable, size }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &str, value: &str) -> Result<(), UnderMpi> {
        refuse_mpi(|variable| (variable == name).then(|| value.to_owned()))
    }

    #[test]
    fn only_several_processes_are_refused() {
        assert_eq!(with("PATH", "4"), Ok(()));
        for name in SIZE_VARIABLES.into_iter().chain([STEP_TASKS]) {
            for value in ["1", "0", "", "many", "-3"] {
                assert_eq!(with(name, value), Ok(()));
            }
            assert_eq!(with(name, "4").unwrap_err(), UnderMpi { variable: name, size: 4 });
        }
    }

    #[test]
    fn tasks_of_a_step_count_where_no_mpi_says_otherwise() {
        let with = |set: &[(&str, &str)]| {
            refuse_mpi(|name| set.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
        };
        let refused = |variable, size| Err(UnderMpi { variable, size });
        assert_eq!(with(&[(STEP_TASKS, "4")]), refused(STEP_TASKS, 4));
        assert_eq!(with(&[(STEP_TASKS, "4"), ("PMI_SIZE", "many")]), refused(STEP_TASKS, 4));
        assert_eq!(with(&[(STEP_TASKS, "4"), ("PMI_SIZE", "2")]), refused("PMI_SIZE", 2));
        // One rank of mpirun, whose own processes are a step.
        assert_eq!(with(&[(STEP_TASKS, "4"), ("OMPI_COMM_WORLD_SIZE", "1")]), Ok(()));
        // The shell of srun -n 4 --pty.
        assert_eq!(with(&[(STEP_TASKS, "4"), (STEP_TERMINAL, "38413")]), Ok(()));
        // A job of four tasks, outside of its steps.
        assert_eq!(with(&[("SLURM_NTASKS", "4"), ("SLURM_NPROCS", "4")]), Ok(()));
    }
}
