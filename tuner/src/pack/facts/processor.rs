//! The processors of a host, as lscpu reports them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::system::{System, field};

/// The processors; equal ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Processor {
    /// Model, as it calls itself.
    pub model: Option<String>,
    /// Vendor: `AuthenticAMD`, `GenuineIntel`, or the number of an Arm implementer, `0x41`.
    pub vendor: Option<String>,
    /// Family of an x86 processor; 0 of an Arm one.
    pub family: Option<u32>,
    /// Model number of an x86 processor, part number of an Arm one.
    pub model_number: Option<u32>,
    /// Stepping or revision.
    pub stepping: Option<String>,
    /// Version of its microcode.
    pub microcode: Option<String>,
    /// Sockets.
    pub sockets: Option<usize>,
    /// Cores of a socket.
    pub cores_per_socket: Option<usize>,
    /// Threads of a core.
    pub threads_per_core: Option<usize>,
    /// NUMA nodes.
    pub numa_nodes: Option<usize>,
    /// Nominal clock in MHz: what the driver calls base frequency, else what the model's name says.
    pub nominal_mhz: Option<f64>,
    /// Where that is from.
    pub nominal_from: Option<String>,
    /// Highest clock in MHz.
    pub max_mhz: Option<f64>,
    /// Clock of the first core when this was read, in MHz.
    pub now_mhz: Option<f64>,
    /// Governor of the clock.
    pub governor: Option<String>,
    /// Whether a hypervisor is said to be below.
    pub virtualised: bool,
    /// Instruction sets and other features, by the system's names.
    pub flags: String,
    /// Caches of the first core.
    pub caches: Vec<Cache>,
}

/// A cache of the first core.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Level.
    pub level: String,
    /// `Data`, `Instruction` or `Unified`.
    pub kind: String,
    /// Size, `32K`.
    pub size: String,
    /// Logical CPUs that share it, `0-7`.
    pub shared_by: String,
}

const CPUS: &str = "sys/devices/system/cpu";

impl Processor {
    /// Reads it.
    pub(super) fn read(system: &System) -> Self {
        let info = system.text("proc/cpuinfo").unwrap_or_default();
        let text = |name: &str| field(&info, name).map(str::to_owned);
        let number = |name: &str| field(&info, name).and_then(number);
        let cpufreq = |name: &str| {
            let khz = system.text(&format!("{CPUS}/cpu0/cpufreq/{name}"))?.parse::<f64>().ok()?;
            Some(khz / 1e3)
        };
        let model = text("model name").filter(|model| model != "unknown");
        let (sockets, cores, threads) = topology(system).unwrap_or_default();
        let named = model.as_deref().and_then(clock_of_name);
        let nominal = cpufreq("base_frequency").map(|mhz| (mhz, "base_frequency of the clock's driver"));
        let nominal = nominal.or(named.map(|mhz| (mhz, "the name of the processor")));
        let flags = text("flags").or_else(|| text("Features")).unwrap_or_default();
        let numa = system.names("sys/devices/system/node");
        let numa = numa.iter().filter(|name| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok()));
        let whole = |part: usize, of: usize| (of > 0 && part > 0 && part.is_multiple_of(of)).then(|| part / of);
        Self {
            vendor: text("vendor_id").or_else(|| text("CPU implementer")),
            family: number("cpu family").or(number("CPU part").map(|_| 0)),
            model_number: number("model").or(number("CPU part")),
            stepping: text("stepping").or_else(|| text("CPU revision")),
            microcode: text("microcode"),
            sockets: (sockets > 0).then_some(sockets),
            cores_per_socket: whole(cores, sockets),
            threads_per_core: whole(threads, cores),
            numa_nodes: Some(numa.count()).filter(|&nodes| nodes > 0),
            nominal_mhz: nominal.map(|(mhz, _)| mhz),
            nominal_from: nominal.map(|(_, from)| from.to_owned()),
            max_mhz: cpufreq("cpuinfo_max_freq"),
            now_mhz: cpufreq("scaling_cur_freq").or_else(|| field(&info, "cpu MHz")?.parse().ok()),
            governor: system.text(&format!("{CPUS}/cpu0/cpufreq/scaling_governor")),
            virtualised: flags.split_whitespace().any(|flag| flag == "hypervisor"),
            caches: caches(system),
            model,
            flags,
        }
    }

    /// Cores of the host.
    pub fn cores(&self) -> Option<usize> {
        Some(self.sockets? * self.cores_per_socket?)
    }
}

/// A number in decimal, or in hexadecimal behind `0x`.
fn number(text: &str) -> Option<u32> {
    text.strip_prefix("0x").map_or_else(|| text.parse().ok(), |digits| u32::from_str_radix(digits, 16).ok())
}

/// MHz at the end of a name such as `Xeon(R) Gold 6130 CPU @ 2.10GHz`: the nominal clock.
fn clock_of_name(model: &str) -> Option<f64> {
    let (_, clock) = model.rsplit_once('@')?;
    let ghz: f64 = clock.trim().strip_suffix("GHz")?.trim().parse().ok()?;
    (ghz > 0.0).then_some((ghz * 1e3).round())
}

/// Sockets, cores and logical CPUs that are on line; `None` where the system reports no topology.
fn topology(system: &System) -> Option<(usize, usize, usize)> {
    let (mut sockets, mut cores, mut cpus) = (BTreeSet::new(), BTreeSet::new(), 0);
    for name in system.names(CPUS) {
        if name.strip_prefix("cpu").is_none_or(|number| number.parse::<usize>().is_err()) {
            continue;
        }
        // A CPU that is off line has no topology.
        let part = |file: &str| system.text(&format!("{CPUS}/{name}/topology/{file}"));
        let (Some(socket), Some(core)) = (part("physical_package_id"), part("core_id")) else { continue };
        let die = part("die_id");
        sockets.insert(socket.clone());
        cores.insert((socket, die, core));
        cpus += 1;
    }
    (cpus > 0).then_some((sockets.len(), cores.len(), cpus))
}

fn caches(system: &System) -> Vec<Cache> {
    let folder = format!("{CPUS}/cpu0/cache");
    let cache = |name: &String| {
        let part = |file: &str| system.text(&format!("{folder}/{name}/{file}"));
        Some(Cache {
            level: part("level")?,
            kind: part("type")?,
            size: part("size")?,
            shared_by: part("shared_cpu_list")?,
        })
    };
    system.names(&folder).iter().filter(|name| name.starts_with("index")).filter_map(cache).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_the_nominal_clock() {
        assert_eq!(clock_of_name("Intel(R) Xeon(R) Gold 6130 CPU @ 2.10GHz"), Some(2100.0));
        for name in ["AMD EPYC 9654 96-Core Processor", "x @ fast", "x @ 0GHz", "@", ""] {
            assert_eq!(clock_of_name(name), None, "{name}");
        }
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!((number("17"), number("0xd0c"), number("x")), (Some(17), Some(0xd0c), None));
    }
}
