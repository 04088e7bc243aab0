//! The cores of a rank's threads.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The cores of each rank: `threads` consecutive cores of the list `cores` for each of `ranks`, the ranks spread evenly
/// over the list so that few of them share a cache. `None` when ranks × threads exceed the cores: then threads must
/// share cores, and no thread is pinned.
pub fn core_sets(cores: &[usize], ranks: usize, threads: usize) -> Option<Vec<Vec<usize>>> {
    if ranks.checked_mul(threads)? > cores.len() {
        return None;
    }
    let set = |rank: usize| {
        let first = rank * cores.len() / ranks;
        cores[first..first + threads].to_vec()
    };
    Some((0..ranks).map(set).collect())
}

/// The cores of each rank where rank r computes best on those in `near[r % near.len()]`: ranks with the same of these share them as by
/// [`core_sets`]. Where these do not suffice, or `near` is empty, the ranks share all `cores`.
pub(crate) fn core_sets_near(
    cores: &[usize],
    ranks: usize,
    threads: usize,
    near: &[Vec<usize>],
) -> Option<Vec<Vec<usize>>> {
    let sets_near = || {
        let mut alike: BTreeMap<&[usize], Vec<usize>> = BTreeMap::new();
        (0..ranks).for_each(|rank| alike.entry(&near[rank % near.len()]).or_default().push(rank));
        let mut sets = vec![Vec::new(); ranks];
        for (cores, ranks) in alike {
            for (rank, set) in ranks.iter().zip(core_sets(cores, ranks.len(), threads)?) {
                sets[*rank] = set;
            }
        }
        let distinct: BTreeSet<usize> = sets.iter().flatten().copied().collect();
        (distinct.len() == ranks * threads).then_some(sets)
    };
    let near = if near.is_empty() { None } else { sets_near() };
    near.or_else(|| core_sets(cores, ranks, threads))
}

/// The cores of each rank, followed by those that it borrows while it factors a panel for which the other process columns
/// wait: each rank keeps its first core, and all other cores of a process row are used by the rank that factors. With P·Q
/// ranks on C cores, C̄ = C − P·Q cores are shared in this way, and T = 1 + C̄/P cores factor a panel (core time sharing,
/// \[rocHPL\] section III.A). `sets` and `coords` (process row and column) are those of the ranks of one node.
pub fn time_shared(sets: &[Vec<usize>], coords: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let ranks = || sets.iter().zip(coords);
    let shared = |(set, (row, col)): (&Vec<usize>, &(usize, usize))| {
        let others = ranks().filter(|(_, other)| other.0 == *row && other.1 != *col);
        set.iter().chain(others.flat_map(|(set, _)| set.iter().skip(1))).copied().collect()
    };
    ranks().map(shared).collect()
}

/// Pins the calling thread to one core (a logical CPU number).
///
/// # Errors
/// The system's error when the core does not exist or is not allowed.
pub fn pin_current_thread(core: usize) -> io::Result<()> {
    use nix::sched::{CpuSet, sched_setaffinity};
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(nix::unistd::Pid::from_raw(0), &set)?)
}

/// The first of `cores` that the system refuses to threads of this process, with its reason.
pub fn refused(cores: &[usize]) -> Option<(usize, io::Error)> {
    let first_refused = || cores.iter().find_map(|&core| pin_current_thread(core).err().map(|error| (core, error)));
    // In a new thread, whose affinity does not matter afterwards.
    std::thread::scope(|scope| scope.spawn(first_refused).join().ok().flatten())
}

/// The affinity mask of a thread.
pub(crate) struct Mask(Option<nix::sched::CpuSet>);

impl Mask {
    /// The mask of the calling thread.
    pub(crate) fn of_this_thread() -> Self {
        Self(nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).ok())
    }

    /// Sets the mask of the calling thread.
    pub(crate) fn restore(&self) {
        if let Some(set) = &self.0 {
            // Errors are ignored: they cost only speed.
            let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), set);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn more_threads_than_cores_are_not_pinned() {
        assert_eq!(core_sets(&[0, 1], 3, 1), None);
        assert_eq!(core_sets(&[0, 1], 1, 3), None);
        assert_eq!(core_sets(&[0, 1], usize::MAX, 2), None);
    }

    #[test]
    fn ranks_spread_over_the_cores() {
        assert_eq!(core_sets(&[4, 5, 6, 7], 2, 1).unwrap(), [[4], [6]]);
        assert_eq!(core_sets(&[4, 5, 6, 7], 2, 2).unwrap(), [[4, 5], [6, 7]]);
    }

    #[test]
    fn ranks_have_cores_beside_their_devices() {
        let cores: Vec<usize> = (0..8).collect();
        // Devices 0 and 3 are on the second NUMA node.
        let (first, second) = (vec![0, 1, 2, 3], vec![4, 5, 6, 7]);
        let near = [second.clone(), first.clone(), first.clone(), second.clone()];
        let sets = core_sets_near(&cores, 4, 2, &near).unwrap();
        assert_eq!(sets, [[4, 5], [0, 1], [2, 3], [6, 7]]);
        // Of three ranks two are on one node, which has no six cores.
        assert_eq!(core_sets_near(&cores, 3, 3, &near), core_sets(&cores, 3, 3));
        for unknown in [vec![], vec![Vec::new(); 4], vec![first.clone(), vec![2, 3, 4]]] {
            assert_eq!(core_sets_near(&cores, 2, 3, &unknown), core_sets(&cores, 2, 3), "{unknown:?}");
        }
        assert_eq!(core_sets_near(&cores, 9, 1, &near), None);
    }

    /// 2×2 ranks on 12 cores: T = 1 + (12 − 4)/2.
    #[test]
    fn a_process_row_shares_all_cores_but_the_first_of_each_rank() {
        let sets = core_sets(&Vec::from_iter(0..12), 4, 3).unwrap();
        let shared = time_shared(&sets, &[(0, 0), (0, 1), (1, 0), (1, 1)]);
        let expected = [[0, 1, 2, 4, 5], [3, 4, 5, 1, 2], [6, 7, 8, 10, 11], [9, 10, 11, 7, 8]];
        assert_eq!(shared, expected);
    }

    proptest! {
        #[test]
        fn panels_get_as_many_cores_as_the_formula(p in 1_usize..5, q in 1_usize..5, threads in 1_usize..6) {
            let cores: Vec<usize> = (0..p * q * threads).collect();
            let coords: Vec<_> = (0..p * q).map(|rank| (rank % p, rank / p)).collect();
            let shared = time_shared(&core_sets(&cores, p * q, threads).unwrap(), &coords);
            let spare = cores.len() - p * q;
            for (rank, set) in shared.iter().enumerate() {
                prop_assert_eq!(set.len(), 1 + spare / p);
                prop_assert!((0..p * q).all(|other| other == rank || !set.contains(&shared[other][0])));
                prop_assert!((0..set.len()).all(|at| !set[..at].contains(&set[at])), "no core twice");
            }
        }

        #[test]
        fn sets_are_contiguous_and_disjoint(cores in 1_usize..40, ranks in 1_usize..10, threads in 1_usize..10) {
            let cores: Vec<usize> = (0..cores).map(|c| 100 + c).collect();
            if let Some(sets) = core_sets(&cores, ranks, threads) {
                prop_assert_eq!(sets.len(), ranks);
                let all = sets.concat();
                prop_assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "disjoint, ascending");
                prop_assert!(all.iter().all(|core| cores.contains(core)));
                prop_assert!(sets.iter().all(|set| set.len() == threads && set[threads - 1] - set[0] == threads - 1));
            } else {
                prop_assert!(ranks * threads > cores.len());
            }
        }
    }

    #[test]
    fn pinned_thread_is_alone_on_its_core() {
        let core = crate::machine::host::facts().cores_allowed[0];
        std::thread::spawn(move || {
            pin_current_thread(core).unwrap();
            assert_eq!(crate::machine::host::facts().cores_allowed, [core]);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_refused_core_is_reported_and_the_affinity_kept() {
        let before = crate::machine::host::facts().cores_allowed;
        assert!(refused(&before).is_none());
        assert_eq!(refused(&[before[0], 100_000]).unwrap().0, 100_000);
        assert_eq!(crate::machine::host::facts().cores_allowed, before);
    }

    #[test]
    fn missing_core_is_an_error() {
        for core in [1000, 100_000] {
            assert!(std::thread::spawn(move || pin_current_thread(core)).join().unwrap().is_err());
        }
    }
}
