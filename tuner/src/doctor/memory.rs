//! Memory and swap, judged.

use hpl::machine::host::{HostFacts, address_space_limit};

use super::advice::Advice;
use crate::pack::facts::System;
use crate::session::engine::Engine;
use crate::session::prepare::largest_safe_n;

/// Part of the memory that should be available for a run.
const ENOUGH: f64 = 0.7;

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
    let own = system.text("proc/self/limits").and_then(|text| address_space_limit(&text));
    if let Some(limit) = own.filter(|&limit| limit < host.memory_limit_bytes.unwrap_or(total)) {
        let found = format!("{found}; a process may have {:.1} GiB of address space", gib(limit));
        let more = "raise the limit in the shell or job that starts it: ulimit -v unlimited";
        return Advice::change("memory", found, more).worth(root_of(total, limit));
    }
    if let Some(limit) = host.memory_limit_bytes {
        let found = format!("{found}; the cgroup allows {:.1} GiB", gib(limit));
        let more = "give the container or job more memory: docker run --memory, --mem of sbatch, MemoryHigh of systemd";
        return Advice::change("memory", found, more).worth(root_of(total, limit));
    }
    if (available as f64) < ENOUGH * total as f64 {
        let end = "end what uses the memory: ps aux --sort=-rss | head";
        let is_strict = system.text("proc/sys/vm/overcommit_memory").is_some_and(|mode| mode == "2");
        let change = if is_strict {
            format!("let the system grant all of the memory: sudo sysctl vm.overcommit_memory=0; or {end}")
        } else {
            end.to_owned()
        };
        return Advice::change("memory", found, change).worth(root_of(total, available));
    }
    Advice::good("memory", found)
}

/// How much larger N is in all of the memory than in a part of it.
fn root_of(all: u64, part: u64) -> String {
    format!("N can be {:.1} times as large in all of the memory", (all as f64 / part.max(1) as f64).sqrt())
}

/// Whether pages are there already.
pub(super) fn swap(system: &System) -> Advice {
    let text = system.text("proc/meminfo").unwrap_or_default();
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    match (kib("SwapTotal"), kib("SwapFree")) {
        (Some(0), _) => Advice::good("swap", "none"),
        (Some(total), Some(free)) if free < total => {
            let used = gib((total - free) << 10);
            let found = format!("{used:.1} GiB of it are used: pages of runs may go there, too");
            Advice::change("swap", found, "end what fills the memory, then: sudo swapoff -a && sudo swapon -a")
        }
        (Some(total), Some(_)) => Advice::good("swap", format!("{:.1} GiB, unused", gib(total << 10))),
        _ => Advice::fact("swap", "not reported by the system"),
    }
}
