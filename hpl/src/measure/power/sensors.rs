//! All sensors of a node, and those of them that together stand for it.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts, SensorValue};
use super::{cray, dcmi, gpus, hwmon, perf, powercap};

/// What is known of the sensors of a node, this one or another.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SensorSet(Vec<SensorFacts>);

impl SensorSet {
    /// All that can be read.
    pub fn all(&self) -> &[SensorFacts] {
        &self.0
    }

    /// Indices of the sensors that together stand for the node, each energy once, where those with `works` count: those of the
    /// whole node from one interface; else packages with memory, or the platform where there is no package, and accelerators.
    pub fn of_node(&self, works: impl Fn(usize) -> bool) -> Vec<usize> {
        let of = |covers: Covers, source: Option<&str>| -> Vec<usize> {
            let fits =
                |sensor: &SensorFacts| sensor.covers == covers && source.is_none_or(|source| sensor.source == source);
            (0..self.0.len()).filter(|&index| fits(&self.0[index]) && works(index)).collect()
        };
        let first_source = |covers: Covers| {
            let first = of(covers, None).first().map(|&index| self.0[index].source.as_str());
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
        chosen.iter().any(|&index| self.0[index].covers != Covers::Accelerator)
    }

    /// Those that measure packages or their memory by the same interface as these sensors do, and accelerators where these do not measure the
    /// whole node at once: without them these are not the whole node.
    pub fn lacking<'a>(&self, chosen: &[usize], unreadable: &'a [Unreadable]) -> Vec<&'a Unreadable> {
        let is_alike = |sensor: &Unreadable| {
            let is_part = |covers: Covers| matches!(covers, Covers::Package | Covers::Memory);
            let alike = |&index: &usize| self.0[index].source == sensor.source && is_part(self.0[index].covers);
            is_part(sensor.covers) && chosen.iter().any(alike)
        };
        let whole = chosen.iter().any(|&index| self.0[index].covers == Covers::Node);
        let is_accelerator = |sensor: &Unreadable| sensor.covers == Covers::Accelerator && !whole;
        unreadable.iter().filter(|sensor| is_alike(sensor) || is_accelerator(sensor)).collect()
    }

    /// Interfaces with the names of these sensors, `powercap package-0 dram-0, nvml gpu-0`.
    pub fn words(&self, chosen: &[usize]) -> String {
        let sensors: Vec<&SensorFacts> = chosen.iter().map(|&index| &self.0[index]).collect();
        let group = |group: &[&SensorFacts]| {
            let names: Vec<&str> = group.iter().map(|sensor| sensor.name.as_str()).collect();
            format!("{} {}", group[0].source, names.join(" "))
        };
        sensors.chunk_by(|a, b| a.source == b.source).map(group).collect::<Vec<_>>().join(", ")
    }
}

impl FromIterator<SensorFacts> for SensorSet {
    fn from_iter<I: IntoIterator<Item = SensorFacts>>(sensors: I) -> Self {
        Self(sensors.into_iter().collect())
    }
}

/// The sensors of this node.
#[derive(Debug, Default)]
pub struct PowerSensors {
    set: SensorSet,
    access: Vec<Access>,
    unreadable: Vec<Unreadable>,
}

impl PowerSensors {
    /// Those whose files lie below `root`, `/` for this host, with the accelerators of the driver's library. Takes seconds where a
    /// management controller has to be asked that does not answer.
    pub fn find(root: &Path) -> Self {
        let mut found = FoundSensors::default();
        cray::find(root, &mut found);
        powercap::find(root, &mut found);
        perf::find(root, &mut found);
        hwmon::find(root, &mut found);
        gpus::find(root, &mut found);
        dcmi::find(root, &mut found);
        let FoundSensors { sensors, unreadable } = found;
        let (facts, access) = sensors.into_iter().unzip();
        Self { set: SensorSet(facts), access, unreadable }
    }

    /// What is known of those that can be read.
    pub fn set(&self) -> &SensorSet {
        &self.set
    }

    /// The value of each; `None` where it cannot be read any more, or none has come since the last call.
    pub fn read(&self) -> Vec<Option<SensorValue>> {
        self.access.iter().map(Access::read).collect()
    }

    /// Those that cannot be read.
    pub fn unreadable(&self) -> &[Unreadable] {
        &self.unreadable
    }
}
