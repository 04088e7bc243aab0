//! How a launcher is told on which nodes its ranks are.

use std::path::Path;

/// Flags of launchers whose value is the file that names the nodes.
pub const FILES_OF_NODES: [&str; 6] =
    ["--hostfile", "-hostfile", "--machinefile", "-machinefile", "-f", "--default-hostfile"];

/// The name of a node without its domain.
pub fn short(node: &str) -> &str {
    node.split('.').next().unwrap_or(node)
}

/// Flags, each with a value, that say how many processes there are and where.
const PLACES: [&str; 18] = [
    "-n",
    "-np",
    "--np",
    "--n",
    "--map-by",
    "-map-by",
    "--bind-to",
    "-bind-to",
    "--rank-by",
    "-ppn",
    "-perhost",
    "-N",
    "-npernode",
    "--npernode",
    "--host",
    "-host",
    "-hosts",
    "-H",
];

/// Flags of MPICH's launchers, and of those that are made of them, as Intel MPI's, with one dash or two: Open MPI has none of these.
const OF_MPICH: [&str; 7] = ["f", "hosts", "perhost", "genv", "genvlist", "genvnone", "genvall"];

/// Passes the environment to the ranks, as MPICH's launchers do anyway: so a launcher whose name is that of Open MPI's is known as one of these.
/// They refuse it beside `-genvlist` and `-genvnone`.
pub(super) const PASSES_ALL: &str = "-genvall";

/// The words of a launcher without [`PLACES`].
pub(super) fn without_places(words: Vec<String>) -> Vec<String> {
    without(words, &PLACES)
}

/// `words` without `flags` and their values.
fn without(words: Vec<String>, flags: &[&str]) -> Vec<String> {
    let mut words = words.into_iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if flags.contains(&word.as_str()) {
            words.next();
        } else if !flags.contains(&flag_of(&word)) {
            kept.push(word);
        }
    }
    kept
}

/// A word of a launcher without a value that is in it.
fn flag_of(word: &str) -> &str {
    word.split_once('=').map_or(word, |(flag, _)| flag)
}

/// Whether `words` of a launcher say how many cores a rank has, as Open MPI knows it: then each of them takes a slot of its node.
fn gives_cores(words: &[String]) -> bool {
    maps_cores(words) || words.iter().any(|word| word.to_lowercase().contains("cpus-per-"))
}

/// Whether `words` map ranks to cores as Open MPI alone is told it.
fn maps_cores(words: &[String]) -> bool {
    [":pe=", ",pe="].iter().any(|flag| words.iter().any(|word| word.to_lowercase().contains(flag)))
}

/// The name by which Slurm knows the host `node`, where it lists the nodes of the job as `of_job`: without a domain unless these have one.
fn name_in_slurm<'a>(node: &'a str, of_job: Option<&str>) -> &'a str {
    if of_job.is_some_and(|list| !list.contains('.')) { short(node) } else { node }
}

/// How a launcher is told the nodes of its ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PlacedBy {
    /// Slurm's `--nodelist`.
    Slurm,
    /// `--host` of Open MPI, which says how many slots each has.
    OpenMpi,
    /// `-host`, as the MPI standard has it of `mpiexec`.
    Standard,
}

impl PlacedBy {
    /// By the words of a launcher; `None` where it is not known.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let name = Path::new(words.first()?).file_name()?.to_str()?;
        let is_mpich = ["mpich", "hydra"].iter().any(|mpi| name.contains(mpi))
            || words
                .iter()
                .any(|word| word.starts_with('-') && OF_MPICH.contains(&flag_of(word).trim_start_matches('-')));
        match name {
            "srun" => Some(Self::Slurm),
            _ if name.starts_with("mpiexec") && !is_mpich && maps_cores(words) => Some(Self::OpenMpi),
            _ if name.starts_with("mpirun") => Some(if is_mpich { Self::Standard } else { Self::OpenMpi }),
            _ if name.starts_with("mpiexec") || name.contains("mpich") => Some(Self::Standard),
            _ => None,
        }
    }

    /// Keeps the ranks that `words` start to `nodes`, on each at most so many `ranks` of `threads`, in the place of those that the words name.
    pub(super) fn keep_to(self, words: &mut Vec<String>, nodes: &[String], [ranks, threads]: [usize; 2]) {
        let of_job = std::env::var("SLURM_JOB_NODELIST").ok();
        let names = nodes.iter().map(|node| name_in_slurm(node, of_job.as_deref()));
        let flags = match self {
            Self::Slurm => {
                // Of two the last one holds.
                let list = names.collect::<Vec<&str>>().join(",");
                words.extend([format!("--nodelist={list}"), format!("--nodes={}", nodes.len())]);
                return;
            }
            // It takes the slots of a file as well, as far as they are on these nodes.
            Self::OpenMpi => ["--host", "-host", "-H"],
            Self::Standard => {
                // MPICH refuses nodes beside a file of nodes.
                *words = without(std::mem::take(words), &FILES_OF_NODES);
                ["-host", "-hosts", "--host"]
            }
        };
        // Without a number MPICH deals the ranks to the nodes in turn, and Open MPI starts one on each.
        let slots = if gives_cores(words) { ranks * threads } else { ranks };
        let value = names.map(|name| format!("{name}:{slots}")).collect::<Vec<String>>().join(",");
        match words.iter().position(|word| flags.contains(&word.as_str())) {
            Some(at) if at + 1 < words.len() => words[at + 1] = value,
            _ => words.extend([flags[0].to_owned(), value]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Slurm refused a step on a node by the name that the node itself has.
    #[test]
    fn nodes_have_the_names_that_slurm_knows() {
        let of = |list: Option<&str>| name_in_slurm("n7.site.org", list);
        assert_eq!([of(Some("n[6-9]")), of(Some("n[6-9].site.org")), of(None)], ["n7", "n7.site.org", "n7.site.org"]);
        assert_eq!(name_in_slurm("n7", Some("n[6-9]")), "n7");
    }
}
