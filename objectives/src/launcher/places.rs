//! How a launcher is told on which nodes its ranks are.

use std::path::Path;

use super::short;

/// Flags, each with a value, that say how many processes there are and where.
const PLACES: [&str; 14] = [
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
    "--host",
    "-host",
    "-hosts",
    "-H",
];

/// The words of a launcher without [`PLACES`].
pub(super) fn without_places(words: Vec<String>) -> Vec<String> {
    let mut words = words.into_iter();
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        if PLACES.contains(&word.as_str()) {
            words.next();
        } else {
            kept.push(word);
        }
    }
    kept
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
    /// `--host` of Open MPI, which counts the cores that ranks may take of each.
    OpenMpi,
    /// `-host`, as the MPI standard has it of `mpiexec`.
    Standard,
}

impl PlacedBy {
    /// By the words of a launcher; `None` where it is not known.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let name = Path::new(words.first()?).file_name()?.to_str()?;
        match name {
            "srun" => Some(Self::Slurm),
            _ if name.starts_with("mpirun") && !name.contains("mpich") => Some(Self::OpenMpi),
            _ if name.starts_with("mpiexec") || name.contains("mpich") => Some(Self::Standard),
            _ => None,
        }
    }

    /// Keeps the ranks that `words` start to `nodes`, `cores` on each, in the place of those that the words name.
    pub(super) fn keep_to(self, words: &mut Vec<String>, nodes: &[String], cores: usize) {
        let of_job = std::env::var("SLURM_JOB_NODELIST").ok();
        let names: Vec<&str> = nodes.iter().map(|node| name_in_slurm(node, of_job.as_deref())).collect();
        let (flags, value) = match self {
            Self::Slurm => {
                // Of two the last one holds.
                words.extend([format!("--nodelist={}", names.join(",")), format!("--nodes={}", nodes.len())]);
                return;
            }
            Self::OpenMpi => {
                let slots = names.iter().map(|node| format!("{node}:{cores}"));
                (["--host", "-host", "-H"], slots.collect::<Vec<String>>().join(","))
            }
            Self::Standard => (["-host", "-hosts", "--host"], names.join(",")),
        };
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
