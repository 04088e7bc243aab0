//! The survey of an MPI job's ranks.

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use hpl::measure::survey::{LinkSurvey, RankSurvey, Survey, partners};
use objectives::launcher::MpiJob;
use space::Candidate;
use space::dat::HplDat;
use space::domain::largest_n;
use space::machine::Node;
use tempfile::TempDir;

use super::said;
use crate::cluster::acceptance::SURVEY_NB;
use crate::error::RecordError;
use crate::exit::bad_input;
use crate::record::folder::replace_file;
use crate::signals::removed_at_a_signal;

/// Part of a node's memory that they may take.
const SHARE: u64 = 2;

/// An order whose runs take about as long on any of `nodes`, `of_one_core` on a node of one core, as far as all have memory for it.
pub(crate) fn order(nodes: &[Node], of_one_core: f64) -> usize {
    let least = |of: fn(&Node) -> u64| nodes.iter().map(of).min().unwrap_or(1);
    let cores = least(|node| node.cores as u64);
    let wanted = (of_one_core * (cores as f64).sqrt()) as usize / SURVEY_NB * SURVEY_NB;
    wanted.min(largest_n(least(|node| node.memory_bytes) / SHARE, 1, 1, SURVEY_NB, 1)).max(SURVEY_NB)
}

/// What the processes of `program` under `launcher` find, in a folder of their own below the current one, which all nodes see where
/// they see the program.
///
/// # Errors
/// As of [`surveyed`], and a current folder that cannot be written.
pub(crate) fn below_here(
    program: &Path,
    launcher: &str,
    candidate: &Candidate,
    repeats: u64,
    limit: Duration,
) -> anyhow::Result<Survey> {
    let program = program.canonicalize().map_err(|error| bad_input(format!("{}: {error}", program.display())))?;
    let folder = folder_in(&std::env::current_dir()?)?;
    removed_at_a_signal(folder.path().to_owned()).context("cannot listen to signals")?;
    surveyed(&MpiJob::new(launcher, program), folder.path(), candidate, repeats, limit)
}

/// A hidden folder in `parent`, which is removed when it is dropped.
fn folder_in(parent: &Path) -> Result<TempDir, RecordError> {
    tempfile::Builder::new().prefix(".survey-").tempdir_in(parent).map_err(RecordError::write(parent))
}

/// What the ranks of `candidate` find in `folder`, which all nodes see, each measurement made `repeats` times.
///
/// # Errors
/// A job that cannot be started, fails, does not end within `limit`, or leaves out a rank.
pub(crate) fn surveyed(
    job: &MpiJob,
    folder: &Path,
    candidate: &Candidate,
    repeats: u64,
    limit: Duration,
) -> anyhow::Result<Survey> {
    replace_file(&folder.join("HPL.dat"), HplDat::single(&candidate.hpl).write()?.as_bytes())?;
    replace_file(&folder.join("engine.toml"), toml::to_string(&candidate.engine)?.as_bytes())?;
    let flags = ["--engine-params", "engine.toml", "--survey", &repeats.to_string()];
    let way_out = "one node that does not answer delays the whole survey: survey fewer nodes to find it and leave it out, or give it more time: by --limit of hpl-tune survey and nodes, in a session by a longer --budget";
    let (line, said) = said(job, candidate, &flags, folder, limit, way_out)?;
    let found = printed(&said).map_err(|error| {
        bad_input(format!("{line}: no survey in its output ({error}); is it an xhpl of this version?"))
    })?;
    let (wanted, answered) = (candidate.hpl.ranks(), found.ranks.len());
    if answered != wanted {
        return Err(bad_input(format!(
            "{line}: {answered} of {wanted} ranks answered; let the launcher start all of them, for hpl-tune survey as many as --ranks says"
        )));
    }
    if let Some(rank) = found.ranks.iter().find(|rank| !answers(rank, wanted)) {
        return Err(bad_input(format!(
            "{line}: rank {} on {} did not answer the benchmark; leave its node out of the job, or survey it alone to see why",
            rank.rank, rank.host
        )));
    }
    Ok(found)
}

/// The survey in what a job has printed: launchers print lines of their own.
fn printed(said: &[u8]) -> Result<Survey, serde_json::Error> {
    let mut lines = said.split(|byte| *byte == b'\n');
    match lines.find_map(|line| serde_json::from_slice(line).ok()) {
        Some(found) => Ok(found),
        // What is wrong with it.
        None => serde_json::from_slice(said),
    }
}

/// Whether all rates of a rank are rates.
fn answers(found: &RankSurvey, ranks: usize) -> bool {
    let rates = |of: &[f64]| !of.is_empty() && of.iter().all(|rate| rate.is_finite() && *rate > 0.0);
    let good = |link: &LinkSurvey| [link.gbytes_per_s, link.latency_s].iter().all(|of| of.is_finite() && *of > 0.0);
    let others = found.links.iter().map(|link| link.other);
    rates(&found.dgemm_gflops)
        && rates(&found.hpl_gflops)
        && others.eq(partners(found.rank, ranks))
        && found.links.iter().all(good)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit;

    /// The exit code was that of unexpected errors.
    #[test]
    fn a_folder_that_cannot_be_made_is_told_as_a_file_that_cannot_be_written() {
        let error = anyhow::Error::from(folder_in(Path::new("/no/such/folder")).unwrap_err());
        assert_eq!(exit::code(&error), exit::NOT_WRITTEN);
        assert!(error.to_string().starts_with("cannot write /no/such/folder: "), "{error}");
    }

    /// A launcher that greeted its user left the nodes without a survey, though it was taken for one that starts their ranks.
    #[test]
    fn the_survey_is_found_among_other_lines() {
        let survey = Survey { kernels: "builtin".to_owned(), ranks: vec![RankSurvey::default()] };
        let line = serde_json::to_string(&survey).unwrap();
        assert_eq!(printed(format!("{line}\n").as_bytes()).unwrap(), survey);
        assert_eq!(printed(format!("a module was loaded\n\n{line}\nbye").as_bytes()).unwrap(), survey);
        assert!(printed(b"a module was loaded\n").is_err() && printed(b"").is_err());
    }
}
