//! Parsers of the formats of /proc and /sys; `None` for malformed text.

use super::CpuTimes;

/// More CPUs than any system has; a list beyond it is malformed.
const MAX_CPU: usize = 1 << 16;

/// The value of `key: value`, first occurrence.
pub(super) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Bytes of a /proc/meminfo line, `MemAvailable:   1234 kB`.
pub(super) fn meminfo_bytes(text: &str, key: &str) -> Option<u64> {
    field(text, key)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Memory that a system which grants no more than it can back would still grant, of the lines of /proc/meminfo.
pub(super) fn grantable_bytes(meminfo: &str) -> Option<u64> {
    let bytes = |key| meminfo_bytes(meminfo, key);
    Some(bytes("CommitLimit")?.saturating_sub(bytes("Committed_AS")?))
}

/// The limit of address space in /proc/self/limits that acts, the soft one, in bytes; `None` without a limit.
pub fn address_space_limit(limits: &str) -> Option<u64> {
    let values = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    values.split_ascii_whitespace().next()?.parse().ok()
}

/// Pages of address space that a process has mapped, of the text of /proc/self/statm.
pub(super) fn mapped_pages(statm: &str) -> Option<u64> {
    statm.split_ascii_whitespace().next()?.parse().ok()
}

/// A list of CPU numbers, `0-3,8,10-11`; ascending, without repeats.
pub fn cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse::<usize>().ok()?, last.parse::<usize>().ok()?);
        if first > last || last >= MAX_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// A finite number ≥ 0.
pub(super) fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0)
}

/// The first line of /proc/stat: `cpu user nice system idle iowait irq softirq steal guest guest_nice`.
/// Guest time is contained in user and nice, so the first eight add up to the total.
pub(super) fn cpu_times(text: &str) -> Option<CpuTimes> {
    let mut words = text.lines().next()?.split_ascii_whitespace();
    (words.next()? == "cpu").then_some(())?;
    let ticks = words.take(8).map(|word| word.parse().ok()).collect::<Option<Vec<u64>>>()?;
    let total = ticks.iter().try_fold(0_u64, |sum, &t| sum.checked_add(t))?;
    Some(CpuTimes { total, steal: *ticks.get(7)? })
}

/// Microseconds since boot in which some thread waited, of a file of /proc/pressure: `some avg10=… avg60=… avg300=… total=…`.
pub(super) fn pressure_us(text: &str) -> Option<f64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    number(some.split_ascii_whitespace().find_map(|word| word.strip_prefix("total="))?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn meminfo() {
        let text =
            "MemTotal:       24689704 kB\nMemFree:  1 kB\nMemAvailable:   24100000 kB\nHugePages_Total:       0\n";
        assert_eq!(meminfo_bytes(text, "MemAvailable"), Some(24_100_000 * 1024));
        assert_eq!(meminfo_bytes(text, "MemTotal"), Some(24_689_704 * 1024));
        for bad in
            ["", "MemAvailable", "MemAvailable:", "MemAvailable: kB", "MemAvailable: -1 kB", "MemAvailable: 1 MB"]
        {
            assert_eq!(meminfo_bytes(bad, "MemAvailable"), None, "{bad}");
        }
        assert_eq!(meminfo_bytes(&format!("MemTotal: {} kB", u64::MAX), "MemTotal"), None);
    }

    #[test]
    fn address_space() {
        let limits = |soft: &str| {
            format!(
                "Limit                     Soft Limit           Hard Limit           Units     \n\
                 Max cpu time              unlimited            unlimited            seconds   \n\
                 Max address space         {soft}            unlimited            bytes     \n"
            )
        };
        assert_eq!(address_space_limit(&limits("1073741824")), Some(1 << 30));
        for none in [limits("unlimited"), limits("-1"), "Max address space".to_owned(), String::new()] {
            assert_eq!(address_space_limit(&none), None, "{none}");
        }
        assert_eq!(mapped_pages("1234 100 50 4 0 90 0\n"), Some(1234));
        assert_eq!((mapped_pages(""), mapped_pages("x 1"), mapped_pages("-1")), (None, None, None));
    }

    #[test]
    fn cpu_lists() {
        assert_eq!(cpu_list("0-3,8,10-11\n"), Some(vec![0, 1, 2, 3, 8, 10, 11]));
        assert_eq!(cpu_list("5,2-3,3"), Some(vec![2, 3, 5]));
        assert_eq!(cpu_list(""), Some(vec![]));
        for bad in ["a", "1-", "-1", "3-1", "0-99999999999", "1-2-3", "0x3", "99999"] {
            assert_eq!(cpu_list(bad), None, "{bad}");
        }
    }

    #[test]
    fn stat() {
        let text = "cpu  69470 36043 12187 138835 619 0 100 52 7 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(cpu_times(text), Some(CpuTimes { total: 257_306, steal: 52 }));
        for bad in ["", "cpu", "cpu 1 2 3", "cpu0 1 1 1 1 1 1 1 1", "cpu 1 2 3 4 5 6 7 x", "cpu 1 -2 3 4 5 6 7 8"] {
            assert_eq!(cpu_times(bad), None, "{bad}");
        }
        assert_eq!(cpu_times(&format!("cpu {0} {0} 1 1 1 1 1 1", u64::MAX)), None);
    }

    #[test]
    fn numbers() {
        assert_eq!(number("2600000\n"), Some(2.6e6));
        assert_eq!((number("nan"), number("inf"), number("-1"), number("")), (None, None, None, None));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,60}") {
            let _ = (field(&text, "cpu"), meminfo_bytes(&text, ""), cpu_list(&text), number(&text), cpu_times(&text));
            let _ = (address_space_limit(&text), mapped_pages(&text));
        }
    }
}
