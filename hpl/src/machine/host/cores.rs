//! Logical CPUs and physical cores.

use std::path::Path;

use super::parse;

/// Socket, NUMA domain, cache and core of a logical CPU.
#[derive(Debug, Clone, Default)]
pub(super) struct CpuTopology {
    /// Socket.
    pub(super) package: usize,
    /// NUMA domain.
    pub(super) node: usize,
    /// Logical CPUs that share its last-level cache.
    pub(super) cache: Vec<usize>,
    /// Logical CPUs of its physical core, itself included.
    pub(super) siblings: Vec<usize>,
}

/// Reads the topology of a logical CPU; unknown values are left empty.
pub(super) fn topology(root: &Path, cpu: usize) -> CpuTopology {
    let folder = root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
    let read = |name: &str| super::read(folder.join(name));
    let list = |name: &str| read(name).and_then(|text| parse::cpu_list(&text));
    // A link to the folder of its domain.
    let node = || {
        let mut names = std::fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.file_name());
        names.find_map(|name| name.to_str()?.strip_prefix("node")?.parse::<usize>().ok())
    };
    // The last-level cache is the one shared by most CPUs.
    let caches = (0..8).filter_map(|index| list(&format!("cache/index{index}/shared_cpu_list")));
    CpuTopology {
        package: read("topology/physical_package_id").and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        node: node().unwrap_or(0),
        cache: caches.max_by_key(Vec::len).unwrap_or_default(),
        siblings: list("topology/core_cpus_list").or_else(|| list("topology/thread_siblings_list")).unwrap_or_default(),
    }
}

/// The first of `cpus` on each physical core, ordered by socket, then NUMA domain, then shared cache, then number.
/// Hyperthreads share one set of floating-point units: a second thread per core is no faster.
pub(super) fn physical(cpus: &[usize], topology: impl Fn(usize) -> CpuTopology) -> Vec<usize> {
    let mut cores = Vec::new();
    for &cpu in cpus {
        let topology = topology(cpu);
        // A list that does not contain the CPU itself is ignored.
        let siblings = if topology.siblings.contains(&cpu) { &topology.siblings[..] } else { &[cpu] };
        if siblings.iter().find(|sibling| cpus.contains(sibling)) == Some(&cpu) {
            cores.push((topology.package, topology.node, topology.cache.first().copied(), cpu));
        }
    }
    cores.sort_unstable();
    cores.into_iter().map(|(.., cpu)| cpu).collect()
}

/// The first logical CPU of the physical core of each of `cpus`: by this number processes that have others of its logical CPUs
/// know a core, too.
pub(super) fn first_siblings(cpus: &[usize], topology: impl Fn(usize) -> CpuTopology) -> Vec<usize> {
    let first = |&cpu: &usize| {
        let siblings = topology(cpu).siblings;
        if siblings.contains(&cpu) { siblings[0] } else { cpu }
    };
    cpus.iter().map(first).collect()
}

/// The first ⌊`quota`⌋ of `cores`, at least one. With more threads than the quota allows, the system would pause them in
/// turn, and a factorization waits for its slowest thread.
pub(super) fn within_quota(mut cores: Vec<usize>, quota: Option<f64>) -> Vec<usize> {
    if let Some(quota) = quota {
        // A float above the number of cores saturates in the cast.
        cores.truncate((quota.floor() as usize).max(1));
    }
    cores
}

/// Number of `cores` per last-level cache if it is the same for all caches and more than 1; else per socket if it is the same
/// for all sockets; else `None`.
pub(super) fn sharing(cores: &[usize], topology: impl Fn(usize) -> CpuTopology) -> Option<usize> {
    let topologies: Vec<CpuTopology> = cores.iter().map(|&core| topology(core)).collect();
    let caches: Vec<(usize, Option<usize>)> =
        topologies.iter().map(|topology| (topology.package, topology.cache.first().copied())).collect();
    let sockets: Vec<usize> = topologies.iter().map(|topology| topology.package).collect();
    equally_many(&caches).filter(|&count| count > 1).or_else(|| equally_many(&sockets))
}

/// How often each label occurs, if all labels occur equally often.
fn equally_many<T: PartialEq>(labels: &[T]) -> Option<usize> {
    let count = |label: &T| labels.iter().filter(|other| *other == label).count();
    let first = count(labels.first()?);
    labels.iter().all(|label| count(label) == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_share_a_cache_or_else_a_socket() {
        // Two sockets of four cores, two caches each.
        let topology = |cpu: usize| CpuTopology {
            package: cpu / 4,
            cache: vec![cpu / 2 * 2, cpu / 2 * 2 + 1],
            ..CpuTopology::default()
        };
        assert_eq!(sharing(&[0, 1, 2, 3, 4, 5, 6, 7], topology), Some(2));
        // One core of a cache is not allowed, then one of a socket.
        assert_eq!(sharing(&[0, 1, 2, 4, 5, 6], topology), Some(3));
        assert_eq!(sharing(&[0, 1, 2, 4, 5], topology), None);
        let own = |cpu: usize| CpuTopology { cache: vec![cpu], ..CpuTopology::default() };
        assert_eq!(sharing(&[0, 1, 2], own), Some(3));
        assert_eq!((sharing(&[0, 1], |_| CpuTopology::default()), sharing(&[], own)), (Some(2), None));
    }

    #[test]
    fn one_cpu_of_each_core() {
        // Two sockets of two cores, hyperthreads numbered after all cores, sockets interleaved.
        let topology = |cpu: usize| CpuTopology {
            package: cpu % 2,
            cache: (0..8).filter(|other| other % 2 == cpu % 2).collect(),
            siblings: vec![cpu % 4, cpu % 4 + 4],
            ..CpuTopology::default()
        };
        assert_eq!(physical(&[0, 1, 2, 3, 4, 5, 6, 7], topology), [0, 2, 1, 3]);
        // The first sibling is not allowed: the second stands for the core.
        assert_eq!(physical(&[1, 4, 5], topology), [4, 1]);
    }

    /// Processes that are bound to one hyperthread each have different logical CPUs of one core.
    #[test]
    fn a_core_has_one_number_whichever_of_its_hyperthreads_is_allowed() {
        let topology = |cpu: usize| CpuTopology { siblings: vec![cpu % 4, cpu % 4 + 4], ..CpuTopology::default() };
        assert_eq!(first_siblings(&[5, 1, 3, 6], topology), [1, 1, 3, 2]);
        assert_eq!(first_siblings(&[5, 1], |_| CpuTopology::default()), [5, 1]);
    }

    /// Domains of a divided socket share its last-level cache, and the numbers of their CPUs may take turns: each rank had cores
    /// of both.
    #[test]
    fn cores_of_a_numa_domain_follow_each_other() {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..8 {
            let folder = root.path().join(format!("sys/devices/system/cpu/cpu{cpu}"));
            std::fs::create_dir_all(folder.join(format!("node{}", cpu % 2))).unwrap();
            std::fs::create_dir_all(folder.join("cache/index3")).unwrap();
            std::fs::write(folder.join("cache/index3/shared_cpu_list"), "0-7\n").unwrap();
        }
        let cpus: Vec<usize> = (0..8).collect();
        assert_eq!(physical(&cpus, |cpu| topology(root.path(), cpu)), [0, 2, 4, 6, 1, 3, 5, 7]);
    }

    #[test]
    fn unknown_topology_keeps_all() {
        assert_eq!(physical(&[3, 5], |_| CpuTopology::default()), [3, 5]);
        let crossed = |cpu: usize| CpuTopology { siblings: vec![1 - cpu], ..CpuTopology::default() };
        assert_eq!(physical(&[0, 1], crossed), [0, 1]);
    }

    #[test]
    fn quota_is_rounded_down_to_whole_cores() {
        let cores = vec![0, 1, 2, 3];
        assert_eq!(within_quota(cores.clone(), None), cores);
        assert_eq!(within_quota(cores.clone(), Some(2.9)), [0, 1]);
        assert_eq!(within_quota(cores.clone(), Some(0.3)), [0]);
        assert_eq!(within_quota(cores.clone(), Some(1e300)), cores);
    }
}
