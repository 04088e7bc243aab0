//! Which fields each purpose asks for, what they are called there, and how one that is missing is given.

use super::Purpose;
use super::site::find;

/// A field that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Asked {
    /// Its key: that of `site.toml` where it may be given there.
    pub key: &'static str,
    /// What it is called.
    pub label: &'static str,
    /// Whether the pack is incomplete without it.
    pub needed: bool,
}

impl Asked {
    /// How it is given.
    pub fn how(&self) -> String {
        let said = HOW.iter().find(|(key, _)| *key == self.key).map(|(_, how)| (*how).to_owned());
        said.or_else(|| find(self.key).map(super::site::Key::how)).unwrap_or_else(|| {
            "the record of the run does not contain it: run a new session with this version of hpl-tune".to_owned()
        })
    }
}

/// How fields are given that have no key of their own in `site.toml`.
const HOW: [(&str, &str); 16] = [
    ("peak.gflops", "in site.toml, [peak] clock_ghz and flops_per_cycle, or gflops with its formula"),
    ("peak.formula", "in site.toml, [peak] clock_ghz and flops_per_cycle, or gflops with its formula"),
    ("run.efficiency", "it follows from Rpeak"),
    (
        "run.n_half",
        "run hpl-tune run with a smaller N in HPL.dat until it reaches half of Rmax; then in site.toml, [run] n_half = …",
    ),
    ("run.output_sha256", "the record holds no hash of the output: run a new session"),
    (
        "run.power",
        "hpl-tune doctor says which sensors of power a session can read, and what would make others readable",
    ),
    (
        "power.core_watts",
        "measure the power of the run, and pack with --power-log FILE.csv; or in site.toml, [power] core_watts",
    ),
    (
        "power.run_watts",
        "measure the power of the run, and pack with --power-log FILE.csv; or in site.toml, [power] run_watts",
    ),
    (
        "power.peak_watts",
        "measure the power of the run, and pack with --power-log FILE.csv; or in site.toml, [power] peak_watts",
    ),
    ("power.gflops_per_watt", "it follows from the mean power of the core phase of all nodes"),
    ("power.level", "measure the power of the run, and pack with --power-log FILE.csv"),
    ("power.coverage", "measure the power of the run, and pack with --power-log FILE.csv"),
    ("acceptance.target_gflops", "pack with --target GFLOPS, what was promised"),
    ("acceptance.of_target", "pack with --target GFLOPS, what was promised"),
    ("acceptance.verdict", "pack with --target GFLOPS, what was promised"),
    (
        "acceptance.node_spread",
        "one node has none; of several hpl-tune measures it at the start of a session in their job",
    ),
];

const fn must(key: &'static str, label: &'static str) -> Asked {
    Asked { key, label, needed: true }
}

const fn may(key: &'static str, label: &'static str) -> Asked {
    Asked { key, label, needed: false }
}

/// Of every purpose.
const RUN: [Asked; 17] = [
    must("run.rmax_gflops", "Rmax in GFLOP/s"),
    must("run.nmax", "Nmax"),
    may("run.n_half", "N1/2"),
    must("peak.gflops", "Rpeak in GFLOP/s"),
    must("peak.formula", "Rpeak is"),
    may("peak.clock_ghz", "Clock that Rpeak assumes, in GHz"),
    must("run.efficiency", "Efficiency, Rmax / Rpeak"),
    must("run.time_s", "Time in seconds"),
    must("run.residual", "Scaled residual"),
    must("run.cores_used", "Cores used"),
    must("run.job_start_utc", "Start of the job, UTC"),
    must("run.job_end_utc", "End of the job, UTC"),
    must("run.core_start_utc", "Start of the core phase, UTC"),
    must("run.core_end_utc", "End of the core phase, UTC"),
    must("run.output_sha256", "SHA-256 of HPL.out, taken after the run"),
    may("run.repeats", "Repeats of the same configuration"),
    may("run.power", "Power of the core phase, as read during the session"),
];

/// Of the site and the system, as the TOP500 asks for them (\[TOP500\]).
const SYSTEM: [Asked; 23] = [
    must("site.organisation", "Site"),
    must("site.city", "City"),
    must("site.country", "Country"),
    must("site.segment", "Segment"),
    must("site.contact_name", "Contact"),
    must("site.contact_email", "E-mail"),
    must("system.name", "System name"),
    must("system.manufacturer", "Manufacturer"),
    must("system.model", "System model"),
    must("system.year", "Installation year"),
    must("system.nodes", "Nodes"),
    must("system.processor", "Processor"),
    must("system.processor_mhz", "Processor clock in MHz"),
    must("system.sockets_per_node", "Sockets per node"),
    must("system.cores_per_socket", "Cores per socket"),
    must("system.memory_per_node_gib", "Memory per node in GiB"),
    must("system.accelerator", "Accelerator"),
    must("system.accelerators_per_node", "Accelerators per node"),
    must("system.interconnect", "Interconnect"),
    must("system.os", "Operating system"),
    must("system.compiler", "Compiler"),
    must("system.math_library", "Math library"),
    must("system.mpi", "MPI"),
];

/// What the TOP500 takes, and most sites leave out.
const FOOTPRINT: [Asked; 4] = [
    may("system.cooling", "Cooling"),
    may("system.footprint_m2", "Footprint in square metres"),
    may("system.racks", "Racks"),
    may("power.core_watts", "Mean power of the core phase in watts"),
];

/// Of the power, as the Green500 asks for it.
const POWER: [Asked; 20] = [
    must("power.core_watts", "Mean power of the core phase in watts, all nodes"),
    may("power.run_watts", "Mean power of the whole run in watts, all nodes"),
    must("power.gflops_per_watt", "GFLOPS/W, Rmax / mean power of the core phase"),
    must("power.level", "Level of the measurement"),
    must("power.coverage", "Share of the core phase that readings cover"),
    must("power.meter", "Power meter"),
    must("power.accuracy_percent", "Accuracy of the meter in per cent"),
    may("power.integrating", "Meter integrates all the time"),
    must("power.point", "Where it measures"),
    must("power.nodes_measured", "Nodes behind the meter"),
    may("power.random_nodes", "Nodes chosen at random"),
    must("power.network_measured", "Network behind the meter"),
    may("power.subsystems", "What else is behind the meter"),
    may("power.idle_watts", "Mean power when idle in watts"),
    may("power.peak_watts", "Highest reading during the run in watts"),
    may("system.cooling", "Cooling"),
    may("power.temperature_c", "Temperature of the coolant at the inlet in °C"),
    may("system.footprint_m2", "Footprint in square metres"),
    may("system.racks", "Racks"),
    may("power.notes", "Notes"),
];

/// The configuration file of a student cluster competition, in its order (\[SCC25\]).
pub const CONFIGURATION: [Asked; 17] = [
    must("system.name", "Cluster name"),
    must("system.model", "Model"),
    must("system.manufacturer", "Vendor"),
    must("system.nodes", "Number of nodes"),
    must("system.processor", "CPU model"),
    must("system.sockets_per_node", "Sockets per node"),
    must("system.cores_per_socket", "Cores per socket"),
    must("system.processor_mhz", "CPU clock in MHz"),
    must("system.accelerator", "Accelerator model"),
    must("system.accelerators_per_node", "Accelerators per node"),
    must("system.accelerator_fp64_cores", "FP64 cores per accelerator"),
    must("power.peak_watts", "Peak power in watts, network included"),
    must("run.cores_used", "CPU cores used"),
    must("system.os", "Operating system"),
    must("system.interconnect", "Interconnect"),
    must("system.memory_per_node_gib", "Memory per node in GiB"),
    must("system.binary", "Origin of the HPL binary"),
];

/// Of an acceptance.
const ACCEPTANCE: [Asked; 14] = [
    must("acceptance.target_gflops", "Target in GFLOP/s"),
    must("acceptance.of_target", "Rmax / target"),
    may("acceptance.node_spread", "Spread between nodes"),
    must("acceptance.verdict", "Verdict"),
    must("system.name", "System name"),
    must("system.nodes", "Nodes"),
    must("system.processor", "Processor"),
    must("system.sockets_per_node", "Sockets per node"),
    must("system.cores_per_socket", "Cores per socket"),
    must("system.memory_per_node_gib", "Memory per node in GiB"),
    may("system.interconnect", "Interconnect"),
    must("system.os", "Operating system"),
    must("system.math_library", "Math library"),
    must("system.mpi", "MPI"),
];

/// The fields of a purpose, each once, in the order in which they are printed.
pub fn asked(purpose: Purpose) -> Vec<Asked> {
    let parts: &[&[Asked]] = match purpose {
        Purpose::Top500 => &[&RUN, &SYSTEM, &FOOTPRINT],
        Purpose::Green500 => &[&RUN, &SYSTEM, &POWER],
        Purpose::Scc => &[&RUN, &CONFIGURATION],
        Purpose::Acceptance => &[&RUN, &ACCEPTANCE],
    };
    let mut all: Vec<Asked> = Vec::new();
    for field in parts.iter().flat_map(|part| part.iter()) {
        match all.iter_mut().find(|known| known.key == field.key) {
            Some(known) => known.needed |= field.needed,
            None => all.push(*field),
        }
    }
    // A competition and an acceptance can do without the peak.
    if matches!(purpose, Purpose::Scc | Purpose::Acceptance) {
        let peak = |field: &&mut Asked| field.key.starts_with("peak.") || field.key == "run.efficiency";
        all.iter_mut().filter(peak).for_each(|field| field.needed = false);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pack::site::KEYS;

    #[test]
    fn the_configuration_has_the_17_fields_of_the_competition() {
        let keys: std::collections::BTreeSet<&str> = CONFIGURATION.iter().map(|field| field.key).collect();
        assert_eq!(keys.len(), 17);
        let asked = asked(Purpose::Scc);
        assert!(keys.iter().all(|key| asked.iter().any(|field| field.key == *key && field.needed)));
    }

    #[test]
    fn every_key_of_a_site_file_is_asked_for_or_used() {
        use clap::ValueEnum;
        let all: Vec<Asked> = Purpose::value_variants().iter().flat_map(|&purpose| asked(purpose)).collect();
        for key in KEYS {
            let factor = ["peak.flops_per_cycle"].contains(&key.path);
            assert!(factor || all.iter().any(|field| field.key == key.path), "{}", key.path);
        }
        for field in all {
            assert!(!field.how().is_empty());
        }
    }
}
