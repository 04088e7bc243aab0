//! How a host fares while it computes: its clock, its heat, and what it lacks.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{CpuTimes, cores, parse, read};

/// Cores whose files are read, evenly spread over all: a node may have hundreds.
const LOOKED_AT: usize = 8;
/// Drivers of the sensors of processors, of which the first one is that of the whole processor.
const PROCESSOR_SENSORS: [&str; 3] = ["coretemp", "k10temp", "zenpower"];
/// How long the processor of a core was held back by heat, in ms; the kernel counts a time when it ends.
const THROTTLED_MS: &str = "thermal_throttle/package_throttle_total_time_ms";

/// The state of a host at one time; each is `None` where the system does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HostVitals {
    /// Time counters of all CPUs since boot.
    pub cpu_times: Option<CpuTimes>,
    /// Mean clock of some of its cores, in Hz.
    pub clock_hz: Option<f64>,
    /// The highest clock that one of these may have, in Hz.
    pub most_clock_hz: Option<f64>,
    /// The hottest processor, in °C.
    pub temperature_c: Option<f64>,
    /// Time since boot for which the processors of these cores were held back by heat, in s: their mean.
    pub throttled_s: Option<f64>,
    /// CPU seconds since boot in which a thread that could run waited for that CPU: its pressure stall information, times the CPUs.
    pub waited_cpu_s: Option<f64>,
}

/// Where the vitals of a host are read.
#[derive(Debug, Clone)]
pub struct VitalsReader {
    root: PathBuf,
    /// CPUs that are online.
    cpus: usize,
    /// Folders of the cores that are looked at.
    cores: Vec<PathBuf>,
    temperatures: Vec<PathBuf>,
    most_clock_hz: Option<f64>,
}

impl VitalsReader {
    /// Of a host whose /proc and /sys lie below `root`.
    pub fn find(root: &Path) -> Self {
        let online = read(root.join("sys/devices/system/cpu/online")).and_then(|text| parse::cpu_list(&text));
        let online = online.unwrap_or_default();
        // One of the threads of a core: the others may have nothing to do.
        let physical = cores::physical(&online, |cpu| cores::topology(root, cpu));
        let step = physical.len().div_ceil(LOOKED_AT).max(1);
        let folder = |cpu: &usize| root.join(format!("sys/devices/system/cpu/cpu{cpu}"));
        let cores: Vec<PathBuf> = physical.iter().step_by(step).map(folder).collect();
        let most_khz = cores.iter().filter_map(|core| number(&core.join("cpufreq/cpuinfo_max_freq")));
        Self {
            root: root.to_owned(),
            cpus: online.len(),
            temperatures: temperatures(root),
            most_clock_hz: most_khz.reduce(f64::max).map(|khz| 1e3 * khz),
            cores,
        }
    }

    /// The state now.
    pub fn read(&self) -> HostVitals {
        let mean = |file: &str| {
            let found: Vec<f64> = self.cores.iter().filter_map(|core| number(&core.join(file))).collect();
            (!found.is_empty()).then(|| found.iter().sum::<f64>() / found.len() as f64)
        };
        let in_proc = |file: &str| read(self.root.join("proc").join(file));
        let waited_us = in_proc("pressure/cpu").and_then(|text| parse::pressure_us(&text)).filter(|_| self.cpus > 0);
        HostVitals {
            cpu_times: in_proc("stat").and_then(|text| parse::cpu_times(&text)),
            clock_hz: mean("cpufreq/scaling_cur_freq").map(|khz| 1e3 * khz),
            most_clock_hz: self.most_clock_hz,
            temperature_c: self.temperatures.iter().filter_map(|path| number(path)).reduce(f64::max).map(|m| m / 1e3),
            throttled_s: mean(THROTTLED_MS).map(|ms| ms / 1e3),
            waited_cpu_s: waited_us.map(|us| us / 1e6 * self.cpus as f64),
        }
    }
}

/// The sensor of each processor.
fn temperatures(root: &Path) -> Vec<PathBuf> {
    let folders = std::fs::read_dir(root.join("sys/class/hwmon")).into_iter().flatten().flatten();
    let of_processor =
        |folder: &PathBuf| read(folder.join("name")).is_some_and(|name| PROCESSOR_SENSORS.contains(&name.trim()));
    folders.map(|entry| entry.path()).filter(of_processor).map(|folder| folder.join("temp1_input")).collect()
}

fn number(path: &Path) -> Option<f64> {
    parse::number(&read(path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn vitals(root: &Path) -> HostVitals {
        VitalsReader::find(root).read()
    }

    #[test]
    fn a_host_that_says_all_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(vitals(root), HostVitals::default());
        write(root, "proc/stat", "cpu  100 0 50 800 10 0 5 35 0 0\ncpu0 1\n");
        write(root, "proc/pressure/cpu", "some avg10=4.59 avg60=4.94 avg300=3.45 total=2500000\nfull total=0\n");
        write(root, "sys/devices/system/cpu/online", "0-31\n");
        // Two sockets of 8 cores; the second thread of each, 16 CPUs on, sleeps at 1 GHz.
        for cpu in 0..32 {
            let of_cpu = format!("sys/devices/system/cpu/cpu{cpu}");
            write(root, &format!("{of_cpu}/topology/physical_package_id"), &format!("{}\n", cpu % 2));
            write(root, &format!("{of_cpu}/topology/core_cpus_list"), &format!("{},{}\n", cpu % 16, cpu % 16 + 16));
            let khz = if cpu < 16 { 2_000_000 } else { 1_000_000 };
            write(root, &format!("{of_cpu}/cpufreq/scaling_cur_freq"), &format!("{khz}\n"));
            write(root, &format!("{of_cpu}/cpufreq/cpuinfo_max_freq"), "3100000\n");
            write(root, &format!("{of_cpu}/{THROTTLED_MS}"), if cpu % 2 == 0 { "9000\n" } else { "1000\n" });
        }
        for (hwmon, name, milli) in [(0, "nvme", 99_000), (1, "coretemp", 61_000), (2, "coretemp", 72_500)] {
            write(root, &format!("sys/class/hwmon/hwmon{hwmon}/name"), &format!("{name}\n"));
            write(root, &format!("sys/class/hwmon/hwmon{hwmon}/temp1_input"), &format!("{milli}\n"));
            write(root, &format!("sys/class/hwmon/hwmon{hwmon}/temp1_max"), "200000\n");
        }
        let found = vitals(root);
        assert_eq!((found.clock_hz, found.most_clock_hz), (Some(2e9), Some(3.1e9)));
        // Both sockets count, and all 32 CPUs.
        assert_eq!((found.temperature_c, found.throttled_s, found.waited_cpu_s), (Some(72.5), Some(5.0), Some(80.0)));
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
        assert_eq!(vitals(root), HostVitals::default());
    }

    #[test]
    fn this_host_is_read() {
        assert!(vitals(Path::new("/")).cpu_times.is_some());
    }
}
