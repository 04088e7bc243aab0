//! The first threads of a team as a separate team, within a fork that has other work for all threads afterwards.

use super::{Team, TeamState};
use crate::sync::atomic::{AtomicBool, Ordering};

/// The first threads of a team during one fork.
pub(crate) struct SubTeam {
    shared: TeamState,
    in_use: AtomicBool,
}

impl Team<'_> {
    /// A sub-team of the first `threads` threads, for the next fork of this team: the first thread uses it
    /// [as a team](SubTeam::as_team), its helpers call [`help`](SubTeam::help).
    pub(crate) fn sub_team(&self, threads: usize) -> SubTeam {
        let shared = TeamState::new(self.shared.spin);
        shared.set_helpers(self.shared.helpers().iter().take(threads.saturating_sub(1)).cloned());
        SubTeam { shared, in_use: AtomicBool::new(false) }
    }
}

impl SubTeam {
    /// The sub-team as a team, for the thread that created it. Dropping it releases the helpers.
    ///
    /// # Panics
    /// At the second call.
    pub(crate) fn as_team(&self) -> Team<'_> {
        assert!(!self.in_use.swap(true, Ordering::Relaxed), "called once");
        Team { shared: &self.shared, borrowed: None }
    }

    /// Called by helper `index` of the whole team: if it belongs to the sub-team, it works for it until the first thread
    /// drops the team.
    pub(crate) fn help(&self, index: usize) {
        if index <= self.shared.helpers().len() {
            self.shared.help(index);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HelperPanicked, TeamParams, with_team};
    use super::*;
    use crate::sync::atomic::AtomicUsize;

    const TEAM: TeamParams<'static> = TeamParams { threads: 4, cores: &[], spin: false };

    #[test]
    fn a_sub_team_works_beside_the_others_and_joins_them() {
        for size in 1..=4 {
            let (in_sub_team, in_team) = (AtomicUsize::new(0), AtomicUsize::new(0));
            let count = |counter: &AtomicUsize, index: usize| {
                counter.fetch_add(1 << (8 * index), Ordering::Relaxed);
            };
            with_team(TEAM, |team| {
                for _ in 0..100 {
                    let sub_team = team.sub_team(size);
                    let first_team = sub_team.as_team();
                    let helper = |index| {
                        sub_team.help(index);
                        count(&in_team, index);
                    };
                    let first = || {
                        let mut first_team = first_team;
                        for _ in 0..2 {
                            first_team.fork(&|index| count(&in_sub_team, index), || count(&in_sub_team, 0)).unwrap();
                        }
                        drop(first_team);
                        count(&in_team, 0);
                    };
                    team.fork(&helper, first).unwrap();
                }
            })
            .unwrap();
            let of = |counter: &AtomicUsize| counter.load(Ordering::Relaxed).to_le_bytes()[..4].to_vec();
            let expected: Vec<u8> = (0..4).map(|index| if index < size { 200 } else { 0 }).collect();
            assert_eq!((of(&in_sub_team), of(&in_team)), (expected, vec![100; 4]));
        }
    }

    #[test]
    fn a_panic_in_the_sub_team_is_reported_to_its_first_thread() {
        let outcome = with_team(TEAM, |team| {
            let sub_team = team.sub_team(3);
            let first_team = sub_team.as_team();
            let first = || {
                let mut first_team = first_team;
                first_team.fork(&|index| assert!(index != 2, "on purpose"), || ())
            };
            team.fork(&|index| sub_team.help(index), first)
        });
        assert_eq!(outcome.unwrap(), Ok(Err(HelperPanicked)));
    }

    #[test]
    fn an_error_of_the_first_thread_releases_the_sub_team() {
        let outcome = with_team(TEAM, |team| {
            let sub_team = team.sub_team(4);
            let first_team = sub_team.as_team();
            let first = || -> Result<(), ()> {
                let _first_team = first_team;
                Err(())
            };
            team.fork(&|index| sub_team.help(index), first)
        });
        assert_eq!(outcome.unwrap(), Ok(Err(())));
    }
}
