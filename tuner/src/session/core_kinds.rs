//! What is said where the cores of this host are of several kinds.

use hpl::machine::host::HostFacts;

use crate::session::engine::Engine;
use crate::session::preflight::ranges;

/// What the user should know of cores that are of a slower kind, to which runs of `engine` give equal shares; `None` where all are of one
/// kind.
pub fn warning(facts: &HostFacts, engine: &Engine) -> Option<String> {
    let found = slower(facts).filter(|_| engine.calibrates())?;
    let weights = if engine.is_ours() { ", or give their ranks smaller shares by --weights" } else { "" };
    Some(format!("{found}: with equal shares all ranks wait for these; {}{weights}", way_out(facts)))
}

/// The cores of a slower kind in words; `None` where all are of one kind.
pub fn slower(facts: &HostFacts) -> Option<String> {
    let HostFacts { cores_allowed: all, slower_cores: slower, .. } = facts;
    let listed = in_order(slower.iter().copied());
    (!slower.is_empty())
        .then(|| format!("{} of {} cores are of a slower kind (core {listed})", slower.len(), all.len()))
}

/// How runs have the other cores alone.
pub fn way_out(facts: &HostFacts) -> String {
    let fast = facts.cores_allowed.iter().copied().filter(|core| !facts.slower_cores.contains(core));
    format!("leave them out by taskset -c {} hpl-tune …", in_order(fast))
}

/// Numbers as `0-3,8`.
fn in_order(cores: impl Iterator<Item = usize>) -> String {
    let mut cores: Vec<usize> = cores.collect();
    cores.sort_unstable();
    ranges(&cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_of_a_slower_kind_are_named_with_the_way_out() {
        let of = |slower: &[usize]| HostFacts {
            cores_allowed: vec![0, 2, 4, 5],
            slower_cores: slower.to_vec(),
            ..hpl::machine::host::facts()
        };
        let chosen = |name| Engine::chosen(name, None, None).unwrap();
        assert_eq!(warning(&of(&[]), &chosen(None)), None);
        let said = warning(&of(&[5, 4]), &chosen(None)).unwrap();
        assert!(said.starts_with("2 of 4 cores are of a slower kind (core 4-5): with equal shares"), "{said}");
        assert!(said.contains("taskset -c 0,2 hpl-tune") && said.ends_with("by --weights"), "{said}");
        assert_eq!(warning(&of(&[5]), &chosen(Some("cuda"))), None, "the matrix is on GPUs");
    }
}
