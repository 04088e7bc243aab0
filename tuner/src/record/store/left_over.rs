//! Trials that were under way when their tuner was gone: each is taken in, run once more, or recorded as one that its session does not survive.

use std::collections::HashSet;

use objectives::Failure;
use objectives::real::{GuardRecord, RealRuns};
use objectives::whole::without_timeline;

use super::Store;
use super::running::begun;
use crate::error::RecordError;
use crate::record::journal::UnderWay;
use crate::record::row::KILLED_WITH_SESSION;
use crate::record::{Begun, Circumstances, PlannedTrial};

/// Times that a trial is killed with its session: after these it may be what takes the tuner, or the node, down.
const MOST_KILLS: u32 = 2;

impl Store {
    /// Takes in runs that have a folder but no row: their tuner was ended before it could record them.
    /// Returns their numbers.
    pub(super) fn adopt(&mut self, runs: &RealRuns) -> Result<Vec<u64>, RecordError> {
        let mut adopted = Vec::new();
        let recorded: HashSet<u64> = self.kept.numbers().collect();
        let before_s = self.recorded_s();
        for number in self.folder.trials_begun()?.into_iter().filter(|number| !recorded.contains(number)) {
            let folder = self.folder.trial(number);
            let Some(begun) = begun(&folder) else { continue };
            let Some(outcome) = runs.adopt(&begun.run(), &folder) else { continue };
            let outcome = outcome.map(without_timeline);
            let real_s = || GuardRecord::read(&folder).map_or(0.0, |record| record.wall_s);
            let wall_s = runs.simulated(&folder).map_or_else(real_s, |clock| clock.simulated_wall_s);
            // They began after what is recorded; how long the session has gone on since is kept now and then.
            let left_s = self.session.budget_s - self.session.elapsed_s.max(before_s + wall_s);
            let around = Circumstances { wall_s, left_s, ..Circumstances::default() };
            self.append(begun, &outcome, around, &folder.join(runs.results_file()))?;
            adopted.push(number);
        }
        Ok(adopted)
    }

    /// Records those of `under_way` as failed that were killed with their session too often, so that history and schedule know of them.
    /// Returns their numbers.
    pub(super) fn fail_killed(&mut self, under_way: &[UnderWay], runs: &RealRuns) -> Result<Vec<u64>, RecordError> {
        let killed = self.left(under_way).filter(|trial| trial.kills() >= MOST_KILLS);
        let killed: Vec<Begun> = killed.map(|trial| trial.begun.clone()).collect();
        let numbers = killed.iter().map(|begun| begun.identity.trial).collect();
        for begun in killed {
            let folder = self.folder.trial(begun.identity.trial);
            // Where the guard lived on it says how long the last run was.
            let wall_s = GuardRecord::read(&folder).map_or(0.0, |record| record.wall_s);
            let left_s = self.session.budget_s - self.session.elapsed_s.max(self.recorded_s());
            let around = Circumstances { wall_s, left_s, ..Circumstances::default() };
            let failure = Failure::Killed { by: KILLED_WITH_SESSION.to_owned() };
            self.append(begun, &Err(failure), around, &folder.join(runs.results_file()))?;
        }
        Ok(numbers)
    }

    /// Those of `under_way` that are to be run once more.
    pub(super) fn to_run_again(&self, under_way: &[UnderWay]) -> Vec<PlannedTrial> {
        self.left(under_way).map(|trial| trial.begun.again()).collect()
    }

    /// Those of `under_way` that have no row, and were started on the nodes of the session, or by a host that it has not left.
    fn left<'a>(&self, under_way: &'a [UnderWay]) -> impl Iterator<Item = &'a UnderWay> {
        let recorded: HashSet<u64> = self.kept.numbers().collect();
        let here = self.session.node_names();
        let (hosts, left) = (self.session.hosts.clone(), self.session.moved_from.clone());
        let is_here = move |begun: &Begun| match &begun.nodes[..] {
            [] => begun.identity.nodes == here && !left.contains(&begun.host),
            some => some.iter().all(|node| hosts.contains(node)),
        };
        let is_left = move |trial: &&UnderWay| !recorded.contains(&trial.begun.identity.trial) && is_here(&trial.begun);
        under_way.iter().filter(is_left)
    }

    /// Wall-clock seconds of the budget that were used up when the last of its rows was finished, wherever it ran.
    fn recorded_s(&self) -> f64 {
        let (session, kept) = (&self.session, &self.kept);
        let [all, some] = [session.used_by_s(&kept.on_all), session.used_by_s(&kept.on_some)];
        session.used_by_s(&kept.elsewhere).max(all).max(some)
    }
}
