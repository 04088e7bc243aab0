//! A run folder: its record, the output of every run, and the files that repeat the best.

use std::io::ErrorKind;
use std::path::Path;

use objectives::foreign::Profile;
use objectives::real::Extent;
use space::dat::HplDat;
use space::{EngineParams, counted};

use super::output::{self, ORIGINAL};
use super::{Checked, record};
use crate::record::Row;
use crate::record::decode::Decoder;
use crate::record::folder::RunFolder;
use crate::record::plain::{self, TEXT_BYTES};
use crate::record::session::Session;
use crate::record::sha256;
use crate::report::Summary;
use crate::session::engine::Engine;

/// What to do about a file of the report that was changed.
const AGAIN: &str = "hpl-tune report of the run folder writes it anew";

/// Verifies the run folder.
pub(super) fn verify(folder: &RunFolder, decoder: &Decoder) -> Checked {
    let mut checked = Checked { what: "run folder".to_owned(), ..Checked::default() };
    let (session, rows) = record::read(&mut checked, folder.root(), "");
    record::rows(&mut checked, "", session.as_ref(), &rows);
    record::against_parquet(&mut checked, folder.root(), "", &rows, decoder);
    let Some(session) = session else { return checked };
    let engine = match Engine::of(&session, folder) {
        Ok(engine) => engine,
        Err(error) => {
            checked.find("engine.toml", error.to_string(), "put the engine.toml of the session back");
            return checked;
        }
    };
    // Nothing is started: the path of a program does not matter.
    let results = engine.runs(Path::new("hpl-tune")).results_file().to_owned();
    trials(&mut checked, folder, (&session, &engine), &rows, &results);
    let rows = session.split(rows).all;
    best(&mut checked, folder, &session, &rows, &results);
    checked
}

/// The output of every run that passed, where it is still there.
fn trials(
    checked: &mut Checked,
    folder: &RunFolder,
    (session, engine): (&Session, &Engine),
    rows: &[Row],
    results: &str,
) {
    let mut outputs = 0;
    for row in rows {
        let file = format!("trials/{}/{results}", row.trial);
        let path = folder.trial(row.trial).join(results);
        let bytes = match plain::read(&path, TEXT_BYTES) {
            Ok(bytes) => bytes,
            Err(error) => {
                let is_missing = error.kind() == ErrorKind::NotFound;
                if !is_missing {
                    checked.find(file, format!("cannot be read: {error}"), "put what the run printed back");
                } else if row.score_gflops().is_some() && folder.trial(row.trial).is_dir() {
                    checked.find(file, "it is missing", "put what the run printed back");
                }
                continue;
            }
        };
        outputs += 1;
        let hash = sha256::of_bytes(&bytes);
        if let Some(known) = row.output_sha256.as_ref().filter(|known| **known != hash) {
            checked.find(
                &file,
                format!("its SHA-256 is {hash}, journal.jsonl has {known} of trial {}", row.trial),
                ORIGINAL,
            );
        }
        if row.score_gflops().is_none() || session.is_simulated() {
            continue;
        }
        let text = String::from_utf8_lossy(&bytes);
        if let Some(found) = output::in_other_form(engine, &text) {
            output::in_other_form_against_row(checked, &file, &found, row);
            continue;
        }
        let own_dat = format!("trials/{}/HPL.dat", row.trial);
        let dat = plain::text(&folder.trial(row.trial).join("HPL.dat"), TEXT_BYTES);
        let irregular = dat.as_ref().err().filter(|error| error.kind() != ErrorKind::NotFound);
        if let Some(error) = irregular {
            checked.find(&own_dat, format!("cannot be read: {error}"), "put the HPL.dat that the run read back");
        }
        let dat = dat.ok();
        let obeyed = obeyed(Some(session), &folder.engine_toml());
        let dat = dat.and_then(|dat| output::against_dat(checked, [&own_dat, &file], &dat, &text, obeyed));
        output::arithmetic(checked, &file, &text, dat.map_or(16.0, |dat| dat.threshold));
        output::against_row(checked, &file, &text, row);
    }
    checked.looked(format!("the output of {}", counted(outputs, "run")));
}

/// HPL.dat, engine-params.toml and HPL.out of the best.
fn best(checked: &mut Checked, folder: &RunFolder, session: &Session, rows: &[Row], results: &str) {
    let summary = Summary::new(session, rows);
    let Some(row) = summary.shown_trial().and_then(|trial| rows.iter().find(|row| row.trial == trial)) else {
        return checked.looked("no whole run that passed, so no best");
    };
    if row.extent != Extent::Whole {
        checked.find("journal.jsonl", format!("its best, trial {}, is not a whole run", row.trial), AGAIN);
    }
    let candidate = row.candidate();
    let dat = plain::text(&folder.hpl_dat(), TEXT_BYTES);
    match dat.as_deref().map(HplDat::parse) {
        Ok(Ok(dat)) => {
            // An engine may make several runs of it at once.
            if dat.runs().iter().any(|run| *run != candidate.hpl) {
                checked.find("HPL.dat", format!("it is not the configuration of the best, trial {}", row.trial), AGAIN);
            }
            let words = dat.comments[1].ends_with(session.how());
            if dat.comments[1].starts_with("hpl-tune:") && !words {
                let problem =
                    format!("its second line, '{}', does not say that the rate is {}", dat.comments[1], session.how());
                checked.find("HPL.dat", problem, AGAIN);
            }
        }
        Ok(Err(error)) => checked.find("HPL.dat", error.to_string(), AGAIN),
        Err(error) => checked.find("HPL.dat", format!("cannot be read: {error}"), AGAIN),
    }
    if session.engine == Session::OURS {
        engine_params(checked, &folder.engine_params(), ("the best", row), AGAIN);
    }
    let [bytes, own] =
        [folder.hpl_out(), folder.trial(row.trial).join(results)].map(|path| plain::read(&path, TEXT_BYTES));
    match (bytes, own) {
        (Ok(bytes), own) => {
            let hash = sha256::of_bytes(&bytes);
            let differs =
                row.output_sha256.as_ref().is_some_and(|known| *known != hash) || own.is_ok_and(|own| own != bytes);
            if differs {
                checked.find("HPL.out", format!("it is not what trial {} printed", row.trial), AGAIN);
            }
        }
        (Err(error), Ok(_)) => checked.find("HPL.out", format!("cannot be read: {error}"), AGAIN),
        // A user may have deleted the folders of the trials.
        (Err(_), Err(_)) => {}
    }
    checked.looked(format!("HPL.dat, engine-params.toml and HPL.out with the best, trial {}", row.trial));
}

/// The engine-params.toml at `path`, which has to be that of `row`, which is called `whose`.
pub(super) fn engine_params(checked: &mut Checked, path: &Path, (whose, row): (&str, &Row), way_out: &str) {
    const NAME: &str = "engine-params.toml";
    let params = plain::text(path, TEXT_BYTES).map_err(|error| format!("cannot be read: {error}"));
    match params.and_then(|text| toml::from_str::<EngineParams>(&text).map_err(|error| error.to_string())) {
        Ok(params) if params == row.candidate().engine => {}
        Ok(_) => checked.find(NAME, format!("it is not that of {whose}, trial {}", row.trial), way_out),
        Err(error) => checked.find(NAME, error, way_out),
    }
}

/// Which parameters an engine takes: ours all; another one those of its profile at `path`, none where that cannot be read.
pub(super) fn obeyed(session: Option<&Session>, path: &Path) -> impl Fn(&str) -> bool + use<> {
    let ours = session.is_none_or(|session| session.engine == Session::OURS);
    let profile = plain::text(path, TEXT_BYTES).ok().and_then(|text| Profile::parse(&text).ok());
    move |name: &str| {
        let obeys = |profile: &Profile| profile.obeys.iter().any(|known| known.eq_ignore_ascii_case(name));
        ours || profile.as_ref().is_some_and(obeys)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::arbitrary::row;
    use crate::report::summary::tests::session;

    #[test]
    fn an_input_of_several_runs_of_the_best_is_that_of_the_best() {
        let parent = tempfile::tempdir().unwrap();
        let (folder, _lock) = RunFolder::create(&parent.path().join("run")).unwrap();
        let (rows, session) = ([row(0)], Session { engine: "mine".to_owned(), ..session() });
        let problems = |dat: &HplDat| {
            std::fs::write(folder.hpl_dat(), dat.write().unwrap()).unwrap();
            let mut checked = Checked::default();
            best(&mut checked, &folder, &session, &rows, "stdout.txt");
            checked.findings
        };
        let dat = HplDat { ns: vec![rows[0].n; 3], ..HplDat::single(&rows[0].candidate().hpl) };
        assert!(problems(&dat).is_empty(), "{:?}", problems(&dat));
        assert_eq!(problems(&HplDat { nbs: vec![rows[0].nb + 1], ..dat }).len(), 1);
    }
}
