//! How a host fares while it computes: its clock, its heat, and what it lacks.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CpuTimes, HERE, parse, read};

/// CPUs whose files are read, evenly spread over all: a node may have hundreds.
const LOOKED_AT: usize = 8;
/// Drivers of the sensors of processors.
const PROCESSOR_SENSORS: [&str; 3] = ["coretemp", "k10temp", "zenpower"];

/// The state of a host at one time; each is `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostVitals {
    /// Time counters of all CPUs since boot.
    pub cpu_times: Option<CpuTimes>,
    /// Mean clock of some of its CPUs, in Hz.
    pub clock_hz: Option<f64>,
    /// The hottest sensor of its processors, in °C.
    pub temperature_c: Option<f64>,
    /// Time since boot for which the hottest processor was held back, in s.
    pub throttled_s: Option<f64>,
    /// Time since boot in which a thread that could run waited for a CPU, in s (pressure stall information).
    pub waited_s: Option<f64>,
}

/// The vitals of this host.
pub fn vitals() -> HostVitals {
    vitals_below(Path::new(HERE))
}

/// Those of a host whose /proc and /sys lie below `root`.
pub fn vitals_below(root: &Path) -> HostVitals {
    let cpus = some_cpus(root);
    let numbers = |file: &str| -> Vec<f64> {
        let path = |cpu: &usize| root.join(format!("sys/devices/system/cpu/cpu{cpu}/{file}"));
        cpus.iter().filter_map(|cpu| parse::number(&read(path(cpu))?)).collect()
    };
    let clocks = numbers("cpufreq/scaling_cur_freq");
    let throttled = ["core_throttle_total_time_ms", "package_throttle_total_time_ms"]
        .map(|file| numbers(&format!("thermal_throttle/{file}")));
    HostVitals {
        cpu_times: read(root.join("proc/stat")).and_then(|text| parse::cpu_times(&text)),
        clock_hz: (!clocks.is_empty()).then(|| 1e3 * clocks.iter().sum::<f64>() / clocks.len() as f64),
        temperature_c: hottest(root),
        throttled_s: throttled.into_iter().flatten().reduce(f64::max).map(|ms| ms / 1e3),
        waited_s: read(root.join("proc/pressure/cpu")).and_then(|text| parse::pressure_us(&text)).map(|us| us / 1e6),
    }
}

/// At most [`LOOKED_AT`] of the CPUs that are online.
fn some_cpus(root: &Path) -> Vec<usize> {
    let online = read(root.join("sys/devices/system/cpu/online")).and_then(|text| parse::cpu_list(text.trim()));
    let online = online.unwrap_or_default();
    online.iter().copied().step_by(online.len().div_ceil(LOOKED_AT).max(1)).collect()
}

/// The highest of all temperatures of processors.
fn hottest(root: &Path) -> Option<f64> {
    let of_processors =
        |folder: &PathBuf| read(folder.join("name")).is_some_and(|name| PROCESSOR_SENSORS.contains(&name.trim()));
    let files = entries(&root.join("sys/class/hwmon")).filter(of_processors).flat_map(|folder| entries(&folder));
    let is_temperature = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("temp") && name.ends_with("_input")
    };
    let degrees = files.filter(is_temperature).filter_map(|path| parse::number(&read(path)?)).map(|m| m / 1e3);
    degrees.reduce(f64::max)
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_host_that_says_all_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(vitals_below(root), HostVitals::default());
        write(root, "proc/stat", "cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1\n");
        write(root, "proc/pressure/cpu", "some avg10=4.59 avg60=4.94 avg300=3.45 total=2500000\nfull total=0\n");
        write(root, "sys/devices/system/cpu/online", "0-31\n");
        for cpu in 0..32 {
            let of_cpu = format!("sys/devices/system/cpu/cpu{cpu}");
            write(root, &format!("{of_cpu}/cpufreq/scaling_cur_freq"), &format!("{}\n", 2_000_000 + 1000 * cpu));
            write(root, &format!("{of_cpu}/thermal_throttle/core_throttle_total_time_ms"), "100\n");
            write(root, &format!("{of_cpu}/thermal_throttle/package_throttle_total_time_ms"), "1500\n");
        }
        for (hwmon, name, temperatures) in [(0, "nvme", [99_000, 0]), (1, "coretemp", [61_000, 72_500])] {
            write(root, &format!("sys/class/hwmon/hwmon{hwmon}/name"), &format!("{name}\n"));
            for (at, milli) in temperatures.into_iter().enumerate() {
                write(root, &format!("sys/class/hwmon/hwmon{hwmon}/temp{}_input", at + 1), &format!("{milli}\n"));
            }
            write(root, &format!("sys/class/hwmon/hwmon{hwmon}/temp1_max"), "200000\n");
        }
        let found = vitals_below(root);
        // CPUs 0, 4, … 28 are looked at.
        assert_eq!((found.clock_hz, found.temperature_c), (Some(2.014e9), Some(72.5)));
        assert_eq!((found.throttled_s, found.waited_s), (Some(1.5), Some(2.5)));
        assert_eq!(found.cpu_times.map(|times| (times.total, times.steal)), Some((1000, 35)));
    }

    #[test]
    fn malformed_files_say_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "proc/stat", "garbage\n");
        write(root, "proc/pressure/cpu", "some avg10=x total=\n");
        write(root, "sys/devices/system/cpu/online", "7-3\n");
        write(root, "sys/class/hwmon/hwmon0/name", "k10temp\n");
        write(root, "sys/class/hwmon/hwmon0/temp1_input", "-5\n");
        assert_eq!(vitals_below(root), HostVitals::default());
    }

    #[test]
    fn this_host_is_read() {
        assert!(vitals().cpu_times.is_some());
    }
}
