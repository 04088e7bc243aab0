//! How the accelerators of this host fare while they compute, by the library of NVIDIA's driver.

use std::path::Path;

use super::nvml::Nvml;

/// The accelerators that the driver shows; none where there is no driver.
#[derive(Debug, Default)]
pub struct Accelerators(Option<Nvml>);

/// Their state at one time; each is `None` where the driver does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct AcceleratorState {
    /// The lowest clock of the multiprocessors of one of them, in Hz.
    pub clock_hz: Option<f64>,
    /// The hottest one, in °C.
    pub temperature_c: Option<f64>,
}

impl Accelerators {
    /// Those of the host whose files lie below `root`, if there are just `count`: which of more the runs are on is not known.
    pub fn find(root: &Path, count: usize) -> Self {
        Self(Nvml::below(root).ok().flatten().filter(|nvml| nvml.gpus().count() == count))
    }

    /// The state now.
    pub fn read(&self) -> AcceleratorState {
        let Some(nvml) = &self.0 else { return AcceleratorState::default() };
        AcceleratorState {
            clock_hz: nvml.gpus().filter_map(|gpu| nvml.clock_hz(gpu)).reduce(f64::min),
            temperature_c: nvml.gpus().filter_map(|gpu| nvml.temperature_c(gpu)).reduce(f64::max),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::nvml::BELOW;
    use super::*;

    /// Three accelerators, of which the last says nothing.
    const FAKE: &str = r"
        static int cards[3];
        int nvmlInit_v2(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &cards[index]; return 0; }
        int nvmlDeviceGetClockInfo(void *device, unsigned type, unsigned *mhz) {
            if (type != 1 || device == &cards[2]) return 3;
            *mhz = device == &cards[0] ? 1980 : 1755;
            return 0;
        }
        int nvmlDeviceGetTemperature(void *device, unsigned sensor, unsigned *celsius) {
            if (sensor != 0 || device == &cards[2]) return 3;
            *celsius = device == &cards[0] ? 71 : 64;
            return 0;
        }
    ";

    #[test]
    fn the_slowest_and_the_hottest_count() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Accelerators::find(root.path(), 3).read(), AcceleratorState::default());
        std::fs::create_dir_all(root.path().join("usr/lib")).unwrap();
        let text = root.path().join("nvml.c");
        std::fs::write(&text, FAKE).unwrap();
        let built =
            Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(root.path().join(BELOW)).arg(&text).status();
        assert!(built.unwrap().success());
        let state = Accelerators::find(root.path(), 3).read();
        assert_eq!(state, AcceleratorState { clock_hz: Some(1.755e9), temperature_c: Some(71.0) });
        assert_eq!(Accelerators::find(root.path(), 2).read(), AcceleratorState::default());
    }
}
