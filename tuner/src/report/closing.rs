//! The closing words of a session: what was won, and what to try next. Each sentence follows from the record.

use objectives::real::Extent;

use super::format::{digits, watts_above};
use super::sentences::by_windows;
use super::stats::Ratio;
use super::summary::{Comparison, Summary};
use crate::record::Objective;
use crate::record::left::GainLeft;
use crate::search::rounds::PAIRS_TO_JUDGE;

/// Predicted gain from which on a longer search is named.
const WORTH_A_SEARCH: f64 = 0.005;
/// Time taken by the hypervisor, as a share, that is named.
const STOLEN: f64 = 0.02;

/// Nodes that stood apart in one of so many trials are worth a look.
const APART: usize = 3;

/// The sentences; the first says what was won.
pub fn closing(summary: &Summary, folder: &str) -> Vec<String> {
    let next = next(summary, folder).into_iter().map(|next| format!("Next: {next}"));
    std::iter::once(won(summary)).chain(next).collect()
}

/// How much faster the best is, `3.2 % faster than`, `as fast as`.
fn faster(ratio: f64, other: &str, objective: Objective) -> String {
    let percent = 100.0 * (ratio - 1.0);
    let [equal, more, less] = match objective {
        Objective::Gflops | Objective::GflopsWithin { .. } => ["as fast as", "faster than", "slower than"],
        Objective::GflopsPerWatt => {
            ["as efficient (GFLOPS/W) as", "more efficient (GFLOPS/W) than", "less efficient (GFLOPS/W) than"]
        }
    };
    match format!("{:.1}", percent.abs()) {
        none if none == "0.0" => format!("{equal} {other}"),
        some if percent > 0.0 => format!("{some} % {more} {other}"),
        some => format!("{some} % {less} {other}"),
    }
}

fn won(summary: &Summary) -> String {
    const USUAL: &str = "the usual HPL.dat";
    let Some(best) = &summary.best else {
        return match summary.top.first() {
            Some(_) => "Won: nothing that is verified: no whole run has passed.".to_owned(),
            None => "Won: nothing, as no trial has passed.".to_owned(),
        };
    };
    let how = if summary.session.is_simulated() { "In the simulation: " } else { "" };
    if let Some((limit, watts)) = above_limit(summary) {
        let said = if summary.others_keep_limit() {
            format!("the best takes {watts} W, above the power limit of {limit} W, which others keep")
        } else {
            format!("no candidate keeps the power limit of {limit} W; the best takes {watts} W")
        };
        return format!("Won: {how}nothing, as {said}.");
    }
    let per_watt = summary.session.objective == Objective::GflopsPerWatt;
    let better = if per_watt { "more efficient" } else { "faster" };
    let said = match &summary.best_by_baseline {
        Comparison::Measured { ratio } => of_pairs(ratio, by_windows(summary), USUAL, summary.session.objective),
        Comparison::Same { .. } => {
            let (rate, n) = (digits(best.rate_gflops), best.candidate.hpl.n);
            format!("{USUAL} is the best that was found, at {rate} GFLOP/s at N = {n}")
        }
        Comparison::NotMeasured { not_measured } => {
            format!("whether the best is {better} than {USUAL} was not measured: {not_measured}")
        }
    };
    format!("Won: {how}{said}.")
}

/// The power limit and the watts of the best, where these are more.
fn above_limit(summary: &Summary) -> Option<(u64, String)> {
    let objective = summary.session.objective;
    let watts = summary.limited_power_w.filter(|watts| !objective.allows(*watts))?;
    let limit_w = objective.power_limit_w()?;
    Some((limit_w, watts_above(watts, limit_w)))
}

/// What pairs say; `by`: how their rates were found, where they are no measured ones.
fn of_pairs(ratio: &Ratio, by: &str, usual: &str, objective: Objective) -> String {
    let pairs = format!("{} pair{}{by}", ratio.pairs, if ratio.pairs == 1 { "" } else { "s" });
    let Some(([low, high], level)) = ratio.interval.zip(ratio.level) else {
        return format!("the best was {} in {pairs}; too few for an interval", faster(ratio.median, usual, objective));
    };
    let percent = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
    let interval = format!("{} … {} %, {:.1} %, {pairs}", percent(low), percent(high), 100.0 * level);
    if low > 1.0 {
        return format!("the best is {} (interval {interval})", faster(ratio.median, usual, objective));
    }
    format!(
        "no gain over {usual} is shown; the best was {} (interval {interval})",
        faster(ratio.median, usual, objective)
    )
}

fn next(summary: &Summary, folder: &str) -> Vec<String> {
    let session = &summary.session;
    let is_over = summary.is_over;
    let goes_on = format!("hpl-tune --resume {folder} goes on where this session has stopped");
    if summary.best.is_none() {
        let failed = format!("the page report.html in {folder} tells why trials failed");
        let longer = "a longer --budget leaves time for a final run".to_owned();
        let left = match (is_over, session.is_simulated()) {
            (false, _) => goes_on,
            (true, true) => longer,
            (true, false) => format!("{longer}; --warm-start {folder} begins with what is known"),
        };
        let is_left = !summary.top.is_empty() || !is_over;
        return (!summary.failures.is_empty()).then_some(failed).into_iter().chain(is_left.then_some(left)).collect();
    }
    let mut next = Vec::new();
    if above_limit(summary).is_some() {
        // What a session has searched already is no advice.
        let lower_clocks = if session.settings.max_clock_mhz.is_empty() {
            ", or --vary clock, which searches lower clocks, too"
        } else {
            ""
        };
        next.push(format!("a higher --power-limit{lower_clocks}"));
    }
    // A default that took the place of the choice has passed by whole runs.
    if summary.verified_run().is_none() && !(summary.default_is_back() && session.extent == Extent::Whole) {
        let failed = summary.final_run.as_ref().filter(|row| !row.passed);
        next.push(match failed.map(|row| row.failure_detail.as_deref().unwrap_or(row.outcome.name())) {
            Some(why) => {
                let is_due = !is_over && !summary.default_is_back();
                let again = if is_due { format!("; {goes_on}, and makes it again") } else { String::new() };
                format!("the final run failed, {why}; the best is not verified at its N{again}")
            }
            None if is_over => "no final run of the best was made; a longer --budget leaves time for one".to_owned(),
            None => format!("no final run of the best was made; {goes_on}"),
        });
    }
    if let Comparison::Measured { ratio } = &summary.best_by_baseline
        && ratio.pairs < PAIRS_TO_JUDGE
        && !summary.rounds_failed
    {
        next.push(if is_over {
            format!("a longer --budget gives the {PAIRS_TO_JUDGE} pairs that an interval needs")
        } else {
            format!("{goes_on}; an interval needs {PAIRS_TO_JUDGE} pairs")
        });
    }
    if let Some(GainLeft { expected, at_most }) = summary.left() {
        let (mean, most) = (100.0 * expected, 100.0 * at_most);
        next.push(if *expected >= WORTH_A_SEARCH {
            // Simulated runs are no start of another session.
            let on = if session.is_simulated() {
                "with a longer --budget".to_owned()
            } else {
                format!("with --warm-start {folder}")
            };
            format!("better candidates are predicted to gain {mean:.1} % (at most {most:.1} %); search on {on}")
        } else {
            format!("little is left to find at this N: {mean:.1} % are predicted, at most {most:.1} %")
        });
    }
    if let (true, Some(n), Some(n_memory)) = (session.n_limited_by_budget, session.n, session.n_memory) {
        next.push(format!("a longer --budget tunes a larger N than {n}; the memory allows {n_memory}"));
    }
    if summary.nodes_apart.as_ref().is_some_and(|apart| APART * apart.trials >= summary.trials) {
        next.push(
            "nodes stood apart from the others; hpl-tune nodes says how slow they are, and what leaving them out is worth"
                .to_owned(),
        );
    }
    // The doctor looks at this machine, which has run nothing of a simulated session.
    if let Some(why) = summary.importance_not_judged.filter(|_| !session.is_simulated()) {
        next.push(format!("{why} during the session; hpl-tune doctor tells what may be the cause"));
    } else if let Some(share) = summary.most_stolen.filter(|share| *share > STOLEN) {
        next.push(format!(
            "the hypervisor took up to {:.1} % of the processor time of a run; on a quieter host intervals are narrower",
            100.0 * share
        ));
    }
    next
}

#[cfg(test)]
mod tests {
    use objectives::launcher::MpiJob;

    use super::super::stats::paired_ratio;
    use super::super::summary::NodesApart;
    use super::super::summary::tests::session;
    use super::super::{html, table};
    use super::*;
    use crate::record::arbitrary::row;
    use crate::record::session::Session;
    use crate::record::{Identity, Row};
    use crate::search::rounds;

    fn summary(pairs: &[(f64, f64)]) -> Summary {
        let rows = [Row { strategy: Identity::FINAL.into(), ..row(0) }];
        let mut summary = Summary::new(&session(), &rows);
        if let Some(ratio) = paired_ratio(pairs) {
            summary.best_by_baseline = Comparison::Measured { ratio };
        }
        summary
    }

    fn said(summary: &Summary) -> String {
        closing(summary, "runs/x").join("\n")
    }

    #[test]
    fn what_was_won_follows_from_the_pairs() {
        let gain = [1.03, 1.034, 1.02, 1.04, 1.035, 1.03].map(|ratio| (ratio, 1.0));
        let text = said(&summary(&gain));
        assert!(
            text.starts_with(
                "Won: the best is 3.2 % faster than the usual HPL.dat (interval +2.0 … +4.0 %, 96.9 %, 6 pairs)."
            ),
            "{text}"
        );
        assert!(!text.contains("pairs that an interval needs"), "{text}");
        let open = [0.99, 1.034, 1.02, 1.04, 1.035, 1.03].map(|ratio| (ratio, 1.0));
        assert!(said(&summary(&open)).starts_with("Won: no gain over the usual HPL.dat is shown"));
        let few = said(&summary(&gain[..2]));
        assert!(
            few.contains("in 2 pairs; too few for an interval") && few.contains("an interval needs 6 pairs"),
            "{few}"
        );
        let none = said(&summary(&[]));
        assert!(none.contains("was not measured: the default did not run"), "{none}");
        let same = Summary { best_by_baseline: Comparison::Same { best_is: "the default" }, ..summary(&[]) };
        assert!(
            said(&same).starts_with("Won: the usual HPL.dat is the best that was found, at 20.00 GFLOP/s at N = 1000.")
        );
    }

    /// As the scores of such a session are called estimated.
    #[test]
    fn what_windows_estimate_is_not_claimed_as_measured() {
        let mut summary = summary(&[(1.03, 1.0); 6]);
        summary.session.extent = Extent::Windows;
        assert!(said(&summary).contains("(interval +3.0 … +3.0 %, 96.9 %, 6 pairs by windows)."), "{}", said(&summary));
        let line = "Best/default  1.030 (1.030-1.030, 96.9 %, 6 pairs) by windows\n";
        assert!(table::summary(&summary, None).contains(line), "{}", table::summary(&summary, None));
        let page = html::ReportPage::new(&summary, &[]).html();
        assert!(page.contains("1.030 (1.030-1.030, 96.9 %, 6 pairs) by windows"));
        summary.best_by_baseline = Comparison::Same { best_is: "the default" };
        assert!(!table::summary(&summary, None).contains("by windows\n"));
    }

    #[test]
    fn a_missed_power_limit_is_said_first() {
        let mut summary = summary(&[(1.0, 1.0); 6]);
        summary.session.objective = Objective::GflopsWithin { power_limit_w: 400 };
        summary.limited_power_w = Some(412.0);
        let text = said(&summary);
        assert!(
            text.starts_with("Won: nothing, as no candidate keeps the power limit of 400 W; the best takes 412.0 W.")
        );
        assert!(text.contains("Next: a higher --power-limit, or --vary clock"), "{text}");
        // The clock was searched, and the advice was to search it.
        summary.session.settings.max_clock_mhz = vec![1800, 2600];
        let text = said(&summary);
        assert!(text.contains("Next: a higher --power-limit") && !text.contains("--vary clock"), "{text}");
        summary.session.settings.max_clock_mhz.clear();
        // Not as "no candidate keeps the power limit of 400 W; the best takes 400.0 W".
        summary.limited_power_w = Some(400.012);
        assert!(said(&summary).contains("limit of 400 W; the best takes 400.02 W."), "{}", said(&summary));
        assert!(table::summary(&summary, None).contains("; no candidate keeps it: the best takes 400.02 W\n"));
        summary.limited_power_w = Some(390.0);
        assert!(!said(&summary).contains("keeps the power limit"));
    }

    /// By its runs after the choice the best may be a little above the limit that it kept before.
    #[test]
    fn a_limit_that_others_keep_is_not_said_to_be_kept_by_none() {
        let session = Session { objective: Objective::GflopsWithin { power_limit_w: 400 }, ..session() };
        let rows_of = |watts: f64| {
            let last = Row { strategy: Identity::FINAL.into(), power_w: Some(412.0), ..row(1) };
            [Row { power_w: Some(watts), ..row(0) }, last]
        };
        let others = "as the best takes 412.0 W, above the power limit of 400 W, which others keep.";
        let none = "as no candidate keeps the power limit of 400 W; the best takes 412.0 W.";
        let cases = [(390.0, others, "; others keep it: "), (420.0, none, "; no candidate keeps it: ")];
        for (watts, won, objective) in cases {
            let summary = Summary::new(&session, &rows_of(watts));
            assert!(said(&summary).contains(won), "{}", said(&summary));
            let text = table::summary(&summary, None);
            assert!(text.contains(objective), "{text}");
        }
    }

    #[test]
    fn what_to_try_next_is_named_where_the_record_says_so() {
        let mut found = summary(&[(1.0, 1.0); 6]);
        assert!(said(&found).contains("a larger N than 1000; the memory allows 20000"), "{}", said(&found));
        found.session.left = Some(GainLeft { expected: 0.021, at_most: 0.06 });
        assert!(said(&found).contains("2.1 % (at most 6.0 %); search on with --warm-start runs/x"));
        found.session.left = Some(GainLeft { expected: 0.001, at_most: 0.004 });
        assert!(said(&found).contains("little is left to find"));
        found.nodes_apart = Some(NodesApart { trials: 1, last_trial: 0, last: "n3: clock 1.90 GHz".into() });
        assert!(said(&found).contains("hpl-tune nodes says"));
        found.trials = APART + 1;
        assert!(!said(&found).contains("hpl-tune nodes says"), "one trial of many");
        found.most_stolen = Some(0.3);
        assert!(said(&found).contains("took up to 30.0 % of the processor time"));
        found.importance_not_judged = Some("the speed changed");
        assert!(said(&found).contains("hpl-tune doctor"));
        assert_eq!(closing(&Summary::new(&session(), &[]), "runs/x")[0], "Won: nothing, as no trial has passed.");
        let stopped = |is_over: bool| {
            let mut summary = Summary { best: None, ..Summary::new(&session(), &[row(0)]) };
            summary.is_over = is_over;
            closing(&summary, "runs/x").join("\n")
        };
        assert!(stopped(false).contains("hpl-tune --resume runs/x goes on"), "{}", stopped(false));
        assert!(stopped(true).contains("a longer --budget leaves time for a final run; --warm-start runs/x"));
    }

    #[test]
    fn the_doctor_is_not_advised_where_this_machine_ran_nothing() {
        let mut found = summary(&[(1.0, 1.0); 6]);
        found.importance_not_judged = Some("the speed changed");
        assert!(said(&found).contains("hpl-tune doctor"));
        let job = MpiJob { simulated: Some("simulated.toml".into()), ..MpiJob::new("mpiexec", "xhpl".into()) };
        found.session.mpi_job = Some(job);
        assert!(!said(&found).contains("hpl-tune doctor"), "{}", said(&found));
    }

    /// No budget gives what failures have ended, and no resume a final run of the default that has passed by whole runs.
    #[test]
    fn nothing_is_advised_that_does_not_help() {
        let few = summary(&[(1.03, 1.0); 2]);
        assert!(
            said(&few).contains("--resume runs/x goes on where this session has stopped; an interval needs 6 pairs")
        );
        let over = Summary { is_over: true, ..few.clone() };
        assert!(said(&over).contains("a longer --budget gives the 6 pairs"), "{}", said(&over));
        assert!(!said(&Summary { rounds_failed: true, ..few }).contains("6 pairs"));
        let rows = rounds::tests::with_rounds(&[(10.0, 8.0, 9.0); 7]);
        let mut back =
            Summary::new(&Session { left: Some(GainLeft { expected: 0.03, at_most: 0.1 }), ..session() }, &rows);
        assert!(back.default_is_back(), "{:?}", back.taken_back);
        assert!(!said(&back).contains("final run") && !said(&back).contains("predicted to gain"), "{}", said(&back));
        back.session.extent = Extent::Windows;
        assert!(said(&back).contains("no final run of the best was made"), "{}", said(&back));
    }
}
