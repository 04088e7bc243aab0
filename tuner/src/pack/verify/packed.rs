//! A pack: its hashes, and whether output, HPL.dat, record and what it says agree.

use std::collections::BTreeSet;
use std::path::Path;

use space::counted;

use super::claims::{self, AGAIN};
use super::output::{self, ORIGINAL, results};
use super::{Checked, record, run_folder};
use crate::pack::folder::{Below, SUMS, below, parse_sums};
use crate::pack::manifest::{self, Manifest};
use crate::pack::power::Power;
use crate::pack::scored::{GUARD, RESULT};
use crate::power::stamps::Stamps;
use crate::record::Row;
use crate::record::decode::Decoder;
use crate::record::plain::{self, RECORD_BYTES, TEXT_BYTES};
use crate::record::session::Session;
use crate::record::sha256;
use objectives::real::Extent;

/// Verifies the pack at `root`.
pub(super) fn verify(root: &Path, decoder: &Decoder) -> Checked {
    let mut checked = Checked { what: "pack".to_owned(), ..Checked::default() };
    sums(&mut checked, root);
    let folder = root.join("record");
    let (session, rows) = record::read(&mut checked, &folder, "record/");
    record::rows(&mut checked, "record/", session.as_ref(), &rows);
    record::against_parquet(&mut checked, &folder, "record/", &rows, decoder);
    let manifest = match Manifest::read(root) {
        Ok(manifest) => manifest,
        Err(error) => {
            checked.find(manifest::NAME, error.to_string(), AGAIN);
            return checked;
        }
    };
    checked.what = format!("pack for {}", manifest.purpose.name());
    let row = rows.iter().find(|row| row.trial == manifest.trial);
    score(&mut checked, root, &manifest, session.as_ref(), row);
    times(&mut checked, root, &manifest);
    let power = power(&mut checked, root, &manifest);
    claims::verify(&mut checked, root, &manifest, power.as_ref());
    checked
}

/// The list of sums, and the files that are there.
fn sums(checked: &mut Checked, root: &Path) {
    let listed = match plain::text(&root.join(SUMS), TEXT_BYTES) {
        Ok(text) => parse_sums(&text),
        Err(error) => return checked.find(SUMS, format!("cannot be read: {error}"), AGAIN),
    };
    let listed = match listed {
        Ok(listed) => listed,
        Err(line) => return checked.find(SUMS, format!("line {line} is not a hash with a path"), AGAIN),
    };
    for (hash, path) in &listed {
        match sha256::of_plain_file(&root.join(path)) {
            Ok(found) if found == *hash => {}
            Ok(found) => checked.find(path, format!("its SHA-256 is {found}, {SUMS} has {hash}"), AGAIN),
            Err(error) => checked.find(path, format!("{SUMS} lists it, and it cannot be read: {error}"), AGAIN),
        }
    }
    let known: BTreeSet<&String> = listed.iter().map(|(_, path)| path).collect();
    let Below { files, unlisted } = below(root);
    for (folder, error) in unlisted {
        let problem = format!("it cannot be listed, so that nothing says what is in it: {error}");
        checked.find(folder, problem, "let it be read, by chmod u+rx, and verify again");
    }
    for path in files {
        if path != SUMS && !known.contains(&path) {
            checked.find(
                path,
                format!("it is not part of the pack: {SUMS} does not list it"),
                "take it away, or pack anew",
            );
        }
    }
    checked.looked(format!("the hashes of {}", counted(listed.len(), "file")));
}

/// The output: whose it is, its arithmetic, HPL.dat, and what the pack says of it.
fn score(checked: &mut Checked, root: &Path, manifest: &Manifest, session: Option<&Session>, row: Option<&Row>) {
    let bytes = match plain::read(&root.join("HPL.out"), TEXT_BYTES) {
        Ok(bytes) => bytes,
        Err(error) => return checked.find("HPL.out", format!("cannot be read: {error}"), AGAIN),
    };
    let text = String::from_utf8_lossy(&bytes);
    let dat = plain::text(&root.join("HPL.dat"), TEXT_BYTES).unwrap_or_default();
    let obeyed = run_folder::obeyed(session, &root.join("record/engine.toml"));
    let dat = output::against_dat(checked, ["HPL.dat", "HPL.out"], &dat, &text, obeyed);
    output::arithmetic(checked, "HPL.out", &text, dat.map_or(16.0, |dat| dat.threshold));
    let hash = sha256::of_bytes(&bytes);
    let said = &manifest.score;
    if hash != said.output_sha256 {
        checked.find(
            "HPL.out",
            format!("its SHA-256 is {hash}, {} has {}", manifest::NAME, said.output_sha256),
            ORIGINAL,
        );
    }
    let same = |record: &space::out::OutRecord| {
        (record.rate_gflops, record.params.n, record.time_s, record.residual)
            == (said.rmax_gflops, said.nmax, said.time_s, said.residual)
    };
    if !results(&text).iter().any(|result| same(&result.record)) {
        let problem = format!(
            "its score, {} GFLOP/s at N = {} in {} s, is not a result in HPL.out",
            said.rmax_gflops, said.nmax, said.time_s
        );
        checked.find(manifest::NAME, problem, AGAIN);
    }
    checked.looked("HPL.out with HPL.dat, and its arithmetic");
    let Some(row) = row else {
        return checked.find(manifest::NAME, format!("journal.jsonl has no trial {}", manifest.trial), AGAIN);
    };
    if session.is_some_and(Session::is_simulated) || row.engine == Row::SIMULATED {
        checked.find(
            manifest::NAME,
            "its score is simulated, and nothing of it was measured",
            "run a session on the machine itself",
        );
    }
    if row.extent != Extent::Whole || row.score_gflops().is_none() {
        let problem =
            format!("its trial {} is not a passed whole run: an estimate from windows is not a score", row.trial);
        checked.find(manifest::NAME, problem, AGAIN);
    }
    match &row.output_sha256 {
        Some(known) if *known == hash => {}
        Some(known) => {
            let problem = format!("its SHA-256 is {hash}, journal.jsonl has {known} of trial {}", row.trial);
            checked.find("HPL.out", problem, ORIGINAL);
        }
        None => {
            let problem =
                format!("nothing shows that it is unmodified: journal.jsonl has no hash of trial {}", row.trial);
            checked.find("HPL.out", problem, "run a new session");
        }
    }
    output::against_row(checked, "HPL.out", &text, row);
    if session.is_some_and(|session| session.engine == Session::OURS) {
        run_folder::engine_params(checked, &root.join("engine-params.toml"), ("the packed run", row), AGAIN);
    }
    checked.looked(format!("HPL.out with trial {} of the journal", row.trial));
}

/// The time stamps, as the record of the run has them.
fn times(checked: &mut Checked, root: &Path, manifest: &Manifest) {
    let read = |name: &str| plain::read(&root.join("record").join(name), TEXT_BYTES).ok();
    let guard = read(GUARD).and_then(|json| serde_json::from_slice(&json).ok());
    let result = read(RESULT).and_then(|json| serde_json::from_slice(&json).ok());
    let text = plain::read(&root.join("HPL.out"), TEXT_BYTES).unwrap_or_default();
    let found = Stamps::new(guard.as_ref(), result.as_ref(), &String::from_utf8_lossy(&text));
    if found != manifest.stamps {
        let problem = "its time stamps are not those of record/guard.json and record/result.json";
        checked.find(manifest::NAME, problem, AGAIN);
    }
    if let Some((job, core)) = manifest.stamps.job.as_ref().zip(manifest.stamps.core.as_ref()) {
        let ([job_start, job_end], [start, end]) = (job.unix_s(), core.unix_s());
        if start < job_start - 1.0 || end > job_end + 1.0 {
            checked.find(manifest::NAME, "its core phase lies outside of its job", AGAIN);
        }
        if (core.seconds() - manifest.score.time_s).abs() > 2.0 {
            let problem =
                format!("its core phase is {:.3} s long, its time {} s", core.seconds(), manifest.score.time_s);
            checked.find(manifest::NAME, problem, AGAIN);
        }
    }
    checked.looked("the time stamps with the record of the run");
}

/// What the readings of a meter say, where they are there.
fn power(checked: &mut Checked, root: &Path, manifest: &Manifest) -> Option<Power> {
    let (csv, said) = (root.join("power.csv"), root.join("power.json"));
    if !csv.is_file() && !said.is_file() {
        return None;
    }
    let said: Option<Power> = plain::read(&said, TEXT_BYTES).ok().and_then(|json| serde_json::from_slice(&json).ok());
    let Some(said) = said else {
        checked.find("power.json", "it is missing, or cannot be read", AGAIN);
        return None;
    };
    let bytes = plain::read(&csv, RECORD_BYTES).unwrap_or_default();
    match Power::new(&String::from_utf8_lossy(&bytes), said.offset_s, &manifest.stamps) {
        Ok(found) => {
            if found == said {
                checked.looked("power.json with the readings of power.csv");
            } else {
                checked.find("power.json", "it is not what the readings of power.csv say", AGAIN);
            }
            Some(found)
        }
        Err(error) => {
            checked.find("power.csv", error.to_string(), AGAIN);
            None
        }
    }
}
