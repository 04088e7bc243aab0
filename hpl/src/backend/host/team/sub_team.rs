//! Some threads of a team as a team of their own, within a fork that has other work for all of them afterwards.

use std::thread::Thread;

use super::{Shared, Team};

/// The first threads of a team during one fork.
pub(crate) struct SubTeam {
    shared: Shared,
    helpers: Vec<Thread>,
}

impl Team<'_> {
    /// A crew of the first `threads` threads, for the next fork of this team: its first thread
    /// [leads](SubTeam::lead), its helpers [serve](SubTeam::serve).
    pub(crate) fn sub_team(&self, threads: usize) -> SubTeam {
        let helpers = self.helpers.iter().take(threads.saturating_sub(1)).cloned().collect();
        SubTeam { shared: Shared::new(self.shared.spin), helpers }
    }
}

impl SubTeam {
    /// The crew as a team, which the thread that made it leads; once. The helpers go on when it is dropped.
    pub(crate) fn as_team(&self) -> Team<'_> {
        Team { shared: &self.shared, helpers: self.helpers.clone(), borrowed: None }
    }

    /// Helper `index` of the whole team works for the crew if it belongs to it, until the leader lets it go.
    pub(crate) fn serve(&self, index: usize) {
        if index <= self.helpers.len() {
            self.shared.help(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::super::{HelperPanicked, TeamParams, with_team};

    const TEAM: TeamParams<'static> = TeamParams { threads: 4, cores: &[], spin: false };

    #[test]
    fn a_crew_works_while_the_others_do_something_else_and_joins_them() {
        for size in 1..=4 {
            let (in_crew, elsewhere) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let count = |counter: &AtomicUsize, index: usize| {
                counter.fetch_add(1 << (8 * index), Ordering::Relaxed);
            };
            with_team(TEAM, |team| {
                for _ in 0..100 {
                    let sub_team = team.sub_team(size);
                    let lead = sub_team.as_team();
                    let helper = |index| {
                        sub_team.serve(index);
                        count(&elsewhere, index);
                    };
                    let first = || {
                        let mut lead = lead;
                        for _ in 0..2 {
                            lead.fork(&|index| count(&in_crew, index), || count(&in_crew, 0)).unwrap();
                        }
                        drop(lead);
                        count(&elsewhere, 0);
                    };
                    team.fork(&helper, first).unwrap();
                }
            })
            .unwrap();
            let of = |counter: &AtomicUsize| counter.load(Ordering::Relaxed).to_le_bytes()[..4].to_vec();
            let expected: Vec<u8> = (0..4).map(|index| if index < size { 200 } else { 0 }).collect();
            assert_eq!((of(&in_crew), of(&elsewhere)), (expected, vec![100; 4]));
        }
    }

    #[test]
    fn a_panic_in_the_crew_is_reported_to_its_leader_and_hangs_nobody() {
        let outcome = with_team(TEAM, |team| {
            let sub_team = team.sub_team(3);
            let lead = sub_team.as_team();
            let first = || {
                let mut lead = lead;
                lead.fork(&|index| assert!(index != 2, "on purpose"), || ())
            };
            team.fork(&|index| sub_team.serve(index), first)
        });
        assert_eq!(outcome.unwrap(), Ok(Err(HelperPanicked)));
    }

    #[test]
    fn a_leader_that_fails_lets_its_crew_go() {
        let outcome = with_team(TEAM, |team| {
            let sub_team = team.sub_team(4);
            let lead = sub_team.as_team();
            let first = || -> Result<(), ()> {
                let _lead = lead;
                Err(())
            };
            team.fork(&|index| sub_team.serve(index), first)
        });
        assert_eq!(outcome.unwrap(), Ok(Err(())));
    }
}
