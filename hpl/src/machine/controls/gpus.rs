//! Power limits of NVIDIA's accelerators.

use std::path::Path;

use super::error::ControlError;
use super::levels::{ROUNDED, limits_below};
use crate::machine::nvml::{GpuIndex, LimitRefused, NAME, Nvml};

/// Milliwatts in a watt.
const MILLI: u32 = 1000;

/// The power limit of an accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GpuControl {
    /// Its number in the driver's library.
    pub gpu: usize,
    /// The limit that it was found with, in milliwatts.
    pub found_mw: u32,
}

/// The limits of all accelerators of a node.
#[derive(Debug)]
pub(super) struct GpuLimits {
    nvml: Nvml,
    controls: Vec<GpuControl>,
}

impl GpuLimits {
    /// Those of the library below `root`, and the values in watts that a search tries.
    ///
    /// # Errors
    /// No accelerator, or one whose limit this user cannot set.
    pub(super) fn find(root: &Path) -> Result<(Self, Vec<u32>), ControlError> {
        let nvml = library(root)?;
        let mut found = Self { nvml, controls: Vec::new() };
        let mut least_mw = 0;
        for gpu in found.nvml.gpus() {
            let index = gpu.number();
            let limit = found.nvml.limit_mw(gpu).zip(found.nvml.limits_mw(gpu));
            let Some((found_mw, [least, _])) = limit else {
                let why = "the driver gives no power limit of it".to_owned();
                return Err(refused(index, why, "guests and some accelerators have none that can be changed"));
            };
            // What it has already: this changes nothing, and shows whether it may be changed.
            found.nvml.set_limit_mw(gpu, found_mw).map_err(|error| not_set(index, error))?;
            least_mw = least.max(least_mw);
            found.controls.push(GpuControl { gpu: index, found_mw });
        }
        let Some(found_mw) = found.controls.iter().map(|control| control.found_mw).max() else {
            return Err(ControlError::Gpu {
                what: NAME.to_owned(),
                why: "it has no accelerator".to_owned(),
                way_out: "leave gpu-power-cap out of --vary",
            });
        };
        let levels = limits_below(found_mw / MILLI, least_mw.div_ceil(MILLI));
        if levels.len() < 2 {
            let why = format!("its limit is {} W and the least is {} W", found_mw / MILLI, least_mw.div_ceil(MILLI));
            return Err(refused(0, why, "nothing below it can be tried; leave gpu-power-cap out of --vary"));
        }
        Ok((found, levels))
    }

    pub(super) fn controls(&self) -> &[GpuControl] {
        &self.controls
    }

    /// Sets each to `asked_w`, or to what was found where that is less or nothing is asked.
    pub(super) fn set(&self, asked_w: Option<u32>) -> Result<(), ControlError> {
        self.controls.iter().try_for_each(|control| {
            let asked_mw = asked_w.map_or(u32::MAX, |watts| watts.saturating_mul(MILLI)).min(control.found_mw);
            set(&self.nvml, control.gpu, asked_mw)
        })
    }
}

/// Sets the limit of an accelerator, and reads back what has become of it.
fn set(nvml: &Nvml, index: usize, asked_mw: u32) -> Result<(), ControlError> {
    let gone = || refused(index, "it is gone".to_owned(), "see what nvidia-smi says of it");
    let gpu: GpuIndex = nvml.gpu(index).ok_or_else(gone)?;
    nvml.set_limit_mw(gpu, asked_mw).map_err(|error| not_set(index, error))?;
    let now_mw = nvml.limit_mw(gpu).ok_or_else(gone)?;
    if f64::from(now_mw.abs_diff(asked_mw)) <= ROUNDED * f64::from(asked_mw) {
        return Ok(());
    }
    let why = format!("{} W was set, it is {} W", asked_mw / MILLI, now_mw / MILLI);
    Err(refused(index, why, "the driver does not let it go there"))
}

/// Sets each accelerator, by its number, to the milliwatts that it was found with; why one of them is not, in words.
pub fn put_back_gpus(root: &Path, found: &[(usize, u32)]) -> Vec<String> {
    if found.is_empty() {
        return Vec::new();
    }
    match library(root) {
        Ok(nvml) => {
            found.iter().filter_map(|&(gpu, found_mw)| set(&nvml, gpu, found_mw).err()).map(|e| e.to_string()).collect()
        }
        Err(error) => vec![error.to_string()],
    }
}

fn library(root: &Path) -> Result<Nvml, ControlError> {
    let none = |why: String| ControlError::Gpu {
        what: NAME.to_owned(),
        why,
        way_out: "power limits of accelerators are set by that library of NVIDIA's driver; in a container, start it with --gpus all",
    };
    let found = Nvml::below(root).map_err(none)?;
    found.ok_or_else(|| none("there is no such library".to_owned()))
}

fn refused(gpu: usize, why: String, way_out: &'static str) -> ControlError {
    ControlError::Gpu { what: format!("gpu-{gpu}"), why, way_out }
}

fn not_set(gpu: usize, error: LimitRefused) -> ControlError {
    match error {
        LimitRefused::NoPermission => refused(gpu, "this user may not set its power limit".to_owned(), "run as root"),
        LimitRefused::Code(code) => refused(
            gpu,
            format!("its power limit cannot be set, code {code} of NVML"),
            "see what nvidia-smi --power-limit says",
        ),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::process::Command;

    use space::NodeSettings;

    use super::super::{Controlled, NodeControls};
    use super::*;
    use crate::machine::nvml::BELOW;

    const LIMITS: Controlled = Controlled { clock: false, package_limit: false, gpu_limit: true };

    /// Two accelerators of 700 W and 500 W, least 200 W; `refuses`: what setting does before anything else.
    fn library(root: &Path, refuses: &str) {
        let text = r"
            static unsigned limits[2] = {700000, 500000};
            int nvmlInit_v2(void) { return 0; }
            int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
            int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **device) { *device = &limits[index]; return 0; }
            int nvmlDeviceGetPowerManagementLimit(unsigned *device, unsigned *mw) { *mw = *device; return 0; }
            int nvmlDeviceGetPowerManagementLimitConstraints(void *device, unsigned *least, unsigned *most) {
                *least = 200000; *most = 700000; return 0;
            }
            int nvmlDeviceSetPowerManagementLimit(unsigned *device, unsigned mw) { REFUSES *device = mw; return 0; }
        ";
        fs::create_dir_all(root.join("usr/lib")).unwrap();
        let source = root.join("nvml.c");
        fs::write(&source, text.replace("REFUSES", refuses)).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(root.join(BELOW)).arg(&source).status();
        assert!(built.unwrap().success());
    }

    #[test]
    fn limits_are_set_and_put_back() {
        let root = tempfile::tempdir().unwrap();
        library(root.path(), "");
        let controls = NodeControls::find(root.path(), LIMITS).unwrap();
        assert_eq!(controls.levels().gpu_limit_w, [350, 420, 490, 560, 630, 700]);
        let found = [GpuControl { gpu: 0, found_mw: 700_000 }, GpuControl { gpu: 1, found_mw: 500_000 }];
        assert_eq!((controls.gpus(), controls.all().count()), (&found[..], 0));
        // The library is loaded once, so that this is what was set.
        let now = || {
            let nvml = Nvml::below(root.path()).unwrap().unwrap();
            nvml.gpus().map(|gpu| nvml.limit_mw(gpu).unwrap()).collect::<Vec<_>>()
        };
        let set = |gpu_limit_w| controls.set(&NodeSettings { gpu_limit_w, ..NodeSettings::default() });
        set(Some(560)).unwrap();
        assert_eq!(now(), [560_000, 500_000], "that of the second one is lower");
        set(Some(350)).unwrap();
        assert_eq!(now(), [350_000, 350_000]);
        assert!(put_back_gpus(root.path(), &[(0, 700_000), (1, 500_000)]).is_empty());
        assert_eq!(now(), [700_000, 500_000]);
        set(Some(420)).unwrap();
        controls.set(&controls.levels().as_found()).unwrap();
        assert_eq!(now(), [700_000, 500_000]);
        assert!(put_back_gpus(root.path(), &[(5, 700_000)])[0].contains("gpu-5: it is gone"));
    }

    #[test]
    fn what_cannot_be_set_is_named_with_the_way_out() {
        let said = |root: &Path| NodeControls::find(root, LIMITS).unwrap_err().to_string();
        let root = tempfile::tempdir().unwrap();
        assert!(said(root.path()).contains("libnvidia-ml.so.1: there is no such library"), "{}", said(root.path()));
        assert!(put_back_gpus(root.path(), &[(0, 5)])[0].contains("no such library"));
        library(root.path(), "return 4;");
        assert_eq!(said(root.path()), "gpu-0: this user may not set its power limit; run as root");
        let root = tempfile::tempdir().unwrap();
        library(root.path(), "return 3;");
        assert!(said(root.path()).contains("code 3 of NVML"), "{}", said(root.path()));
        let root = tempfile::tempdir().unwrap();
        library(root.path(), "if (mw < 600000) mw = 600000;");
        let nvml = Nvml::below(root.path()).unwrap().unwrap();
        let taken = set(&nvml, 0, 400_000).unwrap_err().to_string();
        assert!(taken.contains("gpu-0: 400 W was set, it is 600 W"), "{taken}");
    }
}
