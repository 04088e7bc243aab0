//! What is around this process, judged: the cores as they compute now, variables, BLAS libraries, MPI, the job.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hpl::backend::device::{DeviceError, FoundGpus};
use hpl::backend::host::kernels::{installed, rate_gflops};
use space::KernelChoice;

use super::advice::Advice;
use crate::cluster::allocation::Allocation;
use crate::session::engine::Engine;
use crate::session::engine::programs::{MPI_FOLDER, found};
use crate::session::environment::{self, Held};
use crate::session::gpus;
use crate::session::preflight;

/// Time that the cores are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// Programs that start processes of MPI.
const LAUNCHERS: [&str; 5] = ["mpirun", "mpiexec", "srun", "flux", "aprun"];

/// What was found around this process.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Around {
    /// The cores in one sentence, and what is wrong with some.
    pub cores: Option<(String, Vec<String>)>,
    /// Rate of the built-in kernels on one core in GFLOP/s.
    pub builtin_gflops: Option<f64>,
    /// BLAS libraries with theirs; `None` for one that gives none.
    pub libraries: Vec<(PathBuf, Option<f64>)>,
    /// Variables that a library would obey.
    pub held: Option<Held>,
    /// GPUs that the engine can use, with their libraries; why not, where the system has a driver for them.
    pub gpus: Vec<Result<String, String>>,
    /// Launchers on the search path.
    pub launchers: Vec<PathBuf>,
    /// The compiler wrapper of an MPI library.
    pub mpicc: Option<PathBuf>,
    /// Our xhpl for an MPI library, where `mpi-setup` has made it.
    pub xhpl: Option<PathBuf>,
    /// The job.
    pub job: Option<Allocation>,
    /// Whether jobs can be submitted to Slurm here.
    pub sbatch: bool,
}

impl Around {
    /// Looks around; libraries are measured by children of `program`, so that none can crash this one.
    pub fn look(program: &Path, cores: &[usize]) -> Self {
        let rate = |path: &Path| environment::rate_gflops(program, path, &[]);
        let libraries: Vec<(PathBuf, Option<f64>)> =
            installed().into_iter().map(|path| (path.clone(), rate(&path))).collect();
        let mut falling: Vec<(&PathBuf, f64)> =
            libraries.iter().filter_map(|(path, rate)| Some((path, (*rate)?))).collect();
        falling.sort_by(|a, b| b.1.total_cmp(&a.1));
        let of = |path: &Path| environment::held(&Engine::Ours, Some(&KernelChoice::Blas(path.to_owned())), program);
        let most_gflops = falling.first().map_or(0.0, |(_, rate)| *rate);
        let held = fastest_without(falling.iter().filter_map(|(path, _)| of(path)), most_gflops);
        Self {
            cores: preflight::seen(cores, LOOK),
            builtin_gflops: rate_gflops(&KernelChoice::Builtin).ok(),
            libraries,
            held,
            gpus: found_gpus(program),
            launchers: LAUNCHERS.iter().filter_map(|name| found(name.as_ref())).collect(),
            mpicc: found("mpicc".as_ref()),
            xhpl: Some(program.with_file_name(MPI_FOLDER).join("xhpl")).filter(|path| path.is_file()),
            job: Allocation::here(),
            sbatch: found("sbatch".as_ref()).is_some(),
        }
    }

    /// The lines.
    pub fn lines(&self) -> Vec<Advice> {
        let mut lines = Vec::new();
        if let Some((sentence, warnings)) = &self.cores {
            let found = sentence.trim_start_matches("pre-flight: ");
            lines.push(if warnings.is_empty() {
                Advice::good("cores now", found)
            } else {
                let end = "end other work there, look at cooling, or leave the core out: taskset -c LIST hpl-tune …";
                Advice::change("cores now", format!("{found}; {}", warnings.join("; ")), end)
            });
        }
        lines.push(self.environment());
        lines.push(self.blas());
        lines.extend(self.gpus.iter().map(gpu));
        lines.push(self.mpi());
        lines.push(self.manager());
        lines
    }

    fn environment(&self) -> Advice {
        match &self.held {
            None => Advice::good("variables", "none that hold a BLAS back"),
            Some(held) => {
                let Held { named, cost, way_out, .. } = held;
                let found = format!("the environment sets {named} for the BLAS");
                // Sessions take the built-in kernels where these are faster.
                match held.better_gflops() {
                    Some(better) if self.builtin_gflops.is_none_or(|builtin| better > builtin) => {
                        Advice::change("variables", found, way_out).worth(cost)
                    }
                    Some(_) => Advice::fact("variables", format!("{found}; sessions take the built-in kernels")),
                    None => Advice::fact("variables", format!("{found}: {cost}")),
                }
            }
        }
    }

    fn blas(&self) -> Advice {
        let builtin = self.builtin_gflops.map_or("not measured".to_owned(), |rate| format!("{rate:.1}"));
        let named = self.libraries.iter().map(|(path, rate)| {
            let rate = rate.map_or("gives no product".to_owned(), |rate| format!("{rate:.1}"));
            format!("{} {rate}", path.display())
        });
        let named: Vec<String> = std::iter::once(format!("builtin {builtin}")).chain(named).collect();
        let found = format!("GFLOP/s on one core: {}; sessions take the fastest", named.join(", "));
        Advice::good("BLAS", if self.libraries.is_empty() { format!("{found}; no library is needed") } else { found })
    }

    fn mpi(&self) -> Advice {
        let named: Vec<String> = self.launchers.iter().map(|path| path.display().to_string()).collect();
        match (&self.xhpl, &self.mpicc, named.is_empty()) {
            (Some(xhpl), ..) => {
                Advice::good("MPI", format!("our xhpl for it is {}; launchers: {}", xhpl.display(), named.join(", ")))
            }
            (None, _, true) => Advice::fact("MPI", "no launcher found; one node needs none"),
            (None, Some(_), false) => {
                let found =
                    format!("{}; our engine has no xhpl for it yet, which several nodes need", named.join(", "));
                Advice { change: Some("hpl-tune mpi-setup".to_owned()), ..Advice::fact("MPI", found) }
            }
            (None, None, false) => {
                let found = format!("{}; no mpicc, which our xhpl for several nodes is built with", named.join(", "));
                let load = "module load openmpi, or apt-get install libopenmpi-dev; then hpl-tune mpi-setup";
                Advice { change: Some(load.to_owned()), ..Advice::fact("MPI", found) }
            }
        }
    }

    fn manager(&self) -> Advice {
        match &self.job {
            Some(job) => of_job(job),
            None if self.sbatch => {
                let write = "hpl-tune --budget 4h --nodes 2 --sbatch job.sh writes a batch script";
                Advice { change: Some(write.to_owned()), ..Advice::fact("job", "none; Slurm is here") }
            }
            None => Advice::fact("job", "none of Slurm, PBS or LSF"),
        }
    }
}

/// The job with its nodes and its end: variables of one that has ended stay in a terminal that outlives it.
fn of_job(job: &Allocation) -> Advice {
    let (nodes, left_s) = (job.nodes(), job.left_s);
    let is_over = left_s.is_some_and(|left_s| left_s <= 0.0);
    let end = match left_s {
        Some(_) if is_over => ", has ended".to_owned(),
        Some(left_s) => format!(", ends in {:.0} min", left_s / 60.0),
        None => String::new(),
    };
    let cpus = job.least_cpus().map_or(String::new(), |cpus| format!(", {cpus} CPUs or more on each"));
    let found = format!("{job}: {nodes} node{}{cpus}{end}", if nodes == 1 { "" } else { "s" });
    if is_over {
        return Advice::change("job", found, "outside of it unset its variables: unset SLURM_JOB_ID");
    }
    match job.budget_s(f64::INFINITY) {
        Ok(_) => Advice::good("job", found),
        Err(_) => Advice::change("job", format!("{found}, too soon for a session"), "ask for a longer job"),
    }
}

/// What is said of variables: of the library that would be the fastest without them, where it is faster then than the fastest is with them, at
/// `most_gflops`; else of the first.
fn fastest_without(all_held: impl Iterator<Item = Held>, most_gflops: f64) -> Option<Held> {
    let better = |held: &Held| held.better_gflops().filter(|better| *better > most_gflops).unwrap_or(0.0);
    all_held.reduce(|most, held| if better(&held) > better(&most) { held } else { most })
}

/// The GPUs of each platform that has some, or a driver for some.
fn found_gpus(program: &Path) -> Vec<Result<String, String>> {
    let told = |(platform, found): (&'static str, Result<FoundGpus, DeviceError>)| match found {
        Ok(gpus) => Some(Ok(gpus.to_string())),
        Err(error) => gpus::driver_is_here(platform).then(|| Err(error.to_string())),
    };
    gpus::look(program).into_iter().filter_map(told).collect()
}

fn gpu(found: &Result<String, String>) -> Advice {
    match found {
        Ok(gpus) => Advice::fact(
            "GPU libraries",
            format!("{gpus}; sessions are on them if short runs there are faster than the processors"),
        ),
        Err(reason) => Advice::fact("GPU libraries", format!("not usable: {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::advice::CheckState;
    use super::*;

    fn line(around: &Around, topic: &str) -> Advice {
        around.lines().into_iter().find(|advice| advice.topic == topic).unwrap()
    }

    #[test]
    fn what_is_around_is_judged() {
        let quiet = Around { builtin_gflops: Some(52.04), ..Around::default() };
        assert!(quiet.lines().iter().all(|advice| advice.state != CheckState::Change), "{:?}", quiet.lines());
        assert!(line(&quiet, "BLAS").found.contains("builtin 52.0"));
        let held = Held {
            named: "OPENBLAS_CORETYPE=Prescott".into(),
            cost: "10 with, 60 without".into(),
            way_out: "env -u X".into(),
            rates: Some((10.0, 60.0)),
        };
        let slow = vec!["core 1: 20.0 GFLOP/s, 60 % slower than the median".to_owned()];
        let bad = Around { held: Some(held), cores: Some(("pre-flight: 2 cores".into(), slow)), ..quiet.clone() };
        let variables = line(&bad, "variables");
        assert_eq!((variables.state, variables.worth.as_deref()), (CheckState::Change, Some("10 with, 60 without")));
        assert!(line(&bad, "cores now").found.contains("core 1: 20.0"));
    }

    #[test]
    fn variables_are_to_change_where_sessions_would_be_faster_without() {
        let state = |rates: Option<(f64, f64)>, builtin_gflops: Option<f64>| {
            let held = Held { named: "X=1".into(), cost: "so much".into(), way_out: "env -u X".into(), rates };
            line(&Around { held: Some(held), builtin_gflops, ..Around::default() }, "variables").state
        };
        let slow = Some((40.0, 60.0));
        assert_eq!([Some(52.0), None].map(|builtin| state(slow, builtin)), [CheckState::Change; 2]);
        assert_eq!(state(slow, Some(70.0)), CheckState::Fact, "the built-in kernels are faster");
        assert_eq!(state(Some((60.0, 40.0)), Some(52.0)), CheckState::Fact, "they help");
        assert_eq!([Some((60.0, 61.0)), None].map(|rates| state(rates, Some(52.0))), [CheckState::Fact; 2]);
    }

    #[test]
    fn variables_are_judged_by_the_library_that_would_be_the_fastest_without() {
        let found = |all: &[(f64, f64)]| {
            let held = |rates: &(f64, f64)| Held {
                named: "X=1".into(),
                cost: "so much".into(),
                way_out: "env -u X".into(),
                rates: Some(*rates),
            };
            fastest_without(all.iter().map(held), all[0].0).unwrap().rates.unwrap().1
        };
        assert_eq!(found(&[(50.0, 50.0), (45.0, 55.0), (40.0, 70.0), (30.0, 60.0)]), 70.0);
        assert_eq!(found(&[(60.0, 70.0), (45.0, 55.0)]), 70.0, "the fastest itself");
        assert_eq!(found(&[(60.0, 60.0), (15.0, 30.0)]), 60.0, "the other one is slower either way");
        assert_eq!(fastest_without(std::iter::empty(), 0.0), None);
    }

    /// One that had ended was good, with an end in -5 min.
    #[test]
    fn a_job_that_has_ended_or_ends_too_soon_is_to_change() {
        let with = |left_s: Option<f64>| {
            let job = Allocation { left_s, ..Allocation::slurm("17") };
            line(&Around { job: Some(job), ..Around::default() }, "job")
        };
        let long = with(Some(3600.0));
        assert_eq!((long.state, long.found.as_str()), (CheckState::Good, "Slurm job 17: 1 node, ends in 60 min"));
        assert_eq!((with(None).state, with(None).found), (CheckState::Good, "Slurm job 17: 1 node".to_owned()));
        let over = with(Some(-300.0));
        assert_eq!((over.state, over.found.as_str()), (CheckState::Change, "Slurm job 17: 1 node, has ended"));
        assert!(over.change.unwrap().contains("unset SLURM_JOB_ID"));
        let short = with(Some(62.0));
        assert_eq!(short.state, CheckState::Change);
        assert_eq!(short.found, "Slurm job 17: 1 node, ends in 1 min, too soon for a session");
    }

    #[test]
    fn mpi_without_our_xhpl_says_how_it_is_made() {
        let launchers = vec![PathBuf::from("/usr/bin/mpirun")];
        let mut around = Around { launchers, ..Around::default() };
        assert!(line(&around, "MPI").change.unwrap().contains("libopenmpi-dev"));
        around.mpicc = Some("/usr/bin/mpicc".into());
        assert_eq!(line(&around, "MPI").change.as_deref(), Some("hpl-tune mpi-setup"));
        around.xhpl = Some("/opt/mpi/xhpl".into());
        assert_eq!((line(&around, "MPI").state, line(&around, "MPI").change), (CheckState::Good, None));
    }
}
