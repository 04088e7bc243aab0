//! Cores of several kinds in one processor, as the P-cores and E-cores of hybrid ones.

use std::path::Path;

use super::{parse, read};

/// Part of the highest capacity or clock below which a core is of a slower kind: highest clocks of equal cores differ, too, by up to
/// a tenth.
const SLOWER: f64 = 0.85;

/// Those of `cores` that are of a slower kind than others of them, by the files below `root`; none where these name one kind.
pub(super) fn slower(root: &Path, cores: &[usize]) -> Vec<usize> {
    // Hybrid processors of Intel have a list of each kind.
    let fast = read(root.join("sys/devices/cpu_core/cpus")).and_then(|text| parse::cpu_list(&text)).unwrap_or_default();
    if cores.iter().any(|core| fast.binary_search(core).is_ok()) {
        return cores.iter().copied().filter(|core| fast.binary_search(core).is_err()).collect();
    }
    let by = |file: &str| {
        let value = |core: &usize| parse::number(&read(root.join(format!("sys/devices/system/cpu/cpu{core}/{file}")))?);
        let values = cores.iter().map(value).collect::<Option<Vec<f64>>>()?;
        let highest = values.iter().copied().fold(0.0, f64::max);
        let slow = cores.iter().zip(values).filter(|(_, value)| *value < SLOWER * highest);
        Some(slow.map(|(core, _)| *core).collect())
    };
    by("cpu_capacity").or_else(|| by("cpufreq/cpuinfo_max_freq")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// The slower ones of cores 0 to 3 by these files.
    fn found(files: &[(String, &str)], cores: &[usize]) -> Vec<usize> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join("sys/devices").join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        slower(root.path(), cores)
    }

    #[test]
    fn cores_of_hybrid_processors_are_told_apart() {
        let of_intel = [("cpu_core/cpus".to_owned(), "0-1\n"), ("cpu_atom/cpus".to_owned(), "2-3\n")];
        assert_eq!(found(&of_intel, &[0, 1, 2, 3]), [2, 3]);
        assert_eq!(found(&of_intel, &[2, 3]), [0; 0], "one kind is allowed");
        let each = |file: &str, values: [&'static str; 4]| -> Vec<(String, &'static str)> {
            let path = |cpu: usize| format!("system/cpu/cpu{cpu}/{file}");
            values.into_iter().enumerate().map(|(cpu, text)| (path(cpu), text)).collect()
        };
        let capacity = each("cpu_capacity", ["430\n", "430\n", "1024\n", "1024\n"]);
        assert_eq!(found(&capacity, &[0, 1, 2, 3]), [0, 1]);
        let clock = |values| found(&each("cpufreq/cpuinfo_max_freq", values), &[0, 1, 2, 3]);
        assert_eq!(clock(["5000000\n", "5000000\n", "3500000\n", "3500000\n"]), [2, 3]);
        // Some cores of one kind reach a little more than the others.
        assert_eq!(clock(["4800000\n", "4600000\n", "4600000\n", "4600000\n"]), [0; 0]);
        assert_eq!(clock(["5000000\n", "3500000\n", "", "3500000\n"]), [0; 0], "one is not known");
        assert_eq!(found(&[], &[0, 1]), [0; 0]);
    }
}
