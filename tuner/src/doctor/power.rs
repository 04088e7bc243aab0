//! The sensors of power, judged.

use hpl::measure::power::PowerSensors;

use super::advice::Advice;
use crate::power::reader::ways_out;
use crate::power::record::GRADE;

/// What is looked for.
const READ: &str = "powercap, perf, hwmon, Cray pm_counters, NVML, DCMI";

/// What a session reads of the power of its runs, and what would make more readable. A session runs without that, so that nothing
/// has to change.
pub fn line(sensors: &PowerSensors) -> Advice {
    let chosen = sensors.set().of_node(|_| true);
    let named: Vec<String> = sensors.unreadable().iter().map(ToString::to_string).collect();
    let found = match (chosen.is_empty(), named.is_empty()) {
        (true, true) => format!("no sensor found ({READ}); virtual machines rarely have one"),
        (true, false) => format!("no sensor can be read: {}", named.join("; ")),
        (false, true) => format!("{}; {GRADE}", sensors.set().words(&chosen)),
        (false, false) => format!("{}; {GRADE}; not read: {}", sensors.set().words(&chosen), named.join("; ")),
    };
    let change = ways_out(sensors.unreadable()).join("; ");
    let change = if chosen.is_empty() && named.is_empty() {
        Some("a meter's readings are taken with hpl-tune --power-log FILE.csv".to_owned())
    } else {
        Some(change).filter(|change| !change.is_empty())
    };
    Advice { change, ..Advice::fact("power", found) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::advice::CheckState;
    use super::*;

    #[test]
    fn sensors_are_named_and_what_would_make_others_readable() {
        let root = tempfile::tempdir().unwrap();
        let look = || line(&PowerSensors::find(root.path()));
        let none = look();
        assert!(none.found.contains("no sensor found (powercap, perf, hwmon"), "{none:?}");
        assert!(none.change.unwrap().contains("--power-log"));
        for (zone, name) in [("intel-rapl:0", "package-0"), ("intel-rapl:1", "package-1")] {
            let zone = root.path().join("sys/class/powercap").join(zone);
            fs::create_dir_all(&zone).unwrap();
            fs::write(zone.join("name"), name).unwrap();
            fs::write(zone.join("energy_uj"), "5").unwrap();
        }
        let all = look();
        assert_eq!((all.found.as_str(), all.change), ("powercap package-0 package-1; not Green500 grade", None));
        let closed = root.path().join("sys/class/powercap/intel-rapl:1/energy_uj");
        fs::remove_file(&closed).unwrap();
        fs::create_dir(&closed).unwrap();
        let some = look();
        assert!(some.found.contains("package-0; not Green500 grade; not read: powercap package-1: "), "{some:?}");
        assert!(some.state == CheckState::Fact && some.change.unwrap().contains("udev"));
    }
}
