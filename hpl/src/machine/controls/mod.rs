//! Controls of a node: the highest clock of its processors by `cpufreq`, the power limits of its packages by `powercap`, those of
//! accelerators by NVIDIA's library (`gpus`).
//!
//! All paths are below a root, `/` for this host, so that tests have a tree of their own. [`NodeControls::find`] reads what is set now
//! and changes nothing; [`NodeControls::set`] writes, and reads back what the kernel has made of it. [`NodeClocks`] says what the clocks of a
//! node are where somebody else sets them.

mod clocks;
mod error;
mod gpus;
mod levels;

pub use clocks::NodeClocks;
pub use error::ControlError;
pub use gpus::{GpuControl, put_back_gpus};

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use space::{NodeSettings, SettingLevels};

use self::gpus::GpuLimits;
use self::levels::{ROUNDED, clocks_below, limits_below};

/// kHz in a MHz, and microwatts in a watt.
const KHZ: f64 = 1e3;
const MICROWATTS: f64 = 1e6;
/// Which controls are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Controlled {
    /// The highest clock of the processors.
    pub clock: bool,
    /// The power limits of the packages.
    pub package_limit: bool,
    /// The power limits of the accelerators.
    pub gpu_limit: bool,
}

/// A file that sets something, with what it was found with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Control {
    /// The file.
    pub path: PathBuf,
    /// Its text as it was found, without the white space around it.
    pub found: String,
    /// The same as a number: kHz or microwatts.
    value: u64,
}

/// The controls of a node that are used.
#[derive(Debug, Default)]
pub struct NodeControls {
    clock: Vec<Control>,
    limit: Vec<Control>,
    gpus: Option<GpuLimits>,
    levels: SettingLevels,
}

impl NodeControls {
    /// The controls `wanted` below `root`, and what they are set to now.
    ///
    /// # Errors
    /// [`ControlError`]: there are none, or this user may not write them.
    pub fn find(root: &Path, wanted: Controlled) -> Result<Self, ControlError> {
        let mut found = Self::default();
        if wanted.clock {
            found.find_clock(root)?;
        }
        if wanted.package_limit {
            found.find_limit(root)?;
        }
        if wanted.gpu_limit {
            let (gpus, levels) = GpuLimits::find(root)?;
            (found.gpus, found.levels.gpu_limit_w) = (Some(gpus), levels);
        }
        Ok(found)
    }

    /// The values that a search tries.
    pub fn levels(&self) -> &SettingLevels {
        &self.levels
    }

    /// All files with what they were found with.
    pub fn all(&self) -> impl Iterator<Item = &Control> {
        self.clock.iter().chain(&self.limit)
    }

    /// The accelerators with what they were found with.
    pub fn gpus(&self) -> &[GpuControl] {
        self.gpus.as_ref().map_or(&[], GpuLimits::controls)
    }

    /// Makes `settings`; what they leave open is as it was found.
    ///
    /// # Errors
    /// [`ControlError`] of the first file that is not set then; those before it are.
    pub fn set(&self, settings: &NodeSettings) -> Result<(), ControlError> {
        let found = self.levels.as_found();
        // What is asked as it was found is left to each file: several limits of a package may differ.
        let below =
            |asked: Option<u32>, found: Option<u32>| asked.filter(|asked| found.is_some_and(|found| *asked < found));
        let to = |asked: Option<u32>, unit: f64| asked.map_or(u64::MAX, |asked| (f64::from(asked) * unit) as u64);
        let clock = to(below(settings.max_clock_mhz, found.max_clock_mhz), KHZ);
        let limit = to(below(settings.package_limit_w, found.package_limit_w), MICROWATTS);
        self.clock.iter().try_for_each(|control| control.set(clock))?;
        self.limit.iter().try_for_each(|control| control.set(limit))?;
        let of_gpus = below(settings.gpu_limit_w, found.gpu_limit_w);
        self.gpus.as_ref().map_or(Ok(()), |gpus| gpus.set(of_gpus))
    }

    fn find_clock(&mut self, root: &Path) -> Result<(), ControlError> {
        let folder = root.join("sys/devices/system/cpu");
        let mut least = 0;
        for name in names(&folder) {
            let is_cpu = name.strip_prefix("cpu").is_some_and(|rest| rest.parse::<u32>().is_ok());
            let path = folder.join(&name).join("cpufreq/scaling_max_freq");
            if !is_cpu || !path.exists() {
                continue;
            }
            // Processors of one policy share its files.
            let path = path.canonicalize().unwrap_or(path);
            if self.clock.iter().any(|known| known.path == path) {
                continue;
            }
            self.clock.push(Control::open(&path, "cpufreq")?);
            for bound in ["cpuinfo_min_freq", "scaling_min_freq"] {
                least = number(&path.with_file_name(bound)).map_or(least, |bound| bound.max(least));
            }
        }
        let Some(highest) = self.clock.iter().max_by_key(|control| control.value) else {
            let path = folder.join("cpu*/cpufreq/scaling_max_freq");
            return Err(ControlError::Missing {
                path,
                way_out: "the kernel has no cpufreq driver for this processor, or this is a virtual machine or a container",
            });
        };
        let found_mhz = (highest.value as f64 / KHZ).round() as u32;
        self.levels.max_clock_mhz = clocks_below(found_mhz, (least as f64 / KHZ).ceil() as u32);
        if self.levels.max_clock_mhz.len() < 2 {
            return Err(ControlError::NoRange { path: highest.path.clone(), found: highest.value, least });
        }
        Ok(())
    }

    fn find_limit(&mut self, root: &Path) -> Result<(), ControlError> {
        let folder = root.join("sys/class/powercap");
        let mut highest = 0;
        for zone in names(&folder) {
            let package = zone.strip_prefix("intel-rapl:").is_some_and(|number| number.parse::<u32>().is_ok());
            let zone = folder.join(&zone);
            let name = fs::read_to_string(zone.join("name")).unwrap_or_default();
            if !package || !name.starts_with("package") {
                continue;
            }
            let switch = zone.join("enabled");
            if number(&switch) == Some(0) {
                return Err(ControlError::Disabled { path: switch });
            }
            for index in 0.. {
                let path = zone.join(format!("constraint_{index}_power_limit_uw"));
                if !path.exists() {
                    break;
                }
                let name = fs::read_to_string(zone.join(format!("constraint_{index}_name"))).unwrap_or_default();
                // The limit of the shortest peaks guards the power supply.
                if name.trim() == "peak_power" {
                    continue;
                }
                let control = Control::open(&path, "powercap")?;
                if index == 0 {
                    // Some firmware sets a limit that no package reaches.
                    let most = number(&zone.join("constraint_0_max_power_uw")).filter(|&most| most > 0);
                    highest = most.map_or(control.value, |most| most.min(control.value)).max(highest);
                }
                self.limit.push(control);
            }
        }
        let Some(first) = self.limit.first() else {
            let path = folder.join("intel-rapl:*/constraint_0_power_limit_uw");
            return Err(ControlError::Missing {
                path,
                way_out: "the kernel module intel_rapl_msr is not loaded, this processor has no limit (AMD's have none in Linux), or this \
                          is a virtual machine or a container",
            });
        };
        let found_w = (highest as f64 / MICROWATTS).round() as u32;
        self.levels.package_limit_w = limits_below(found_w, 1);
        if self.levels.package_limit_w.len() < 2 {
            return Err(ControlError::NoRange { path: first.path.clone(), found: first.value, least: 0 });
        }
        Ok(())
    }
}

impl Control {
    /// The file at `path` of `interface`, which this user may write.
    fn open(path: &Path, interface: &str) -> Result<Self, ControlError> {
        let closed = |error: &io::Error| ControlError::closed(path, interface, error);
        let found = fs::read_to_string(path).map_err(|error| closed(&error))?.trim().to_owned();
        let value = found.parse().map_err(|_| closed(&io::Error::other(format!("it has no number but '{found}'"))))?;
        fs::OpenOptions::new().write(true).open(path).map_err(|error| closed(&error))?;
        Ok(Self { path: path.to_owned(), found, value })
    }

    /// Sets it to `asked`, or to what was found where that is less.
    fn set(&self, asked: u64) -> Result<(), ControlError> {
        let as_found = asked >= self.value;
        let text = if as_found { self.found.clone() } else { asked.to_string() };
        fs::write(&self.path, &text).map_err(|error| ControlError::closed(&self.path, "it", &error))?;
        let found = fs::read_to_string(&self.path).unwrap_or_default().trim().to_owned();
        let wanted = if as_found { self.value } else { asked };
        let near = |value: f64| (value - wanted as f64).abs() <= ROUNDED * wanted as f64;
        let taken = found.parse().is_ok_and(near);
        if taken { Ok(()) } else { Err(ControlError::NotTaken { path: self.path.clone(), asked: wanted, found }) }
    }
}

/// Writes `found` to the control at `path` again, and nothing to a path below `root` that is none: who names it may be a file of
/// somebody else.
///
/// # Errors
/// Why it is not as it was, in words.
pub fn put_back(root: &Path, path: &Path, found: &str) -> Result<(), String> {
    let root = root.canonicalize().map_err(|error| format!("{}: {error}", root.display()))?;
    let real = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_limit = name.starts_with("constraint_") && name.ends_with("_power_limit_uw");
    let is_number = !found.is_empty() && found.bytes().all(|byte| byte.is_ascii_digit());
    if !(real.starts_with(root.join("sys")) && (is_limit || name == "scaling_max_freq") && is_number) {
        return Err(format!(
            "{} is no control of a clock or a power limit, or '{found}' is no value of it",
            path.display()
        ));
    }
    let said = |error: io::Error| ControlError::closed(&real, "it", &error).to_string();
    fs::write(&real, found).map_err(said)?;
    let now = fs::read_to_string(&real).map_err(said)?;
    if now.trim() == found {
        Ok(())
    } else {
        Err(format!("{}: {found} was written, it reads {}", real.display(), now.trim()))
    }
}

fn number(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

/// Names in a folder, sorted; none where there is no such folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[cfg(test)]
mod tests;
