//! All sensors of a node, and those of them that together stand for it.

use std::path::Path;

use super::found::{FoundSensors, Unreadable};
use super::sensor::{Covers, Sensor};
use super::{cray, gpus, hwmon, powercap};

/// The sensors of a node.
#[derive(Debug, Default)]
pub struct PowerSensors {
    sensors: Vec<Sensor>,
    unreadable: Vec<Unreadable>,
}

impl PowerSensors {
    /// Those whose files lie below `root`, `/` for this host, with the accelerators of the driver's library.
    pub fn find(root: &Path) -> Self {
        let mut found = FoundSensors::default();
        cray::find(root, &mut found);
        powercap::find(root, &mut found);
        hwmon::find(root, &mut found);
        gpus::find(root, &mut found);
        let FoundSensors { sensors, unreadable } = found;
        Self { sensors, unreadable }
    }

    /// All that can be read.
    pub fn all(&self) -> &[Sensor] {
        &self.sensors
    }

    /// Those that cannot.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }

    /// Indices of the sensors that together stand for the node, each energy once, where those with `works` count: those of the
    /// whole node from one interface; else packages with memory, or the platform where there is no package, and accelerators.
    pub fn of_node(&self, works: impl Fn(usize) -> bool) -> Vec<usize> {
        let of = |covers: Covers, source: Option<&str>| -> Vec<usize> {
            let fits = |sensor: &Sensor| sensor.covers == covers && source.is_none_or(|source| sensor.source == source);
            (0..self.sensors.len()).filter(|&index| fits(&self.sensors[index]) && works(index)).collect()
        };
        let first_source = |covers: Covers| {
            let first = of(covers, None).first().map(|&index| self.sensors[index].source);
            first.map_or(Vec::new(), |source| of(covers, Some(source)))
        };
        let node = first_source(Covers::Node);
        if !node.is_empty() {
            return node;
        }
        let mut chosen = first_source(Covers::Package);
        chosen.extend(of(Covers::Memory, None));
        if chosen.is_empty() {
            chosen = first_source(Covers::Platform);
        }
        chosen.extend(of(Covers::Accelerator, None));
        chosen
    }

    /// Whether there is more among these sensors than accelerators, which are no node.
    pub fn have_processors(&self, chosen: &[usize]) -> bool {
        chosen.iter().any(|&index| self.sensors[index].covers != Covers::Accelerator)
    }

    /// Interfaces with the names of these sensors, `powercap package-0 dram-0, nvml gpu-0`.
    pub fn words(&self, chosen: &[usize]) -> String {
        let sensors: Vec<&Sensor> = chosen.iter().map(|&index| &self.sensors[index]).collect();
        let group = |group: &[&Sensor]| {
            let names: Vec<&str> = group.iter().map(|sensor| sensor.name.as_str()).collect();
            format!("{} {}", group[0].source, names.join(" "))
        };
        sensors.chunk_by(|a, b| a.source == b.source).map(group).collect::<Vec<_>>().join(", ")
    }
}
