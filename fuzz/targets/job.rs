//! The variables of a resource manager.

use tuner::cluster::allocation::Allocation;

use super::utf8;

/// Lines `NAME=VALUE`; the value of the name `left` is what `squeue` answers.
pub(super) fn job(data: &[u8]) {
    let Some(text) = utf8(data) else { return };
    let pairs: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once('=')).collect();
    let value = |name: &str| Some(pairs.iter().find(|(known, _)| *known == name)?.1.to_owned());
    // The file of PBS's nodes would be read from this disk.
    let variable = |name: &str| value(name).filter(|_| name != "PBS_NODEFILE");
    let Some(job) = Allocation::of_variables(variable, |_| value("left")) else { return };
    assert!(job.nodes() > 0);
    assert!(job.least_cpus() != Some(0) && !job.launchers().is_empty());
    if let Ok(budget_s) = job.budget_s(600.0) {
        assert!(budget_s > 0.0 && budget_s <= 600.0);
        job.warnings(600.0, budget_s, true);
    }
}
