//! Facts of a host: processor, memory, network, firmware, settings, programs.
//!
//! Everything is read below a root, so that tests read a tree of their own. What the system does not report is absent.

pub mod libraries;
mod memory;
mod network;
mod processor;
mod programs;
mod system;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use memory::Modules;
pub use network::Port;
pub use processor::{Cache, Processor};
pub use system::System;

/// The facts, as `host.toml` has them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Host name.
    pub host: String,
    /// When they were read, in UTC, RFC 3339.
    pub read_utc: String,
    /// Name and version of the operating system.
    pub os: Option<String>,
    /// Name and version of the kernel.
    pub kernel: Option<String>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// First line that the C compiler of the search path says of its version; it need not have made the program that ran.
    pub c_compiler: Option<String>,
    /// Models of accelerators, or their PCI numbers where no driver names them; one entry each. `None` where the system does not list its
    /// devices.
    pub accelerators: Option<Vec<String>>,
    /// What the firmware says: vendor, product, BIOS.
    pub firmware: BTreeMap<String, String>,
    /// Settings of the system that change the speed of a run.
    pub settings: BTreeMap<String, String>,
    /// The processors.
    pub processor: Processor,
    /// Memory modules, where the firmware's table may be read.
    pub memory_modules: Vec<Modules>,
    /// Ports of the network.
    pub ports: Vec<Port>,
}

/// Folder of the firmware's facts that everybody may read.
const DMI: &str = "sys/class/dmi/id";

/// Facts of the firmware that identify the model, and no single machine.
const FIRMWARE: [&str; 8] = [
    "sys_vendor",
    "product_name",
    "product_version",
    "board_vendor",
    "board_name",
    "bios_vendor",
    "bios_version",
    "bios_date",
];

/// Names of settings with their files.
const SETTINGS: [(&str, &str); 7] = [
    ("transparent_hugepage", "sys/kernel/mm/transparent_hugepage/enabled"),
    ("nr_hugepages", "proc/sys/vm/nr_hugepages"),
    ("swappiness", "proc/sys/vm/swappiness"),
    ("numa_balancing", "proc/sys/kernel/numa_balancing"),
    ("smt", "sys/devices/system/cpu/smt/control"),
    ("boost", "sys/devices/system/cpu/cpufreq/boost"),
    ("intel_no_turbo", "sys/devices/system/cpu/intel_pstate/no_turbo"),
];

impl Facts {
    /// Reads them.
    pub fn read(system: &System) -> Self {
        let named = |folder: &str, names: &[(&str, &str)]| -> BTreeMap<String, String> {
            let value =
                |(name, file): &(&str, &str)| Some(((*name).to_owned(), system.text(&format!("{folder}{file}"))?));
            names.iter().filter_map(value).collect()
        };
        let os_release = system.text("etc/os-release").unwrap_or_default();
        let here = system.is_here();
        Self {
            host: system.text("proc/sys/kernel/hostname").unwrap_or_default(),
            read_utc: jiff::Timestamp::now().to_string(),
            os: assigned(&os_release, "PRETTY_NAME").or_else(|| assigned(&os_release, "NAME")),
            kernel: system
                .text("proc/sys/kernel/osrelease")
                .map(|release| format!("{} {release}", system.text("proc/sys/kernel/ostype").unwrap_or_default())),
            memory_bytes: system.text("proc/meminfo").and_then(|text| memory::total_bytes(&text)),
            c_compiler: here.then(programs::c_compiler).flatten(),
            accelerators: network::accelerators(system),
            firmware: named(&format!("{DMI}/"), &FIRMWARE.map(|name| (name, name))),
            settings: named("", &SETTINGS),
            processor: Processor::read(system),
            memory_modules: if here { memory::modules() } else { Vec::new() },
            ports: network::ports(system),
        }
    }

    /// Values of keys of `site.toml` that were found on the host, by the path of the key.
    pub fn known(&self) -> BTreeMap<&'static str, String> {
        let Processor { model, sockets, cores_per_socket, nominal_mhz, .. } = &self.processor;
        let firmware = |name: &str| self.firmware.get(name).cloned();
        let gib = |bytes: u64| format!("{:.1}", bytes as f64 / f64::from(1 << 30));
        let models = self.accelerators.as_ref();
        let count = models.map(Vec::len);
        let pairs = [
            ("system.manufacturer", firmware("sys_vendor")),
            ("system.model", firmware("product_name")),
            ("system.processor", model.clone()),
            ("system.processor_mhz", nominal_mhz.map(|mhz| mhz.to_string())),
            ("system.sockets_per_node", sockets.map(|sockets| sockets.to_string())),
            ("system.cores_per_socket", cores_per_socket.map(|cores| cores.to_string())),
            ("system.memory_per_node_gib", self.memory_bytes.map(gib)),
            ("system.accelerator", models.map(|all| all.first().map_or("none", |model| model).to_owned())),
            ("system.accelerators_per_node", count.map(|count| count.to_string())),
            ("system.accelerator_fp64_cores", (count == Some(0)).then(|| "0".to_owned())),
            ("system.interconnect", network::interconnect(&self.ports)),
            ("system.os", self.os.clone()),
        ];
        pairs.into_iter().filter_map(|(path, value)| Some((path, value?))).collect()
    }
}

/// The value of `name="value"` in a file like os-release.
fn assigned(text: &str, name: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
pub(crate) mod tests;
