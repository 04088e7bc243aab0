//! A tree like /proc and /sys, of a node with two sockets.

use std::path::Path;

use super::*;

/// Writes files below `root`.
pub(crate) fn tree(root: &Path, files: &[(&str, &str)]) {
    for (path, text) in files {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

const CPUINFO: &str = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n\
    model name\t: Intel(R) Xeon(R) Platinum 8360Y CPU @ 2.40GHz\nstepping\t: 6\nmicrocode\t: 0xd000389\n\
    cpu MHz\t\t: 2399.9\nflags\t\t: fpu avx2 avx512f\n";

/// The facts of a node with two sockets of two cores with two threads each.
fn node() -> Facts {
    let root = tempfile::tempdir().unwrap();
    tree(
        root.path(),
        &[
            ("proc/cpuinfo", CPUINFO),
            ("proc/meminfo", "MemTotal:       263782400 kB\nMemFree: 1 kB\n"),
            ("proc/sys/kernel/hostname", "n1\n"),
            ("proc/sys/kernel/ostype", "Linux\n"),
            ("proc/sys/kernel/osrelease", "5.14.0\n"),
            ("proc/sys/vm/swappiness", "10\n"),
            ("etc/os-release", "NAME=\"Rocky Linux\"\nPRETTY_NAME=\"Rocky Linux 9.4 (Blue Onyx)\"\n"),
            ("sys/class/dmi/id/sys_vendor", "Vendor Inc.\n"),
            ("sys/class/dmi/id/product_name", "Server 1\n"),
            ("sys/class/dmi/id/product_serial", "SECRET\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/base_frequency", "2400000\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/level", "1\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/type", "Data\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/size", "48K\n"),
            ("sys/devices/system/cpu/cpu0/cache/index0/shared_cpu_list", "0,4\n"),
            ("sys/devices/system/node/node0/cpulist", "0-1\n"),
            ("sys/devices/system/node/node1/cpulist", "2-3\n"),
            ("sys/devices/system/node/has_cpu", "0-1\n"),
            ("sys/class/infiniband/mlx5_0/fw_ver", "20.35\n"),
            ("sys/class/infiniband/mlx5_0/ports/1/rate", "200 Gb/sec (4X HDR)\n"),
            ("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n"),
            ("sys/class/infiniband/mlx5_0/ports/1/link_layer", "InfiniBand\n"),
            ("sys/class/net/eth0/device/vendor", "0x8086\n"),
            ("sys/class/net/eth0/device/device", "0x1592\n"),
            ("sys/class/net/eth0/speed", "25000\n"),
            ("sys/class/net/eth0/operstate", "up\n"),
            ("sys/class/net/lo/operstate", "unknown\n"),
            ("sys/bus/pci/devices/0000:17:00.0/class", "0x120000\n"),
            ("sys/bus/pci/devices/0000:17:00.0/vendor", "0x1002\n"),
            ("sys/bus/pci/devices/0000:17:00.0/device", "0x7408\n"),
            ("sys/bus/pci/devices/0000:00:02.0/class", "0x030000\n"),
            ("sys/bus/pci/devices/0000:00:02.0/vendor", "0x1002\n"),
        ],
    );
    for cpu in 0..8 {
        let (socket, core) = ((cpu % 4 / 2).to_string(), (cpu % 2).to_string());
        let folder = format!("sys/devices/system/cpu/cpu{cpu}/topology");
        tree(
            root.path(),
            &[(&format!("{folder}/physical_package_id"), &socket), (&format!("{folder}/core_id"), &core)],
        );
    }
    Facts::read(&System::at(root.path()))
}

#[test]
fn a_tree_is_read() {
    let facts = node();
    let Processor { sockets, cores_per_socket, threads_per_core, numa_nodes, .. } = facts.processor;
    assert_eq!([sockets, cores_per_socket, threads_per_core, numa_nodes], [Some(2); 4]);
    assert_eq!(facts.processor.cores(), Some(4));
    assert_eq!((facts.processor.family, facts.processor.model_number), (Some(6), Some(106)));
    assert_eq!(facts.processor.nominal_mhz, Some(2400.0));
    assert_eq!(facts.processor.nominal_from.as_deref(), Some("base_frequency of the clock's driver"));
    assert_eq!(facts.processor.caches[0].size, "48K");
    assert_eq!(facts.kernel.as_deref(), Some("Linux 5.14.0"));
    assert_eq!(facts.accelerators, Some(vec!["PCI 0x1002:0x7408".to_owned()]));
    let ports: Vec<&str> = facts.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(ports, ["mlx5_0 port 1", "eth0"]);
    assert_eq!(facts.ports[1].rate.as_deref(), Some("25000 Mbit/s"));
    assert!(!facts.firmware.contains_key("product_serial"), "no number of a single machine");
    let text = toml::to_string(&facts).unwrap();
    assert_eq!(toml::from_str::<Facts>(&text).unwrap(), facts, "{text}");
}

#[test]
fn what_a_site_file_asks_for_is_told_as_far_as_it_is_known() {
    let known = node().known();
    for (path, value) in [
        ("system.manufacturer", "Vendor Inc."),
        ("system.os", "Rocky Linux 9.4 (Blue Onyx)"),
        ("system.processor_mhz", "2400"),
        ("system.memory_per_node_gib", "251.6"),
        ("system.interconnect", "InfiniBand, 200 Gb/sec (4X HDR)"),
        ("system.accelerators_per_node", "1"),
    ] {
        assert_eq!(known.get(path).map(String::as_str), Some(value), "{path}");
    }
    assert_eq!(known.get("system.accelerator_fp64_cores"), None, "no system tells it");
    assert!(known.keys().all(|path| crate::pack::site::find(path).is_some()));
}

/// Its driver says that its layer is that of InfiniBand.
#[test]
fn omni_path_is_no_infiniband() {
    let root = tempfile::tempdir().unwrap();
    let device = "sys/class/infiniband/hfi1_0";
    let port = |file: &str| format!("{device}/ports/1/{file}");
    tree(
        root.path(),
        &[
            (&port("link_layer"), "InfiniBand\n"),
            (&port("state"), "4: ACTIVE\n"),
            (&port("rate"), "100 Gb/sec (4X EDR)\n"),
            (&format!("{device}/device/vendor"), "0x8086\n"),
        ],
    );
    std::os::unix::fs::symlink("../../../bus/pci/drivers/hfi1", root.path().join(device).join("device/driver"))
        .unwrap();
    let facts = Facts::read(&System::at(root.path()));
    assert_eq!(facts.ports[0].kind, "Omni-Path");
    assert_eq!(facts.known().get("system.interconnect").map(String::as_str), Some("Omni-Path, 100 Gb/sec"));
}

#[test]
fn an_empty_tree_tells_nothing() {
    let root = tempfile::tempdir().unwrap();
    let facts = Facts::read(&System::at(root.path()));
    assert_eq!((facts.os.as_ref(), facts.memory_bytes, facts.processor.cores()), (None, None, None));
    assert_eq!(facts.known().len(), 0, "{:?}", facts.known());
}

/// The accelerators of a tree of these files.
fn accelerators(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let root = tempfile::tempdir().unwrap();
    tree(root.path(), files);
    Facts::read(&System::at(root.path())).accelerators
}

#[test]
fn an_mi200_is_an_accelerator_although_its_class_is_that_of_a_display() {
    const DEVICE: &str = "sys/bus/pci/devices/0000:c1:00.0";
    const KFD: &str = "sys/class/kfd/kfd/topology/nodes";
    let [class, vendor, device] = ["class", "vendor", "device"].map(|name| format!("{DEVICE}/{name}"));
    let pci = |of: &'static str| [(&*class, "0x038000\n"), (&*vendor, of), (&*device, "0x740c\n")];
    let one = Some(vec!["PCI 0x1002:0x740c".to_owned()]);
    assert_eq!(accelerators(&pci("0x1002\n")), one);
    assert_eq!(accelerators(&pci("0x1a03\n")), Some(Vec::new()), "a display of a management controller");
    // Where the bus is not seen, as in a container, the driver's topology has it.
    let node = |node: usize| format!("{KFD}/{node}/properties");
    let (processor, gpu) = (node(0), node(1));
    let driven = [
        (&*processor, "cpu_cores_count 64\nsimd_count 0\nvendor_id 0\ndevice_id 0\n"),
        (&*gpu, "cpu_cores_count 0\nsimd_count 440\nvendor_id 4098\ndevice_id 29708\n"),
    ];
    assert_eq!(accelerators(&driven), one);
    assert_eq!(accelerators(&[&pci("0x1002\n")[..], &driven].concat()), one, "it is counted once");
    assert_eq!(
        accelerators(&[&pci("0x1a03\n")[..], &driven].concat()),
        Some(Vec::new()),
        "the graphics of a processor"
    );
    assert_eq!(accelerators(&[]), None, "nothing says that there is none");
}
