//! The clocks of a node as they are set now, by whomever.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::levels::{ROUNDED, clocks_below};
use super::number;
use crate::machine::host::cpus_below;

/// kHz in a MHz.
const KHZ: u64 = 1000;
/// Time of the chain of multiplications, in seconds, after one of the same length that brings the processor to its clock.
const CHAIN: Duration = Duration::from_millis(50);
/// Multiplications between two looks at the time.
const LINKS: u32 = 10_000;

/// The clocks of the processors of a node that this process may use, by `cpufreq`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeClocks {
    /// The lowest and the highest of the limits that are set, in MHz.
    pub max_mhz: [u32; 2],
    /// The lowest clock that can be set, in MHz.
    pub least_mhz: u32,
    /// What chooses clocks below the limit, as `performance`; `None` where the kernel does not say.
    pub governor: Option<String>,
    /// Those that the driver has; none where the kernel does not say.
    pub governors: Vec<String>,
    /// Multiplications per second of which each needs the one before: of one processor they go by its clock.
    pub chain_per_s: f64,
}

impl NodeClocks {
    /// Those of the processors of this process below `root`, `/` for this host; `None` without `cpufreq`.
    pub fn read(root: &Path) -> Option<Self> {
        let folders =
            cpus_below(root).into_iter().map(|cpu| root.join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq")));
        let folders: Vec<_> = folders.filter(|folder| folder.join("scaling_max_freq").exists()).collect();
        let mhz = |khz: u64| u32::try_from(khz.div_ceil(KHZ)).ok();
        let limits = folders.iter().filter_map(|folder| mhz(number(&folder.join("scaling_max_freq"))?));
        let limits: Vec<u32> = limits.collect();
        let least = folders.iter().filter_map(|folder| mhz(number(&folder.join("cpuinfo_min_freq"))?)).max();
        let text = |name: &str| Some(fs::read_to_string(folders.first()?.join(name)).ok()?.trim().to_owned());
        let governors = text("scaling_available_governors").unwrap_or_default();
        Some(Self {
            max_mhz: [*limits.iter().min()?, *limits.iter().max()?],
            least_mhz: least.unwrap_or(0),
            governor: text("scaling_governor"),
            governors: governors.split_whitespace().map(str::to_owned).collect(),
            chain_per_s: chain_per_s(),
        })
    }

    /// The clocks in MHz that a search tries on `nodes`: above the lowest of each up to the highest limit that is set, which comes last. A
    /// single one where there is no room.
    pub fn levels(nodes: &[Self]) -> Vec<u32> {
        let found_mhz = nodes.iter().map(|node| node.max_mhz[1]).max().unwrap_or(0);
        let least_mhz = nodes.iter().map(|node| node.least_mhz).max().unwrap_or(0);
        clocks_below(found_mhz, least_mhz + 1)
    }

    /// Whether all limits are `asked_mhz`, as far as the hardware has such steps.
    pub fn are_at(&self, asked_mhz: u32) -> bool {
        let asked = f64::from(asked_mhz);
        self.max_mhz.iter().all(|&mhz| (f64::from(mhz) - asked).abs() <= ROUNDED * asked)
    }
}

/// Processor time of this thread in seconds, which others do not take from the chain; that of the clock on the wall where it is not counted.
fn used_s() -> f64 {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).or_else(|_| clock_gettime(ClockId::CLOCK_MONOTONIC));
    time.map_or(0.0, |time| time.tv_sec() as f64 + time.tv_nsec() as f64 * 1e-9)
}

/// Multiplications per second of which each needs the one before.
fn chain_per_s() -> f64 {
    let mut word = 3_u64;
    let mut rate = 0.0;
    for _ in 0..2 {
        let (begun, before_s, mut links) = (Instant::now(), used_s(), 0.0);
        while begun.elapsed() < CHAIN {
            for _ in 0..LINKS {
                word = word.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            }
            links += f64::from(LINKS);
        }
        rate = links / (used_s() - before_s).max(f64::MIN_POSITIVE);
    }
    // Nobody needs the word, but without it there would be no chain.
    std::hint::black_box(word);
    rate
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(max_mhz: [u32; 2], least_mhz: u32) -> NodeClocks {
        NodeClocks { max_mhz, least_mhz, governor: None, governors: Vec::new(), chain_per_s: 1e9 }
    }

    #[test]
    fn clocks_of_this_process_are_read() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(NodeClocks::read(root.path()), None);
        for cpu in 0..=cpus_below(Path::new("/")).into_iter().max().unwrap() {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}/cpufreq"));
            fs::create_dir_all(&folder).unwrap();
            for (name, text) in [
                ("scaling_max_freq", "2650000\n"),
                ("cpuinfo_min_freq", "800000\n"),
                ("scaling_governor", "performance\n"),
                ("scaling_available_governors", "performance powersave \n"),
            ] {
                fs::write(folder.join(name), text).unwrap();
            }
        }
        let found = NodeClocks::read(root.path()).unwrap();
        assert!(found.chain_per_s > 1e6, "{found:?}");
        let governors = vec!["performance".to_owned(), "powersave".to_owned()];
        let chain_per_s = found.chain_per_s;
        let expected =
            NodeClocks { governor: Some("performance".into()), governors, chain_per_s, ..node([2650; 2], 800) };
        assert_eq!(found, expected);
        assert!(found.are_at(2650) && found.are_at(2640) && !found.are_at(2100));
    }

    #[test]
    fn levels_are_those_that_all_nodes_can_have() {
        let nodes = [node([2500, 2500], 1000), node([2400, 2600], 1700)];
        assert_eq!(NodeClocks::levels(&nodes), [1800, 2000, 2200, 2400, 2600]);
        assert_eq!(NodeClocks::levels(&[node([2000, 2000], 2000)]), [2000], "no room");
        assert_eq!(NodeClocks::levels(&[]), [0]);
    }
}
