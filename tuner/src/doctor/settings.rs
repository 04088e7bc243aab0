//! What the files of the system say, judged.

use hpl::machine::host::{HostFacts, cpu_list};
use objectives::calibration::BUSY;
use space::counted;

use super::advice::Advice;
use super::memory::{gib, memory, swap};
use crate::pack::facts::{Facts, Processor, System};
use crate::session::core_kinds;

/// Share of the processor time since boot above which what the hypervisor has taken is named.
const STOLEN: f64 = 0.01;

/// The lines of all that can be read from files.
pub fn lines(host: &HostFacts, facts: &Facts, system: &System) -> Vec<Advice> {
    let all = [
        Some(machine(host, facts)),
        Some(cores(host)),
        Some(quota(host)),
        governor(facts),
        boost(facts),
        Some(huge_pages(facts)),
        Some(memory(host, system)),
        Some(swap(system)),
        load(host, system),
        stolen(host, facts),
        smt(facts),
        numa(facts),
        Some(accelerators(facts, system)),
    ];
    all.into_iter().flatten().collect()
}

fn machine(host: &HostFacts, facts: &Facts) -> Advice {
    let Processor { sockets, cores_per_socket, threads_per_core, virtualised, .. } = &facts.processor;
    let shape = sockets.zip(*cores_per_socket).zip(*threads_per_core);
    let many = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
    let shape = shape.map_or(String::new(), |((sockets, cores), threads)| {
        format!(", {} of {} with {} each", many(sockets, "socket"), many(cores, "core"), many(threads, "thread"))
    });
    let guest = if *virtualised { ", a virtual machine" } else { "" };
    let os = facts.os.as_ref().map_or(String::new(), |os| format!(", {os}"));
    let memory = gib(host.memory_total_bytes);
    Advice::fact("machine", format!("{}{shape}, {memory:.1} GiB{guest}{os}", host.cpu_model))
}

fn cores(host: &HostFacts) -> Advice {
    let cores = host.cores_allowed.len();
    let allowed = host.cpus_allowed;
    let found = format!("{cores} used for runs, of {allowed} logical CPUs that this process may use");
    match core_kinds::slower(host) {
        Some(slower) => Advice::change("cores", format!("{found}; {slower}"), core_kinds::way_out(host)),
        None => Advice::fact("cores", found),
    }
}

fn quota(host: &HostFacts) -> Advice {
    let Some(quota) = host.cpu_quota else { return Advice::good("CPU quota", "none") };
    let cores = host.cores_allowed.len();
    let all = host.cores_physical.max(cores);
    let found = format!("the cgroup allows {quota:.2} CPUs, so that {cores} of {all} cores are used");
    // Runs have one thread on a core, of which there may be fewer than logical CPUs.
    if quota.floor() as usize >= all {
        return Advice::good("CPU quota", found);
    }
    let more = "give the container or job more CPUs: docker run --cpus, cpu limits of a pod, cpu.max of the cgroup";
    let advice = Advice::change("CPU quota", found, more);
    if quota < cores as f64 {
        return advice.worth(format!("{:.1} times the time of cores", all as f64 / quota));
    }
    let share = all as f64 / cores as f64;
    if share > 1.0 { advice.worth(format!("{share:.1} times the cores")) } else { advice }
}

fn governor(facts: &Facts) -> Option<Advice> {
    let Some(governor) = &facts.processor.governor else {
        let why = if facts.processor.virtualised {
            "not reported, as in most virtual machines"
        } else {
            "not reported by the system"
        };
        return Some(Advice::fact("governor", why));
    };
    Some(match governor.as_str() {
        "performance" => Advice::good("governor", governor),
        // Drivers that choose the clock themselves reach the highest one with this governor as well.
        "powersave" | "schedutil" | "ondemand" | "conservative" => Advice::change(
            "governor",
            format!("{governor}: the clock follows the load"),
            "sudo cpupower frequency-set -g performance",
        ),
        other => Advice::change("governor", other, "sudo cpupower frequency-set -g performance"),
    })
}

fn boost(facts: &Facts) -> Option<Advice> {
    let setting = |name: &str| facts.settings.get(name).map(String::as_str);
    match (setting("boost"), setting("intel_no_turbo")) {
        (Some("0"), _) => {
            Some(Advice::change("boost", "off", "echo 1 | sudo tee /sys/devices/system/cpu/cpufreq/boost"))
        }
        (_, Some("1")) => {
            let file = "/sys/devices/system/cpu/intel_pstate/no_turbo";
            Some(Advice::change("boost", "off", format!("echo 0 | sudo tee {file}")))
        }
        (None, None) => None,
        _ => Some(Advice::good("boost", "on")),
    }
}

/// The engine asks for huge pages by `madvise`.
fn huge_pages(facts: &Facts) -> Advice {
    let Some(text) = facts.settings.get("transparent_hugepage") else {
        return Advice::fact("huge pages", "not reported by the system");
    };
    let chosen = text.split('[').nth(1).and_then(|rest| rest.split(']').next()).unwrap_or(text);
    match chosen {
        "always" | "madvise" => Advice::good("huge pages", format!("{chosen}: the matrix gets them")),
        _ => Advice::change(
            "huge pages",
            format!("{chosen}: the matrix lies in small pages"),
            "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled",
        ),
    }
}

fn load(host: &HostFacts, system: &System) -> Option<Advice> {
    let (load, cores) = (host.load?, host.cores_allowed.len());
    let of_runs = counted(cores, "core");
    let online = system.text("sys/devices/system/cpu/online").and_then(|text| cpu_list(&text));
    if host.is_part(online.map(|cpus| cpus.len())) {
        let found = format!(
            "{load:.1} runnable processes on the whole machine in the last minute, of which runs have {of_runs}: others may be \
             beside them"
        );
        return Some(Advice::fact("other load", found));
    }
    let found = format!("{load:.1} runnable processes on {of_runs} in the last minute");
    Some(if load > BUSY * cores as f64 {
        Advice::change("other load", found, "end other work; top -o %CPU shows it")
    } else {
        Advice::good("other load", found)
    })
}

fn stolen(host: &HostFacts, facts: &Facts) -> Option<Advice> {
    let times = host.cpu_times.filter(|times| times.total > 0 && facts.processor.virtualised)?;
    let share = times.steal as f64 / times.total as f64;
    let found = format!("{:.1} % of the processor time since boot was given to others", 100.0 * share);
    Some(if share > STOLEN {
        Advice::change("hypervisor", found, "ask for a host of your own, or measure when it is quiet")
    } else {
        Advice::good("hypervisor", found)
    })
}

fn smt(facts: &Facts) -> Option<Advice> {
    let threads = facts.processor.threads_per_core?;
    Some(if threads > 1 {
        Advice::good(
            "SMT",
            format!("{threads} threads on each core, of which runs use one: a second one computes no faster"),
        )
    } else {
        Advice::good("SMT", "one thread on each core")
    })
}

fn numa(facts: &Facts) -> Option<Advice> {
    let nodes = facts.processor.numa_nodes?;
    let moves = facts.settings.get("numa_balancing").is_some_and(|value| value != "0");
    Some(match nodes {
        1 => Advice::good("NUMA", "one node"),
        _ if moves => Advice::change(
            "NUMA",
            format!("{nodes} nodes, and the system moves pages between them during runs"),
            "sudo sysctl kernel.numa_balancing=0",
        ),
        _ => Advice::good("NUMA", format!("{nodes} nodes; threads are bound, pages lie where they are used first")),
    })
}

fn accelerators(facts: &Facts, system: &System) -> Advice {
    let models = facts.accelerators.as_deref().unwrap_or_default();
    if models.is_empty() {
        return Advice::fact("GPU", "none found");
    }
    let named = models.join(", ");
    let driven = system.names("dev").iter().any(|name| name == "kfd" || name.starts_with("nvidia"));
    let driver = if driven { "" } else { "; there is no device of a driver in /dev" };
    Advice::fact(
        "GPU",
        format!("{named}{driver}; to tune the vendor's HPL on it: --engine nvidia or rochpl with --program"),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use hpl::machine::host::facts_below;

    use super::super::advice::CheckState;
    use super::*;
    use crate::pack::facts::tests::tree;

    /// A quiet node that has nothing to change.
    const QUIET: [(&str, &str); 14] = [
        ("proc/cpuinfo", "processor : 0\nvendor_id : AuthenticAMD\nmodel name : A\nflags : fpu avx2\n"),
        ("proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 7800000 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"),
        ("proc/thread-self/status", "Name: x\nCpus_allowed_list:\t0-1\n"),
        ("proc/loadavg", "0.10 0.1 0.1 1/100 1\n"),
        ("proc/self/cgroup", "0::/job\n"),
        ("proc/self/mountinfo", "41 31 0:38 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ("sys/fs/cgroup/job/cpu.max", "max 100000\n"),
        ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
        ("sys/devices/system/cpu/cpufreq/boost", "1\n"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n"),
        ("sys/devices/system/node/node0/cpulist", "0\n"),
        ("sys/devices/system/node/node1/cpulist", "1\n"),
        ("proc/sys/kernel/numa_balancing", "0\n"),
        ("etc/os-release", "PRETTY_NAME=\"Debian\"\n"),
    ];

    fn at(root: &Path) -> Vec<Advice> {
        let system = System::at(root);
        lines(&facts_below(root), &Facts::read(&system), &system)
    }

    /// The lines of a quiet node with some other files.
    fn with(files: &[(&str, &str)]) -> Vec<Advice> {
        let root = tempfile::tempdir().unwrap();
        tree(root.path(), &QUIET);
        tree(root.path(), files);
        at(root.path())
    }

    fn to_change(lines: &[Advice]) -> Vec<&'static str> {
        lines.iter().filter(|advice| advice.state == CheckState::Change).map(|advice| advice.topic).collect()
    }

    #[test]
    fn a_quiet_node_has_nothing_to_change() {
        let lines = with(&[]);
        assert_eq!(to_change(&lines), [""; 0], "{lines:?}");
        let found = |topic: &str| lines.iter().find(|advice| advice.topic == topic).unwrap().found.clone();
        assert_eq!((found("governor").as_str(), found("swap").as_str()), ("performance", "none"));
        assert!(found("machine").contains("Debian") && found("memory").contains("N up to"), "{lines:?}");
    }

    #[test]
    fn what_holds_runs_back_is_named_with_what_to_do() {
        const CPUFREQ: &str = "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        const MEMORY: &str = "proc/meminfo";
        for (file, text, topic, words) in [
            (CPUFREQ, "powersave\n", "governor", "cpupower frequency-set -g performance"),
            ("sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n", "huge pages", "echo madvise"),
            ("sys/devices/cpu_core/cpus", "0\n", "cores", "taskset -c 0 hpl-tune"),
            ("sys/fs/cgroup/job/cpu.max", "100000 100000\n", "CPU quota", "--cpus"),
            ("sys/fs/cgroup/job/memory.max", "1000000000\n", "memory", "--memory"),
            ("sys/fs/cgroup/job/memory.high", "1000000000\n", "memory", "MemoryHigh"),
            ("proc/self/limits", "Max address space 1000000000 unlimited bytes\n", "memory", "ulimit -v"),
            ("sys/devices/system/cpu/cpufreq/boost", "0\n", "boost", "echo 1"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n", "boost", "echo 0"),
            ("proc/sys/kernel/numa_balancing", "1\n", "NUMA", "kernel.numa_balancing=0"),
            ("proc/loadavg", "1.50 0.1 0.1 1/100 1\n", "other load", "end other work"),
            (MEMORY, "MemTotal: 8000000 kB\nMemAvailable: 3000000 kB\nSwapTotal: 0 kB\n", "memory", "ps aux"),
            (MEMORY, "MemTotal: 800 kB\nMemAvailable: 790 kB\nSwapTotal: 9 kB\nSwapFree: 1 kB\n", "swap", "swapoff"),
        ] {
            let lines = with(&[(file, text)]);
            assert_eq!(to_change(&lines), [topic], "{file}: {lines:?}");
            let advice = lines.iter().find(|advice| advice.state == CheckState::Change).unwrap();
            assert!(advice.change.as_ref().unwrap().contains(words), "{advice:?}");
        }
    }

    /// They are of other jobs there, which nobody is to end.
    #[test]
    fn the_load_of_a_machine_of_which_runs_have_a_part_is_not_judged() {
        let lines = with(&[("proc/loadavg", "60.0 0.1 0.1 1/100 1\n"), ("sys/devices/system/cpu/online", "0-63\n")]);
        assert_eq!(to_change(&lines), [""; 0], "{lines:?}");
        let told = "60.0 runnable processes on the whole machine in the last minute, of which runs have 2 cores";
        assert!(lines.iter().any(|advice| advice.found.starts_with(told)), "{lines:?}");
    }

    #[test]
    fn a_system_that_grants_too_little_memory_can_grant_all() {
        let meminfo = "MemTotal: 8000000 kB\nMemAvailable: 7800000 kB\nCommitLimit: 4000000 kB\nCommitted_AS: 0 kB\n";
        let lines = with(&[("proc/meminfo", meminfo), ("proc/sys/vm/overcommit_memory", "2\n")]);
        assert_eq!(to_change(&lines), ["memory"], "{lines:?}");
        let advice = lines.iter().find(|advice| advice.topic == "memory").unwrap();
        assert!(advice.change.as_ref().unwrap().contains("vm.overcommit_memory=0"), "{advice:?}");
    }

    #[test]
    fn a_limit_near_all_of_the_memory_and_a_little_swap_are_no_reason_to_change() {
        const MEMORY: &str = "proc/meminfo";
        let swapped = "MemTotal: 8000000 kB\nMemAvailable: 7800000 kB\nSwapTotal: 90000 kB\nSwapFree: 20000 kB\n";
        // Of 8192 MB.
        for (file, text) in [
            ("sys/fs/cgroup/job/memory.max", "7900000000\n"),
            ("proc/self/limits", "Max address space 7900000000 unlimited bytes\n"),
            (MEMORY, swapped),
        ] {
            let lines = with(&[(file, text)]);
            assert_eq!(to_change(&lines), [""; 0], "{file}: {lines:?}");
        }
        let more = swapped.replace("SwapFree: 20000", "SwapFree: 0");
        assert_eq!(to_change(&with(&[(MEMORY, &more)])), ["swap"]);
    }

    /// They were told to end programs, of which none used the memory.
    #[test]
    fn reserved_huge_pages_are_named_where_they_take_the_memory() {
        let meminfo = "MemTotal: 8000000 kB\nMemAvailable: 3000000 kB\nSwapTotal: 0 kB\nHugetlb: 4194304 kB\n";
        let advice = |text: &str| {
            let lines = with(&[("proc/meminfo", text)]);
            assert_eq!(to_change(&lines), ["memory"], "{lines:?}");
            lines.into_iter().find(|advice| advice.topic == "memory").unwrap()
        };
        let reserved = advice(meminfo);
        assert!(reserved.found.contains("4.0 GiB are reserved as huge pages"), "{reserved:?}");
        assert!(reserved.change.as_ref().unwrap().contains("vm.nr_hugepages=0"), "{reserved:?}");
        let few = advice(&meminfo.replace("4194304", "1048576"));
        assert!(
            few.found.contains("1.0 GiB are reserved") && few.change.as_ref().unwrap().contains("ps aux"),
            "{few:?}"
        );
    }

    #[test]
    fn a_quota_of_one_cpu_says_what_is_left() {
        let lines = with(&[("sys/fs/cgroup/job/cpu.max", "100000 100000\n")]);
        let advice = lines.iter().find(|advice| advice.topic == "CPU quota").unwrap();
        assert!(advice.found.contains("1.00 CPUs, so that 1 of 2 cores are used"), "{advice:?}");
        assert_eq!(advice.worth.as_deref(), Some("2.0 times the cores"));
        let lines = with(&[("sys/fs/cgroup/job/cpu.max", "50000 100000\n")]);
        let advice = lines.iter().find(|advice| advice.topic == "CPU quota").unwrap();
        assert!(advice.found.contains("0.50 CPUs, so that 1 of 2 cores are used"), "{advice:?}");
        assert_eq!(advice.worth.as_deref(), Some("4.0 times the time of cores"));
    }

    #[test]
    fn a_quota_that_leaves_a_thread_for_each_core_is_good() {
        let path = |cpu: usize| format!("sys/devices/system/cpu/cpu{cpu}/topology/core_cpus_list");
        let siblings = |cpu: usize| format!("{},{}\n", cpu % 4, cpu % 4 + 4);
        let cores: Vec<(String, String)> = (0..8).map(|cpu| (path(cpu), siblings(cpu))).collect();
        let quota = |quota: &str| {
            let mut files: Vec<(&str, &str)> =
                cores.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            files.push(("proc/thread-self/status", "Name: x\nCpus_allowed_list:\t0-7\n"));
            files.push(("sys/fs/cgroup/job/cpu.max", quota));
            with(&files).into_iter().find(|advice| advice.topic == "CPU quota").unwrap()
        };
        let four = quota("400000 100000\n");
        assert_eq!((four.state, four.worth.as_deref()), (CheckState::Good, None), "{four:?}");
        assert!(four.found.contains("4.00 CPUs, so that 4 of 4 cores are used"), "{four:?}");
        let two = quota("250000 100000\n");
        assert_eq!((two.state, two.worth.as_deref()), (CheckState::Change, Some("2.0 times the cores")));
        assert!(two.found.contains("2.50 CPUs, so that 2 of 4 cores are used"), "{two:?}");
    }

    #[test]
    fn a_guest_that_others_slow_down_says_so() {
        let guest = ("proc/cpuinfo", "processor : 0\nmodel name : A\nflags : fpu hypervisor\n");
        let lines = with(&[guest, ("proc/stat", "cpu 100 0 100 700 0 0 0 100 0 0\n")]);
        assert_eq!(to_change(&lines), ["hypervisor"]);
        assert!(lines.iter().any(|advice| advice.found.contains("10.0 % of the processor time")), "{lines:?}");
    }

    #[test]
    fn accelerators_are_named() {
        let pci = "sys/bus/pci/devices/0000:17:00.0";
        let device = [("class", "0x120000\n"), ("vendor", "0x1002\n"), ("device", "0x7408\n")];
        let files: Vec<(String, &str)> = device.iter().map(|(name, text)| (format!("{pci}/{name}"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let gpu = |files: &[(&str, &str)]| with(files).into_iter().find(|advice| advice.topic == "GPU").unwrap().found;
        assert!(gpu(&files).contains("PCI 0x1002:0x7408; there is no device"), "{}", gpu(&files));
        assert!(!gpu(&[&files[..], &[("dev/kfd", "")]].concat()).contains("there is no device"));
        assert_eq!(gpu(&[]), "none found");
    }

    /// What is not reported is no reason to change anything.
    #[test]
    fn an_empty_tree_changes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let lines = at(root.path());
        assert_eq!(to_change(&lines), [""; 0], "{lines:?}");
    }
}
