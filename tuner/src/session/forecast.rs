//! What a session will do with its time, said before it does it.

use space::counted;

use crate::record::now::human;

/// The times that a session is planned by, in wall-clock seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Forecast {
    /// The whole budget.
    pub total_s: f64,
    /// What is used already.
    pub spent_s: f64,
    /// What is kept for the final run and the closing of the record.
    pub reserve_s: f64,
    /// What is kept for whole runs of the two best that windows find.
    pub promotions_s: f64,
    /// What is kept for the rounds after the final run.
    pub rounds_s: f64,
    /// What one trial of the search is expected to take.
    pub trial_s: f64,
}

impl Forecast {
    /// When the search ends, in seconds from the start of the session.
    fn search_ends_s(&self) -> f64 {
        self.total_s - self.reserve_s - self.promotions_s - self.rounds_s
    }

    /// About how many trials the search still has.
    fn trials(&self) -> usize {
        ((self.search_ends_s() - self.spent_s) / self.trial_s).round().max(0.0) as usize
    }

    /// The plan in one sentence.
    pub fn sentence(&self) -> String {
        let search = match self.trials() {
            0 => String::new(),
            trials => {
                let until = human(self.search_ends_s());
                format!("search until {until} (about {} of {:.1} s each); ", counted(trials, "trial"), self.trial_s)
            }
        };
        let mut plan = format!("plan: {search}{:.1} s kept for the final run and the report", self.reserve_s);
        if self.promotions_s > 0.0 {
            plan += &format!("; {:.1} s for whole runs of the two best before it", self.promotions_s);
        }
        if self.rounds_s > 0.0 {
            plan += &format!("; {:.1} s for pairs of default and best after it", self.rounds_s);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_MINUTES: Forecast =
        Forecast { total_s: 120.0, spent_s: 14.0, reserve_s: 6.0, promotions_s: 0.0, rounds_s: 24.0, trial_s: 4.8 };

    #[test]
    fn the_search_has_all_that_what_follows_does_not_need() {
        assert_eq!(
            TWO_MINUTES.sentence(),
            "plan: search until 1 min 30 s (about 16 trials of 4.8 s each); 6.0 s kept for the final run and the report; \
             24.0 s for pairs of default and best after it"
        );
        let night = Forecast { total_s: 7200.0, ..TWO_MINUTES };
        assert!(night.trials() > 1480, "{}", night.trials());
    }

    /// Their time was promised to the search.
    #[test]
    fn the_search_has_no_time_of_the_whole_runs_of_leaders() {
        let windows = Forecast { promotions_s: 9.6, ..TWO_MINUTES };
        assert_eq!(
            windows.sentence(),
            "plan: search until 1 min 20 s (about 14 trials of 4.8 s each); 6.0 s kept for the final run and the report; \
             9.6 s for whole runs of the two best before it; 24.0 s for pairs of default and best after it"
        );
    }

    #[test]
    fn what_is_over_is_not_promised() {
        let over = Forecast { spent_s: 119.0, rounds_s: 0.0, ..TWO_MINUTES };
        assert_eq!(over.sentence(), "plan: 6.0 s kept for the final run and the report");
    }
}
