//! The Slurm job of the runs: calls of its commands, and cancelling of steps.

use std::path::Path;

use super::answer::output_of;

/// Names of the steps by which Open MPI's mpirun starts its helpers on the nodes.
const HELPERS: [&str; 2] = ["orted", "prted"];

/// Cancels the steps of this process's job that run `program` on one node (on any, unless a single one is named in `nodes`), whose srun or
/// mpirun is gone; does nothing outside of a job.
pub fn cancel_steps(program: &Path, nodes: &[String]) {
    let Ok(job) = std::env::var("SLURM_JOB_ID") else { return };
    let listed = output_of("squeue", &["--steps", "--noheader", "--jobs", &job, "--format", "%i %N %j"]);
    let left: Vec<String> = steps(&listed.unwrap_or_default(), program, nodes);
    if !left.is_empty() {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        let _ = output_of("scancel", &[&["--signal=KILL"][..], &left].concat());
    }
}

/// The steps in `listed` (numbers, nodes and names) that run `program` on `nodes`.
fn steps(listed: &str, program: &Path, nodes: &[String]) -> Vec<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let of_run = |step: &&str| HELPERS.contains(step) || *step == name;
    // A run is on one node or on all that the session uses: Slurm's short form of several names is not read.
    let there = |found: &str| nodes.len() != 1 || nodes[0] == found;
    let steps = listed.lines().filter_map(|line| {
        let (number, rest) = line.trim().split_once(' ')?;
        let (found, step) = rest.trim().split_once(' ')?;
        (there(found) && of_run(&step.trim())).then(|| number.to_owned())
    });
    steps.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_the_program_and_helpers_of_mpirun_are_those_of_a_run() {
        let listed = "17.batch n1 batch\n17.3 n[1-2] xhpl\n 17.4 n2 orted\n17.5 n2 other\n17.extern n[1-2] extern\n17.6 n1 xhpl\n";
        let of = |nodes: &[&str]| {
            let nodes: Vec<String> = nodes.iter().map(|&name| name.to_owned()).collect();
            steps(listed, Path::new("/opt/xhpl"), &nodes)
        };
        assert_eq!(of(&[]), ["17.3", "17.4", "17.6"]);
        assert_eq!(of(&["n1", "n2"]), of(&[]), "all nodes of the session");
        assert_eq!((of(&["n1"]), of(&["n2"])), (vec!["17.6".to_owned()], vec!["17.4".to_owned()]), "others go on");
        assert!(steps("", Path::new("xhpl"), &[]).is_empty());
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_has_no_answer() {
        assert_eq!(output_of("echo", &["2", "3"]).as_deref(), Some("2 3\n"));
        assert_eq!(output_of("false", &[]), None);
        assert_eq!(output_of("no-such-command", &[]), None);
    }
}
