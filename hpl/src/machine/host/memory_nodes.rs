//! The memory of the NUMA nodes on which a process may allocate.

use std::path::Path;

use super::{parse, read};

/// Memory of some nodes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NodeMemory {
    /// All of it.
    pub(super) total_bytes: u64,
    /// That which is free, or which the system frees when it is asked for.
    pub(super) available_bytes: u64,
}

/// The memory of the nodes that the cpuset of this process allows, of those in `bound` where that is given, by the files below `root`;
/// `None` where these are all nodes, or some file does not say.
pub(super) fn allowed(root: &Path, bound: Option<&[usize]>) -> Option<NodeMemory> {
    let folder = root.join("sys/devices/system/node");
    let status = read(root.join("proc/thread-self/status"))?;
    let allowed = parse::cpu_list(parse::field(&status, "Mems_allowed_list")?)?;
    // Of nodes without memory the cpuset need not have any.
    let nodes = read(folder.join("has_memory")).or_else(|| read(folder.join("online")))?;
    let nodes = parse::cpu_list(&nodes)?;
    let may_use = |node: &usize| allowed.contains(node) && bound.is_none_or(|bound| bound.contains(node));
    let used: Vec<usize> = nodes.iter().copied().filter(may_use).collect();
    if used.is_empty() || used.len() == nodes.len() {
        return None;
    }
    let mut memory = NodeMemory::default();
    for node in used {
        let text = read(folder.join(format!("node{node}/meminfo")))?;
        let bytes = |key: &str| parse::meminfo_bytes(&text, &format!("Node {node} {key}"));
        memory.total_bytes = memory.total_bytes.checked_add(bytes("MemTotal")?)?;
        for part in ["MemFree", "Inactive(file)", "SReclaimable"] {
            memory.available_bytes = memory.available_bytes.checked_add(bytes(part)?)?;
        }
    }
    Some(memory)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Two nodes below `root`, the second with twice the memory; `mems` are the allowed ones.
    fn nodes(root: &Path, mems: &str) {
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("proc/thread-self/status", &format!("Name:\tx\nMems_allowed:\t1\nMems_allowed_list:\t{mems}\n"));
        write("proc/meminfo", "MemTotal: 3000 kB\nMemAvailable: 2500 kB\n");
        write("sys/devices/system/node/online", "0-1\n");
        for (node, times) in [(0, 1), (1, 2)] {
            let line = |key: &str, kb: usize| format!("Node {node} {key}: {:>14} kB\n", times * kb);
            let lines = [
                line("MemTotal", 1000),
                line("MemFree", 600),
                line("Inactive", 500),
                line("Inactive(file)", 70),
                line("SReclaimable", 8),
            ];
            write(&format!("sys/devices/system/node/node{node}/meminfo"), &lines.concat());
        }
    }

    #[test]
    fn memory_is_that_of_the_allowed_nodes() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let kib = |total: u64, available: u64| {
            Some(NodeMemory { total_bytes: total << 10, available_bytes: available << 10 })
        };
        for (mems, memory) in [("0", kib(1000, 678)), ("1", kib(2000, 1356)), ("0-1", None), ("", None), ("2", None)] {
            nodes(root, mems);
            assert_eq!(allowed(root, None), memory, "{mems}");
            let facts = crate::machine::host::facts_below(root);
            let found = (facts.memory_total_bytes, facts.memory_available_bytes);
            let expected = memory.map_or((3000 << 10, 2500 << 10), |node| (node.total_bytes, node.available_bytes));
            assert_eq!(found, expected, "{mems}");
        }
    }

    #[test]
    fn nodes_without_memory_are_not_missed() {
        let root = tempfile::tempdir().unwrap();
        nodes(root.path(), "0-1");
        let folder = root.path().join("sys/devices/system/node");
        fs::write(folder.join("online"), "0-2\n").unwrap();
        fs::write(folder.join("has_memory"), "0-1\n").unwrap();
        assert_eq!(allowed(root.path(), None), None);
    }

    #[test]
    fn files_that_do_not_say_change_nothing() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(allowed(root.path(), None), None);
        nodes(root.path(), "1");
        fs::write(root.path().join("sys/devices/system/node/node1/meminfo"), "Node 1 MemTotal: 2000 kB\n").unwrap();
        assert_eq!(allowed(root.path(), None), None);
    }

    /// As by `numactl --membind`: a run with the memory of all nodes was killed.
    #[test]
    fn memory_of_a_process_is_that_of_the_nodes_it_is_bound_to() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for (mems, bound, kib) in [
            ("0-1", Some(vec![0]), 678),
            ("0-1", Some(vec![1]), 1356),
            ("0-1", Some(vec![0, 1]), 2500),
            ("0-1", None, 2500),
            ("1", Some(vec![0, 1]), 1356),
            // What nothing can be allocated on says nothing.
            ("0", Some(vec![1]), 678),
        ] {
            nodes(root, mems);
            let facts = crate::machine::host::facts_of_process(root, bound.as_deref(), true);
            assert_eq!(facts.memory_available_bytes, kib << 10, "{mems} {bound:?}");
        }
    }
}
