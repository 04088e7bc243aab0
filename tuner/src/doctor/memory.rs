//! Memory and swap, judged.

use hpl::machine::host::{HostFacts, address_space_limit};

use super::advice::Advice;
use crate::pack::facts::System;
use crate::session::engine::Engine;
use crate::session::prepare::largest_safe_n;

/// Part of the memory that should be available for a run.
const ENOUGH: f64 = 0.7;
/// Part of the memory below which a limit leaves less room for N than it is worth to raise it.
const NEARLY_ALL: f64 = 0.95;
/// Part of the memory of which pages in swap tell no lack of it: those of programs that wait for long.
const IDLE_SWAP: f64 = 0.01;

/// Bytes in GiB.
pub(super) fn gib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 30)
}

/// What runs find of it, and what keeps them from the rest.
pub(super) fn memory(host: &HostFacts, system: &System) -> Advice {
    // Without this file, what is filled with cached files counts as used.
    if system.text("proc/meminfo").is_none() {
        return Advice::fact("memory", "not reported by the system");
    }
    let (available, total) = (host.memory_available_bytes, host.memory_total_bytes);
    let n = largest_safe_n(&host.domain_spec(0), &Engine::Ours);
    let found = format!("{:.1} of {:.1} GiB available: N up to {n}", gib(available), gib(total));
    let found = match reserved_bytes(system) {
        0 => found,
        reserved => format!("{found}; {:.1} GiB are reserved as huge pages, which runs do not use", gib(reserved)),
    };
    let limits = |&limit: &u64| (limit as f64) < NEARLY_ALL * total as f64;
    let own = system.text("proc/self/limits").and_then(|text| address_space_limit(&text)).filter(limits);
    if let Some(limit) = own.filter(|&limit| limit < host.memory_limit_bytes.unwrap_or(total)) {
        let found = format!("{found}; a process may have {:.1} GiB of address space", gib(limit));
        let more = "raise the limit in the shell or job that starts it: ulimit -v unlimited";
        return Advice::change("memory", found, more).worth(root_of(total, limit));
    }
    if let Some(limit) = host.memory_limit_bytes.filter(limits) {
        let found = format!("{found}; the cgroup allows {:.1} GiB", gib(limit));
        let more = "give the container or job more memory: docker run --memory, --mem of sbatch, MemoryHigh of systemd";
        return Advice::change("memory", found, more).worth(root_of(total, limit));
    }
    let enough = (ENOUGH * total as f64) as u64;
    if available < enough {
        let end = "end what uses the memory: ps aux --sort=-rss | head";
        let is_strict = system.text("proc/sys/vm/overcommit_memory").is_some_and(|mode| mode == "2");
        let change = if available.saturating_add(reserved_bytes(system)) >= enough {
            "give the reserved huge pages back: sudo sysctl vm.nr_hugepages=0, and those of other sizes in /sys/kernel/mm/hugepages"
                .to_owned()
        } else if is_strict {
            format!("let the system grant all of the memory: sudo sysctl vm.overcommit_memory=0; or {end}")
        } else {
            end.to_owned()
        };
        return Advice::change("memory", found, change).worth(root_of(total, available));
    }
    Advice::good("memory", found)
}

/// A value of /proc/meminfo in KiB.
fn meminfo_kib(system: &System, name: &str) -> Option<u64> {
    let text = system.text("proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Memory that is reserved as huge pages of all sizes, used or not.
fn reserved_bytes(system: &System) -> u64 {
    meminfo_kib(system, "Hugetlb").unwrap_or(0).saturating_mul(1 << 10)
}

/// How much larger N is in all of the memory than in a part of it.
fn root_of(all: u64, part: u64) -> String {
    format!("N can be {:.1} times as large in all of the memory", (all as f64 / part.max(1) as f64).sqrt())
}

/// Whether pages are there already.
pub(super) fn swap(system: &System) -> Advice {
    let kib = |name: &str| meminfo_kib(system, name);
    // Where nobody says how much memory there is, each page counts.
    let idle_kib = IDLE_SWAP * kib("MemTotal").unwrap_or(0) as f64;
    match (kib("SwapTotal"), kib("SwapFree")) {
        (Some(0), _) => Advice::good("swap", "none"),
        (Some(total), Some(free)) if free < total && ((total - free) as f64) < idle_kib => {
            let (used, all) = (gib((total - free) << 10), gib(total << 10));
            Advice::good("swap", format!("{used:.2} of {all:.1} GiB used, below 1 % of the memory"))
        }
        (Some(total), Some(free)) if free < total => {
            let used = gib((total - free) << 10);
            let found = format!("{used:.1} GiB of it are used: pages of runs may go there, too");
            Advice::change("swap", found, "end what fills the memory, then: sudo swapoff -a && sudo swapon -a")
        }
        (Some(total), Some(_)) => Advice::good("swap", format!("{:.1} GiB, unused", gib(total << 10))),
        _ => Advice::fact("swap", "not reported by the system"),
    }
}
