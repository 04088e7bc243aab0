//! NUMA domains: memory with the cores that are near to it.

use std::sync::Arc;

use super::{parse, read};

/// The domain of each logical CPU.
#[derive(Debug, Clone)]
pub(crate) struct Domains {
    /// By CPU number; empty where all CPUs have one domain.
    of_cpu: Arc<[usize]>,
    /// The CPU of the calling thread.
    cpu: fn() -> usize,
}

impl Domains {
    /// As given, with the function that finds the CPU of the calling thread.
    pub(crate) fn new(of_cpu: &[usize], cpu: fn() -> usize) -> Self {
        Self { of_cpu: of_cpu.into(), cpu }
    }

    /// The domain of the CPU on which the calling thread is; 0 where there is one domain, or the CPU is unknown.
    pub(crate) fn here(&self) -> usize {
        if self.of_cpu.is_empty() { 0 } else { self.of_cpu.get((self.cpu)()).copied().unwrap_or(0) }
    }
}

impl Default for Domains {
    /// The domains of this host.
    fn default() -> Self {
        Self::new(&of_cpus(|path| read(path)), || nix::sched::sched_getcpu().unwrap_or(usize::MAX))
    }
}

/// The table of [`Domains`] from the files of the system.
fn of_cpus(read: impl Fn(&str) -> Option<String>) -> Vec<usize> {
    const NODES: &str = "/sys/devices/system/node";
    let list = |path: String| parse::cpu_list(&read(&path)?);
    let mut of_cpu = Vec::new();
    let mut with_cpus = 0;
    for node in list(format!("{NODES}/online")).unwrap_or_default() {
        let cpus = list(format!("{NODES}/node{node}/cpulist")).unwrap_or_default();
        with_cpus += usize::from(!cpus.is_empty());
        for cpu in cpus {
            of_cpu.resize(of_cpu.len().max(cpu + 1), 0);
            of_cpu[cpu] = node;
        }
    }
    if with_cpus > 1 { of_cpu } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_of_several_domains_have_theirs() {
        let files = |online: &'static str, lists: &'static [&'static str]| {
            of_cpus(move |path| {
                let node = path.strip_prefix("/sys/devices/system/node/")?;
                let Some(node) = node.strip_prefix("node") else { return Some(online.to_owned()) };
                lists.get(node.strip_suffix("/cpulist")?.parse::<usize>().ok()?).map(|list| (*list).to_owned())
            })
        };
        assert_eq!(files("0-1\n", &["0-1,4-5\n", "2-3,6-7\n"]), [0, 0, 1, 1, 0, 0, 1, 1]);
        let one: [usize; 0] = [];
        assert_eq!(files("0\n", &["0-7\n"]), one);
        assert_eq!(files("0-2\n", &["0-3\n", "\n", "\n"]), one, "domains with memory alone have no threads");
        assert_eq!(of_cpus(|_| None), one);
    }

    #[test]
    fn a_cpu_that_is_not_in_the_table_has_the_first_domain() {
        assert_eq!(Domains::new(&[1, 1], || 1).here(), 1);
        assert_eq!(Domains::new(&[1, 1], || 2).here(), 0);
        assert_eq!(Domains::new(&[], || panic!("not asked")).here(), 0);
        Domains::default().here();
    }
}
