//! `kill -9` of whatever takes part in a session on Slurm's nodes: no finished trial is lost, none is recorded twice, and
//! nothing is left on any node.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// What a kill hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Victim {
    /// One process of the tuner: itself, or the guard of a run.
    Tuner,
    /// One of the two processes of `srun`.
    Srun,
    /// Both of them: the ranks live on.
    BothSrun,
    /// A rank.
    Rank,
    /// Slurm's daemon on the second node, which is started again.
    Slurmd,
    /// Everything on the second node, which is started again.
    Node,
}

impl Victim {
    const ALL: [Self; 6] = [Self::Tuner, Self::Srun, Self::BothSrun, Self::Rank, Self::Slurmd, Self::Node];

    /// Kills; `false` where there was nothing to kill.
    fn hit(self, cluster: &Cluster, folder: &Path, rng: &mut ChaCha8Rng) -> bool {
        let name = match self {
            Self::Tuner => "hpl-tune",
            Self::Srun | Self::BothSrun => "srun",
            Self::Rank => "xhpl",
            Self::Slurmd => {
                let daemon = format!("kill -9 $(cat /run/slurmd.{SECOND}.pid)");
                cluster.script(&["run", "sh", "-c", &daemon]);
                std::thread::sleep(Duration::from_millis(200));
                return cluster.script(&["boot", SECOND]).status.success();
            }
            Self::Node => {
                cluster.script(&["crash", SECOND]);
                return cluster.script(&["boot", SECOND]).status.success();
            }
        };
        let mut victims = processes(folder, &[name]);
        if victims.is_empty() {
            return false;
        }
        if self != Self::BothSrun {
            victims = vec![victims[rng.random_range(0..victims.len())]];
        }
        for pid in victims {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
        true
    }
}

/// The node that does not run the batch script.
const SECOND: &str = "n2";

/// Six of them, or as many as `HPL_TUNE_KILLS` says: a hundred take five minutes.
#[test]
#[ignore = "needs Slurm: tests/run --install"]
fn kills_on_the_nodes_of_a_job_lose_nothing() {
    let kills = std::env::var("HPL_TUNE_KILLS").map_or(6, |kills| kills.parse().unwrap());
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let cluster = Cluster::start(2);
    let root = cluster.folder.path();
    let (folder, done, log) = (root.join("run"), root.join("done"), root.join("finished.log"));
    // The engine's own log of the runs that it finished: their command lines.
    let program = root.join("xhpl");
    let logging = format!(
        "#!/bin/sh\n{} \"$@\" || exit\n[ \"$SLURM_PROCID\" != 0 ] || echo \"$*\" >> {}\n",
        Mpi::Open.built("xhpl").display(),
        log.display()
    );
    std::fs::write(&program, logging).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    // Goes on whatever is killed; a job that went down with its node is submitted again.
    let lines = format!(
        "#SBATCH --no-requeue\nuntil [ -e {} ]; do\nif [ -e {}/session.toml ]; then {}; else {}; fi\nsleep 0.1\ndone",
        done.display(),
        folder.display(),
        resumed(&folder),
        session_of(&program, &folder, "2h")
    );
    let mut job = cluster.submit(&lines);
    let mut jobs = 1;
    let mut hits: BTreeMap<Victim, usize> = BTreeMap::new();
    let mut known: Vec<Row> = Vec::new();
    let mut moved_at = 0;
    while hits.values().sum::<usize>() < kills {
        std::thread::sleep(Duration::from_millis(rng.random_range(0..3000)));
        if cluster.slurm(&["squeue", "--noheader", "--jobs", &job]).trim().is_empty() {
            job = cluster.submit(&lines);
            jobs += 1;
        }
        let victim = Victim::ALL[rng.random_range(0..Victim::ALL.len())];
        let at = hits.values().sum::<usize>();
        if !victim.hit(&cluster, &folder, &mut rng) {
            continue;
        }
        *hits.entry(victim).or_default() += 1;
        let rows = recorded(&folder);
        assert!(rows.starts_with(&known), "kill {at} of {victim:?}: what was recorded has changed");
        // Now and then the session gets as far as a trial.
        if at >= moved_at + 5 {
            let follows = within(Duration::from_secs(120), || recorded(&folder).len() > rows.len());
            assert!(follows, "kill {at} of {victim:?}: no trial follows\n{}", cluster.state_of(&job));
            moved_at = at;
        }
        known = recorded(&folder);
    }
    let before = recorded(&folder).len();
    assert!(within(Duration::from_secs(120), || recorded(&folder).len() > before + 1), "the session does not go on");
    std::fs::write(&done, "").unwrap();
    cluster.slurm(&["scancel", &job]);
    let gone = || processes(&folder, &["xhpl", "srun", "hpl-tune"]).is_empty();
    assert!(within(Duration::from_secs(60), gone), "{:?} are left", processes(&folder, &["xhpl", "srun", "hpl-tune"]));
    let rows = recorded(&folder);
    let numbers: BTreeMap<u64, &Row> = rows.iter().map(|row| (row.trial, row)).collect();
    assert_eq!(numbers.len(), rows.len(), "a trial is recorded twice");
    let finished = finished_trials(&std::fs::read_to_string(&log).unwrap());
    let once: BTreeSet<u64> = finished.iter().copied().collect();
    // The step of the last kill may have ended after it.
    let lost: Vec<&u64> =
        once.iter().filter(|&trial| !numbers.contains_key(trial) && *trial < rows.len() as u64).collect();
    assert!(lost.is_empty(), "trials {lost:?} had finished and are not in the record");
    // Killed between the end of a run and the word of its guard.
    let again = finished.len() - once.len();
    let failed = once.iter().filter(|trial| numbers.get(trial).is_some_and(|row| !row.passed)).count();
    assert!(again + failed <= 1 + kills / 10, "{again} finished runs were run again, {failed} are recorded as failed");
    println!(
        "{hits:?}, {jobs} jobs: {} trials, {} passed; of {} that had finished none lost, {again} run again, {failed} recorded as failed",
        rows.len(),
        rows.iter().filter(|row| row.passed).count(),
        once.len(),
    );
}

/// Numbers of the trials on the command lines of runs that ended well.
fn finished_trials(log: &str) -> Vec<u64> {
    let number = |line: &str| line.split_once("/trials/")?.1.split('/').next()?.parse().ok();
    log.lines().filter_map(number).collect()
}
