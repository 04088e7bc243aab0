//! RAPL counters of Intel and AMD, in the powercap folder of sysfs.
//!
//! AMD's have the same names, `intel-rapl` included. `core` and `uncore` are parts of a package and left out, and so is
//! `intel-rapl-mmio`, which counts the same energy again.

use std::collections::BTreeSet;
use std::path::Path;

use super::files;
use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};

/// The name of the interface.
pub(super) const SOURCE: &str = "powercap";
/// Microjoules in a joule.
const MICRO: f64 = 1e6;

const WAY_OUT: &str =
    "sudo chmod a+r /sys/class/powercap/intel-rapl*/energy_uj until the next boot; docs/power.md has a udev rule";

/// The counters below `root`.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    let (by_package, mut packages) = (has_counters_of_packages(root), BTreeSet::new());
    for (zone, folder) in files::entries(&root.join("sys/class/powercap")) {
        let Some(number) = zone.strip_prefix("intel-rapl:") else { continue };
        let Some(name) = files::text(&folder.join("name")) else { continue };
        let name = if by_package { name.split("-die-").next().unwrap_or(&name).to_owned() } else { name };
        let (name, covers) = match name.as_str() {
            "psys" => (name, Covers::Platform),
            // Its parent is the package.
            "dram" => (format!("dram-{}", number.split(':').next().unwrap_or(number)), Covers::Memory),
            package if package.starts_with("package") => (name, Covers::Package),
            _ => continue,
        };
        if covers == Covers::Package && !packages.insert(name.clone()) {
            continue;
        }
        let path = folder.join("energy_uj");
        match files::number(&path) {
            Ok(_) => {
                let range_j = files::number(&folder.join("max_energy_range_uj")).ok().map(|range| range / MICRO);
                let facts = SensorFacts { range_j, ..SensorFacts::new(SOURCE, name, covers) };
                found.push(facts, Access::Energy(path, MICRO));
            }
            Err(error) => found.unreadable.push(Unreadable::of((SOURCE, &name), covers, &error, WAY_OUT)),
        }
    }
}

/// Whether a package has one counter whatever its dies, as AMD's and Hygon's: Linux 6.9 to 6.11 shows it once for each die. Of Intel's
/// packages with several dies each die has its own.
pub(super) fn has_counters_of_packages(root: &Path) -> bool {
    let text = files::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let vendor = text.lines().find_map(|line| line.strip_prefix("vendor_id")?.trim_start().strip_prefix(':'));
    vendor.is_some_and(|vendor| ["AuthenticAMD", "HygonGenuine"].contains(&vendor.trim()))
}
