//! The Slurm job of the runs: calls of its commands, and cancelling of steps.

use std::collections::HashSet;
use std::path::Path;
use std::time::Instant;

use super::answer::output_of;
use crate::launcher::short;

/// Names of the steps by which mpirun and mpiexec start their helpers on the nodes: those of Open MPI, MPICH and Intel MPI.
const HELPERS: [&str; 4] = ["orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"];

/// Nodes of a step at most; a list that says more is malformed.
const MOST_NODES: usize = 1 << 16;

/// Seconds that a step may seem older than it is: Slurm counts whole ones.
const ROUNDING_S: f64 = 5.0;

/// Cancels the steps of this process's job that run `program` on no other nodes than `nodes` (on any, where none is named), whose srun or
/// mpirun is gone; with `begun` only those that were started since then. Does nothing outside of a job.
pub fn cancel_steps(program: &Path, nodes: &[String], begun: Option<Instant>) {
    let variable = |name: &str| std::env::var(name).ok();
    let Some(job) = variable("SLURM_JOB_ID") else { return };
    let listed = output_of("squeue", &["--steps", "--noheader", "--jobs", &job, "--format", "%i %N %M %j"]);
    let most_s = begun.map_or(f64::INFINITY, |begun| begun.elapsed().as_secs_f64() + ROUNDING_S);
    let mut left = steps(&listed.unwrap_or_default(), program, nodes, most_s);
    let task = array_task(variable);
    // This process may be a step of that name itself.
    let own = variable("SLURM_STEP_ID");
    left.retain(|step| is_another_of(step, &job, task.as_deref(), own.as_deref()));
    if !left.is_empty() {
        let left: Vec<&str> = left.iter().map(String::as_str).collect();
        let _ = output_of("scancel", &[&["--signal=KILL"][..], &left].concat());
    }
}

/// The name of the task that the job with these variables is, `17_2`, where it is one of an array.
pub fn array_task(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let (array, task) = variable("SLURM_ARRAY_JOB_ID").zip(variable("SLURM_ARRAY_TASK_ID"))?;
    Some(format!("{array}_{task}"))
}

/// Whether Slurm calls `job`, or one of its components, by this `name`, or by that of this `task` where it is one of an array: for the number of
/// an array, which one of its tasks has, too, Slurm lists all tasks.
pub fn is_of_job(name: &str, job: &str, task: Option<&str>) -> bool {
    let is_component = name.strip_prefix(job).is_some_and(|rest| rest.starts_with('+'));
    name == job || Some(name) == task || is_component
}

/// Whether `step` is one of `job` by [`is_of_job`], but not its step `own`.
fn is_another_of(step: &str, job: &str, task: Option<&str>, own: Option<&str>) -> bool {
    step.rsplit_once('.').is_some_and(|(of, number)| is_of_job(of, job, task) && Some(number) != own)
}

/// The steps in `listed` (numbers, nodes, ages and names) that run `program` on nodes among `nodes` and are `most_s` seconds old at most.
fn steps(listed: &str, program: &Path, nodes: &[String], most_s: f64) -> Vec<String> {
    let name = program.file_name().unwrap_or_default().to_string_lossy();
    let of_run = |step: &str| HELPERS.contains(&step) || step == name;
    // Other runs go on on other nodes; a run need not use all of its own.
    let own: HashSet<&str> = nodes.iter().map(|node| short(node)).collect();
    let among = |found: &str| nodes_of(found).is_some_and(|found| found.iter().all(|node| own.contains(short(node))));
    let there = |found: &str| nodes.is_empty() || among(found);
    let recent = |age: &str| seconds(age).unwrap_or(f64::MAX) <= most_s;
    let steps = listed.lines().filter_map(|line| {
        let (number, rest) = line.trim().split_once(' ')?;
        let (found, rest) = rest.trim_start().split_once(' ')?;
        let (age, step) = rest.trim_start().split_once(' ')?;
        (of_run(step.trim()) && recent(age) && there(found)).then(|| number.to_owned())
    });
    steps.collect()
}

/// The names in a list of nodes as Slurm writes it: `n[1-3,07],m2`; `None` where it is malformed.
fn nodes_of(list: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    // The names of the part that is read, as far as it is.
    let mut names = vec![String::new()];
    let mut rest = list;
    loop {
        let (text, after) = rest.split_at(rest.find(['[', ',']).unwrap_or(rest.len()));
        names.iter_mut().for_each(|name| name.push_str(text));
        if let Some(ranges) = after.strip_prefix('[') {
            let (ranges, after) = ranges.split_once(']')?;
            let numbers = numbers(ranges)?;
            if numbers.len() * names.len() > MOST_NODES {
                return None;
            }
            names = names.iter().flat_map(|name| numbers.iter().map(move |number| format!("{name}{number}"))).collect();
            rest = after;
            continue;
        }
        all.append(&mut names);
        match after.strip_prefix(',') {
            Some(after) => (names, rest) = (vec![String::new()], after),
            None => break,
        }
    }
    all.iter().all(|name| !name.is_empty()).then_some(all)
}

/// The numbers of ranges, with their leading zeros: `1-3,07`.
fn numbers(ranges: &str) -> Option<Vec<String>> {
    let mut all = Vec::new();
    for range in ranges.split(',') {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (from, to) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if to.checked_sub(from)? >= MOST_NODES {
            return None;
        }
        all.extend((from..=to).map(|number| format!("{number:0width$}", width = first.len())));
    }
    Some(all)
}

/// Seconds of a time as Slurm writes it: `[days-][[hours:]minutes:]seconds`.
pub fn seconds(text: &str) -> Option<f64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let of_day = parts.iter().fold(0.0, |sum, part| 60.0 * sum + part);
    (parts.len() <= 3).then_some(86400.0 * days.parse::<f64>().ok()? + of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTED: &str = "17.batch n1 2:00:00 batch\n17.3 n[1-2] 0:40 xhpl\n 17.4 n2 0:07 orted\n17.5 n2 0:07 other\n\
                          17.extern n[1-2] 2:00:00 extern\n17.6 n1 1:40 xhpl\n17.7 n[3-4] 0:40 xhpl\n17.8 n[ 0:40 xhpl\n";

    fn of(nodes: &[&str], most_s: f64) -> Vec<String> {
        let nodes: Vec<String> = nodes.iter().map(|&name| name.to_owned()).collect();
        steps(LISTED, Path::new("/opt/xhpl"), &nodes, most_s)
    }

    #[test]
    fn steps_of_the_program_and_helpers_of_mpirun_are_those_of_a_run() {
        assert_eq!(of(&[], f64::INFINITY), ["17.3", "17.4", "17.6", "17.7", "17.8"]);
        assert_eq!(of(&["n1"], f64::INFINITY), ["17.6"]);
        assert_eq!(of(&["n2"], f64::INFINITY), ["17.4"], "others go on");
        assert!(steps("", Path::new("xhpl"), &[], f64::INFINITY).is_empty());
        // What mpiexec of MPICH had started by Slurm was left.
        assert_eq!(steps("17.9 n1 0:07 hydra_pmi_proxy\n", Path::new("xhpl"), &[], f64::INFINITY), ["17.9"]);
    }

    /// The end of one group of nodes killed the runs of all other groups.
    #[test]
    fn steps_of_other_groups_of_nodes_go_on() {
        assert_eq!(of(&["n1", "n2"], f64::INFINITY), ["17.3", "17.4", "17.6"]);
        assert_eq!(of(&["n3", "n4", "n5"], f64::INFINITY), ["17.7"], "a run may leave some of its nodes out");
        assert_eq!(of(&["n2", "n3"], f64::INFINITY), ["17.4"]);
    }

    /// A question to all nodes that had no answer killed the run that was under way on these.
    #[test]
    fn older_steps_than_what_was_started_go_on() {
        assert_eq!(of(&["n1", "n2"], 30.0), ["17.4"]);
        assert_eq!(of(&[], 60.0), ["17.3", "17.4", "17.7", "17.8"]);
        assert!(steps("17.1 n1 INVALID xhpl", Path::new("xhpl"), &[], 60.0).is_empty());
    }

    /// The end of a run of one task killed the runs of sessions in all others.
    #[test]
    fn steps_of_other_tasks_of_an_array_go_on() {
        let left = |steps: &[&str], job: &str, task: Option<&str>, own: Option<&str>| {
            steps.iter().filter(|step| is_another_of(step, job, task, own)).copied().collect::<Vec<_>>().join(" ")
        };
        let array = ["17_1.0", "17_1.3", "17_2.3", "17_11.3"];
        assert_eq!(left(&array, "17", Some("17_1"), Some("0")), "17_1.3");
        assert_eq!(left(&array, "18", Some("17_2"), None), "17_2.3");
        assert_eq!(left(&["17.3", "18.3"], "17", Some("17_1"), None), "17.3", "by the numbers of the jobs");
        // Variables of an array from which this job was submitted.
        assert_eq!(left(&["30.0", "30.1"], "30", Some("17_1"), Some("0")), "30.1");
        assert_eq!(left(&["17.3", "17+1.3", "170.3", "17"], "17", None, Some("0")), "17.3 17+1.3");
    }

    #[test]
    fn lists_of_nodes_are_read_as_slurm_writes_them() {
        let names = |list: &str| nodes_of(list).map(|names| names.join(" "));
        for (list, expected) in [
            ("n1", "n1"),
            ("n[1-3,07],m2", "n1 n2 n3 n07 m2"),
            ("n[098-101]", "n098 n099 n100 n101"),
            ("r[1-2]n[3,5]-ib", "r1n3-ib r1n5-ib r2n3-ib r2n5-ib"),
            ("a-1.site,b", "a-1.site b"),
        ] {
            assert_eq!(names(list).as_deref(), Some(expected));
        }
        for list in ["", "n1,", "n[1-3", "n[]", "n[3-1]", "n[a-b]", "n[1-99999999]", "n[1-999]m[1-999]"] {
            assert_eq!(names(list), None, "{list}");
        }
    }

    #[test]
    fn times_are_read_as_slurm_writes_them() {
        for (text, expected) in [("59", 59.0), ("10:00", 600.0), ("3:00:01", 10_801.0), ("2-03:00:00", 183_600.0)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["UNLIMITED", "INVALID", "NOT_SET", "", "1:2:3:4", "a-1:00"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn a_command_that_fails_or_is_not_there_has_no_answer() {
        assert_eq!(output_of("echo", &["2", "3"]).as_deref(), Some("2 3\n"));
        assert_eq!(output_of("false", &[]), None);
        assert_eq!(output_of("no-such-command", &[]), None);
    }
}
