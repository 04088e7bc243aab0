//! Which logical CPUs stand for which cores.

use super::parse;

/// Where a logical CPU sits.
#[derive(Debug, Clone, Default)]
pub(super) struct Place {
    /// Socket.
    pub(super) package: usize,
    /// Logical CPUs that share its last-level cache.
    pub(super) cache: Vec<usize>,
    /// Logical CPUs of its physical core, itself included.
    pub(super) siblings: Vec<usize>,
}

/// Reads the place of a logical CPU; what the system does not say is left empty.
pub(super) fn topology(cpu: usize) -> Place {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}");
    let read = |name: &str| super::read(format!("{folder}/{name}"));
    let list = |name: &str| read(name).and_then(|text| parse::cpu_list(&text));
    // The highest cache level is the one shared by most.
    let caches = (0..8).filter_map(|index| list(&format!("cache/index{index}/shared_cpu_list")));
    Place {
        package: read("topology/physical_package_id").and_then(|text| text.trim().parse().ok()).unwrap_or(0),
        cache: caches.max_by_key(Vec::len).unwrap_or_default(),
        siblings: list("topology/core_cpus_list").or_else(|| list("topology/thread_siblings_list")).unwrap_or_default(),
    }
}

/// The first of `cpus` on each physical core, ordered by socket, then shared cache, then number.
/// Hyperthreads share one set of floating-point units: a second thread there gains nothing.
pub(super) fn physical(cpus: &[usize], place: impl Fn(usize) -> Place) -> Vec<usize> {
    let mut cores = Vec::new();
    for &cpu in cpus {
        let place = place(cpu);
        // A list without the CPU itself says nothing about it.
        let siblings = if place.siblings.contains(&cpu) { &place.siblings[..] } else { &[cpu] };
        if siblings.iter().find(|sibling| cpus.contains(sibling)) == Some(&cpu) {
            cores.push((place.package, place.cache.first().copied(), cpu));
        }
    }
    cores.sort_unstable();
    cores.into_iter().map(|(_, _, cpu)| cpu).collect()
}

/// As many of `cores` as `quota` CPUs feed, at least one. Threads beyond the quota would be stopped in turns,
/// and a factorization waits for its slowest.
pub(super) fn feed(mut cores: Vec<usize>, quota: Option<f64>) -> Vec<usize> {
    if let Some(quota) = quota {
        // A float above the number of cores saturates in the cast.
        cores.truncate((quota.floor() as usize).max(1));
    }
    cores
}

/// How many of `cores` share a last-level cache, where every such cache has equally many; else, or where each core has its own,
/// how many share a socket. `None` where the sockets differ too.
pub(super) fn sharing(cores: &[usize], place: impl Fn(usize) -> Place) -> Option<usize> {
    let places: Vec<Place> = cores.iter().map(|&core| place(core)).collect();
    let caches: Vec<(usize, Option<usize>)> =
        places.iter().map(|place| (place.package, place.cache.first().copied())).collect();
    let sockets: Vec<usize> = places.iter().map(|place| place.package).collect();
    equally_many(&caches).filter(|&count| count > 1).or_else(|| equally_many(&sockets))
}

/// How often every label occurs, where all occur equally often.
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
        let place =
            |cpu: usize| Place { package: cpu / 4, cache: vec![cpu / 2 * 2, cpu / 2 * 2 + 1], siblings: vec![] };
        assert_eq!(sharing(&[0, 1, 2, 3, 4, 5, 6, 7], place), Some(2));
        // One core of a cache is not allowed, then one of a socket.
        assert_eq!(sharing(&[0, 1, 2, 4, 5, 6], place), Some(3));
        assert_eq!(sharing(&[0, 1, 2, 4, 5], place), None);
        let own = |cpu: usize| Place { cache: vec![cpu], ..Place::default() };
        assert_eq!(sharing(&[0, 1, 2], own), Some(3));
        assert_eq!((sharing(&[0, 1], |_| Place::default()), sharing(&[], own)), (Some(2), None));
    }

    #[test]
    fn one_cpu_of_each_core() {
        // Two sockets of two cores, hyperthreads numbered after all cores, sockets interleaved.
        let place = |cpu: usize| Place {
            package: cpu % 2,
            cache: (0..8).filter(|other| other % 2 == cpu % 2).collect(),
            siblings: vec![cpu % 4, cpu % 4 + 4],
        };
        assert_eq!(physical(&[0, 1, 2, 3, 4, 5, 6, 7], place), [0, 2, 1, 3]);
        // The first sibling is not allowed: the second stands for the core.
        assert_eq!(physical(&[1, 4, 5], place), [4, 1]);
    }

    #[test]
    fn unknown_topology_keeps_all() {
        assert_eq!(physical(&[3, 5], |_| Place::default()), [3, 5]);
        let crossed = |cpu: usize| Place { siblings: vec![1 - cpu], ..Place::default() };
        assert_eq!(physical(&[0, 1], crossed), [0, 1]);
    }

    #[test]
    fn quota_feeds_whole_cores() {
        let cores = vec![0, 1, 2, 3];
        assert_eq!(feed(cores.clone(), None), cores);
        assert_eq!(feed(cores.clone(), Some(2.9)), [0, 1]);
        assert_eq!(feed(cores.clone(), Some(0.3)), [0]);
        assert_eq!(feed(cores.clone(), Some(1e300)), cores);
    }
}
