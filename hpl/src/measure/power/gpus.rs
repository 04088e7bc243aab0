//! Energy of NVIDIA's accelerators, by the library of their driver.

use std::path::Path;
use std::sync::Arc;

use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};
use crate::machine::nvml::{NAME, Nvml};

/// The accelerators of the library below `root`, if there is one.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    match Nvml::below(root) {
        Ok(Some(nvml)) => sensors(&Arc::new(nvml), found),
        Ok(None) => {}
        Err(why) => found.unreadable.push(Unreadable {
            source: "nvml".to_owned(),
            name: NAME.to_owned(),
            covers: Covers::Accelerator,
            why,
            way_out: "use the libnvidia-ml.so.1 of the driver: in a container, start it with --gpus all".to_owned(),
        }),
    }
}

fn sensors(nvml: &Arc<Nvml>, found: &mut FoundSensors) {
    let name = |index: usize| format!("gpu-{index}");
    for (index, code) in nvml.not_opened() {
        found.unreadable.push(Unreadable {
            source: "nvml".to_owned(),
            name: name(index),
            covers: Covers::Accelerator,
            why: format!("the driver does not open it, code {code} of NVML"),
            way_out: "see what nvidia-smi and the kernel log say of it".to_owned(),
        });
    }
    for device in nvml.gpus() {
        let name = name(device.number());
        // Energy is counted from Volta on, and not in guests.
        let access = if nvml.energy_j(device).is_some() {
            Access::NvmlEnergy(nvml.clone(), device)
        } else if nvml.power_w(device).is_some() {
            Access::NvmlPower(nvml.clone(), device)
        } else {
            found.unreadable.push(Unreadable {
                source: "nvml".to_owned(),
                name,
                covers: Covers::Accelerator,
                why: "the driver gives neither energy nor power of it".to_owned(),
                way_out: "run on the host: guests and parts of an accelerator (vGPU, MIG) have no power of their own"
                    .to_owned(),
            });
            continue;
        };
        found.push(SensorFacts::new("nvml", name, Covers::Accelerator), access);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::super::PowerSensors;
    use super::super::sensor::SensorValue;
    use super::*;
    use crate::machine::nvml::BELOW;

    /// Two accelerators: the first counts energy, 250 J more at each reading, the second has a power of 71.5 W alone; a third
    /// one has neither.
    const FAKE: &str = r"
        #include <stdint.h>
        static unsigned long long energy = 1000000;
        static int cards[3];
        int nvmlInit_v2(void) { return 0; }
        int nvmlDeviceGetCount_v2(unsigned *count) { *count = 3; return 0; }
        int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &cards[index]; return 0; }
        int nvmlDeviceGetTotalEnergyConsumption(void *device, unsigned long long *millijoules) {
            if (device != &cards[0]) return 3;
            *millijoules = energy += 250000;
            return 0;
        }
        int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts) {
            *milliwatts = 71500;
            return device == &cards[2] ? 3 : 0;
        }
    ";

    /// Compiles a library at its place below `root`.
    fn library(root: &Path, source: &str) {
        std::fs::create_dir_all(root.join("usr/lib")).unwrap();
        let text = root.join("nvml.c");
        std::fs::write(&text, source).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(root.join(BELOW)).arg(&text).status();
        assert!(built.unwrap().success());
    }

    #[test]
    fn accelerators_give_energy_or_power() {
        let root = tempfile::tempdir().unwrap();
        library(root.path(), FAKE);
        let sensors = PowerSensors::find(root.path());
        let names: Vec<&str> = sensors.set().all().iter().map(|sensor| sensor.name.as_str()).collect();
        assert_eq!(names, ["gpu-0", "gpu-1"]);
        let value = |index: usize| sensors.read()[index];
        let (Some(SensorValue::Joules(before)), Some(SensorValue::Joules(after))) = (value(0), value(0)) else {
            panic!()
        };
        assert_eq!((after - before, value(1)), (250.0, Some(SensorValue::Watts(71.5))));
        let [unreadable] = sensors.unreadable() else { panic!("{sensors:?}") };
        assert!(unreadable.to_string().contains("gpu-2") && unreadable.way_out.contains("MIG"), "{unreadable}");
    }

    /// The accelerators after one that is not opened had the numbers of those before them.
    #[test]
    fn accelerators_keep_their_numbers() {
        let root = tempfile::tempdir().unwrap();
        // The first one is another job's, the third is lost.
        let text = FAKE.replace("*count = 3", "*count = 4").replace("cards[3]", "cards[4]").replace(
            "*device = &cards[index]; return 0;",
            "*device = &cards[index]; return index == 0 ? 4 : index == 2 ? 15 : 0;",
        );
        library(root.path(), &text.replace("!= &cards[0]", "== &cards[0]").replace("== &cards[2]", "== &cards[0]"));
        let sensors = PowerSensors::find(root.path());
        let names: Vec<&str> = sensors.set().all().iter().map(|sensor| sensor.name.as_str()).collect();
        assert_eq!(names, ["gpu-1", "gpu-3"]);
        let [lost] = sensors.unreadable() else { panic!("{sensors:?}") };
        assert!(lost.to_string().starts_with("nvml gpu-2: the driver does not open it, code 15"), "{lost}");
    }

    #[test]
    fn a_library_that_does_not_start_is_named() {
        let root = tempfile::tempdir().unwrap();
        library(root.path(), "int nvmlInit_v2(void) { return 9; }");
        let sensors = PowerSensors::find(root.path());
        assert!(sensors.unreadable()[0].to_string().contains("nvmlInit_v2 gives code 9"), "{sensors:?}");
        // A new file: the old one is loaded.
        std::fs::remove_file(root.path().join(BELOW)).unwrap();
        std::fs::write(root.path().join(BELOW), "no library").unwrap();
        assert!(PowerSensors::find(root.path()).unreadable()[0].to_string().contains("nvml libnvidia-ml.so.1"));
    }
}
