//! Launchers: the command words that start a program on many ranks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::simulated::VERB;

/// Known launchers by name, with the words of their command. `none` starts the program alone.
pub const LAUNCHERS: [(&str, &str); 6] = [
    ("none", ""),
    // Open MPI binds to cores by itself, one per rank, unless ranks have several.
    ("mpirun", "mpirun -np {np} --map-by slot:PE={threads} --bind-to core"),
    ("mpiexec", "mpiexec -n {np}"),
    // A step waits neither for a step that is left on a crashed node, nor for the step in which this program runs.
    ("srun", "srun --overlap --ntasks={np} --cpus-per-task={threads} --cpu-bind=cores"),
    ("flux", "flux run --ntasks={np} --cores-per-task={threads}"),
    ("aprun", "aprun -n {np} -d {threads}"),
];

/// The words of a launcher: of a known one, of a path or a variant such as `mpirun.openmpi` whose name contains that of
/// a known one, or of the template `text` itself.
pub fn words(text: &str) -> Vec<String> {
    let known = |name: &str| LAUNCHERS.iter().find(|(known, _)| *known == name).map(|(_, words)| *words);
    let split = |words: &str| words.split_whitespace().map(str::to_owned).collect::<Vec<String>>();
    if let Some(words) = known(text) {
        return split(words);
    }
    let name = Path::new(text).file_name().and_then(|name| name.to_str()).unwrap_or(text);
    // MPICH's mpirun is its mpiexec.
    let kind = if ["mpich", "hydra"].iter().any(|mpi| name.contains(mpi)) { "mpiexec" } else { name };
    match known(kind).or_else(|| known(kind.split('.').next()?)).filter(|_| !text.contains(char::is_whitespace)) {
        Some(words) => [text.to_owned()].into_iter().chain(split(words).into_iter().skip(1)).collect(),
        None => split(text),
    }
}

/// Whether the words of a launcher contain the number of processes.
pub fn says_processes(words: &[String]) -> bool {
    words.iter().any(|word| word.contains("{np}"))
}

/// The start of our `xhpl` on the processes of an MPI job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MpiJob {
    /// One of [`LAUNCHERS`], or the words of one with `{np}` and `{threads}`.
    pub launcher: String,
    /// The program, built for the launcher's MPI library: a path, or a name on the search path.
    pub program: PathBuf,
    /// Threads of a rank at most, the cores of a node; `None` for all cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_threads: Option<usize>,
    /// File of the cluster that `program` simulates; `None` for real runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<PathBuf>,
}

impl MpiJob {
    /// Ranks of `program` by a launcher, of as many threads as there are cores.
    pub fn new(launcher: &str, program: PathBuf) -> Self {
        Self { launcher: launcher.to_owned(), program, most_threads: None, simulated: None }
    }

    /// The words that start the ranks of `candidate`, to which the flags of the program are added.
    pub fn command(&self, candidate: &Candidate) -> Vec<OsString> {
        let (ranks, threads) = (candidate.hpl.ranks().to_string(), candidate.engine.threads.to_string());
        let filled = |word: String| word.replace("{np}", &ranks).replace("{threads}", &threads).into();
        let launcher = words(&self.launcher).into_iter().map(filled);
        let cluster = self.simulated.iter().flat_map(|path| {
            [VERB.into(), "--cluster".into(), path.clone().into(), "--ranks".into(), OsString::from(&ranks)]
        });
        launcher.chain([self.program.clone().into()]).chain(cluster).collect()
    }
}

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    #[test]
    fn a_job_has_its_ranks_and_their_threads() {
        let job = MpiJob::new("srun", "/opt/xhpl".into());
        let engine = EngineParams { threads: 8, ..EngineParams::default() };
        let words = job.command(&Candidate { hpl: HplParams::baseline(1000, 4, 3), engine });
        assert_eq!(words, ["srun", "--overlap", "--ntasks=12", "--cpus-per-task=8", "--cpu-bind=cores", "/opt/xhpl"]);
    }

    #[test]
    fn a_simulated_job_is_told_its_cluster_and_ranks() {
        let simulated = Some("/run/simulated.toml".into());
        let job = MpiJob { simulated, ..MpiJob::new("none", "hpl-tune".into()) };
        let words = job.command(&Candidate { hpl: HplParams::baseline(1000, 4, 3), engine: EngineParams::default() });
        assert_eq!(words, ["hpl-tune", "__simulated", "--cluster", "/run/simulated.toml", "--ranks", "12"]);
    }

    #[test]
    fn a_launcher_is_a_name_or_its_own_words() {
        assert_eq!(words("mpiexec"), ["mpiexec", "-n", "{np}"]);
        assert_eq!(words("srun -N 2 -n {np}"), ["srun", "-N", "2", "-n", "{np}"]);
        assert!(words("none").is_empty());
    }

    #[test]
    fn a_variant_of_a_launcher_has_the_words_of_its_kind() {
        let open_mpi = words("mpirun")[1..].join(" ");
        assert_eq!(words("mpirun.openmpi").join(" "), format!("mpirun.openmpi {open_mpi}"));
        assert_eq!(words("/opt/openmpi/bin/mpirun").join(" "), format!("/opt/openmpi/bin/mpirun {open_mpi}"));
        assert_eq!(words("mpirun.mpich").join(" "), "mpirun.mpich -n {np}");
        assert_eq!(words("/opt/mpich/bin/mpiexec.hydra")[1..], ["-n", "{np}"]);
        assert_eq!(words("my-launcher"), ["my-launcher"]);
    }
}
