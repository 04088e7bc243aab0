//! Devices on the buses of a host: ports of the network, accelerators.

use serde::{Deserialize, Serialize};

use super::system::{System, field};

/// A port of the network.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its name in the system.
    pub name: String,
    /// `Ethernet`, `InfiniBand` or `Omni-Path`.
    pub kind: String,
    /// Whether it is in use, as the system reports it.
    pub state: Option<String>,
    /// Its rate, by the system's words or in Mbit/s.
    pub rate: Option<String>,
    /// Driver.
    pub driver: Option<String>,
    /// PCI numbers of vendor and device.
    pub pci: Option<String>,
    /// Version of its firmware.
    pub firmware: Option<String>,
}

const NETS: &str = "sys/class/net";
const VERBS: &str = "sys/class/infiniband";

const INFINIBAND: &str = "InfiniBand";
const OMNI_PATH: &str = "Omni-Path";
/// The driver of Omni-Path, whose ports call their layer that of InfiniBand.
const OMNI_PATH_DRIVER: &str = "hfi1";

/// Ports that a device is behind, virtual ones left out.
pub(super) fn ports(system: &System) -> Vec<Port> {
    let pci = |device: &str| {
        let part = |file: &str| system.text(&format!("{device}/{file}"));
        Some(format!("{}:{}", part("vendor")?, part("device")?))
    };
    let ethernet = system.names(NETS).into_iter().filter_map(|name| {
        let folder = format!("{NETS}/{name}");
        let driver = system.link(&format!("{folder}/device/driver"));
        let pci = pci(&format!("{folder}/device"));
        if driver.is_none() && pci.is_none() {
            return None;
        }
        // Without a cable, and in many guests, the rate is -1 or cannot be read.
        let rate = system.text(&format!("{folder}/speed")).and_then(|text| text.parse::<u64>().ok());
        let (state, rate) = (system.text(&format!("{folder}/operstate")), rate.map(|rate| format!("{rate} Mbit/s")));
        Some(Port { kind: "Ethernet".to_owned(), state, rate, driver, pci, firmware: None, name })
    });
    let verbs = system.names(VERBS).into_iter().flat_map(|device| {
        let folder = format!("{VERBS}/{device}");
        let (firmware, pci) = (system.text(&format!("{folder}/fw_ver")), pci(&format!("{folder}/device")));
        let driver = system.link(&format!("{folder}/device/driver"));
        let is_omni_path = driver.as_deref() == Some(OMNI_PATH_DRIVER);
        let port = |number: String| {
            let part = |file: &str| system.text(&format!("{folder}/ports/{number}/{file}"));
            Port {
                kind: match part("link_layer") {
                    _ if is_omni_path => OMNI_PATH.to_owned(),
                    Some(layer) => layer,
                    None => INFINIBAND.to_owned(),
                },
                state: part("state"),
                rate: part("rate"),
                driver: driver.clone(),
                pci: pci.clone(),
                firmware: firmware.clone(),
                name: format!("{device} port {number}"),
            }
        };
        system.names(&format!("{folder}/ports")).into_iter().map(port).collect::<Vec<_>>()
    });
    verbs.chain(ethernet).collect()
}

/// The network between nodes, as far as the ports show: an active port of InfiniBand or Omni-Path, of which the rate is known; nothing is
/// said of Ethernet, which hosts have besides other networks.
pub(super) fn interconnect(ports: &[Port]) -> Option<String> {
    let active = |port: &&Port| port.state.as_deref().is_some_and(|state| state.contains("ACTIVE"));
    let port = ports.iter().filter(active).find(|port| [INFINIBAND, OMNI_PATH].contains(&port.kind.as_str()))?;
    let rate = port.rate.as_deref()?;
    // Behind its rate a port of Omni-Path has the generation of InfiniBand that is as fast.
    let rate = if port.kind == OMNI_PATH { rate.split(" (").next().unwrap_or(rate) } else { rate };
    Some(format!("{}, {rate}", port.kind))
}

/// PCI classes of accelerators: 3D controllers and processing accelerators.
const ACCELERATORS: [&str; 2] = ["0x0302", "0x1200"];
/// PCI class of other display controllers, and the vendor whose accelerators have it: those of AMD up to the MI200.
const DISPLAY: (&str, &str) = ("0x0380", "0x1002");

/// Models of the accelerators as the driver names them, else the PCI numbers of devices of such a class, else of those that AMD's driver
/// computes on; `None` where the system does not list its devices.
pub(super) fn accelerators(system: &System) -> Option<Vec<String>> {
    const NVIDIA: &str = "proc/driver/nvidia/gpus";
    let model = |name: &String| {
        let text = system.text(&format!("{NVIDIA}/{name}/information"))?;
        Some(field(&text, "Model")?.to_owned())
    };
    let named: Vec<String> = system.names(NVIDIA).iter().filter_map(model).collect();
    if !named.is_empty() {
        return Some(named);
    }
    const PCI: &str = "sys/bus/pci/devices";
    let device = |name: &String| {
        let part = |file: &str| system.text(&format!("{PCI}/{name}/{file}"));
        let (class, vendor) = (part("class")?, part("vendor")?);
        let (display, amd) = DISPLAY;
        let is_one =
            ACCELERATORS.iter().any(|known| class.starts_with(known)) || (class.starts_with(display) && vendor == amd);
        is_one.then(|| Some(format!("PCI {vendor}:{}", part("device")?)))?
    };
    // Where the bus is seen, its classes tell accelerators from the graphics of a processor, on which AMD's driver computes, too.
    if let Some(names) = system.listed(PCI).filter(|names| !names.is_empty()) {
        return Some(names.iter().filter_map(device).collect());
    }
    let driven = by_kfd(system);
    if driven.is_empty() { system.listed(PCI).map(|_| Vec::new()) } else { Some(driven) }
}

/// The PCI numbers of the devices that AMD's driver computes on: nodes of its topology with SIMD units, which processors do not have.
fn by_kfd(system: &System) -> Vec<String> {
    const NODES: &str = "sys/class/kfd/kfd/topology/nodes";
    let node = |name: &String| {
        let text = system.text(&format!("{NODES}/{name}/properties"))?;
        let value = |name: &str| {
            let of =
                |line: &str| line.split_once(' ').filter(|(found, _)| *found == name)?.1.trim().parse::<u32>().ok();
            text.lines().find_map(of)
        };
        value("simd_count").filter(|units| *units > 0)?;
        Some(format!("PCI {:#06x}:{:#06x}", value("vendor_id")?, value("device_id")?))
    };
    system.names(NODES).iter().filter_map(node).collect()
}
