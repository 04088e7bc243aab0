//! The Slurm job that a session runs in: its nodes, and when it ends.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::budget::SMALLEST_BUDGET_S;
use crate::exit::bad_input;

/// Seconds before the end of the job at which the session is to be done: Slurm looks at the time about twice a minute.
const MARGIN_S: f64 = 60.0;

/// Time that `squeue` has to answer.
const ANSWERS: Duration = Duration::from_secs(10);

/// A Slurm job.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// Its number.
    pub job: String,
    /// Its nodes; 1 where nothing says.
    pub nodes: usize,
    /// Seconds until it ends; `None` where nothing says, or it has no limit.
    pub left_s: Option<f64>,
}

impl Allocation {
    /// The job of this process, by its environment and, for the end in versions before 23.02, `squeue`; `None` outside of one.
    pub fn here() -> Option<Self> {
        Self::of(|name| std::env::var(name).ok(), squeue)
    }

    fn of(variable: impl Fn(&str) -> Option<String>, left: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let job = variable("SLURM_JOB_ID")?;
        let nodes = variable("SLURM_JOB_NUM_NODES").and_then(|count| count.parse().ok()).unwrap_or(1);
        let end = variable("SLURM_JOB_END_TIME").and_then(|end| end.parse::<f64>().ok());
        let now_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        let left_s = end.map(|end| end - now_s).or_else(|| seconds(left(&job)?.trim()));
        Some(Self { job, nodes, left_s })
    }

    /// The budget of a session that is done before the job ends.
    ///
    /// # Errors
    /// A job that ends too soon for any.
    pub fn budget_s(&self, asked_s: f64) -> anyhow::Result<f64> {
        let Some(left_s) = self.left_s else { return Ok(asked_s) };
        let most_s = left_s - MARGIN_S;
        if most_s < SMALLEST_BUDGET_S {
            return Err(bad_input(format!(
                "Slurm job {} ends in {left_s:.0} s; a session needs {SMALLEST_BUDGET_S} s and {MARGIN_S} s for the end: ask for \
                 a longer job",
                self.job
            )));
        }
        Ok(asked_s.min(most_s))
    }

    /// What the user should know of a session of `budget_s` seconds, a sentence each. `threads`: its ranks are threads of one
    /// process.
    pub fn told(&self, asked_s: f64, budget_s: f64, threads: bool) -> Vec<String> {
        let shorter = (budget_s < asked_s).then(|| {
            let left_s = self.left_s.unwrap_or_default();
            format!("Slurm job {} ends in {left_s:.0} s: the budget is {budget_s:.0} s", self.job)
        });
        let alone = (threads && self.nodes > 1).then(|| {
            format!(
                "Slurm job {} has {} nodes, and ranks that are threads use this one alone: for all of them give --launcher srun, \
                 --program XHPL (built with MPI) and the nodes by --machine",
                self.job, self.nodes
            )
        });
        shorter.into_iter().chain(alone).collect()
    }
}

/// What is left of a job as `squeue` prints it: `2-03:00:00`, `10:00`; `None` without a limit or an answer.
fn squeue(job: &str) -> Option<String> {
    let mut command = Command::new("squeue");
    command.args(["--noheader", "--jobs", job, "--format", "%L"]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
    let started = Instant::now();
    // The answer is short: it fits the pipe.
    while child.try_wait().ok()?.is_none() {
        if started.elapsed() > ANSWERS {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    String::from_utf8(child.wait_with_output().ok()?.stdout).ok()
}

/// Seconds of `[days-][[hours:]minutes:]seconds`.
fn seconds(text: &str) -> Option<f64> {
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let parts: Vec<f64> = clock.split(':').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let of_day = parts.iter().fold(0.0, |sum, part| 60.0 * sum + part);
    (parts.len() <= 3).then_some(86400.0 * days.parse::<f64>().ok()? + of_day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(variables: &[(&str, &str)], left: Option<&str>) -> Option<Allocation> {
        let variable = |name: &str| Some(variables.iter().find(|(known, _)| *known == name)?.1.to_owned());
        Allocation::of(variable, |job| {
            assert_eq!(job, "17");
            left.map(str::to_owned)
        })
    }

    #[test]
    fn times_are_read_as_squeue_prints_them() {
        for (text, expected) in [("59", 59.0), ("10:00", 600.0), ("3:00:01", 10_801.0), ("2-03:00:00", 183_600.0)] {
            assert_eq!(seconds(text), Some(expected), "{text}");
        }
        for text in ["UNLIMITED", "INVALID", "NOT_SET", "", "1:2:3:4", "a-1:00"] {
            assert_eq!(seconds(text), None, "{text}");
        }
    }

    #[test]
    fn the_end_is_the_environments_or_squeues() {
        assert_eq!(job(&[], Some("10:00")), None, "no job");
        let two = job(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_NUM_NODES", "2")], Some(" 10:00\n")).unwrap();
        assert_eq!(two, Allocation { job: "17".into(), nodes: 2, left_s: Some(600.0) });
        let one = job(&[("SLURM_JOB_ID", "17"), ("SLURM_JOB_END_TIME", "1000")], None).unwrap();
        assert!(one.nodes == 1 && one.left_s.unwrap() < 0.0);
        assert_eq!(job(&[("SLURM_JOB_ID", "17")], Some("UNLIMITED")).unwrap().left_s, None);
    }

    #[test]
    fn a_session_is_done_before_its_job_ends() {
        let of = |left_s| Allocation { job: "17".into(), nodes: 1, left_s };
        assert_eq!(of(None).budget_s(7200.0).unwrap(), 7200.0);
        assert_eq!(of(Some(3600.0)).budget_s(7200.0).unwrap(), 3540.0);
        assert_eq!(of(Some(3600.0)).budget_s(600.0).unwrap(), 600.0);
        assert!(of(Some(3600.0)).told(600.0, 600.0, true).is_empty());
        assert!(of(Some(3600.0)).told(7200.0, 3540.0, true)[0].contains("the budget is 3540 s"));
        let four = Allocation { nodes: 4, ..of(None) };
        assert!(four.told(60.0, 60.0, true)[0].contains("--launcher srun") && four.told(60.0, 60.0, false).is_empty());
        let message = of(Some(80.0)).budget_s(600.0).unwrap_err().to_string();
        assert!(message.contains("17 ends in 80 s"), "{message}");
    }
}
