//! What a session will do with its time, said before it does it.

use crate::progress::human;
use crate::schedule::Later;

/// The times that a session is planned by, in wall-clock seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The whole budget.
    pub total_s: f64,
    /// What is used already.
    pub spent_s: f64,
    /// What is kept for the final run and the closing of the record.
    pub reserve_s: f64,
    /// What is kept for the rounds after the final run.
    pub rounds_s: f64,
    /// What one trial of the search is expected to take.
    pub trial_s: f64,
}

/// One stage of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// What is done.
    pub what: &'static str,
    /// When it ends, in seconds from the start of the session.
    pub until_s: f64,
    /// About how many trials fit.
    pub trials: usize,
}

impl Forecast {
    /// The stages that are still to come, in order; without the final run.
    pub fn stages(&self) -> Vec<Stage> {
        // As the schedule counts: the reserve is taken from the time left.
        let later = Later::new(self.total_s, self.trial_s, self.rounds_s);
        let ends = [
            ("default and new candidates", self.total_s - self.reserve_s - later.after_search_s),
            ("the leaders again", self.total_s - self.reserve_s - later.after_race_s),
            ("default and leader in pairs", self.total_s - self.reserve_s - self.rounds_s),
        ];
        let mut at_s = self.spent_s;
        let stage = |(what, until_s): (&'static str, f64)| {
            let trials = ((until_s - at_s) / self.trial_s).round().max(0.0) as usize;
            at_s = at_s.max(until_s);
            Stage { what, until_s, trials }
        };
        ends.into_iter().map(stage).filter(|stage| stage.trials > 0).collect()
    }

    /// The plan in one sentence.
    pub fn sentence(&self) -> String {
        let stages = self.stages().into_iter().map(|Stage { what, until_s, trials }| {
            format!("{what} until {} (about {trials} of {:.1} s)", human(until_s), self.trial_s)
        });
        let mut last = format!("{:.1} s kept for the final run and the report", self.reserve_s);
        if self.rounds_s > 0.0 {
            last += &format!("; {:.1} s for pairs after it", self.rounds_s);
        }
        format!("plan: {}", stages.chain([last]).collect::<Vec<_>>().join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_MINUTES: Forecast =
        Forecast { total_s: 120.0, spent_s: 14.0, reserve_s: 6.0, rounds_s: 0.0, trial_s: 4.8 };

    #[test]
    fn the_stages_fill_the_budget_but_for_the_reserve() {
        let stages = TWO_MINUTES.stages();
        assert_eq!(stages.iter().map(|stage| stage.trials).collect::<Vec<_>>(), [10, 3, 8]);
        assert_eq!(stages.last().unwrap().until_s, 114.0);
        assert!(TWO_MINUTES.sentence().contains("until 1 min (about 10 of 4.8 s)"), "{}", TWO_MINUTES.sentence());
    }

    #[test]
    fn of_a_long_budget_the_search_gets_all_that_the_comparisons_do_not_need() {
        let night = Forecast { total_s: 7200.0, ..TWO_MINUTES };
        let trials: Vec<usize> = night.stages().iter().map(|stage| stage.trials).collect();
        assert!(trials[0] > 1400 && trials[1..] == [12, 24], "{trials:?}");
    }

    #[test]
    fn what_is_kept_for_pairs_after_the_final_run_is_said() {
        let with_rounds = Forecast { rounds_s: 12.0, ..TWO_MINUTES };
        assert_eq!(with_rounds.stages().last().unwrap().until_s, 102.0);
        assert!(with_rounds.sentence().ends_with("and the report; 12.0 s for pairs after it"));
    }

    #[test]
    fn stages_that_are_over_are_not_promised() {
        let late = Forecast { spent_s: 100.0, ..TWO_MINUTES };
        assert_eq!(late.stages().len(), 1);
        let over = Forecast { spent_s: 119.0, ..TWO_MINUTES };
        assert_eq!(over.sentence(), "plan: 6.0 s kept for the final run and the report");
    }
}
