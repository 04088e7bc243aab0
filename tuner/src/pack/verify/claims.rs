//! What a pack says in its fields, tables and sheets, against what its files give when they are made anew.

use std::io::ErrorKind;
use std::path::Path;

use super::Checked;
use crate::pack::asked::asked;
use crate::pack::facts::Facts;
use crate::pack::manifest::{self, Field, Manifest};
use crate::pack::power::Power;
use crate::pack::scored::Scored;
use crate::pack::site::Site;
use crate::pack::sources::{Derived, Sources};
use crate::pack::values::{OF_PROGRAMS, fields};
use crate::pack::{Purpose, nodes, repeats, sheet};
use crate::record::plain::{self, TEXT_BYTES};
use crate::report::Summary;

/// What to do about a pack that was changed.
pub(super) const AGAIN: &str = "make the pack anew from the run folder, by hpl-tune pack";

/// The fields that a program of the run may give.
const PROGRAM_KEYS: [&str; 3] = ["system.math_library", "system.mpi", "system.compiler"];

/// Verifies what the manifest of the pack at `root` says, and the texts that are made of it. `power`: what the readings of its meter say.
pub(super) fn verify(checked: &mut Checked, root: &Path, manifest: &Manifest, power: Option<&Power>) {
    of_score(checked, manifest);
    asked_fields(checked, manifest);
    texts(checked, root, manifest);
    match Scored::in_pack(root, manifest.trial) {
        Ok(scored) => {
            final_run(checked, manifest, &scored);
            of_run(checked, root, manifest, &scored, power);
        }
        Err(error) => checked.find(manifest::NAME, format!("it cannot be compared with its record: {error}"), AGAIN),
    }
    checked.looked("the fields and sheets with the score, the record and the files of the pack");
}

/// The fields that repeat the score.
fn of_score(checked: &mut Checked, manifest: &Manifest) {
    let score = &manifest.score;
    let rmax = score.rmax_gflops;
    let efficiency = manifest.peak.as_ref().map(|peak| format!("{:.2} %", 100.0 * rmax / peak.gflops));
    for (key, value) in [
        ("run.rmax_gflops", Some(rmax.to_string())),
        ("run.nmax", Some(score.nmax.to_string())),
        ("run.time_s", Some(score.time_s.to_string())),
        ("run.efficiency", efficiency),
    ] {
        if let Some(field) = manifest.fields.iter().find(|field| field.key == key) {
            same(checked, field, value.as_deref(), "its score");
        }
    }
}

/// The fields that the purpose asks for, each once and by its name, and no others.
fn asked_fields(checked: &mut Checked, manifest: &Manifest) {
    let asked = asked(manifest.purpose);
    let mut wrong = |problem: String| checked.find(manifest::NAME, problem, AGAIN);
    for field in &asked {
        let found: Vec<&Field> = manifest.fields.iter().filter(|found| found.key == field.key).collect();
        match found[..] {
            [] => wrong(format!("its field {} is not there", field.key)),
            [found] if found.label != field.label || found.needed != field.needed => {
                wrong(format!("its field {} is called \"{}\", and not \"{}\"", field.key, found.label, field.label));
            }
            [_] => {}
            _ => wrong(format!("its field {} is there {} times", field.key, found.len())),
        }
    }
    for field in manifest.fields.iter().filter(|field| !asked.iter().any(|asked| asked.key == field.key)) {
        wrong(format!("its field {} is none that a pack for {} has", field.key, manifest.purpose.name()));
    }
}

/// The sheets, and the copies that a competition wants.
fn texts(checked: &mut Checked, root: &Path, manifest: &Manifest) {
    let mut texts = vec![
        (format!("{}.txt", manifest.purpose.name()), sheet::sheet(manifest)),
        ("timestamps.txt".to_owned(), sheet::stamps(manifest)),
    ];
    if manifest.purpose == Purpose::Scc {
        texts.push(("cert-1-configuration.txt".to_owned(), sheet::configuration(manifest)));
        let (copy, of) = ("hpl/cert-1-hpl.run", "run.sh");
        let script = read(root, of).map(|script| sheet::certified_run(&String::from_utf8_lossy(&script)).into_bytes());
        if read(root, copy) != script {
            checked.find(copy, format!("it is not the same as {of}, but for its folder"), AGAIN);
        }
        for (copy, of) in [("input", "HPL.dat"), ("rslts", "HPL.out")] {
            let (copy, bytes) = (format!("hpl/cert-1-hpl.{copy}"), read(root, of));
            if read(root, &copy) != bytes {
                checked.find(copy, format!("it is not the same as {of}"), AGAIN);
            }
        }
    }
    for (name, text) in texts {
        if read(root, &name) != Some(text.into_bytes()) {
            checked.find(name, format!("it does not say what {} has", manifest::NAME), AGAIN);
        }
    }
}

/// The packed run, which has to be the one that the record calls the passed final run of the best: any other was chosen by its own rate.
fn final_run(checked: &mut Checked, manifest: &Manifest, scored: &Scored) {
    let summary = Summary::new(&scored.session, &scored.rows);
    let last = summary.verified_run().map(|row| row.trial);
    if last != Some(manifest.trial) {
        let instead = last.map_or("there is none".to_owned(), |trial| format!("that is trial {trial}"));
        let problem =
            format!("its trial {} is not the passed final run of the best in journal.jsonl: {instead}", manifest.trial);
        checked.find(manifest::NAME, problem, AGAIN);
    }
}

/// What follows from the record, the site file, the facts of the host and the readings of the meter.
fn of_run(checked: &mut Checked, root: &Path, manifest: &Manifest, scored: &Scored, power: Option<&Power>) {
    let Some((site, facts)) = given(checked, root, scored) else { return };
    let found = nodes::nodes(&scored.folder, &scored.session, &scored.row.host, scored.nodes(), facts.as_ref());
    let sources = Sources {
        purpose: manifest.purpose,
        scored,
        facts: facts.as_ref(),
        // Nothing that a pack names is started.
        programs: false,
        site: &site,
        power,
        nodes: &found,
        target_gflops: manifest.accepted.as_ref().and_then(|accepted| accepted.target_gflops),
    };
    let derived = Derived::new(&sources);
    for expected in fields(&sources, &derived) {
        let Some(field) = manifest.fields.iter().find(|field| field.key == expected.key) else { continue };
        let said_by_program = field.from.as_deref().is_some_and(|from| OF_PROGRAMS.contains(&from));
        if expected.value.is_none() && said_by_program && PROGRAM_KEYS.contains(&field.key.as_str()) {
            continue;
        }
        same(checked, field, expected.value.as_deref(), "the files of the pack");
        if field.value == expected.value && field.from != expected.from {
            let words = |from: &Option<String>| from.clone().unwrap_or_else(|| "nowhere".to_owned());
            let (said, is) = (words(&field.from), words(&expected.from));
            checked.find(manifest::NAME, format!("its field {} is from {is}, not from {said}", field.key), AGAIN);
        }
    }
    let Derived { peak, judged, accepted, repeats, .. } = derived;
    let accepted = (manifest.purpose == Purpose::Acceptance).then_some(accepted);
    let judged = (manifest.purpose == Purpose::Green500).then_some(judged);
    for (holds, what) in [
        (manifest.peak == peak.ok(), "its Rpeak does not follow from its record, host.toml and site.toml"),
        (manifest.level == judged, "its level does not follow from power.csv and site.toml"),
        (manifest.accepted == accepted, "its verdict does not follow from its score, target and nodes"),
        (manifest.repeats == repeats, "its repeats are not those of record/journal.jsonl"),
        (manifest.nodes == found, "its nodes are not those of record/session.toml and record/nodes.json"),
        (manifest.session == scored.session.name, "its session is not that of record/session.toml"),
        (manifest.engine == scored.row.engine, "its engine is not that of the trial in record/journal.jsonl"),
    ] {
        if !holds {
            checked.find(manifest::NAME, what, AGAIN);
        }
    }
    tables(checked, root, manifest, scored);
}

/// The site file and the facts of the host; `None` where one of them is damaged, which is a finding.
fn given(checked: &mut Checked, root: &Path, scored: &Scored) -> Option<(Site, Option<Facts>)> {
    let read = |name: &str| match plain::text(&root.join(name), TEXT_BYTES) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot be read: {error}")),
    };
    let site = read("site.toml").and_then(|text| {
        text.map_or(Ok(Site::default()), |text| Site::parse(&text).map_err(|error| error.to_string()))
    });
    let host = &scored.row.host;
    let facts = read("host.toml").and_then(|text| {
        let Some(text) = text else { return Ok(None) };
        let facts: Facts = toml::from_str(&text).map_err(|error| error.to_string())?;
        let problem = format!("it is of {}, and the run was on {host}", facts.host);
        if facts.host == *host { Ok(Some(facts)) } else { Err(problem) }
    });
    let site = site.map_err(|problem| checked.find("site.toml", problem, AGAIN)).ok();
    let facts = facts.map_err(|problem| checked.find("host.toml", problem, AGAIN)).ok();
    site.zip(facts)
}

/// The tables, and the stamps that a competition wants.
fn tables(checked: &mut Checked, root: &Path, manifest: &Manifest, scored: &Scored) {
    for (name, table) in [
        ("nodes.csv", nodes::table(&manifest.nodes)),
        ("repeats.csv", repeats::table(&scored.rows, &scored.row.candidate())),
        ("tunables.csv", sheet::tunables(scored)),
    ] {
        if read(root, name) != table.ok() {
            checked.find(name, "it is not what the record and pack.json say", AGAIN);
        }
    }
    let stamps = "hpl/cert-1-hpl.tstamps";
    let expected = sheet::tstamps(scored).map(String::into_bytes);
    if manifest.purpose == Purpose::Scc && read(root, stamps) != expected {
        checked.find(stamps, "it is not the start and end of the job in record/guard.json", AGAIN);
    }
}

/// The bytes of a file of the pack at `root`; `None` where it cannot be read.
fn read(root: &Path, name: &str) -> Option<Vec<u8>> {
    plain::read(&root.join(name), TEXT_BYTES).ok()
}

/// Finds a field whose value is not `value`, which it is by `by`.
fn same(checked: &mut Checked, field: &Field, value: Option<&str>, by: &str) {
    if field.value.as_deref() != value {
        let words = |value: Option<&str>| value.unwrap_or("nothing").to_owned();
        let (said, is) = (words(field.value.as_deref()), words(value));
        checked.find(manifest::NAME, format!("its field {} is {said}, by {by} it is {is}", field.key), AGAIN);
    }
}
