//! What the configuration of Slurm permits to `srun --cpu-freq`.

use objectives::real::output_of;

/// Governors that Slurm permits where its configuration names none.
const USUAL: &str = "OnDemand,Performance,UserSpace";
/// Governors that take a range of clocks, in the order in which they are tried after the one that is set.
const OF_A_RANGE: [&str; 5] = ["performance", "ondemand", "schedutil", "conservative", "powersave"];

/// What is permitted, as far as the configuration says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Permitted {
    governors: String,
    /// Why a request is ignored whatever it says, in words.
    pub(super) ignored: Option<String>,
}

impl Permitted {
    /// By `scontrol show config`.
    pub(super) fn read() -> Self {
        Self::of(&output_of("scontrol", &["show", "config"]).unwrap_or_default())
    }

    fn of(config: &str) -> Self {
        let value = |key: &str| {
            let named = |line: &&str| line.split('=').next().is_some_and(|name| name.trim() == key);
            Some(config.lines().find(named)?.split_once('=')?.1.trim().to_owned())
        };
        let governors = value("CpuFreqGovernors").filter(|names| !matches!(names.as_str(), "" | "(null)" | "Unknown"));
        let binds = |plugins: &String| plugins.contains("affinity") || plugins.contains("cgroup");
        let ignored = value("TaskPlugin").filter(|plugins| !binds(plugins)).map(|plugins| {
            format!("TaskPlugin is {plugins}, and Slurm ignores --cpu-freq without task/affinity or task/cgroup")
        });
        Self { governors: governors.unwrap_or_else(|| USUAL.to_owned()), ignored }
    }

    /// The governor that is asked for, of those that `available` says of each node (nothing where a node does not say): the one `set` on all
    /// of them, where it is permitted and takes a range.
    ///
    /// # Errors
    /// None of them, in words.
    pub(super) fn governor(&self, set: Option<&str>, available: &[&[String]]) -> Result<String, String> {
        let is = |name: &str, other: &str| other.trim().eq_ignore_ascii_case(name);
        let permitted = |name: &&str| self.governors.split(',').any(|other| is(name, other));
        let there =
            |name: &&str| available.iter().all(|names| names.is_empty() || names.iter().any(|other| is(name, other)));
        let set = set.filter(|set| OF_A_RANGE.iter().any(|name| is(name, set)));
        let mut tried = set.into_iter().chain(OF_A_RANGE);
        tried.find(|name| permitted(name) && there(name)).map(str::to_lowercase).ok_or_else(|| {
            let nodes: Vec<&str> = available.iter().flat_map(|names| names.iter().map(String::as_str)).collect();
            format!(
                "CpuFreqGovernors of Slurm permits {}, and the nodes have {}: none of these takes a range of clocks; ask the site to permit \
                 Performance",
                self.governors,
                if nodes.is_empty() { "no governor that is known".to_owned() } else { nodes.join(" ") }
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_site_permits_is_read() {
        let config = "Configuration data as of 2026\nCpuFreqDef              = Unknown\nCpuFreqGovernors        = OnDemand,Performance\n\
                      TaskPlugin              = task/none\nTaskPluginParam         = (null type)\n";
        let found = Permitted::of(config);
        assert_eq!(found.governors, "OnDemand,Performance");
        assert!(found.ignored.clone().unwrap().contains("task/none"));
        assert_eq!(Permitted::of("TaskPlugin = task/affinity,task/cgroup").ignored, None);
        assert_eq!(Permitted::of(""), Permitted { governors: USUAL.into(), ignored: None }, "nothing is known");
    }

    #[test]
    fn the_governor_is_one_that_is_permitted_and_there() {
        let usual = Permitted::of("");
        let [intel, acpi]: [Vec<String>; 2] = [&["performance", "powersave"][..], &["ondemand", "userspace"]]
            .map(|n| n.iter().map(ToString::to_string).collect());
        assert_eq!(usual.governor(Some("ondemand"), &[&acpi]).unwrap(), "ondemand", "as it was found");
        assert_eq!(usual.governor(Some("powersave"), &[&intel]).unwrap(), "performance", "powersave is not permitted");
        assert_eq!(usual.governor(Some("userspace"), &[&acpi]).unwrap(), "ondemand");
        assert_eq!(usual.governor(None, &[&[]]).unwrap(), "performance");
        let refused = usual.governor(None, &[&intel, &acpi]).unwrap_err();
        assert!(
            refused.contains("OnDemand,Performance,UserSpace") && refused.contains("powersave ondemand"),
            "{refused}"
        );
    }
}
