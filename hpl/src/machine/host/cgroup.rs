//! Limits of the control group that this process runs in, versions 1 and 2.
//!
//! Limits of all levels between the process's group and the root of the mounted hierarchy apply, so all levels are read and
//! the tightest limit is used.

use std::path::{Path, PathBuf};

use super::parse;

/// Limits of the group; `None` without a limit.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct CgroupLimits {
    /// Tightest memory limit in bytes.
    pub(super) memory_limit_bytes: Option<u64>,
    /// Memory that the tightest level still allows, in bytes; cached files count as free.
    pub(super) memory_headroom_bytes: Option<u64>,
    /// Tightest CPU quota, in CPUs.
    pub(super) cpu_quota: Option<f64>,
}

/// Reads the limits of this process, as the files below `root` have them.
pub(super) fn limits(root: &Path) -> CgroupLimits {
    let groups = super::read(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounts = super::read(root.join("proc/self/mountinfo")).unwrap_or_default();
    let mut limits = CgroupLimits::default();
    for hierarchy in [Hierarchy::V2, Hierarchy::V1("memory"), Hierarchy::V1("cpu")] {
        let Some((top, folder)) = folders(&groups, &mounts, hierarchy) else { continue };
        for level in folder.ancestors().take_while(|level| level.starts_with(&top)) {
            limits.tighten(read_level(hierarchy, |name| {
                super::read(root.join(level.strip_prefix("/").unwrap_or(level)).join(name))
            }));
        }
    }
    limits
}

impl CgroupLimits {
    fn tighten(&mut self, other: Self) {
        fn least<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        self.memory_limit_bytes = least(self.memory_limit_bytes, other.memory_limit_bytes);
        self.memory_headroom_bytes = least(self.memory_headroom_bytes, other.memory_headroom_bytes);
        self.cpu_quota = least(self.cpu_quota, other.cpu_quota);
    }
}

/// A hierarchy: the unified one, or that of a controller of version 1.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Hierarchy {
    V2,
    V1(&'static str),
}

/// Mount point of a hierarchy and the process's folder below it, from /proc/self/cgroup and
/// /proc/self/mountinfo.
fn folders(groups: &str, mounts: &str, hierarchy: Hierarchy) -> Option<(PathBuf, PathBuf)> {
    // `4:memory:/path`, version 2 is `0::/path`.
    let group = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        let found = match hierarchy {
            Hierarchy::V2 => controllers.is_empty(),
            Hierarchy::V1(name) => controllers.split(',').any(|controller| controller == name),
        };
        found.then_some(path)
    })?;
    // `35 31 0:32 ROOT POINT options… - TYPE source super-options`.
    let (root, point) = mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let (mut left, mut right) = (left.split(' ').skip(3), right.split(' '));
        let (root, point) = (left.next()?, left.next()?);
        let found = match (hierarchy, right.next()?) {
            (Hierarchy::V2, "cgroup2") => true,
            (Hierarchy::V1(name), "cgroup") => right.nth(1)?.split(',').any(|option| option == name),
            _ => false,
        };
        found.then_some((root, point))
    })?;
    // Inside a container only a part of the hierarchy may be mounted; a path outside of it (`/..`) is the mount.
    let inside = Path::new(group).strip_prefix(root).unwrap_or(Path::new(""));
    let clean = if inside.components().any(|part| part.as_os_str() == "..") { Path::new("") } else { inside };
    Some((PathBuf::from(point), Path::new(point).join(clean)))
}

/// The limits written in one folder of a hierarchy; `read` yields the text of a file there.
fn read_level(hierarchy: Hierarchy, read: impl Fn(&str) -> Option<String>) -> CgroupLimits {
    let bytes = |name: &str| read(name).and_then(|text| text.trim().parse::<u64>().ok());
    // Above `memory.high` no process is killed, but the system takes pages away and lets threads wait.
    let (limit, high, usage, cached) = match hierarchy {
        Hierarchy::V2 => ("memory.max", Some("memory.high"), "memory.current", "inactive_file"),
        Hierarchy::V1(_) => ("memory.limit_in_bytes", None, "memory.usage_in_bytes", "total_inactive_file"),
    };
    let limits = [bytes(limit), high.and_then(bytes)].into_iter().flatten();
    // Version 1 writes "no limit" as the largest multiple of a page.
    let memory_limit_bytes = limits.filter(|&limit| limit < i64::MAX as u64 / 2).min();
    let memory_headroom_bytes = memory_limit_bytes.map(|limit| {
        let statistics = read("memory.stat").unwrap_or_default();
        let reclaimable = statistics.lines().find_map(|line| line.strip_prefix(cached)?.trim().parse::<u64>().ok());
        let used = bytes(usage).unwrap_or(0).saturating_sub(reclaimable.unwrap_or(0));
        limit.saturating_sub(used)
    });
    CgroupLimits { memory_limit_bytes, memory_headroom_bytes, cpu_quota: quota(&read) }
}

/// CPU quota of one folder: `cpu.max` holds `max 100000` or `150000 100000`; version 1 has two files, and −1
/// for none.
fn quota(read: impl Fn(&str) -> Option<String>) -> Option<f64> {
    let text = match read("cpu.max") {
        Some(text) => text,
        None => format!("{} {}", read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?),
    };
    let mut words = text.split_ascii_whitespace();
    let (quota, period) = (parse::number(words.next()?)?, parse::number(words.next()?)?);
    (quota > 0.0 && period > 0.0).then_some(quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n\
        33 31 0:30 / /sys/fs/cgroup/cpuacct rw - cgroup cgroup rw,cpuacct\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n\
        36 31 0:33 /docker/ab /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n";

    fn found(groups: &str, hierarchy: Hierarchy) -> Option<String> {
        folders(groups, MOUNTS, hierarchy).map(|(_, folder)| folder.to_string_lossy().trim_end_matches('/').to_owned())
    }

    #[test]
    fn folders_of_both_versions() {
        let groups = "4:memory:/job/7\n3:cpu:/docker/ab/x\n2:cpuacct:/\n0::/user.slice\n";
        assert_eq!(found(groups, Hierarchy::V1("memory")).unwrap(), "/sys/fs/cgroup/memory/job/7");
        assert_eq!(found(groups, Hierarchy::V1("cpu")).unwrap(), "/sys/fs/cgroup/cpu/x");
        assert_eq!(found(groups, Hierarchy::V2).unwrap(), "/sys/fs/cgroup/unified/user.slice");
        assert_eq!(found("0::/../../other", Hierarchy::V2).unwrap(), "/sys/fs/cgroup/unified");
        assert_eq!(found("3:cpu:/elsewhere", Hierarchy::V1("cpu")).unwrap(), "/sys/fs/cgroup/cpu");
        for bad in ["", "memory", "4:memory", "::", "\n\n"] {
            assert_eq!(found(bad, Hierarchy::V1("memory")), None);
        }
        assert_eq!(folders(groups, "garbage - \n - cgroup2\n1 2 - cgroup2 x y", Hierarchy::V2), None);
    }

    fn level(hierarchy: Hierarchy, files: &[(&str, &str)]) -> CgroupLimits {
        read_level(hierarchy, |name| files.iter().find(|(file, _)| *file == name).map(|(_, text)| (*text).to_owned()))
    }

    #[test]
    fn version_2_level() {
        let files = [
            ("memory.max", "4294967296\n"),
            ("memory.current", "3000000000\n"),
            ("memory.stat", "anon 1\nfile 2\ninactive_file 1000000000\n"),
            ("cpu.max", "150000 100000\n"),
        ];
        let wanted = CgroupLimits {
            memory_limit_bytes: Some(4_294_967_296),
            memory_headroom_bytes: Some(2_294_967_296),
            cpu_quota: Some(1.5),
        };
        assert_eq!(level(Hierarchy::V2, &files), wanted);
        assert_eq!(
            level(Hierarchy::V2, &[("memory.max", "max\n"), ("cpu.max", "max 100000\n")]),
            CgroupLimits::default()
        );
    }

    /// A run that fills the memory up to `memory.max` takes many times as long, as the system slows it down.
    #[test]
    fn memory_above_which_a_group_is_slowed_down_is_no_free_memory() {
        let of = |max, high| {
            level(Hierarchy::V2, &[("memory.max", max), ("memory.high", high), ("memory.current", "1000\n")])
        };
        let limits = |limit| CgroupLimits {
            memory_limit_bytes: Some(limit),
            memory_headroom_bytes: Some(limit - 1000),
            cpu_quota: None,
        };
        assert_eq!(of("9000\n", "6000\n"), limits(6000));
        assert_eq!(of("max\n", "6000\n"), limits(6000));
        assert_eq!(of("5000\n", "6000\n"), limits(5000));
        assert_eq!(of("5000\n", "max\n"), limits(5000));
    }

    #[test]
    fn version_1_level() {
        let hierarchy = Hierarchy::V1("memory");
        let files = [("memory.limit_in_bytes", "1000"), ("memory.usage_in_bytes", "1500")];
        assert_eq!(level(hierarchy, &files).memory_headroom_bytes, Some(0));
        assert_eq!(level(hierarchy, &[("memory.limit_in_bytes", "9223372036854771712")]), CgroupLimits::default());
        let quota = [("cpu.cfs_quota_us", "50000\n"), ("cpu.cfs_period_us", "100000\n")];
        assert_eq!(level(Hierarchy::V1("cpu"), &quota).cpu_quota, Some(0.5));
    }

    #[test]
    fn malformed_files_are_ignored() {
        for bad in ["", "x", "-1", "1e", "0 0", "99999999999999999999999"] {
            let files = [("memory.max", bad), ("cpu.max", bad), ("memory.limit_in_bytes", bad)];
            assert_eq!(level(Hierarchy::V2, &files), CgroupLimits::default(), "{bad}");
            assert_eq!(
                level(Hierarchy::V1("cpu"), &[("cpu.cfs_quota_us", "-1"), ("cpu.cfs_period_us", bad)]).cpu_quota,
                None
            );
        }
    }

    #[test]
    fn the_tightest_level_is_used() {
        let mut limits = CgroupLimits::default();
        limits.tighten(CgroupLimits { memory_headroom_bytes: Some(7), ..CgroupLimits::default() });
        limits.tighten(CgroupLimits {
            memory_headroom_bytes: Some(9),
            cpu_quota: Some(2.0),
            ..CgroupLimits::default()
        });
        assert_eq!((limits.memory_headroom_bytes, limits.cpu_quota), (Some(7), Some(2.0)));
    }
}
