//! The compute units of an AMD device, from the files of its kernel driver.

use std::fs;
use std::path::Path;

/// Compute units of the device at this PCI address, by the files of the system below `root`; where parts of it are devices of their own,
/// those of the smallest. `None` where the files do not say.
pub(super) fn compute_units(root: &Path, address: &str) -> Option<usize> {
    let wanted = location(address)?;
    let nodes = fs::read_dir(root.join("sys/class/kfd/kfd/topology/nodes")).ok()?;
    let texts = nodes.filter_map(|node| fs::read_to_string(node.ok()?.path().join("properties")).ok());
    texts.filter(|text| located(text) == Some(wanted)).filter_map(|text| units(&text)).min()
}

/// Domain, and bus, device and function in one number, of an address such as `0000:c1:00.0`.
fn location(address: &str) -> Option<(u64, u64)> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    let (domain, rest) = address.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    Some((number(domain)?, number(bus)? << 8 | number(device)? << 3 | number(function)?))
}

/// The same of a node of the topology.
fn located(text: &str) -> Option<(u64, u64)> {
    Some((property(text, "domain").unwrap_or(0), property(text, "location_id")?))
}

/// Compute units of a node of the topology, at least 1.
fn units(text: &str) -> Option<usize> {
    let units = property(text, "simd_count")?.checked_div(property(text, "simd_per_cu")?)?;
    usize::try_from(units).ok().filter(|units| *units > 0)
}

/// The value of a line `NAME VALUE`.
fn property(text: &str, name: &str) -> Option<u64> {
    let value = |line: &str| line.split_once(' ').filter(|(found, _)| *found == name)?.1.trim().parse().ok();
    text.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compute_units_are_those_at_the_address() {
        let root = tempfile::tempdir().unwrap();
        let nodes = root.path().join("sys/class/kfd/kfd/topology/nodes");
        let texts = [
            "cpu_cores_count 64\nsimd_count 0\nsimd_per_cu 0\nlocation_id 0\n",
            "simd_count 440\nsimd_per_cu 4\nlocation_id 49408\ndomain 0\n",
            "simd_count 1216\nsimd_per_cu 4\nlocation_id 49408\ndomain 1\n",
            "simd_count 152\nsimd_per_cu 4\nlocation_id 49408\ndomain 1\n",
        ];
        for (node, text) in texts.into_iter().enumerate() {
            let folder = nodes.join(node.to_string());
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("properties"), text).unwrap();
        }
        let of = |address| compute_units(root.path(), address);
        assert_eq!((of("0000:c1:00.0"), of("0001:c1:00.0")), (Some(110), Some(38)));
        assert_eq!([of("0000:00:00.0"), of("0000:c1:00.1"), of("c1"), of("")], [None; 4]);
        assert_eq!(compute_units(&nodes, "0000:c1:00.0"), None);
    }
}
