//! Which settings of the node a session varies.

use std::path::Path;

use clap::ValueEnum;
use hpl::machine::controls::{Controlled, NodeControls};
use objectives::simulated::SimulatedCluster;
use space::domain::Limits;
use space::{NodeSettings, SettingLevels};

use crate::power::settings::{FoundSettings, NodeSetter};
use crate::record::folder::RunFolder;
use crate::record::session::Session;
use crate::session::power::{ONE_NODE, SessionNodes};

/// The flag by which settings are varied.
const FLAG: &str = "--vary";

/// A setting of the node that can be searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Vary {
    /// The highest clock of all processors
    Clock,
    /// The power limit of every processor package
    PowerCap,
    /// The power limit of every accelerator
    GpuPowerCap,
}

fn controlled(vary: &[Vary]) -> Controlled {
    Controlled {
        clock: vary.contains(&Vary::Clock),
        package_limit: vary.contains(&Vary::PowerCap),
        gpu_limit: vary.contains(&Vary::GpuPowerCap),
    }
}

/// The values of the settings that are varied on this node, with its controls below `root`, or on the `simulated` cluster.
///
/// # Errors
/// A setting that cannot be made, with the file and the way out.
pub fn levels(vary: &[Vary], root: &Path, simulated: Option<&SimulatedCluster>) -> Result<SettingLevels, String> {
    let wanted = controlled(vary);
    let Some(cluster) = simulated else {
        let controls = NodeControls::find(root, wanted).map_err(|error| format!("{FLAG}: {error}"))?;
        return Ok(controls.levels().clone());
    };
    if wanted.gpu_limit {
        return Err(format!("{FLAG} gpu-power-cap: simulated clusters have no accelerators"));
    }
    let all = cluster.setting_levels();
    let of = |wanted: bool, values: Vec<u32>, key: &str| match (wanted, values.len()) {
        (true, 0 | 1) => Err(format!("{FLAG}: [settings] of the simulated cluster has no {key} to choose from")),
        (wanted, _) => Ok(if wanted { values } else { Vec::new() }),
    };
    Ok(SettingLevels {
        max_clock_mhz: of(wanted.clock, all.max_clock_mhz, "clocks_mhz")?,
        package_limit_w: of(wanted.package_limit, all.package_limit_w, "package_limits_w")?,
        gpu_limit_w: Vec::new(),
    })
}

/// Refuses `limits` of settings that are not varied.
///
/// # Errors
/// Which, with the way out.
pub fn check_limits(limits: &Limits, levels: &SettingLevels) -> Result<(), String> {
    let of = |name: &str| match name {
        "max_clock_mhz" => Some((levels.max_clock_mhz.is_empty(), "clock")),
        "package_limit_w" => Some((levels.package_limit_w.is_empty(), "power-cap")),
        "gpu_limit_w" => Some((levels.gpu_limit_w.is_empty(), "gpu-power-cap")),
        _ => None,
    };
    let left_alone = limits.names().find_map(|name| Some((name, of(name).filter(|(empty, _)| *empty)?.1)));
    left_alone.map_or(Ok(()), |(name, word)| {
        Err(format!(
            "--space: [{name}] is a dimension of sessions with {FLAG} {word} only; give that, or leave [{name}] out"
        ))
    })
}

/// Refuses a session whose runs are on other nodes than this one, as the settings of these are not made.
///
/// # Errors
/// Why, with the way out.
pub fn check(nodes: &SessionNodes<'_>) -> Result<(), String> {
    let session = nodes.session;
    if session.is_simulated() || nodes.are_this_one() {
        return Ok(());
    }
    check_elsewhere(&session.settings, session.slurm_clock.is_some())
}

/// Refuses settings of runs that are on other nodes than this one; `by_slurm`: Slurm sets the clock of all of them.
///
/// # Errors
/// Why, with the way out.
pub fn check_elsewhere(levels: &SettingLevels, by_slurm: bool) -> Result<(), String> {
    let here_alone = SettingLevels { max_clock_mhz: Vec::new(), ..levels.clone() };
    let set_here = if by_slurm { &here_alone } else { levels };
    if set_here.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{FLAG}: clocks and power limits are set on the node of hpl-tune alone, and the runs are on others, too; {ONE_NODE}; or {FLAG} clock \
         alone with srun as the launcher, which sets the clock of its nodes where the site permits it"
    ))
}

/// A value of each setting that is varied, where those of the nodes are not known.
pub fn of_unknown_nodes(vary: &[Vary]) -> SettingLevels {
    let wanted = controlled(vary);
    let of = |wanted: bool| if wanted { vec![0] } else { Vec::new() };
    SettingLevels {
        max_clock_mhz: of(wanted.clock),
        package_limit_w: of(wanted.package_limit),
        gpu_limit_w: of(wanted.gpu_limit),
    }
}

/// Refuses a node that is at other settings than the one that the session was begun on: a row whose settings are those as found would
/// name others than it ran at.
fn same_as_found(session: &Session, now: NodeSettings) -> Result<(), String> {
    let before = session.settings.as_found();
    // Those that Slurm sets are none of this node's files.
    let before =
        NodeSettings { max_clock_mhz: before.max_clock_mhz.filter(|_| session.slurm_clock.is_none()), ..before };
    if now == before {
        return Ok(());
    }
    let words = |settings: NodeSettings| {
        settings.named().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    };
    Err(format!(
        "{FLAG}: the session was begun on a node at {}, and this one is at {}; set it as it was, or start a new session with --warm-start",
        words(before),
        words(now)
    ))
}

/// What makes the settings of the trials of a session, with the controls below `root`; `None` where it varies none, or they are
/// simulated.
///
/// # Errors
/// Controls that cannot be used any more, or what was found cannot be kept.
pub fn setter(session: &Session, folder: &RunFolder, root: &Path) -> Result<Option<NodeSetter>, String> {
    if session.settings.is_empty() || session.is_simulated() {
        return Ok(None);
    }
    let wanted = Controlled {
        clock: !session.settings.max_clock_mhz.is_empty() && session.slurm_clock.is_none(),
        package_limit: !session.settings.package_limit_w.is_empty(),
        gpu_limit: !session.settings.gpu_limit_w.is_empty(),
    };
    if wanted == Controlled::default() {
        return Ok(None);
    }
    let controls = NodeControls::find(root, wanted).map_err(|error| format!("{FLAG}: {error}"))?;
    same_as_found(session, controls.levels().as_found())?;
    NodeSetter::start(controls, folder.root().join(FoundSettings::NAME), root).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The job of a batch script had waited for its nodes before its session refused them.
    #[test]
    fn power_limits_are_those_of_one_node() {
        let refused = |vary: &[Vary], by_slurm: bool| check_elsewhere(&of_unknown_nodes(vary), by_slurm).is_err();
        assert!(!refused(&[], false) && !refused(&[Vary::Clock], true));
        assert!(refused(&[Vary::Clock], false) && refused(&[Vary::PowerCap], true));
        assert!(refused(&[Vary::Clock, Vary::GpuPowerCap], true));
    }
}
