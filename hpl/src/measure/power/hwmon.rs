//! Sensors of hwmon: power meters of ACPI (of the node, or of the sockets of NVIDIA Grace), AMD's energy counters and accelerators.

use std::io;
use std::path::{Path, PathBuf};

use nix::libc::EPERM;

use super::files;
use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};

/// Microwatts in a watt, microjoules in a joule.
const MICRO: f64 = 1e6;

const WAY_OUT: &str = "sudo chmod a+r that file until the next boot; docs/power.md has a udev rule";

/// The sensors below `root`.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    for (_, folder) in files::entries(&root.join("sys/class/hwmon")) {
        match files::text(&folder.join("name")).as_deref() {
            Some("power_meter") => acpi(&folder, found),
            Some("amd_energy") => amd_energy(&folder, found),
            Some("amdgpu") => amdgpu(&folder, found),
            _ => {}
        }
    }
}

/// A power meter of ACPI. Grace has one for each rail of a socket, named in `power1_oem_info`; of these the socket counts, or
/// the module where there is no such.
fn acpi(folder: &Path, found: &mut FoundSensors) {
    // The attributes are those of the device; newer kernels have them in both folders.
    let Some(folder) =
        [folder.to_owned(), folder.join("device")].into_iter().find(|at| at.join("power1_average").exists())
    else {
        return;
    };
    let name = files::text(&folder.join("power1_oem_info"));
    let (name, covers) = match name.as_deref() {
        Some(name) if name.starts_with("Grace Power") => (name.to_lowercase(), Covers::Package),
        Some(name) if name.starts_with("Module Power") => (name.to_lowercase(), Covers::Node),
        Some(name) if name.starts_with("CPU Power") || name.starts_with("SysIO Power") => return,
        _ => ("power_meter".to_owned(), Covers::Node),
    };
    push(folder.join("power1_average"), false, name, covers, found);
}

/// The counters of the sockets; those of cores are parts of them.
fn amd_energy(folder: &Path, found: &mut FoundSensors) {
    for (file, path) in files::entries(folder) {
        let Some(number) = file.strip_prefix("energy").and_then(|rest| rest.strip_suffix("_label")) else { continue };
        if let Some(socket) = files::text(&path).and_then(|label| Some(label.strip_prefix("Esocket")?.to_owned())) {
            let path = folder.join(format!("energy{number}_input"));
            push(path, true, format!("package-{socket}"), Covers::Package, found);
        }
    }
}

/// An accelerator, or the package of an APU: of that the driver says the power of the whole socket, as RAPL does.
fn amdgpu(folder: &Path, found: &mut FoundSensors) {
    let powers = ["power1_average", "power1_input"].map(|name| folder.join(name));
    let Some(path) = powers.into_iter().find(|path| path.exists()) else { return };
    // The driver has this voltage of APUs alone; not of the MI300A.
    if files::text(&folder.join("in1_label")).as_deref() == Some("vddnb") {
        return push(path, false, "apu".to_owned(), Covers::Package, found);
    }
    accelerator(files::number(&path), path, found);
}

/// The accelerator whose power is in the file at `path`, which has given `value`.
fn accelerator(value: io::Result<f64>, path: PathBuf, found: &mut FoundSensors) {
    // While nothing runs on it, it may sleep: the driver then refuses its power, and gives it once it is awake.
    let value = value.or_else(|error| if error.raw_os_error() == Some(EPERM) { Ok(0.0) } else { Err(error) });
    let name = format!("amdgpu-{}", found.count(Covers::Accelerator));
    take(value, path, false, name, Covers::Accelerator, found);
}

fn push(path: PathBuf, energy: bool, name: String, covers: Covers, found: &mut FoundSensors) {
    take(files::number(&path), path, energy, name, covers, found);
}

/// Takes the sensor whose file has given `value`.
fn take(value: io::Result<f64>, path: PathBuf, energy: bool, name: String, covers: Covers, found: &mut FoundSensors) {
    match value {
        Ok(_) => {
            let access = if energy { Access::Energy(path, MICRO) } else { Access::Power(path, MICRO) };
            found.push(SensorFacts::new("hwmon", name, covers), access);
        }
        Err(error) => {
            let named = format!("{name} ({})", path.display());
            found.unreadable.push(Unreadable::of(("hwmon", &named), covers, &error, WAY_OUT));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use nix::libc::EACCES;

    use super::super::sensor::SensorValue;
    use super::*;

    /// Since Linux 6.13; it was left out of the power of all runs on it.
    #[test]
    fn an_accelerator_that_sleeps_is_read_once_it_is_awake() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("power1_average");
        let (mut asleep, mut closed) = (FoundSensors::default(), FoundSensors::default());
        accelerator(Err(io::Error::from_raw_os_error(EPERM)), path.clone(), &mut asleep);
        accelerator(Err(io::Error::from_raw_os_error(EACCES)), path.clone(), &mut closed);
        assert_eq!((asleep.sensors.len(), closed.sensors.len(), closed.unreadable.len()), (1, 0, 1));
        let (facts, access) = &asleep.sensors[0];
        assert_eq!((facts.name.as_str(), access.read()), ("amdgpu-0", None));
        fs::write(&path, "250000000\n").unwrap();
        assert_eq!(access.read(), Some(SensorValue::Watts(250.0)));
    }
}
