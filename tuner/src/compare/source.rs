//! Where one side of a comparison comes from: a run folder, or a file.

use std::path::{Path, PathBuf};

use objectives::real::Extent;

use super::files;
use super::run::{Ended, Known, Run, RunOrigin};
use crate::exit::bad_input;
use crate::record::folder::RunFolder;
use crate::record::journal::{self, BadLine};
use crate::record::session::{RowsByPlace, Session};
use crate::record::{Identity, Outcome, Row};
use crate::report::summary::TakenBack;
use crate::report::{Summary, counted};

/// One side as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    /// The path that the user gave.
    pub path: PathBuf,
    /// What is there, in words.
    pub kind: &'static str,
    /// The runs, in the order in which they are there.
    pub runs: Vec<Run>,
    /// Whether these runs were made after their configuration was chosen, so that the choice has no part in their rates.
    pub chosen_before: bool,
    /// Whole runs of the best whose residual failed before the choice, at whatever N: such a final run is made once more.
    pub wrong_before: usize,
    /// The command that started the session.
    pub session_command: Option<String>,
    /// Whether the runs are simulated.
    pub simulated: bool,
    /// What else there is to say of it.
    pub notes: Vec<String>,
}

/// Reads what is at `path`.
///
/// # Errors
/// Nothing that can be read, or a damaged file, with the place of the damage.
pub fn read(path: &Path) -> anyhow::Result<Source> {
    if path.is_dir() {
        return of_folder(path);
    }
    let bytes = std::fs::read(path).map_err(|error| {
        bad_input(format!("cannot read {}: {error}; give a run folder, an HPL.out or a result.json", path.display()))
    })?;
    let (kind, runs) = files::runs(&bytes).map_err(|error| bad_input(format!("{}: {error}", path.display())))?;
    let (path, notes) = (path.to_path_buf(), Vec::new());
    let (chosen_before, wrong_before, session_command, simulated) = (false, 0, None, false);
    Ok(Source { path, kind, runs, chosen_before, wrong_before, session_command, simulated, notes })
}

/// The runs of the best of a session from its final run on; of a session without that all its runs.
fn of_folder(path: &Path) -> anyhow::Result<Source> {
    let folder = RunFolder::open(path)?;
    folder.check_record()?;
    let session = Session::load(&folder.session_toml())?;
    let contents = journal::read(&folder.journal())?;
    let mut notes = Vec::new();
    for line in &contents.bad_lines {
        match line {
            BadLine::Damaged { .. } => return Err(bad_input(format!("{}: {line}", path.display()))),
            BadLine::Torn { .. } | BadLine::Again { .. } => notes.push(line.to_string()),
        }
    }
    let RowsByPlace { all: rows, elsewhere, .. } = session.split(contents.rows);
    if !elsewhere.is_empty() {
        let are = if elsewhere.len() == 1 { "is" } else { "are" };
        notes.push(format!("{} on other nodes {are} left out", counted(elsewhere.len(), "trial")));
    }
    let chosen = rows.iter().position(|row| row.strategy == Identity::FINAL && row.passed);
    let found = Summary::new(&session, &rows);
    // Not where it is so for its power: the rates had no part in that.
    let by_rates = |back: &TakenBack| back.default_is_best && back.above_limit_w.is_none();
    let chosen_after = found.taken_back.as_ref().is_some_and(by_rates);
    if chosen_after {
        notes.push("the pairs after the final run made the default the best: that luck is in its rates".to_owned());
    }
    let best = found.best.filter(|_| chosen.is_some());
    let mut wrong_before = 0;
    let runs = match (chosen, best) {
        (Some(at), Some(best)) => {
            let n = best.candidate.hpl.n;
            let is_of_best = |row: &&Row| row.candidate().at_n(n) == best.candidate;
            let of_best = |rows: &[Row]| rows.iter().filter(is_of_best).map(of_row).collect::<Vec<Run>>();
            let after = of_best(&rows[at..]);
            if after.iter().any(|run| run.rate_gflops().is_some()) {
                let is_wrong = |row: &&Row| row.extent == Extent::Whole && row.outcome == Outcome::Residual;
                wrong_before = rows[..at].iter().filter(is_of_best).filter(is_wrong).count();
                after
            } else {
                // A default that has taken the place of the choice.
                notes.push("no run of the best has passed after the choice: those before it are taken, too".to_owned());
                of_best(&rows)
            }
        }
        _ => {
            notes.push("no final run passed: all trials of the session are taken".to_owned());
            rows.iter().map(of_row).collect()
        }
    };
    Ok(Source {
        path: path.to_path_buf(),
        kind: "run folder",
        runs,
        chosen_before: chosen.is_some() && !chosen_after,
        wrong_before,
        session_command: Some(session.command.clone()),
        simulated: session.is_simulated(),
        notes,
    })
}

fn of_row(row: &Row) -> Run {
    let ended = match (row.comparable_rate_gflops(), row.outcome) {
        (Some(rate_gflops), _) => Ended::Passed { rate_gflops, residual: row.residual },
        (None, Outcome::Residual) => Ended::Wrong,
        (None, _) => Ended::Lost,
    };
    let ours = [Session::OURS, Row::SIMULATED].contains(&row.engine.as_str());
    Run {
        candidate: row.candidate(),
        known: if ours { Known::All } else { Known::WithoutOurs },
        extent: row.extent,
        ended,
        started: row.started_utc.parse().ok(),
        origin: RunOrigin {
            host: Some(row.nodes.as_ref().unwrap_or(&row.host).clone()),
            engine: Some(row.engine.clone()),
            kernel: row.kernel.clone(),
            versions: Some(row.versions.clone()),
            command: Some(row.command.clone()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Objective;
    use crate::record::arbitrary::row;
    use crate::record::journal::Journal;
    use crate::report::summary::tests::session;
    use crate::search::rounds::tests::with_rounds;

    /// A session with a final run and these rounds of default, expert and best.
    fn session_in(path: &Path, rounds: &[(f64, f64, f64)]) {
        session_of(path, &with_rounds(rounds));
    }

    /// A session with these rows.
    fn session_of(path: &Path, rows: &[Row]) {
        let (folder, _lock) = RunFolder::create(path).unwrap();
        session().save(&folder.session_toml()).unwrap();
        let (mut journal, _) = Journal::open(&folder.journal()).unwrap();
        rows.iter().for_each(|row| journal.append(row).unwrap());
    }

    /// What is compared of such a session.
    fn source_of(rounds: &[(f64, f64, f64)]) -> Source {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        session_in(&path, rounds);
        read(&path).unwrap()
    }

    #[test]
    fn a_session_gives_the_runs_of_its_best_after_the_choice() {
        let source = source_of(&[(10.0, 9.0, 12.0); 6]);
        // The final run and six of the rounds: not the pair before, by which the best was chosen.
        let rates: Vec<f64> = source.runs.iter().filter_map(Run::rate_gflops).collect();
        assert_eq!(rates, [12.0; 7]);
        assert!(source.chosen_before && source.session_command.is_some());
        assert!(source.runs.iter().all(|run| run.candidate.hpl.nb == 192));
    }

    /// The final run was made once more, at another N.
    #[test]
    fn a_final_run_that_failed_before_the_one_that_passed_counts_as_wrong() {
        let mut rows = with_rounds(&[(10.0, 9.0, 12.0); 6]);
        let at = rows.iter().position(|row| row.strategy == Identity::FINAL).unwrap();
        let failed = Row { passed: false, outcome: Outcome::Residual, rate_gflops: None, ..rows[at].clone() };
        let of_other = Row { nb: failed.nb + 1, trial: 100, ..failed.clone() };
        rows.splice(at..at, [Row { n: failed.n + 100, trial: 99, ..failed }, of_other]);
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        session_of(&path, &rows);
        let source = read(&path).unwrap();
        assert_eq!((source.wrong_before, source.runs.len()), (1, 7));
    }

    /// They are those of the default then, which these same runs have chosen.
    #[test]
    fn runs_that_took_the_choice_back_are_not_called_later_than_it() {
        let source = source_of(&[(10.0, 8.0, 9.0); 7]);
        let rates: Vec<f64> = source.runs.iter().filter_map(Run::rate_gflops).collect();
        assert_eq!((rates, source.chosen_before), (vec![10.0; 7], false));
        assert!(source.notes[0].contains("made the default the best"), "{:?}", source.notes);
    }

    /// The final run itself was above the power limit, and no time was left for another one of the default.
    #[test]
    fn a_default_that_did_not_run_after_the_choice_gives_its_runs_before_it() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let objective = Objective::GflopsWithin { power_limit_w: 400 };
        Session { objective, ..session() }.save(&folder.session_toml()).unwrap();
        let run = |nb: usize, strategy: &str, watts: f64, trial: u64| Row {
            nb,
            strategy: strategy.into(),
            power_w: Some(watts),
            ..row(trial)
        };
        let (mut journal, _) = Journal::open(&folder.journal()).unwrap();
        journal.append(&run(128, Identity::BASELINE, 390.0, 0)).unwrap();
        journal.append(&run(192, Identity::FINAL, 420.0, 1)).unwrap();
        let source = read(folder.root()).unwrap();
        let rates: Vec<f64> = source.runs.iter().filter_map(Run::rate_gflops).collect();
        assert_eq!(rates, [20.0]);
        assert!(source.notes[0].starts_with("no run of the best has passed after the choice"), "{:?}", source.notes);
    }

    #[test]
    fn trials_on_other_nodes_are_counted() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        session().save(&folder.session_toml()).unwrap();
        let (mut journal, _) = Journal::open(&folder.journal()).unwrap();
        journal.append(&row(0)).unwrap();
        for (trial, said) in [(1, "1 trial on other nodes is left out"), (2, "2 trials on other nodes are left out")] {
            journal.append(&Row { nodes: Some("n9".to_owned()), ..row(trial) }).unwrap();
            let source = read(folder.root()).unwrap();
            assert!(source.notes.iter().any(|note| note == said), "{:?}", source.notes);
        }
    }

    #[test]
    fn damage_is_named_with_its_line() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        session_in(&path, &[(10.0, 9.0, 12.0); 6]);
        let journal = path.join("journal.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        // A torn last line is what a kill leaves.
        std::fs::write(&journal, format!("{text}{{\"half")).unwrap();
        let source = read(&path).unwrap();
        assert!(source.notes[0].contains("incomplete"), "{:?}", source.notes);
        std::fs::write(&journal, text.replacen("\"trial\":3", "\"trial\":[]", 1)).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.contains("run: journal.jsonl line 4"), "{message}");
        for (name, words) in [("typo", "typo"), ("run/trials.parquet", "HPL.out")] {
            let message = read(&parent.path().join(name)).unwrap_err().to_string();
            assert!(message.contains(words), "{message}");
        }
    }
}
