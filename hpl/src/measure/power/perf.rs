//! Energy counters of RAPL by events of the kernel (`power` of perf), where powercap lets nobody read the same ones.
//!
//! `/sys/bus/event_source/devices/power` has the events with their units, and one processor of each package on which they are counted. The
//! kernel follows counters that begin again, so that the value only rises.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::Path;

use super::files;
use super::found::{FoundSensors, Unreadable};
use super::perf_call::{self, CountedEvent, EnergyEvent};
use super::powercap;
use super::sensor::{Access, Covers, SensorFacts};
use crate::machine::host::cpu_list;

const SOURCE: &str = "perf";
/// Events of whole parts with their names: cores and graphics are parts of a package.
const EVENTS: [(&str, &str, Covers); 3] = [
    ("energy-pkg", "package", Covers::Package),
    ("energy-ram", "dram", Covers::Memory),
    ("energy-psys", "psys", Covers::Platform),
];
/// Values of a counter of 64 bits.
const RANGE: f64 = 18_446_744_073_709_551_616.0;

/// The counters below `root`, where powercap has none that can be read.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    if found.count_of(powercap::SOURCE) == 0 {
        find_by(root, found, perf_call::open);
    }
    if found.count_of(SOURCE) > 0 {
        // Its counters are the same.
        found.unreadable.retain(|unreadable| unreadable.source != powercap::SOURCE);
    }
}

/// The same; `open` starts to count.
fn find_by(root: &Path, found: &mut FoundSensors, open: impl Fn(CountedEvent) -> io::Result<File>) {
    let folder = root.join("sys/bus/event_source/devices/power");
    let Some(unit) = files::text(&folder.join("type")).and_then(|text| text.parse().ok()) else { return };
    let cpus = files::text(&folder.join("cpumask")).and_then(|text| cpu_list(&text)).unwrap_or_default();
    let cpus = if powercap::has_counters_of_packages(root) { one_of_each_package(root, cpus) } else { cpus };
    for (event, name, covers) in EVENTS {
        let file = |end: &str| files::text(&folder.join("events").join(format!("{event}{end}")));
        let Some(words) = file("") else { continue };
        let described = config(&words).zip(file(".scale").and_then(|text| text.parse::<f64>().ok()));
        let Some((config, scale)) = described.filter(|_| file(".unit").as_deref() == Some("Joules")) else {
            let why = io::Error::other(format!("its description is not known: '{words}'"));
            let way_out = "read the power by a meter, --power-log FILE.csv";
            found.unreadable.push(Unreadable::of((SOURCE, event), covers, &why, way_out));
            continue;
        };
        // Each package counts the same platform.
        let packages = if covers == Covers::Platform { 1 } else { cpus.len() };
        for (index, &cpu) in cpus.iter().take(packages).enumerate() {
            let name = match covers {
                Covers::Platform => name.to_owned(),
                _ => format!("{name}-{}", package_of(root, cpu).unwrap_or(index)),
            };
            let counted = CountedEvent { unit, config, cpu };
            let opened = open(counted).and_then(|counter| {
                let event = EnergyEvent::new(counter, scale);
                event.joules().map(|_| event).ok_or_else(|| io::Error::other("it gives no value"))
            });
            match opened {
                Ok(event) => {
                    let facts = SensorFacts { range_j: Some(RANGE * scale), ..SensorFacts::new(SOURCE, name, covers) };
                    found.push(facts, Access::Event(event.into()));
                }
                Err(error) => {
                    found.unreadable.push(Unreadable::of((SOURCE, &name), covers, &error, &way_out(root, &error)))
                }
            }
        }
    }
}

/// The number in `event=0x02`; `None` where there is more.
fn config(words: &str) -> Option<u64> {
    let number = words.strip_prefix("event=")?;
    number.strip_prefix("0x").map_or_else(|| number.parse().ok(), |digits| u64::from_str_radix(digits, 16).ok())
}

/// The first of `cpus` in each package; all where the system does not say in which they are.
fn one_of_each_package(root: &Path, cpus: Vec<usize>) -> Vec<usize> {
    let mut seen = BTreeSet::new();
    cpus.into_iter().filter(|&cpu| package_of(root, cpu).is_none_or(|package| seen.insert(package))).collect()
}

fn package_of(root: &Path, cpu: usize) -> Option<usize> {
    let path = root.join(format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id"));
    files::text(&path)?.parse().ok()
}

fn way_out(root: &Path, error: &io::Error) -> String {
    if error.kind() != ErrorKind::PermissionDenied {
        return "see whether perf stat -a -e power/energy-pkg/ works on this node".to_owned();
    }
    let now = files::text(&root.join("proc/sys/kernel/perf_event_paranoid"));
    let now = now.map_or(String::new(), |now| format!(" (it is {now})"));
    format!(
        "sudo sysctl kernel.perf_event_paranoid=0{now} until the next boot, or give this program CAP_PERFMON; a container needs it \
         too, and a seccomp profile that allows perf_event_open"
    )
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::{PowerSampler, PowerSensors};
    use super::*;

    /// Two packages, counted on processors 0 and 18, with memory and a platform.
    fn tree(root: &Path) {
        let folder = "sys/bus/event_source/devices/power";
        let topology = |cpu: usize| format!("sys/devices/system/cpu/cpu{cpu}/topology/physical_package_id");
        let files = [
            (format!("{folder}/type"), "9\n"),
            (format!("{folder}/cpumask"), "0,18\n"),
            (format!("{folder}/events/energy-pkg"), "event=0x02\n"),
            (format!("{folder}/events/energy-pkg.scale"), "2.3283064365386962890625e-10\n"),
            (format!("{folder}/events/energy-pkg.unit"), "Joules\n"),
            (format!("{folder}/events/energy-ram"), "event=0x03\n"),
            (format!("{folder}/events/energy-ram.scale"), "1e-3\n"),
            (format!("{folder}/events/energy-ram.unit"), "Joules\n"),
            (format!("{folder}/events/energy-psys"), "event=0x05\n"),
            (format!("{folder}/events/energy-psys.scale"), "1e-3\n"),
            (format!("{folder}/events/energy-psys.unit"), "Joules\n"),
            (format!("{folder}/events/energy-cores"), "event=0x01\n"),
            (topology(0), "0\n"),
            (topology(18), "1\n"),
            ("proc/sys/kernel/perf_event_paranoid".to_owned(), "2\n"),
        ];
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    /// A counter that has these values, one at each reading.
    fn counter(folder: &Path, name: &str, values: &[u64]) -> io::Result<File> {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
        fs::write(folder.join(name), bytes)?;
        File::open(folder.join(name))
    }

    #[test]
    fn events_are_counted_on_a_processor_of_each_package() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let (mut found, opened) = (FoundSensors::default(), std::cell::RefCell::new(Vec::new()));
        find_by(root.path(), &mut found, |event| {
            opened.borrow_mut().push((event.unit, event.config, event.cpu));
            counter(root.path(), "counter", &[0, 1 << 32])
        });
        assert_eq!(opened.into_inner(), [(9, 2, 0), (9, 2, 18), (9, 3, 0), (9, 3, 18), (9, 5, 0)]);
        let names: Vec<&str> = found.sensors.iter().map(|(facts, _)| facts.name.as_str()).collect();
        assert_eq!(names, ["package-0", "package-1", "dram-0", "dram-1", "psys"]);
        let joules = |index: usize| match &found.sensors[index].1 {
            Access::Event(event) => event.joules(),
            other => panic!("{other:?}"),
        };
        assert_eq!(joules(0), Some(1.0), "2^32 units of 2^-32 J");
        assert_eq!(joules(0), None, "it has no more values");
        assert!(found.unreadable.is_empty());
    }

    #[test]
    fn dies_that_share_the_counter_of_their_package_count_once() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        // Processor 9 is on another die of the first package.
        fs::write(root.path().join("sys/bus/event_source/devices/power/cpumask"), "0,9,18\n").unwrap();
        let topology = root.path().join("sys/devices/system/cpu/cpu9/topology");
        fs::create_dir_all(&topology).unwrap();
        fs::write(topology.join("physical_package_id"), "0\n").unwrap();
        let packages = |vendor: &str| {
            fs::write(root.path().join("proc/cpuinfo"), format!("vendor_id\t: {vendor}\n")).unwrap();
            let mut found = FoundSensors::default();
            find_by(root.path(), &mut found, |_| counter(root.path(), "counter", &[0]));
            found.count(Covers::Package)
        };
        assert_eq!((packages("HygonGenuine"), packages("GenuineIntel")), (2, 3));
    }

    #[test]
    fn a_counter_of_64_bits_begins_again() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let mut found = FoundSensors::default();
        // 50 J of 2^-32 J before its end, then 100 J after it.
        let (last, first) = (u64::MAX - (50 << 32), 100 << 32);
        find_by(root.path(), &mut found, |_| counter(root.path(), "counter", &[5, last, first]));
        let (facts, access) = &found.sensors[0];
        let (before, after) = (access.read().unwrap(), access.read().unwrap());
        let watts = facts.watts_between(before, after, 1.0).unwrap();
        assert!((watts - 150.0).abs() < 1e-3, "{watts}");
    }

    #[test]
    fn without_the_right_it_is_said_what_would_give_it() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let mut found = FoundSensors::default();
        find_by(root.path(), &mut found, |_| Err(ErrorKind::PermissionDenied.into()));
        assert!(found.sensors.is_empty());
        let unreadable = &found.unreadable[0];
        assert_eq!(unreadable.to_string(), "perf package-0: this user may not read it");
        assert!(unreadable.way_out.contains("kernel.perf_event_paranoid=0 (it is 2)"), "{unreadable:?}");
        let mut found = FoundSensors::default();
        find_by(root.path(), &mut found, |_| Err(io::Error::from_raw_os_error(nix::libc::ENODEV)));
        assert!(found.unreadable[0].way_out.contains("perf stat"), "{found:?}");
    }

    #[test]
    fn an_event_that_is_described_otherwise_is_named() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let events = root.path().join("sys/bus/event_source/devices/power/events");
        fs::write(events.join("energy-pkg"), "event=0x02,umask=0x1").unwrap();
        fs::write(events.join("energy-ram.unit"), "Watts").unwrap();
        fs::remove_file(events.join("energy-psys.scale")).unwrap();
        let mut found = FoundSensors::default();
        find_by(root.path(), &mut found, |_| panic!("nothing can be counted"));
        let said: Vec<String> = found.unreadable.iter().map(ToString::to_string).collect();
        assert!(said.len() == 3 && said[0].contains("energy-pkg: its description is not known: 'event=0x02,um"));
    }

    #[test]
    fn powercap_comes_first() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let zone = root.path().join("sys/class/powercap/intel-rapl:0");
        fs::create_dir_all(&zone).unwrap();
        fs::write(zone.join("name"), "package-0").unwrap();
        fs::write(zone.join("energy_uj"), "5").unwrap();
        let sensors = PowerSensors::find(root.path());
        assert!(sensors.unreadable().is_empty(), "{sensors:?}");
        assert_eq!(sensors.set().words(&sensors.set().of_node(|_| true)), "powercap package-0");
    }

    /// The call itself: the kernel's clock of a processor counts nanoseconds, 1e9 a second, which are 1 W if one is 1e-9 J.
    #[test]
    fn the_kernel_counts_what_it_is_asked_for() {
        let root = tempfile::tempdir().unwrap();
        tree(root.path());
        let folder = root.path().join("sys/bus/event_source/devices/power");
        // PERF_TYPE_SOFTWARE and PERF_COUNT_SW_CPU_CLOCK.
        fs::write(folder.join("type"), "1").unwrap();
        fs::write(folder.join("cpumask"), "0").unwrap();
        fs::write(folder.join("events/energy-pkg"), "event=0x0").unwrap();
        fs::write(folder.join("events/energy-pkg.scale"), "1e-9").unwrap();
        for event in ["energy-ram", "energy-psys"] {
            fs::remove_file(folder.join("events").join(event)).unwrap();
        }
        let sensors = PowerSensors::find(root.path());
        if let [refused] = sensors.unreadable() {
            // A user without the right, or a kernel without events.
            assert!(refused.to_string().starts_with("perf package-0: ") && !refused.way_out.is_empty(), "{refused}");
            return;
        }
        let sampler = PowerSampler::start(&sensors);
        std::thread::sleep(std::time::Duration::from_millis(300));
        let samples = sampler.end();
        let watts: Vec<f64> = samples.sum(&[0]).map(|(.., watts)| watts).collect();
        assert!(!watts.is_empty() && watts.iter().all(|watts| (watts - 1.0).abs() < 0.1), "{watts:?}");
    }
}
