//! What limits the memory of this process, and need not limit that of others on its node.

use std::ffi::c_int;
use std::path::Path;
use std::ptr;

use nix::libc::{
    MPOL_BIND, MPOL_F_NUMA_BALANCING, MPOL_F_RELATIVE_NODES, MPOL_F_STATIC_NODES, SYS_get_mempolicy, c_void, syscall,
};
use nix::unistd::SysconfVar;

use super::{memory_nodes, parse, read, sysconf_value};

/// Address space of a thread: its stack, and the heap that the allocator of glibc reserves for it.
const OF_THREAD: u64 = 66 << 20;
/// NUMA nodes that a system can have at most.
const NODES: usize = 1024;
/// The flags of a memory policy beside its kind.
const POLICY_FLAGS: c_int = MPOL_F_STATIC_NODES | MPOL_F_RELATIVE_NODES | MPOL_F_NUMA_BALANCING;

/// The memory that a process with these limits can fill while it starts `threads` threads, by the files below `root`; `None` without
/// limits. `bound`: as of [`bound_nodes`].
pub(super) fn available_bytes(root: &Path, bound: Option<&[usize]>, threads: usize) -> Option<u64> {
    let of_nodes =
        bound.and_then(|bound| memory_nodes::allowed(root, Some(bound))).map(|memory| memory.available_bytes);
    let of_address_space = || {
        let text = |name: &str| read(root.join("proc/self").join(name));
        let limit = parse::address_space_limit(&text("limits")?)?;
        let mapped = parse::mapped_pages(&text("statm")?)?.saturating_mul(sysconf_value(SysconfVar::PAGE_SIZE));
        Some(address_space_left(limit, mapped, threads))
    };
    [of_nodes, of_address_space()].into_iter().flatten().min()
}

/// What a limit of address space leaves to a process that has mapped `mapped` bytes and starts `threads` threads. Where it is small,
/// threads get by with less: half of it is left in any case.
fn address_space_left(limit: u64, mapped: u64, threads: usize) -> u64 {
    let left = limit.saturating_sub(mapped);
    left - OF_THREAD.saturating_mul(threads as u64).min(left / 2)
}

/// The NUMA nodes to which the memory policy of this thread, as that of `numactl --membind`, binds what it allocates; `None` without
/// such a policy.
pub(super) fn bound_nodes() -> Option<Vec<usize>> {
    let mut policy: c_int = 0;
    let mut nodes = [0_u64; NODES / 64];
    // SAFETY: the system writes one integer, and at most as many bits as `nodes` has. Without flags it looks at no address.
    let code = unsafe {
        syscall(SYS_get_mempolicy, &raw mut policy, nodes.as_mut_ptr(), NODES, ptr::null::<c_void>(), 0_usize)
    };
    if code == 0 { nodes_of(policy, &nodes) } else { None }
}

/// The nodes that a memory policy binds to, one bit each.
fn nodes_of(policy: c_int, nodes: &[u64]) -> Option<Vec<usize>> {
    // Relative nodes are counted among those that the cpuset allows, whatever their numbers.
    if policy & !POLICY_FLAGS != MPOL_BIND || policy & MPOL_F_RELATIVE_NODES != 0 {
        return None;
    }
    Some((0..64 * nodes.len()).filter(|node| (nodes[node / 64] >> (node % 64)) & 1 == 1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_space_is_left_to_matrix_and_threads() {
        assert_eq!(address_space_left(100 << 30, 10 << 30, 0), 90 << 30);
        assert_eq!(address_space_left(100 << 30, 10 << 30, 10), (90 << 30) - (660 << 20));
        assert_eq!(address_space_left(1 << 30, 0, 100), 1 << 29);
        assert_eq!(address_space_left(1 << 30, 2 << 30, 100), 0);
    }

    #[test]
    fn a_policy_that_binds_has_nodes() {
        assert_eq!(nodes_of(MPOL_BIND, &[0b101, 1]), Some(vec![0, 2, 64]));
        for flag in [MPOL_F_STATIC_NODES, MPOL_F_NUMA_BALANCING] {
            assert_eq!(nodes_of(MPOL_BIND | flag, &[0b10]), Some(vec![1]));
        }
        // Any node by default, the preferred one first, relative ones.
        for policy in [0, 1, MPOL_BIND | MPOL_F_RELATIVE_NODES] {
            assert_eq!(nodes_of(policy, &[0b101]), None);
        }
        assert!(bound_nodes().is_none_or(|nodes| !nodes.is_empty()));
    }
}
