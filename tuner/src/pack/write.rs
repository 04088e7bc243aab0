//! The folder of a pack, written whole or not at all.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use objectives::real::{RunSpec, quoted};

use super::Purpose;
use super::error::PackError;
use super::facts::libraries::{Library, libraries};
use super::facts::{Facts, System};
use super::folder::{SUMS, sums};
use super::manifest::{self, Manifest, PACK_SCHEMA, PackScore};
use super::nodes;
use super::power::Power;
use super::repeats;
use super::scored::{GUARD, RESULT, Scored};
use super::sheet;
use super::site::{Site, SiteError};
use super::sources::{Derived, Sources};
use super::values::fields;
use crate::error::RecordError;
use crate::record::folder::RunFolder;
use crate::record::plain::{self, RECORD_BYTES};
use crate::report::Exports;
use crate::report::export::settings_lines;

/// What is to be packed.
#[derive(Debug, Clone)]
pub struct PackRequest<'a> {
    /// The run folder.
    pub run: &'a Path,
    /// What for.
    pub purpose: Purpose,
    /// The folder to make.
    pub out: &'a Path,
    /// The site file.
    pub site: Option<&'a Path>,
    /// A meter's file, and the seconds to add to its times.
    pub power_log: Option<(&'a Path, f64)>,
    /// What was promised, in GFLOP/s.
    pub target_gflops: Option<f64>,
}

/// A file of the pack: its path there and its bytes.
type PackFile = (String, Vec<u8>);

/// Makes the pack; `program` is the path of `hpl-tune`.
///
/// # Errors
/// [`PackError`]; nothing is left then.
pub fn make(request: &PackRequest<'_>, program: &Path) -> Result<Manifest, PackError> {
    let out = request.out;
    if std::fs::symlink_metadata(out).is_ok() {
        return Err(PackError::Exists { path: out.to_path_buf() });
    }
    // What a session at work writes is not all there yet.
    let at_work = |_| PackError::AtWork { folder: request.run.to_path_buf() };
    let _lock = RunFolder::open(request.run)?.lock_shared().map_err(at_work)?;
    let scored = Scored::open(request.run, program)?;
    let (manifest, entries) = contents(request, &scored)?;
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(parent).map_err(RecordError::write(parent))?;
    let making = tempfile::Builder::new().prefix(".pack-").tempdir_in(parent).map_err(RecordError::write(parent))?;
    write(making.path(), &entries).map_err(RecordError::write(out))?;
    std::fs::rename(making.path(), out).map_err(RecordError::write(out))?;
    // Its name is gone: there is nothing left to take away.
    let _ = making.keep();
    Ok(manifest)
}

fn write(root: &Path, entries: &[PackFile]) -> std::io::Result<()> {
    for (path, bytes) in entries {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap_or(root))?;
        std::fs::write(&path, bytes)?;
        if path.ends_with("run.sh") {
            std::fs::set_permissions(&path, Permissions::from_mode(0o755))?;
        }
    }
    std::fs::write(root.join(SUMS), sums(root)?)
}

/// What the pack says, and its files but for the list of sums.
fn contents(request: &PackRequest<'_>, scored: &Scored) -> Result<(Manifest, Vec<PackFile>), PackError> {
    let site = request.site.map_or(Ok(Site::default()), read_site)?;
    let facts = Facts::read(&System::here());
    let is_here = facts.host == scored.row.host;
    let facts = is_here.then_some(facts);
    // A folder from somebody else names programs that this user has not chosen.
    let programs = is_here && scored.folder.check_owner().is_ok();
    let libraries = if programs { libraries(&scored.engine, &scored.row) } else { Vec::new() };
    let log = request.power_log.map(|(path, offset_s)| Power::read(path, offset_s, &scored.stamps)).transpose()?;
    let (power, readings) = log.unzip();
    let nodes = nodes::nodes(&scored.folder, &scored.session, &scored.row.host, scored.nodes(), facts.as_ref());
    let sources = Sources {
        purpose: request.purpose,
        scored,
        facts: facts.as_ref(),
        programs,
        site: &site,
        power: power.as_ref(),
        nodes: &nodes,
        target_gflops: request.target_gflops,
    };
    let derived = Derived::new(&sources);
    let fields = fields(&sources, &derived);
    let Derived { peak, judged, accepted, repeats, .. } = derived;
    let manifest = Manifest {
        schema_version: PACK_SCHEMA,
        purpose: request.purpose,
        made_utc: jiff::Timestamp::now().to_string(),
        made_by: format!("hpl-tune {}", env!("CARGO_PKG_VERSION")),
        session: scored.session.name.clone(),
        trial: scored.row.trial,
        engine: scored.row.engine.clone(),
        score: score(scored),
        stamps: scored.stamps.clone(),
        fields,
        peak: peak.ok(),
        repeats,
        nodes,
        accepted: (request.purpose == Purpose::Acceptance).then_some(accepted),
        level: (request.purpose == Purpose::Green500).then_some(judged),
    };
    let mut entries = of_run(scored)?;
    entries.extend(of_record(scored)?);
    entries.extend(tables(scored, &manifest, &libraries)?);
    entries.extend(texts(scored, &manifest, facts.as_ref())?);
    if let Some((power, readings)) = power.zip(readings) {
        entries.push(("power.csv".to_owned(), readings));
        entries.push(("power.json".to_owned(), json("power.json", &power)?));
    }
    if let Some(path) = request.site {
        entries.push(("site.toml".to_owned(), std::fs::read(path).map_err(RecordError::read(path))?));
    }
    Ok((manifest, entries))
}

fn read_site(path: &Path) -> Result<Site, PackError> {
    let wrong = |cause| PackError::Site { file: path.to_path_buf(), cause };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(SiteError::Unreadable(error.to_string())))?;
    Site::parse(&text).map_err(wrong)
}

fn score(scored: &Scored) -> PackScore {
    PackScore {
        rmax_gflops: scored.printed.rate_gflops,
        nmax: scored.printed.params.n,
        time_s: scored.printed.time_s,
        residual: scored.printed.residual,
        output_sha256: crate::record::sha256::of_bytes(&scored.output),
        output_recorded: scored.row.output_sha256.is_some(),
    }
}

/// The run: what it read, printed, and how it is repeated.
fn of_run(scored: &Scored) -> Result<Vec<PackFile>, PackError> {
    let mut entries = vec![
        ("HPL.out".to_owned(), scored.output.clone()),
        ("HPL.dat".to_owned(), scored.dat.clone().into_bytes()),
        ("run.sh".to_owned(), run_sh(scored)?.into_bytes()),
    ];
    entries.extend(scored.inputs.iter().map(|(name, text)| (name.clone(), text.clone().into_bytes())));
    Ok(entries)
}

/// A script that repeats the run beside the pack, which stays as it is, with the command that ran as a comment.
fn run_sh(scored: &Scored) -> Result<String, PackError> {
    let candidate = scored.row.candidate();
    // A journal from somebody else may hold anything, and a comment ends with its line.
    let ran = format!("# The run of the score was: {}\n", scored.row.command.replace(char::is_control, " "));
    let runs = scored.engine.runs(&scored.program);
    if !runs.has_command() {
        let unwritable = |error: crate::report::export::ExportError| PackError::Output {
            file: scored.trial(),
            problem: error.to_string(),
        };
        let rate = scored.printed.rate_gflops;
        let exports = Exports::new(&candidate, (rate, "measured"), &scored.program, None).map_err(unwritable)?;
        return Ok(exports.run_sh + &ran);
    }
    let words = runs.command(&RunSpec::whole(&candidate), Path::new(WORK));
    let command: Vec<String> = words.iter().map(|word| in_work(word)).collect();
    let names = std::iter::once("HPL.dat").chain(scored.inputs.iter().map(|(name, _)| name.as_str()));
    let inputs: Vec<String> = names.map(|name| format!("\"$here\"/{}", quoted([name]).concat())).collect();
    // Beside the pack, as all nodes of the run have to see it.
    Ok(format!(
        "#!/bin/bash\nhere=$(CDPATH='' cd -- \"$(dirname -- \"$0\")\" && pwd) || exit 1\n\
         work=$(mktemp -d \"$here-run-XXXXXX\") || exit 1\ncp -- {} \"$work\" || exit 1\necho \"it runs in $work\" >&2\n{}{}\n{ran}",
        inputs.join(" "),
        settings_lines(&runs.settings_to_make(&candidate)),
        command.join(" ")
    ))
}

/// Stands for the folder of the repeated run in a command; no such folder is there.
const WORK: &str = "/hpl-tune-pack-folder";

/// A word that is quoted for bash, with the folder of the repeated run in the place of [`WORK`]: inside of single quotes bash fills in none.
fn in_work(word: &str) -> String {
    if !word.contains(WORK) {
        return word.to_owned();
    }
    let plain = shlex::split(word).filter(|_| !word.starts_with("$'"));
    let Some([plain]) = plain.as_deref() else {
        // Bytes that are no text have such quotes around all of the word.
        return word.replace(WORK, "'\"$work\"$'");
    };
    let part = |part: &str| if part.is_empty() { String::new() } else { quoted([part]).concat() };
    plain.split(WORK).map(part).collect::<Vec<_>>().join("\"$work\"")
}

/// The record that the score is from, and what else the run left.
fn of_record(scored: &Scored) -> Result<Vec<PackFile>, PackError> {
    let (folder, trial) = (&scored.folder, scored.trial());
    let files = [
        (folder.journal(), true),
        (folder.session_toml(), true),
        (folder.machine_toml(), false),
        (folder.nodes("json"), false),
        (folder.trials(), false),
        (folder.engine_toml(), false),
        (trial.join(RESULT), false),
        (trial.join(GUARD), false),
    ];
    let mut entries = Vec::new();
    for (path, needed) in files {
        match plain::read(&path, RECORD_BYTES) {
            Ok(bytes) => entries.push((format!("record/{}", name(&path)), bytes)),
            // Another engine has no result.json, ours no engine.toml.
            Err(error) if !needed && error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(RecordError::read(&path)(error).into()),
        }
    }
    Ok(entries)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn tables(scored: &Scored, manifest: &Manifest, all: &[Library]) -> Result<Vec<PackFile>, PackError> {
    let table = |name: &str, bytes: Result<Vec<u8>, csv::Error>| {
        let wrong = |error: csv::Error| RecordError::write(Path::new(name))(std::io::Error::other(error.to_string()));
        Ok((name.to_owned(), bytes.map_err(wrong)?))
    };
    let libraries = || {
        let mut table = csv::Writer::from_writer(Vec::new());
        table.write_record(["role", "path", "sha256"])?;
        for library in all {
            table.write_record([&library.role, &library.path, library.sha256.as_deref().unwrap_or("")])?;
        }
        table.into_inner().map_err(|error| error.into_error().into())
    };
    let entries: [Result<PackFile, RecordError>; 4] = [
        table("tunables.csv", sheet::tunables(scored)),
        table("nodes.csv", nodes::table(&manifest.nodes)),
        table("repeats.csv", repeats::table(&scored.rows, &scored.row.candidate())),
        table("libraries.csv", libraries()),
    ];
    Ok(entries.into_iter().collect::<Result<_, _>>()?)
}

fn texts(scored: &Scored, manifest: &Manifest, facts: Option<&Facts>) -> Result<Vec<PackFile>, PackError> {
    let mut entries = vec![
        (format!("{}.txt", manifest.purpose.name()), sheet::sheet(manifest).into_bytes()),
        ("timestamps.txt".to_owned(), sheet::stamps(manifest).into_bytes()),
        (manifest::NAME.to_owned(), json(manifest::NAME, manifest)?),
    ];
    if let Some(facts) = facts {
        let path = PathBuf::from("host.toml");
        let text = toml::to_string(facts).map_err(|error| RecordError::damaged(&path, error))?;
        entries.push((name(&path), text.into_bytes()));
    }
    if manifest.purpose == Purpose::Scc {
        entries.push(("cert-1-configuration.txt".to_owned(), sheet::configuration(manifest).into_bytes()));
        entries.push(("hpl/cert-1-hpl.input".to_owned(), scored.dat.clone().into_bytes()));
        entries.push(("hpl/cert-1-hpl.rslts".to_owned(), scored.output.clone()));
        entries.push(("hpl/cert-1-hpl.run".to_owned(), sheet::certified_run(&run_sh(scored)?).into_bytes()));
        entries.extend(sheet::tstamps(scored).map(|text| ("hpl/cert-1-hpl.tstamps".to_owned(), text.into_bytes())));
    }
    Ok(entries)
}

fn json(name: &str, value: &impl serde::Serialize) -> Result<Vec<u8>, RecordError> {
    let text = serde_json::to_vec_pretty(value);
    text.map_err(|error| RecordError::write(Path::new(name))(error.into()))
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// A flag as `--dat={dat}` gave the program the word `"$work"` itself.
    #[test]
    fn the_folder_of_the_repeated_run_is_put_into_quoted_words() {
        let given = [
            WORK.to_owned(),
            format!("{WORK}/HPL.dat"),
            format!("--dat={WORK}/HPL.dat"),
            format!("OUT={WORK}/it's $HOME:{WORK}"),
            format!("a\tb={WORK}/c"),
            "&&".to_owned(),
        ];
        let words: Vec<String> = quoted(&given).iter().map(|word| in_work(word)).collect();
        let script = format!("work='/two words'; printf '%s\\n' {}", words.join(" "));
        let ran = Command::new("bash").args(["-c", &script]).output().unwrap();
        let expected: String = given.iter().map(|word| word.replace(WORK, "/two words") + "\n").collect();
        assert_eq!(String::from_utf8(ran.stdout).unwrap(), expected, "{script}");
        assert_eq!(in_work("mpirun"), "mpirun");
    }
}
