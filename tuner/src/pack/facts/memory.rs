//! Memory of a host, and the modules that it is made of.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::system::field;
use crate::session::engine::programs::found;

/// Equal memory modules.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modules {
    /// How many.
    pub count: usize,
    /// Size, type, speed and part of one, as the firmware reports them.
    pub module: String,
}

/// `MemTotal` of /proc/meminfo, in bytes.
pub(super) fn total_bytes(meminfo: &str) -> Option<u64> {
    field(meminfo, "MemTotal")?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// The modules as `dmidecode` reports them; none where it is missing, or may not read the firmware's table.
pub(super) fn modules() -> Vec<Modules> {
    let Some(program) = found("dmidecode".as_ref()) else { return Vec::new() };
    let output = Command::new(program).args(["-q", "-t", "17"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
    output.map_or_else(|_| Vec::new(), |output| of_table(&String::from_utf8_lossy(&output.stdout)))
}

/// The modules of the text of `dmidecode -t 17`, equal ones together; empty slots are left out.
fn of_table(text: &str) -> Vec<Modules> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for slot in text.split("Memory Device").skip(1) {
        let value =
            |name: &str| field(slot, name).filter(|value| !["Unknown", "None", "Not Specified"].contains(value));
        let Some(size) = value("Size").filter(|size| size.starts_with(|c: char| c.is_ascii_digit())) else { continue };
        let speed =
            value("Configured Memory Speed").or_else(|| value("Configured Clock Speed")).or_else(|| value("Speed"));
        let parts = [Some(size), value("Type"), speed, value("Manufacturer"), value("Part Number")];
        *counts.entry(parts.into_iter().flatten().collect::<Vec<_>>().join(", ")).or_default() += 1;
    }
    counts.into_iter().map(|(module, count)| Modules { count, module }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_modules_are_counted() {
        let slot = "Memory Device\n\tTotal Width: 80 bits\n\tSize: 64 GB\n\tType: DDR5\n\tSpeed: 4800 MT/s\n\tManufacturer: Maker\n\t\
                    Part Number: P1\n\tConfigured Memory Speed: 4400 MT/s\n\n";
        let empty = "Memory Device\n\tSize: No Module Installed\n\tType: Unknown\n\n";
        let found = of_table(&[slot, empty, slot].concat());
        assert_eq!(found, [Modules { count: 2, module: "64 GB, DDR5, 4400 MT/s, Maker, P1".into() }]);
        assert!(of_table("/dev/mem: Permission denied\n").is_empty());
    }
}
