//! Launchers: the command words that start a program on many ranks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use nix::unistd::getuid;
use serde::{Deserialize, Serialize};
use space::Candidate;

use crate::simulated::VERB;
use crate::slurm_clock::SlurmClock;

mod places;

pub use places::{FILES_OF_NODES, short};
use places::{PASSES_ALL, PlacedBy, without_places};

/// Known launchers by name, with the words of their command. `none` starts the program alone.
pub const LAUNCHERS: [(&str, &str); 6] = [
    ("none", ""),
    // Open MPI binds to cores by itself, one per rank, unless ranks have several.
    ("mpirun", "mpirun -np {np} --map-by slot:PE={threads} --bind-to core"),
    ("mpiexec", "mpiexec -n {np}"),
    // A step waits neither for a step that is left on a crashed node, nor for the step in which this program runs.
    // Slurm counts logical CPUs, of which a core may have several.
    ("srun", "srun --overlap --ntasks={np} --cpus-per-task={cpus} --cpu-bind=cores"),
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

/// Whether a launcher is an `mpirun` or `mpiexec`, names that several MPI libraries give theirs, alone or with an ending as `.openmpi`.
pub fn is_of_several_libraries(text: &str) -> bool {
    let name = text.split_whitespace().next().and_then(|program| Path::new(program).file_name()?.to_str());
    name.and_then(|name| name.split('.').next()).is_some_and(|name| ["mpirun", "mpiexec"].contains(&name))
}

/// The launcher `text` with the words that its MPI library understands, by what its program prints of its `version`: those of Open MPI only
/// where it is Open MPI's, none of them where it is MPICH's, Intel MPI's or another made of Hydra. Words that the user gave stay, but an `mpirun`
/// made of Hydra gets `-genvall` before them, unless they show what it is.
pub fn understood(text: &str, version: &str) -> String {
    let is_of = |names: &[&str]| names.iter().any(|name| version.contains(name));
    let (program, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let all = words(text);
    if is_of(&["HYDRA", "Intel(R) MPI Library"]) && PlacedBy::of(&all) == Some(PlacedBy::OpenMpi) {
        let rest = if rest.is_empty() { "-n {np}" } else { rest };
        return format!("{program} {PASSES_ALL} {rest}");
    }
    if is_of(&["Open MPI", "OpenRTE"]) && rest.is_empty() {
        let of_open_mpi = words("mpirun")[1..].join(" ");
        // By its own name its words are known.
        return if all[1..].join(" ") == of_open_mpi { text.to_owned() } else { format!("{program} {of_open_mpi}") };
    }
    text.to_owned()
}

/// Whether these are the words of Slurm's `srun`.
pub fn is_srun(words: &[String]) -> bool {
    PlacedBy::of(words) == Some(PlacedBy::Slurm)
}

/// Whether the words of a launcher contain the number of processes.
pub fn says_processes(words: &[String]) -> bool {
    words.iter().any(|word| word.contains("{np}"))
}

/// The start of our `xhpl` on the processes of an MPI job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MpiJob {
    /// One of [`LAUNCHERS`], or the words of one with `{np}`, and `{threads}` or `{cpus}`, the logical CPUs of a rank.
    pub launcher: String,
    /// The program, built for the launcher's MPI library: a path, or a name on the search path.
    pub program: PathBuf,
    /// Threads of a rank at most, the cores of a node; `None` for all cores.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most_threads: Option<usize>,
    /// Logical CPUs of a core, where it has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus_per_core: Option<usize>,
    /// File of the cluster that `program` simulates; `None` for real runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<PathBuf>,
    /// Names of the nodes that its ranks are kept to; none for all that the launcher reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// How the clock of its nodes is asked of Slurm; `None` where it is not. The session keeps it.
    #[serde(skip)]
    pub slurm_clock: Option<SlurmClock>,
}

impl MpiJob {
    /// Ranks of `program` by a launcher, of as many threads as there are cores.
    pub fn new(launcher: &str, program: PathBuf) -> Self {
        let launcher = launcher.to_owned();
        Self {
            launcher,
            program,
            most_threads: None,
            cpus_per_core: None,
            simulated: None,
            nodes: Vec::new(),
            slurm_clock: None,
        }
    }

    /// This job with its ranks on `nodes` alone; as it is where none is named.
    #[must_use]
    pub fn on(&self, nodes: &[String]) -> Self {
        let nodes = if nodes.is_empty() { self.nodes.clone() } else { nodes.to_vec() };
        Self { nodes, ..self.clone() }
    }

    /// Whether its launcher is known to start ranks on chosen nodes.
    pub fn chooses_nodes(&self) -> bool {
        self.simulated.is_some() || PlacedBy::of(&words(&self.launcher)).is_some()
    }

    /// The words that start the ranks of `candidate`, to which the flags of the program are added.
    pub fn command(&self, candidate: &Candidate) -> Vec<OsString> {
        let mut command = self.launch(candidate);
        command.push(self.program.clone().into());
        if let Some(path) = &self.simulated {
            let ranks = candidate.hpl.ranks().to_string();
            command.extend([VERB.into(), "--cluster".into(), path.clone().into(), "--ranks".into(), ranks.into()]);
            if !self.nodes.is_empty() {
                command.extend(["--nodes".into(), self.nodes.join(",").into()]);
            }
        }
        command
    }

    /// The command of a run with `words` in the place of the program and its flags.
    pub fn started_in_its_place(&self, candidate: &Candidate, words: &[OsString]) -> Vec<OsString> {
        let mut command = self.launch(candidate);
        command.extend_from_slice(words);
        command
    }

    /// Variables for the environment of its launcher. Those of Open MPI 4 that start and end at the same moment remove the folder of their
    /// sessions from under each other, so that one on chosen nodes has its own on each of them; of a short name, as it holds sockets.
    pub fn environment(&self) -> Option<(String, String)> {
        let placed_by = PlacedBy::of(&words(&self.launcher))?;
        // An mpiexec may be that of Open MPI, too.
        let first = self.nodes.first().filter(|_| placed_by != PlacedBy::Slurm)?;
        let parent = std::env::var(OPEN_MPI_FOLDER).unwrap_or_else(|_| "/tmp".to_owned());
        Some((OPEN_MPI_FOLDER.to_owned(), format!("{parent}/hpl-tune-{}-{}", getuid(), short(first))))
    }

    /// The words of the launcher for `candidate`.
    fn launch(&self, candidate: &Candidate) -> Vec<OsString> {
        let (ranks, threads) = (candidate.hpl.ranks(), candidate.engine.threads);
        let filled = |word: String| filled(word, ranks, threads, self.cpus_per_core.unwrap_or(1)).into();
        let mut launcher = words(&self.launcher);
        if let Some(placed_by) = PlacedBy::of(&launcher).filter(|_| !self.nodes.is_empty()) {
            placed_by.keep_to(&mut launcher, &self.nodes, [ranks.div_ceil(self.nodes.len()), threads]);
        }
        let clock = self.slurm_clock.as_ref().and_then(|clock| clock.word(&candidate.engine.settings));
        launcher.into_iter().map(filled).chain(clock.map(OsString::from)).collect()
    }

    /// The words that start `command` once on each of `nodes`, beside the runs there and bound to no cores; `None` where it is not known how
    /// this launcher is told that. `in_slurm`: whether this process is in a job of Slurm, whose srun needs no cores of its own for it. Outside
    /// of one, srun would wait for a job of its own, unless its words name one (`--jobid=N`).
    pub fn once_on_each(&self, nodes: &[String], command: &[OsString], in_slurm: bool) -> Option<Vec<OsString>> {
        let own = words(&self.launcher);
        let placed_by = PlacedBy::of(&own);
        let count = nodes.len().to_string();
        let mut launcher = if in_slurm || placed_by == Some(PlacedBy::Slurm) {
            let of_job = own.iter().find(|word| word.starts_with("--jobid=")).cloned();
            if !in_slurm && of_job.is_none() {
                return None;
            }
            let srun = own.into_iter().next().filter(|_| placed_by == Some(PlacedBy::Slurm));
            let beside = "--overlap --ntasks-per-node=1 --cpus-per-task=1 --cpu-bind=none --mpi=none --input=none --wait=0 --kill-on-bad-exit=0";
            let srun = srun.unwrap_or_else(|| "srun".to_owned());
            [srun].into_iter().chain(of_job).chain(words(beside)).chain([format!("--ntasks={count}")]).collect()
        } else {
            let mut launcher = without_places(own);
            launcher.extend(["-n".to_owned(), count.clone()]);
            if placed_by? == PlacedBy::OpenMpi {
                launcher.extend(["--bind-to", "none"].map(str::to_owned));
            }
            launcher
        };
        let placed_by = if in_slurm { PlacedBy::Slurm } else { placed_by? };
        placed_by.keep_to(&mut launcher, nodes, [1, 1]);
        let filled = |word: String| filled(word, nodes.len(), 1, 1).into();
        Some(launcher.into_iter().map(filled).chain(command.iter().cloned()).collect())
    }
}

/// A word with the numbers of ranks, of threads and of logical CPUs of a rank in place of its placeholders.
fn filled(word: String, ranks: usize, threads: usize, cpus_per_core: usize) -> String {
    let holes = [("{np}", ranks), ("{threads}", threads), ("{cpus}", threads * cpus_per_core)];
    holes.iter().fold(word, |word, (hole, value)| word.replace(hole, &value.to_string()))
}

/// The variable that names the folder of Open MPI's sessions; those of Open MPI 5 have folders of their own.
const OPEN_MPI_FOLDER: &str = "OMPI_MCA_orte_tmpdir_base";

#[cfg(test)]
mod tests {
    use space::{EngineParams, HplParams};

    use super::*;

    #[test]
    fn a_job_has_its_ranks_and_their_threads() {
        let job = MpiJob::new("srun", "/opt/xhpl".into());
        let engine = EngineParams { threads: 8, ..EngineParams::default() };
        let candidate = Candidate { hpl: HplParams::baseline(1000, 4, 3), engine };
        let words = job.command(&candidate);
        assert_eq!(words, ["srun", "--overlap", "--ntasks=12", "--cpus-per-task=8", "--cpu-bind=cores", "/opt/xhpl"]);
        // Two logical CPUs on each core.
        let job = MpiJob { cpus_per_core: Some(2), ..job };
        assert!(job.command(&candidate).contains(&"--cpus-per-task=16".into()), "{job:?}");
    }

    #[test]
    fn the_clock_of_a_candidate_is_asked_of_slurm() {
        let clock = SlurmClock { least_mhz: 800, found_mhz: 2600, governor: "performance".into() };
        let job = MpiJob { slurm_clock: Some(clock), ..MpiJob::new("srun -n {np}", "xhpl".into()) };
        let at = |max_clock_mhz: Option<u32>| {
            let settings = space::NodeSettings { max_clock_mhz, ..Default::default() };
            let candidate = Candidate {
                hpl: HplParams::baseline(1000, 1, 2),
                engine: EngineParams { settings, ..Default::default() },
            };
            job.started_in_its_place(&candidate, &["look".into()])
        };
        assert_eq!(at(Some(2100)), ["srun", "-n", "2", "--cpu-freq=800000-2100000:performance", "look"]);
        assert_eq!(at(Some(2600)), ["srun", "-n", "2", "look"], "as the nodes were found");
        assert_eq!(at(None), at(Some(2600)));
        assert!(is_srun(&words("/opt/bin/srun -n {np}")) && !is_srun(&words("mpirun")));
    }

    #[test]
    fn a_simulated_job_is_told_its_cluster_and_ranks() {
        let simulated = Some("/run/simulated.toml".into());
        let job = MpiJob { simulated, ..MpiJob::new("none", "hpl-tune".into()) };
        let words = job.command(&Candidate { hpl: HplParams::baseline(1000, 4, 3), engine: EngineParams::default() });
        assert_eq!(words, ["hpl-tune", "__simulated", "--cluster", "/run/simulated.toml", "--ranks", "12"]);
    }

    #[test]
    fn ranks_are_kept_to_chosen_nodes() {
        let nodes = ["n2".to_owned()];
        let engine = EngineParams { threads: 2, ..EngineParams::default() };
        let candidate = Candidate { hpl: HplParams::baseline(1000, 1, 2), engine };
        let words = |launcher: &str| {
            let job = MpiJob::new(launcher, "xhpl".into());
            assert_eq!(job.on(&[]).command(&candidate), job.command(&candidate));
            let words = job.on(&nodes).command(&candidate).into_iter();
            (job.chooses_nodes(), words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" "))
        };
        let srun = "srun -n 2 --nodelist=n2 --nodes=1 xhpl";
        assert_eq!(words("srun -n {np}"), (true, srun.to_owned()));
        assert_eq!(words("mpirun").1, "mpirun -np 2 --map-by slot:PE=2 --bind-to core --host n2:4 xhpl");
        assert_eq!(words("mpirun -np {np}").1, "mpirun -np 2 --host n2:2 xhpl");
        // PE= is in the name of a variable.
        assert_eq!(words("mpirun -x OUR_TYPE=1 -np {np}").1, "mpirun -x OUR_TYPE=1 -np 2 --host n2:2 xhpl");
        let socket = "mpirun -np 2 --map-by ppr:1:socket:overload-allowed,pe=2 --host n2:4 xhpl";
        assert_eq!(words("mpirun -np {np} --map-by ppr:1:socket:overload-allowed,pe={threads}").1, socket);
        assert_eq!(words("mpirun.openmpi --host n1,n2 -np {np}").1, "mpirun.openmpi --host n2:2 -np 2 xhpl");
        assert_eq!(words("mpiexec").1, "mpiexec -n 2 -host n2:2 xhpl");
        assert_eq!(
            words("/opt/mpich/bin/mpirun.mpich -hosts n1,n2 -n {np}").1,
            "/opt/mpich/bin/mpirun.mpich -hosts n2:2 -n 2 xhpl"
        );
        let (chooses, flux) = words("flux");
        assert!(!chooses && !flux.contains("n2"), "{flux}");
        let simulated = MpiJob { simulated: Some("s.toml".into()), ..MpiJob::new("none", "hpl-tune".into()) };
        let command = simulated.on(&nodes).command(&candidate);
        assert!(simulated.chooses_nodes() && command.ends_with(&["--nodes".into(), "n2".into()]), "{command:?}");
    }

    /// MPICH and Intel MPI ended each run on some nodes with "duplicate host file or host list setting".
    #[test]
    fn nodes_of_mpich_take_the_place_of_a_file_of_nodes() {
        let nodes = ["n2".to_owned(), "n3".to_owned()];
        let candidate = Candidate { hpl: HplParams::baseline(1000, 2, 3), engine: EngineParams::default() };
        let words = |launcher: &str| {
            let words = MpiJob::new(launcher, "xhpl".into()).on(&nodes).command(&candidate).into_iter();
            words.map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(words("mpiexec -f /hosts -n {np}"), "mpiexec -n 6 -host n2:3,n3:3 xhpl");
        assert_eq!(words("mpirun -f /hosts -n {np}"), "mpirun -n 6 -host n2:3,n3:3 xhpl", "that of Intel MPI");
        assert_eq!(words("mpiexec.hydra -machinefile=/hosts -n {np}"), "mpiexec.hydra -n 6 -host n2:3,n3:3 xhpl");
        let open_mpi = "mpirun --hostfile /hosts -np 6 --host n2:3,n3:3 xhpl";
        assert_eq!(words("mpirun --hostfile /hosts -np {np}"), open_mpi, "it takes both");
    }

    #[test]
    fn runs_of_open_mpi_at_the_same_time_have_folders_of_their_own() {
        let folders = |launcher: &str, nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
            MpiJob::new(launcher, "xhpl".into()).on(&nodes).environment()
        };
        let (_, path) = folders("mpirun.openmpi -np {np}", &["n3.site.org", "n4"]).unwrap();
        assert!(path.ends_with(&format!("/hpl-tune-{}-n3", getuid())), "{path}");
        assert!(folders("mpiexec", &["n3"]).is_some(), "it may be that of Open MPI");
        assert!(folders("mpirun", &[]).is_none() && folders("srun", &["n3"]).is_none(), "no need");
    }

    #[test]
    fn one_process_is_started_on_each_node() {
        let nodes = ["n1".to_owned(), "n2".to_owned()];
        let words = |launcher: &str, in_slurm: bool| {
            let words = MpiJob::new(launcher, "xhpl".into()).once_on_each(&nodes, &["look".into()], in_slurm)?;
            Some(words.into_iter().map(|word| word.into_string().unwrap()).collect::<Vec<_>>().join(" "))
        };
        let by_srun = |srun: &str| {
            format!(
                "{srun} --overlap --ntasks-per-node=1 --cpus-per-task=1 --cpu-bind=none --mpi=none --input=none --wait=0 \
                 --kill-on-bad-exit=0 --ntasks=2 --nodelist=n1,n2 --nodes=2 look"
            )
        };
        assert_eq!(words("srun", true), Some(by_srun("srun")));
        assert_eq!(words("/opt/bin/srun --mpi=pmix -n {np}", true), Some(by_srun("/opt/bin/srun")));
        // Another job was asked for, and held the nodes of the runs.
        assert_eq!(words("/opt/bin/srun --mpi=pmix -n {np}", false), None);
        assert_eq!(words("srun --jobid=17 -n {np}", false), Some(by_srun("srun --jobid=17")));
        assert_eq!(words("mpirun", true), Some(by_srun("srun")));
        assert_eq!(words("mpirun", false).unwrap(), "mpirun -n 2 --bind-to none --host n1:1,n2:1 look");
        // Open MPI's mpiexec is bound as its mpirun is.
        let mapped = "mpiexec -np {np} --map-by slot:PE={threads} --bind-to core";
        assert_eq!(words(mapped, false).unwrap(), "mpiexec -n 2 --bind-to none --host n1:1,n2:1 look");
        let own = "mpirun.openmpi --allow-run-as-root --host n1,n2,n3 -np {np} --mca btl tcp,self";
        let expected =
            "mpirun.openmpi --allow-run-as-root --mca btl tcp,self -n 2 --bind-to none --host n1:1,n2:1 look";
        assert_eq!(words(own, false).unwrap(), expected);
        assert_eq!(words("mpiexec.hydra -ppn 4", false).unwrap(), "mpiexec.hydra -n 2 -host n1:1,n2:1 look");
        assert_eq!(words("flux", false), None);
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

    /// `--launcher mpirun` gave Open MPI's words to MPICH's and Intel MPI's mpirun, which refuse them.
    #[test]
    fn a_launcher_gets_the_words_of_its_library() {
        let (hydra, open_mpi) = ("HYDRA build details:\n    Version: 4.0.2\n", "mpirun (Open MPI) 4.1.4\n");
        let intel = "Intel(R) MPI Library for Linux* OS, Version 2021.12 Build 20240213\n";
        for of_hydra in [hydra, intel] {
            assert_eq!(understood("mpirun", of_hydra), "mpirun -genvall -n {np}");
            assert_eq!(
                understood("/opt/bin/mpirun -np {np} -ppn 4", of_hydra),
                "/opt/bin/mpirun -genvall -np {np} -ppn 4"
            );
            for same in ["mpiexec", "mpirun.mpich", "mpirun -genvall -n {np}", "mpirun -f /hosts -n {np}"] {
                assert_eq!(understood(same, of_hydra), same);
            }
            // It ended each run with "duplicate environment setting".
            for same in ["mpirun -genvlist PATH -n {np}", "mpirun --genvnone -n {np}", "mpirun --genvall -n {np}"] {
                assert_eq!(understood(same, of_hydra), same);
            }
        }
        let candidate = Candidate { hpl: HplParams::baseline(1000, 2, 3), engine: EngineParams::default() };
        let job = MpiJob::new(&understood("mpirun", hydra), "xhpl".into());
        let command = job.on(&["n2".to_owned(), "n3".to_owned()]).command(&candidate);
        let command: Vec<&str> = command.iter().map(|word| word.to_str().unwrap()).collect();
        assert_eq!(command.join(" "), "mpirun -genvall -n 6 -host n2:3,n3:3 xhpl");

        let by_slots = "-np {np} --map-by slot:PE={threads} --bind-to core";
        assert_eq!(understood("mpiexec", "mpiexec (OpenRTE) 4.1.4\n"), format!("mpiexec {by_slots}"));
        for same in ["mpirun", "mpirun.openmpi", "mpiexec -n {np}"] {
            assert_eq!(understood(same, open_mpi), same);
        }
        assert_eq!(understood("mpirun", ""), "mpirun", "what says nothing of itself is as it was");
        assert!(is_of_several_libraries("/opt/bin/mpiexec.hydra -n {np}") && !is_of_several_libraries("srun"));
        assert!(!is_of_several_libraries("mpirun_of_ours -n {np}"), "what it would do with --version is not known");
    }
}
