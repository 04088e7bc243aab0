//! The hardware of the host: cores, memory, load, clock.
//!
//! Everything is read from /proc and /sys by [`facts`], or below another root by [`facts_below`]; pure functions in `host/` parse the texts and return `None` for
//! malformed ones. A container's limits are treated as limits of the machine.

mod cgroup;
mod core_kinds;
mod cores;
mod domains;
mod memory_nodes;
mod own_limits;
mod parse;
mod vitals;

pub(crate) use self::domains::Domains;
pub use self::parse::{address_space_limit, cpu_list};
pub use self::vitals::{HostVitals, VitalsReader};
use std::fs;
use std::path::Path;

use nix::unistd::{SysconfVar, sysconf};
use serde::{Deserialize, Serialize};
use space::domain::DomainSpec;
use space::{KernelChoice, Unequal};

/// The hardware that this process can use, and its load at one time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HostFacts {
    /// Host name.
    pub hostname: String,
    /// Processor model, or `unknown`.
    pub cpu_model: String,
    /// Vendor string of the processor, such as `AuthenticAMD` or `GenuineIntel`.
    pub cpu_vendor: Option<String>,
    /// Instruction sets and other features of the processor, by the system's names.
    pub cpu_flags: Vec<String>,
    /// Cores of `cores_allowed` per last-level cache, or per socket; `None` if the numbers differ.
    pub cores_sharing: Option<usize>,
    /// Logical CPUs to run on, one per physical core, ordered by socket, NUMA domain and cache. Limited by the affinity mask and
    /// the cgroup's CPU quota; at least one.
    pub cores_allowed: Vec<usize>,
    /// Those of `cores_allowed` that are of a slower kind than others of them, as the E-cores of hybrid processors.
    #[serde(default)]
    pub slower_cores: Vec<usize>,
    /// Physical cores of the logical CPUs that the affinity mask allows, whatever the quota; 0 where that is not known.
    #[serde(default)]
    pub cores_physical: usize,
    /// Logical CPUs that the affinity mask allows, of those that are online.
    pub cpus_allowed: usize,
    /// CPU quota of the cgroup, in CPUs.
    pub cpu_quota: Option<f64>,
    /// Memory of the machine in bytes; where the cpuset leaves out NUMA nodes, that of the others.
    pub memory_total_bytes: u64,
    /// Memory that can be filled without swapping, in bytes: the smallest of the system's available memory, that of the
    /// NUMA nodes which the cpuset allows, the memory that the cgroup's limit still allows, and what a system that grants no more
    /// than it can back (`vm.overcommit_memory=2`) still grants; by [`facts`] also that of the NUMA nodes to which the memory policy
    /// of the process binds it, and what its limit of address space (`ulimit -v`) leaves.
    pub memory_available_bytes: u64,
    /// Memory limit of the cgroup in bytes, if it has one: that above which it is ended, or slowed down where that is lower.
    pub memory_limit_bytes: Option<u64>,
    /// Runnable processes of the whole machine, mean of the last minute.
    pub load: Option<f64>,
    /// Time counters of all CPUs since boot.
    pub cpu_times: Option<CpuTimes>,
    /// Current clock of the first allowed core, in Hz.
    pub clock_hz: Option<f64>,
    /// Its nominal clock in Hz, if known.
    pub base_clock_hz: Option<f64>,
}

impl HostFacts {
    /// NB recommended by the vendor of the processor: AMD 240, Intel 384 with AVX-512 and 192 with AVX2.
    ///
    /// # Errors
    /// The reason why no NB is known, as a clause.
    pub fn advised_nb(&self) -> Result<usize, String> {
        let has = |flag: &str| self.cpu_flags.iter().any(|known| known == flag);
        match self.cpu_vendor.as_deref() {
            Some("AuthenticAMD") => Ok(240),
            Some("GenuineIntel") if has("avx512f") => Ok(384),
            Some("GenuineIntel") if has("avx2") => Ok(192),
            Some("GenuineIntel") => Err("its vendor advises no NB for a processor without AVX2".to_owned()),
            Some(vendor) => Err(format!("no NB is known that the vendor {vendor} advises")),
            None => Err("the vendor of the processor is unknown".to_owned()),
        }
    }

    /// Whether runs have a part of the machine's cores, whose logical CPUs `online` are: of its [`load`](Self::load) nothing says on which cores
    /// it is. Without `online` only a quota shows it.
    pub fn is_part(&self, online: Option<usize>) -> bool {
        self.cores_allowed.len() < self.cores_physical || online.is_some_and(|online| self.cpus_allowed < online)
    }

    /// Specification of a search space for runs of order `n` on this host: all its cores and memory, the built-in kernels, any
    /// ranks and threads.
    pub fn domain_spec(&self, n: usize) -> DomainSpec {
        DomainSpec {
            n,
            cores: self.cores_allowed.len(),
            memory_bytes: self.memory_available_bytes,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: Unequal::default(),
        }
    }
}

/// CPU time since boot, all CPUs together, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTimes {
    /// All time, idle included.
    pub total: u64,
    /// Time taken by the hypervisor.
    pub steal: u64,
}

impl CpuTimes {
    /// Share of the CPU time stolen since `earlier`; `None` when no time has passed.
    pub fn stolen_since(&self, earlier: &Self) -> Option<f64> {
        let total = self.total.checked_sub(earlier.total).filter(|&ticks| ticks > 0)?;
        Some(self.steal.saturating_sub(earlier.steal) as f64 / total as f64)
    }
}

/// Root of the files of this host.
const HERE: &str = "/";

/// Reads the facts of this host, as they are for this process: its memory is what its memory policy and its limit of address space
/// allow, too.
pub fn facts() -> HostFacts {
    facts_of_process(Path::new(HERE), own_limits::bound_nodes().as_deref(), true)
}

/// As [`facts`], after a run: the address space that its threads have reserved is used again by those of the next one.
pub(crate) fn facts_after_runs() -> HostFacts {
    facts_of_process(Path::new(HERE), own_limits::bound_nodes().as_deref(), false)
}

/// Reads the facts of this host without what limits the memory of this process alone: for runs on other processes of the node.
pub fn facts_of_node() -> HostFacts {
    facts_below(Path::new(HERE))
}

/// As [`facts_below`], for a process whose memory is bound to the NUMA nodes `bound`. `new_threads`: whether it has yet to map what its
/// threads need, one for each core.
fn facts_of_process(root: &Path, bound: Option<&[usize]>, new_threads: bool) -> HostFacts {
    let facts = facts_below(root);
    let available = facts.memory_available_bytes;
    let own = own_limits::available_bytes(root, bound, if new_threads { facts.cores_allowed.len() } else { 0 });
    HostFacts { memory_available_bytes: own.map_or(available, |own| own.min(available)), ..facts }
}

/// As [`facts_of_node`], of a host whose /proc and /sys lie below `root`; the host name is that of this one.
pub fn facts_below(root: &Path) -> HostFacts {
    let read = |path: &str| read(root.join(path));
    let topology = |cpu| cores::topology(root, cpu);
    let cpuinfo = read("proc/cpuinfo").unwrap_or_default();
    let meminfo = read("proc/meminfo").unwrap_or_default();
    let group = cgroup::limits(root);
    let cpus = allowed_cpus(root);
    let physical = cores::physical(&cpus, topology);
    let cores_physical = physical.len();
    let cores_allowed = cores::within_quota(physical, group.cpu_quota);
    let nodes = memory_nodes::allowed(root, None);
    let total = parse::meminfo_bytes(&meminfo, "MemTotal").unwrap_or_else(|| pages(Pages::All));
    let memory_total_bytes = nodes.map_or(total, |nodes| nodes.total_bytes.min(total));
    let available = parse::meminfo_bytes(&meminfo, "MemAvailable").unwrap_or_else(|| pages(Pages::Free));
    let available = nodes.map_or(available, |nodes| nodes.available_bytes.min(available));
    let is_strict = read("proc/sys/vm/overcommit_memory").is_some_and(|mode| mode.trim() == "2");
    let grantable = parse::grantable_bytes(&meminfo).filter(|_| is_strict);
    let available = grantable.map_or(available, |grantable| grantable.min(available));
    let frequency = |name: &str| {
        let path = format!("sys/devices/system/cpu/cpu{}/cpufreq/{name}", cores_allowed[0]);
        parse::number(&read(&path)?).map(|khz| khz * 1e3)
    };
    HostFacts {
        hostname: nix::unistd::gethostname()
            .map_or_else(|_| "unknown".to_owned(), |name| name.to_string_lossy().into_owned()),
        cpu_model: parse::field(&cpuinfo, "model name").unwrap_or("unknown").to_owned(),
        cpu_vendor: parse::field(&cpuinfo, "vendor_id").filter(|vendor| !vendor.is_empty()).map(str::to_owned),
        cpu_flags: parse::field(&cpuinfo, "flags").unwrap_or("").split_whitespace().map(str::to_owned).collect(),
        cores_sharing: cores::sharing(&cores_allowed, topology),
        slower_cores: core_kinds::slower(root, &cores_allowed),
        cores_physical,
        cpus_allowed: cpus.len(),
        cpu_quota: group.cpu_quota,
        memory_total_bytes,
        memory_available_bytes: group.memory_headroom_bytes.map_or(available, |headroom| headroom.min(available)),
        memory_limit_bytes: group.memory_limit_bytes.filter(|&limit| limit < memory_total_bytes),
        load: read("proc/loadavg").and_then(|text| parse::number(text.split(' ').next()?)),
        cpu_times: read("proc/stat").and_then(|text| parse::cpu_times(&text)),
        clock_hz: frequency("scaling_cur_freq")
            .or_else(|| parse::number(parse::field(&cpuinfo, "cpu MHz")?).map(|mhz| mhz * 1e6)),
        base_clock_hz: frequency("base_frequency"),
        cores_allowed,
    }
}

/// Logical CPUs of this machine that are online; `None` where the system does not say.
pub fn cpus_online() -> Option<usize> {
    Some(cpu_list(&read(Path::new(HERE).join("sys/devices/system/cpu/online"))?)?.len())
}

/// The physical core of each of these logical CPUs, by the number of its first logical CPU, which this process need not be allowed to
/// use: so several processes of a host count each core once.
pub fn physical_cores(cpus: &[usize]) -> Vec<usize> {
    cores::first_siblings(cpus, |cpu| cores::topology(Path::new(HERE), cpu))
}

/// The socket of these logical CPUs; `None` for an empty list, or if they belong to several sockets.
pub(crate) fn socket(cpus: &[usize]) -> Option<usize> {
    let mut sockets = cpus.iter().map(|&cpu| cores::topology(Path::new(HERE), cpu).package);
    let first = sockets.next()?;
    sockets.all(|socket| socket == first).then_some(first)
}

/// Logical CPUs that this thread may run on, by the files of this host where there are none below `root`; at least one.
pub(super) fn cpus_below(root: &Path) -> Vec<usize> {
    let own = root.join("proc/thread-self/status").exists();
    allowed_cpus(if own { root } else { Path::new(HERE) })
}

/// Logical CPUs that this thread may run on; at least one.
fn allowed_cpus(root: &Path) -> Vec<usize> {
    let status = read(root.join("proc/thread-self/status")).unwrap_or_default();
    let allowed = parse::field(&status, "Cpus_allowed_list").and_then(parse::cpu_list);
    let Some(allowed) = allowed.filter(|cpus| !cpus.is_empty()) else {
        let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        return (0..count).collect();
    };
    // The mask also has the CPUs that are offline.
    let online = read(root.join("sys/devices/system/cpu/online")).and_then(|text| cpu_list(&text)).unwrap_or_default();
    let usable: Vec<usize> = allowed.iter().copied().filter(|cpu| online.binary_search(cpu).is_ok()).collect();
    if usable.is_empty() { allowed } else { usable }
}

enum Pages {
    All,
    Free,
}

/// Physical memory in bytes from the C library, for systems without a readable /proc/meminfo.
fn pages(which: Pages) -> u64 {
    let count = match which {
        Pages::All => sysconf_value(SysconfVar::_PHYS_PAGES),
        Pages::Free => sysconf_value(SysconfVar::_AVPHYS_PAGES),
    };
    count.saturating_mul(sysconf_value(SysconfVar::PAGE_SIZE))
}

/// A value of the C library; 0 where it has none.
fn sysconf_value(name: SysconfVar) -> u64 {
    sysconf(name).ok().flatten().and_then(|value| u64::try_from(value).ok()).unwrap_or(0)
}

/// The CPUs on the NUMA node of a PCI device, by the files of the system below `root`; `None` where these do not say.
pub(crate) fn pci_cores(root: &Path, address: &str) -> Option<Vec<usize>> {
    cpu_list(&read(root.join("sys/bus/pci/devices").join(address).join("local_cpulist"))?)
}

/// The text of a file; `None` when it cannot be read.
fn read(path: impl AsRef<Path>) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_plausible() {
        let facts = facts();
        assert!(!facts.cores_allowed.is_empty() && facts.cores_allowed.len() <= facts.cpus_allowed);
        assert!(facts.memory_available_bytes > 1 << 20);
        assert!(facts.memory_available_bytes <= facts.memory_total_bytes);
        let later = super::facts().cpu_times.unwrap();
        assert!(later.total >= facts.cpu_times.unwrap().total);
    }

    /// Writes files below `root`.
    fn tree(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn offline_processors_are_no_cores() {
        const ONLINE: &str = "sys/devices/system/cpu/online";
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        tree(root, &[("proc/thread-self/status", "Name:\tx\nCpus_allowed_list:\t0-7\n"), (ONLINE, "0-3\n")]);
        // Those that are offline have no topology.
        for (cpu, siblings) in [(0, "0,2\n"), (1, "1,3\n"), (2, "0,2\n"), (3, "1,3\n")] {
            let path = format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list");
            tree(root, &[(path.as_str(), siblings)]);
        }
        let cores = || {
            let facts = facts_below(root);
            (facts.cores_allowed, facts.cpus_allowed)
        };
        assert_eq!(cores(), (vec![0, 1], 4));
        // A list that names none of the allowed ones, or that cannot be read.
        for other in ["8-9\n", "all\n", ""] {
            tree(root, &[(ONLINE, other)]);
            assert_eq!(cores(), (vec![0, 1, 4, 5, 6, 7], 8), "{other}");
        }
    }

    /// By the usual rules half of the memory is granted, and each run with more ended at its first buffer.
    #[test]
    fn a_system_that_grants_no_more_than_it_can_back_has_that_memory() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let available_kib = |meminfo: &str, mode: &str| {
            tree(root, &[("proc/meminfo", meminfo), ("proc/sys/vm/overcommit_memory", mode)]);
            facts_below(root).memory_available_bytes >> 10
        };
        let meminfo = "MemTotal: 8000 kB\nMemAvailable: 7000 kB\nCommitLimit: 4000 kB\nCommitted_AS: 1500 kB\n";
        assert_eq!(["0\n", "1\n", "2\n"].map(|mode| available_kib(meminfo, mode)), [7000, 7000, 2500]);
        assert_eq!(available_kib(&meminfo.replace("1500", "5000"), "2\n"), 0);
        assert_eq!(available_kib("MemTotal: 8000 kB\nMemAvailable: 7000 kB\n", "2\n"), 7000);
    }

    /// Where the system refused it, the run had begun.
    #[test]
    fn a_limit_of_address_space_is_one_of_memory() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let status = ("proc/thread-self/status", "Name:\tx\nCpus_allowed_list:\t0-1\n");
        tree(root, &[status, ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 7000000 kB\n")]);
        let available_kib = |limit: &str, new_threads: bool| {
            let limits = format!("Max address space         {limit}            unlimited            bytes     \n");
            tree(root, &[("proc/self/limits", limits.as_str()), ("proc/self/statm", "0 0 0 0 0 0 0\n")]);
            facts_of_process(root, None, new_threads).memory_available_bytes >> 10
        };
        assert_eq!(["unlimited", "1024000000"].map(|limit| available_kib(limit, false)), [7_000_000, 1_000_000]);
        assert_eq!(available_kib("1024000000", true), 1_000_000 - 2 * 66 * 1024);
        assert_eq!(facts_below(root).memory_available_bytes >> 10, 7_000_000, "the node has more");
    }

    #[test]
    fn cores_beside_a_pci_device_are_read() {
        let root = tempfile::tempdir().unwrap();
        let device = root.path().join("sys/bus/pci/devices/0000:c7:00.0");
        fs::create_dir_all(&device).unwrap();
        fs::write(device.join("local_cpulist"), "4-6,12\n").unwrap();
        assert_eq!(pci_cores(root.path(), "0000:c7:00.0"), Some(vec![4, 5, 6, 12]));
        assert_eq!(pci_cores(root.path(), "0000:c8:00.0"), None);
    }

    #[test]
    fn vendors_advise_nb() {
        let advised = |vendor: Option<&str>, flags: &[&str]| {
            let cpu_flags = flags.iter().map(|&flag| flag.to_owned()).collect();
            HostFacts { cpu_vendor: vendor.map(str::to_owned), cpu_flags, ..facts() }.advised_nb()
        };
        assert_eq!(advised(Some("AuthenticAMD"), &["avx2", "avx512f"]), Ok(240));
        assert_eq!(advised(Some("GenuineIntel"), &["avx2", "avx512f"]), Ok(384));
        assert_eq!(advised(Some("GenuineIntel"), &["avx2"]), Ok(192));
        assert!(advised(Some("GenuineIntel"), &[]).unwrap_err().contains("AVX2"));
        assert!(advised(Some("Other"), &["avx2"]).unwrap_err().contains("Other"));
        assert!(advised(None, &["avx2"]).unwrap_err().contains("unknown"));
    }

    #[test]
    fn cores_of_one_socket_have_it() {
        let cores = facts().cores_allowed;
        assert_eq!((socket(&[]), socket(&cores[..1]).is_some()), (None, true));
    }

    #[test]
    fn each_core_of_this_host_is_counted_once() {
        let cores = facts().cores_allowed;
        let physical: std::collections::BTreeSet<usize> = physical_cores(&cores).into_iter().collect();
        assert_eq!(physical.len(), cores.len());
    }

    #[test]
    fn steal_needs_time_to_pass() {
        let at = |total, steal| CpuTimes { total, steal };
        assert_eq!(at(200, 30).stolen_since(&at(100, 5)), Some(0.25));
        assert_eq!(at(100, 5).stolen_since(&at(100, 5)), None);
        assert_eq!(at(100, 5).stolen_since(&at(200, 5)), None);
    }
}
