//! The job of a resource manager that a session runs in: its nodes, what they grant, and when it ends.
//!
//! Slurm is known by its variables and `squeue`, and tried. PBS and LSF are known by a table of variables, which say the nodes and
//! their slots; this was never tested, and their end is unknown.

use std::collections::HashMap;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use objectives::launcher::words;
use objectives::real::output_of;
use objectives::real::slurm::{array_task, is_of_job, seconds};

use crate::exit::bad_input;
use crate::search::budget::SMALLEST_BUDGET_S;

/// Seconds before the end of the job at which the session is to be done: Slurm looks at the time about twice a minute.
const MARGIN_S: f64 = 60.0;

/// Nodes of a job at most; what says more is malformed.
const MOST_NODES: usize = 1 << 20;

/// What a job is known by, where it is not Slurm's: the manager, the variable with its number, and that with its nodes.
const OTHERS: [(&str, &str, Hosts); 2] =
    [("PBS", "PBS_JOBID", Hosts::File("PBS_NODEFILE")), ("LSF", "LSB_JOBID", Hosts::Counts("LSB_MCPU_HOSTS"))];

/// How a manager names the nodes of a job.
#[derive(Clone, Copy)]
enum Hosts {
    /// A variable with the name of a file: a line with a node for each MPI process, whose cores are `NCPUS` at most: some managers say those of the node.
    File(&'static str),
    /// A variable with nodes and their slots in turn.
    Counts(&'static str),
}

/// A job of a resource manager, or nodes without one.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Name of the manager; empty for nodes that a user's launcher reaches by itself.
    pub manager: &'static str,
    /// Number of the job; without a manager the flag that says the nodes.
    pub job: String,
    /// CPUs of each of its nodes that are the job's, logical ones of Slurm, else cores; `None` where nothing says.
    pub cpus: Vec<Option<usize>>,
    /// Memory of each node that is the job's, in bytes; `None` where nothing says.
    pub memory_bytes: Option<u64>,
    /// Seconds until it ends; `None` where nothing says, or it has no limit.
    pub left_s: Option<f64>,
}

impl fmt::Display for Allocation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.manager.is_empty() {
            return out.write_str(&self.job);
        }
        write!(out, "{} job {}", self.manager, self.job)
    }
}

impl Allocation {
    /// The job of this process, by its environment and, for the end in versions of Slurm before 23.02, `squeue`; `None` outside
    /// of one.
    pub fn here() -> Option<Self> {
        Self::of_variables(|name| std::env::var(name).ok(), squeue)
    }

    /// The nodes of a session: those of its job, else as many as `nodes` says, where a launcher reaches them.
    ///
    /// # Errors
    /// Nodes that are named within a job, or without a launcher.
    pub fn or_reached(nodes: Option<u64>, launcher: Option<&str>) -> anyhow::Result<Option<Self>> {
        match (Self::here(), nodes) {
            (job, None) => Ok(job),
            (Some(job), Some(nodes)) => {
                Err(bad_input(format!("--nodes {nodes}: the nodes of {job} are used; leave --nodes out")))
            }
            (None, Some(nodes)) if launcher.is_none() => Err(bad_input(format!(
                "--nodes {nodes}: this is no job of Slurm, PBS or LSF; say how they are reached by --launcher, as in 'mpirun --hostfile \
                 hosts --map-by slot:PE={{threads}} -np {{np}}', or write a script for Slurm by --sbatch"
            ))),
            (None, Some(nodes)) => Ok(Some(Self::reached(nodes as usize))),
        }
    }

    /// Nodes that a launcher reaches by itself, of which nothing is granted.
    pub fn reached(nodes: usize) -> Self {
        Self { manager: "", job: format!("--nodes {nodes}"), cpus: vec![None; nodes], memory_bytes: None, left_s: None }
    }

    /// The job that environment variables tell of; `left` answers what `squeue` says is left of a job.
    pub fn of_variables(
        variable: impl Fn(&str) -> Option<String>,
        left: impl Fn(&str) -> Option<String>,
    ) -> Option<Self> {
        let Some(job) = variable("SLURM_JOB_ID").filter(|job| !job.is_empty()) else {
            return Self::of_another(&variable);
        };
        let nodes = variable("SLURM_JOB_NUM_NODES").and_then(|count| count.parse().ok());
        let nodes = nodes.filter(|nodes| (1..=MOST_NODES).contains(nodes)).unwrap_or(1);
        let cpus = variable("SLURM_JOB_CPUS_PER_NODE").and_then(|text| counts(&text));
        let cpus = cpus.filter(|cpus| cpus.len() == nodes);
        let cpus = cpus.map_or_else(|| vec![None; nodes], |cpus| cpus.into_iter().map(Some).collect());
        let mebibytes = |name: &str| variable(name).and_then(|text| text.parse::<u64>().ok()).filter(|size| *size > 0);
        let least = || cpus.iter().copied().flatten().min().map(|cpus: usize| cpus as u64);
        let of_cpus = || Some(mebibytes("SLURM_MEM_PER_CPU")?.saturating_mul(least()?));
        let memory_bytes = mebibytes("SLURM_MEM_PER_NODE").or_else(of_cpus).map(|size| size.saturating_mul(1 << 20));
        let end = variable("SLURM_JOB_END_TIME").and_then(|end| end.parse::<f64>().ok());
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let by_squeue = || least_left(&left(&job)?, &job, array_task(&variable).as_deref());
        let left_s = end.map(|end| end - now_s).or_else(by_squeue).filter(|left_s| left_s.is_finite());
        Some(Self { job, cpus, memory_bytes, left_s, ..Self::slurm("") })
    }

    fn of_another(variable: &impl Fn(&str) -> Option<String>) -> Option<Self> {
        OTHERS.iter().find_map(|&(manager, number, hosts)| {
            let job = variable(number)?;
            let cpus = match hosts {
                Hosts::File(name) => {
                    let lines = std::fs::read_to_string(variable(name)?).ok().map(|text| lines(&text))?;
                    let each = variable("NCPUS").and_then(|each| each.parse::<usize>().ok()).filter(|each| *each > 0);
                    // A line alone is of a process with all cores of its part, whose number may be said elsewhere.
                    let is_said = each.is_some() || lines.iter().any(|lines| *lines > 1);
                    let cores = |lines: usize| is_said.then(|| lines.saturating_mul(each.unwrap_or(1)));
                    lines.into_iter().map(cores).collect()
                }
                Hosts::Counts(name) => slots_after_names(&variable(name)?)?.into_iter().map(Some).collect(),
            };
            Some(Self { manager, job, cpus, ..Self::slurm("") })
        })
    }

    /// A Slurm job of one node of which nothing is known.
    pub(crate) fn slurm(job: &str) -> Self {
        let (job, cpus) = (job.to_owned(), vec![None]);
        Self { manager: "Slurm", job, cpus, memory_bytes: None, left_s: None }
    }

    /// Whether this process is on one of its nodes, as far as is known: Slurm names the node to what it starts there.
    pub fn is_here(&self) -> bool {
        self.manager != "Slurm" || std::env::var_os("SLURMD_NODENAME").is_some()
    }

    /// Its nodes.
    pub fn nodes(&self) -> usize {
        self.cpus.len()
    }

    /// CPUs of the node with the fewest; `None` where nothing says.
    pub fn least_cpus(&self) -> Option<usize> {
        self.cpus.iter().copied().flatten().min()
    }

    /// Words of launchers that can start ranks on its nodes, in the order in which they are tried.
    pub fn launchers(&self) -> Vec<String> {
        if self.manager != "Slurm" {
            // The second binds nothing: cores may be refused to the first.
            return ["mpirun", "mpiexec -n {np}"].map(str::to_owned).to_vec();
        }
        let srun = words("srun").join(" ");
        let by = |library: &str| format!("{srun} --mpi={library}");
        vec![srun.clone(), by("pmix"), by("pmi2"), "mpirun".to_owned()]
    }

    /// The budget of a session that is done before the job ends.
    ///
    /// # Errors
    /// A job that ends too soon for any.
    pub fn budget_s(&self, asked_s: f64) -> anyhow::Result<f64> {
        let Some(left_s) = self.left_s else { return Ok(asked_s) };
        if left_s <= 0.0 {
            return Err(bad_input(format!("{self} has ended; outside of it unset its variables, as SLURM_JOB_ID")));
        }
        let most_s = left_s - MARGIN_S;
        if most_s < SMALLEST_BUDGET_S {
            return Err(bad_input(format!(
                "{self} ends in {left_s:.0} s; a session needs {SMALLEST_BUDGET_S} s and {MARGIN_S} s for the end: ask for a longer \
                 job"
            )));
        }
        Ok(asked_s.min(most_s))
    }

    /// What the user should know of a session of `budget_s` seconds in place of `asked_s`, a sentence each. `local`: its ranks are
    /// threads of one process.
    pub fn warnings(&self, asked_s: f64, budget_s: f64, local: bool) -> Vec<String> {
        let shorter = (budget_s < asked_s).then(|| {
            let left_s = self.left_s.unwrap_or_default();
            format!("{self} ends in {left_s:.0} s: the budget is {budget_s:.0} s")
        });
        let nodes = self.nodes();
        let alone = (local && nodes > 1).then(|| format!("{self} has {nodes} nodes, and --local uses this one alone"));
        let untried = !matches!(self.manager, "Slurm" | "");
        let untried = untried.then(|| {
            format!(
                "{self}: nodes are read from the variables of {}, which was never tested; the end time of the job is unknown",
                self.manager
            )
        });
        shorter.into_iter().chain(alone).chain(untried).collect()
    }

    /// Nodes with unequal numbers of CPUs in words, where there are such.
    pub fn unequal(&self) -> Option<String> {
        let most = self.cpus.iter().copied().flatten().max()?;
        let least = self.least_cpus().filter(|least| *least < most)?;
        let few = self.cpus.iter().filter(|cpus| **cpus == Some(least)).count();
        Some(format!("{self} has {least} CPUs on {few} of its {} nodes and up to {most} on others", self.nodes()))
    }
}

/// Counts as Slurm writes them: `2(x3),4`.
fn counts(text: &str) -> Option<Vec<usize>> {
    let mut all = Vec::new();
    for part in text.split(',') {
        let (count, times) = match part.split_once("(x") {
            Some((count, times)) => (count, times.strip_suffix(')')?.parse().ok()?),
            None => (part, 1),
        };
        let count = count.trim().parse::<usize>().ok().filter(|count| *count > 0)?;
        if times > MOST_NODES - all.len() {
            return None;
        }
        all.extend(std::iter::repeat_n(count, times));
    }
    Some(all)
}

/// Lines of each node.
fn lines(text: &str) -> Vec<usize> {
    let mut nodes: Vec<usize> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let place = *places.entry(line).or_insert(nodes.len());
        if place == nodes.len() {
            nodes.push(0);
        }
        nodes[place] += 1;
    }
    nodes
}

/// Slots of each node, named in turn: `n1 4 n2 4`.
fn slots_after_names(text: &str) -> Option<Vec<usize>> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let slots = words.chunks(2).map(|pair| pair.get(1)?.parse().ok().filter(|slots| *slots > 0));
    slots.collect::<Option<Vec<usize>>>().filter(|slots| !slots.is_empty())
}

/// The fewest seconds in the lines of `squeue` that are of `job`, one for each of its components. Where it is this `task` of an array there are
/// lines of the other tasks, too, which have ends of their own.
fn least_left(text: &str, job: &str, task: Option<&str>) -> Option<f64> {
    let left_s = |line: &str| {
        let (name, left) = line.trim().split_once(' ')?;
        seconds(left.trim()).filter(|_| is_of_job(name, job, task))
    };
    text.lines().filter_map(left_s).reduce(f64::min)
}

/// What is left of a job as `squeue` prints it behind its name: `17 2-03:00:00`, `17_2 10:00`; `None` without an answer.
fn squeue(job: &str) -> Option<String> {
    output_of("squeue", &["--noheader", "--jobs", job, "--format", "%i %L"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)], left: Option<&str>) -> Option<Allocation> {
        let variable = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
        Allocation::of_variables(variable, |job| {
            assert_eq!(job, "17");
            left.map(str::to_owned)
        })
    }

    #[test]
    fn counts_of_nodes_are_read_as_managers_write_them() {
        assert_eq!(counts("2(x3),4"), Some(vec![2, 2, 2, 4]));
        assert_eq!(counts("128"), Some(vec![128]));
        for text in ["", "2(x", "2(3)", "a", "0", "2,"] {
            assert_eq!(counts(text), None, "{text}");
        }
        assert_eq!(lines("n1\nn1\n\nn2\nn1\n"), [3, 1]);
        assert_eq!(slots_after_names("n1 4 n2 2"), Some(vec![4, 2]));
        assert_eq!(
            (slots_after_names("n1 4 n2"), slots_after_names(""), slots_after_names("n1 x")),
            (None, None, None)
        );
    }

    #[test]
    fn the_end_is_the_environments_or_squeues() {
        assert_eq!(job(&[], Some("17 10:00")), None, "no job");
        let two = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "2"), ("SLURM_JOB_CPUS_PER_NODE", "4(x2)")];
        let found = job(&two, Some(" 17  10:00\n")).unwrap();
        let cpus = vec![Some(4); 2];
        assert_eq!(found, Allocation { cpus, left_s: Some(600.0), ..Allocation::slurm("17") });
        assert_eq!(job(&[("SLURM_JOB_ID", "")], None), None);
        let one = job(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", "1000")], None).unwrap();
        assert!(one.budget_s(60.0).unwrap_err().to_string().contains("has ended"));
        assert!(one.nodes() == 1 && one.left_s.unwrap() < 0.0);
        assert_eq!(job(&[("SLURM_JOB_ID", "17")], Some("17 UNLIMITED")).unwrap().left_s, None);
        // A job of two components.
        let components = Some("17+0 2:00:00\n17+1 10:00\n");
        assert_eq!(job(&[("SLURM_JOB_ID", "17")], components).unwrap().left_s, Some(600.0));
    }

    /// The budget was cut to what was left of another task.
    #[test]
    fn the_end_of_a_task_of_an_array_is_its_own() {
        let task = [("SLURM_JOB_ID", "17"), ("SLURM_ARRAY_JOB_ID", "17"), ("SLURM_ARRAY_TASK_ID", "2")];
        let left = Some("17_[3-9] 2:00:00\n17_1 5:00\n17_2 10:00\n");
        assert_eq!(job(&task, left).unwrap().left_s, Some(600.0));
    }

    #[test]
    fn what_is_granted_is_read_and_what_is_malformed_is_unknown() {
        let of = |variables: &[(&str, &str)]| {
            let two = [("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "2")];
            job(&[&two[..], variables].concat(), None).unwrap()
        };
        let unequal = of(&[("SLURM_JOB_CPUS_PER_NODE", "4,2")]);
        assert_eq!(unequal.least_cpus(), Some(2));
        let said = unequal.unequal().unwrap();
        assert!(said.contains("2 CPUs on 1 of its 2 nodes and up to 4 on others"), "{said}");
        for text in ["4", "many", "4(x3)"] {
            let found = of(&[("SLURM_JOB_CPUS_PER_NODE", text)]);
            assert_eq!((found.nodes(), found.least_cpus()), (2, None), "{text}");
        }
        assert_eq!(of(&[("SLURM_MEM_PER_NODE", "1024")]).memory_bytes, Some(1 << 30));
        let each = [("SLURM_JOB_CPUS_PER_NODE", "4(x2)"), ("SLURM_MEM_PER_CPU", "256")];
        assert_eq!(of(&each).memory_bytes, Some(1 << 30));
        assert_eq!(of(&[("SLURM_MEM_PER_NODE", "0")]).memory_bytes, None, "all that there is");
    }

    #[test]
    fn other_managers_say_their_nodes_and_that_they_are_untried() {
        let found = job(&[("LSB_JOBID", "8"), ("LSB_MCPU_HOSTS", "a 4 b 4")], None).unwrap();
        assert_eq!((found.to_string(), found.nodes(), found.left_s), ("LSF job 8".to_owned(), 2, None));
        assert!(found.warnings(60.0, 60.0, false)[0].contains("never tested"));
        assert!(found.launchers().iter().all(|words| words.starts_with("mpi")));
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "n1\nn1\nn2\n").unwrap();
        let path = file.path().to_str().unwrap();
        let found = job(&[("PBS_JOBID", "9.server"), ("PBS_NODEFILE", path)], None).unwrap();
        assert_eq!(found.cpus, [Some(2), Some(1)]);
        let job =
            |ncpus: &str| job(&[("PBS_JOBID", "9.server"), ("PBS_NODEFILE", path), ("NCPUS", ncpus)], None).unwrap();
        std::fs::write(file.path(), "n1\nn2\n").unwrap();
        assert_eq!((job("64").cpus, job("").cpus), (vec![Some(64); 2], vec![None; 2]));
    }

    /// Memory for 2⁶⁴ nodes was asked for.
    #[test]
    fn more_nodes_than_there_can_be_are_malformed() {
        assert_eq!(counts("4(x18446744073709551615)"), None);
        assert_eq!(counts("4(x1048576),4"), None);
        assert_eq!(counts("4(x1048576)").map(|nodes| nodes.len()), Some(MOST_NODES));
        for count in ["18446744073709551615", "1048577", "0"] {
            let found = job(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", count)], None).unwrap();
            assert_eq!(found.nodes(), 1, "{count}");
        }
    }

    #[test]
    fn a_node_without_slots_is_malformed() {
        assert_eq!(slots_after_names("a 4 b 0"), None);
    }

    #[test]
    fn an_end_that_is_no_number_is_unknown() {
        for end in ["nan", "inf"] {
            assert_eq!(job(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", end)], None).unwrap().left_s, None);
        }
    }

    #[test]
    fn a_session_is_done_before_its_job_ends() {
        let of = |left_s| Allocation { left_s, ..Allocation::slurm("17") };
        assert_eq!(of(None).budget_s(7200.0).unwrap(), 7200.0);
        assert_eq!(of(Some(3600.0)).budget_s(7200.0).unwrap(), 3540.0);
        assert_eq!(of(Some(3600.0)).budget_s(600.0).unwrap(), 600.0);
        assert!(of(Some(3600.0)).warnings(600.0, 600.0, true).is_empty());
        assert!(of(Some(3600.0)).warnings(7200.0, 3540.0, true)[0].contains("the budget is 3540 s"));
        let four = Allocation { cpus: vec![None; 4], ..of(None) };
        assert!(four.warnings(60.0, 60.0, true)[0].contains("4 nodes") && four.warnings(60.0, 60.0, false).is_empty());
        let message = of(Some(80.0)).budget_s(600.0).unwrap_err().to_string();
        assert!(message.contains("17 ends in 80 s"), "{message}");
    }
}
