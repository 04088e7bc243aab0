//! Refusal to run as one of several MPI processes.

use crate::comm::mpi::Calls;

/// Environment variables in which launchers set the size of the world: Open MPI, PMI (MPICH, Intel, srun), MVAPICH.
const SIZE_VARIABLES: [&str; 3] = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MV2_COMM_WORLD_SIZE"];

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
    for name in SIZE_VARIABLES {
        let size = variable(name).and_then(|value| value.trim().parse().ok());
        if let Some(size @ 2..) = size {
            return Err(UnderMpi { variable: name, size });
        }
    }
    Ok(())
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
        for name in SIZE_VARIABLES {
            for value in ["1", "0", "", "many", "-3"] {
                assert_eq!(with(name, value), Ok(()));
            }
            assert_eq!(with(name, "4").unwrap_err(), UnderMpi { variable: name, size: 4 });
        }
    }
}
