//! The settings of the nodes that a session varies, and who makes them.

use std::path::Path;

use objectives::simulated::SimulatedCluster;
use objectives::slurm_clock::SlurmClock;
use space::SettingLevels;
use space::machine::Node;

use crate::agents::short;
use crate::cli::TuneArgs;
use crate::cluster::clock::{self, ClockBySlurm};
use crate::exit::bad_input;
use crate::record::session::Session;
use crate::search::progress::say;
use crate::session::engine::Engine;
use crate::session::power::ONE_NODE;
use crate::session::settings::{self, Vary};

/// Where runs are.
pub(super) struct RunPlace<'a> {
    /// The nodes as far as they are described; none where the ranks are on this one alone.
    pub(super) nodes: &'a [Node],
    /// Their names as far as they are known.
    pub(super) hosts: &'a [String],
    /// The name of this node.
    pub(super) this: &'a str,
    /// Cores of this node.
    pub(super) cores: usize,
}

impl RunPlace<'_> {
    /// A rank on each node with all its cores.
    fn ranks_and_threads(&self) -> (usize, usize) {
        let least = self.nodes.iter().map(|node| node.cores).min();
        (self.count().max(1), least.unwrap_or(self.cores).max(1))
    }

    fn count(&self) -> usize {
        self.nodes.iter().map(|node| node.count).sum::<usize>().max(self.hosts.len())
    }

    fn is_this_node(&self) -> bool {
        self.count() <= 1 && self.hosts.iter().all(|host| short(host) == short(self.this))
    }
}

/// The values of the settings that are varied, and how Slurm is asked for the clock, where it sets that.
///
/// # Errors
/// A setting that cannot be made, with the way out.
pub(super) fn varied(
    args: &TuneArgs,
    engine: &Engine,
    place: &RunPlace<'_>,
    simulated: Option<&SimulatedCluster>,
    program: &Path,
) -> anyhow::Result<(SettingLevels, Option<SlurmClock>)> {
    let root = &args.power_root;
    let by_files = |vary: &[Vary]| settings::levels(vary, root, simulated);
    if !(args.vary.contains(&Vary::Clock) && simulated.is_none() && engine.is_started_by_srun()) {
        return Ok((by_files(&args.vary).map_err(bad_input)?, None));
    }
    let engine = match engine {
        Engine::Launched(job) => Engine::Launched(job.on(place.hosts)),
        engine => engine.clone(),
    };
    match clock::found(&engine, place.ranks_and_threads(), root, program) {
        Ok(ClockBySlurm { clock, levels: max_clock_mhz, said }) => {
            said.iter().for_each(|sentence| say(sentence));
            let others: Vec<Vary> = args.vary.iter().copied().filter(|vary| *vary != Vary::Clock).collect();
            let others = by_files(&others).map_err(bad_input)?;
            Ok((SettingLevels { max_clock_mhz, ..others }, Some(clock)))
        }
        // Slurm would set the processors of the runs alone; its files set all of this node.
        Err(by_slurm) if place.is_this_node() => match by_files(&args.vary) {
            Ok(levels) => {
                say(&format!("clock: by the files of this node, as Slurm does not set it: {by_slurm}"));
                Ok((levels, None))
            }
            Err(problem) => Err(bad_input(format!("{problem}; by srun --cpu-freq: {by_slurm}"))),
        },
        Err(by_slurm) => Err(bad_input(format!(
            "--vary clock, by srun --cpu-freq: {by_slurm}. Without that the clock can be varied on one node alone: {ONE_NODE}"
        ))),
    }
}

/// Makes sure that Slurm sets the clock of the nodes of a session that goes on as it did when that began.
///
/// # Errors
/// It does not, and the way out.
pub(super) fn check_again(session: &Session, engine: &Engine, root: &Path, program: &Path) -> anyhow::Result<()> {
    let Some(before) = &session.slurm_clock else { return Ok(()) };
    let (hosts, cores) = (&session.hosts[..], session.cores.len());
    let place = RunPlace { nodes: &session.nodes, hosts, this: &session.host, cores };
    let engine = match engine.clone().clocked_by(None) {
        Engine::Launched(job) => Engine::Launched(job.on(hosts)),
        engine => engine,
    };
    let found = clock::found(&engine, place.ranks_and_threads(), root, program);
    let now = found
        .map_err(|by_slurm| bad_input(format!("the session varies the clock by srun --cpu-freq: {by_slurm}")))?
        .clock;
    if now == *before {
        return Ok(());
    }
    let words = |clock: &SlurmClock| {
        format!("{} to {} MHz with the governor {}", clock.least_mhz, clock.found_mhz, clock.governor)
    };
    Err(bad_input(format!(
        "the session was begun on nodes with clocks of {}, now they have {}; set them as they were, or start a new session with --warm-start",
        words(before),
        words(&now)
    )))
}
