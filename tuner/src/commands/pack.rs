//! `hpl-tune pack`: the score of a session for a list, a competition or an acceptance.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use objectives::real::printable;

use crate::cli::pack::PackArgs;
use crate::error::RecordError;
use crate::exit::{self, bad_input};
use crate::pack::Purpose;
use crate::pack::archive::archive;
use crate::pack::error::PackError;
use crate::pack::facts::{Facts, System};
use crate::pack::init::template;
use crate::pack::manifest::{Manifest, NAME};
use crate::pack::write::{PackRequest, make};
use crate::record::folder::{RunFolder, replace_file};
use crate::report::digits;

/// Makes a pack, names what one lacks, or writes a site file.
///
/// # Errors
/// Bad input, a session without a score, or a pack that cannot be written.
pub fn pack(args: &PackArgs) -> anyhow::Result<u8> {
    match (&args.init, &args.check, &args.run, args.purpose) {
        (Some(path), ..) => init(path),
        (_, Some(folder), ..) => check(folder),
        (.., Some(_), Some(purpose)) if args.target.is_some() && purpose != Purpose::Acceptance => {
            Err(bad_input(format!("--target is for --for acceptance; leave it out with --for {}", purpose.name())))
        }
        (.., Some(run), Some(purpose)) => {
            let out = args.out.clone().map_or_else(|| default_out(run, purpose.name()), Ok)?;
            let request = PackRequest {
                run,
                purpose,
                out: &out,
                site: args.site.as_deref(),
                power_log: args.power_log.as_deref().map(|path| (path, args.power_offset)),
                target_gflops: args.target,
            };
            packed(&request, !args.no_archive)
        }
        _ => Err(bad_input("give a run folder and --for PURPOSE, or --init or --check")),
    }
}

/// The name of the run folder with the purpose behind it, in the current folder.
fn default_out(run: &Path, purpose: &str) -> anyhow::Result<PathBuf> {
    Ok(PathBuf::from(format!("{}-{purpose}", RunFolder::open(run)?.name())))
}

fn packed(request: &PackRequest<'_>, with_archive: bool) -> anyhow::Result<u8> {
    let program = std::env::current_exe().context("cannot find the program's own path")?;
    let archive = archive_of(request.out);
    if with_archive && std::fs::symlink_metadata(&archive).is_ok() {
        return Err(refused(PackError::Exists { path: archive }));
    }
    let manifest = make(request, &program).map_err(refused)?;
    let mut out = std::io::stdout().lock();
    let score = &manifest.score;
    writeln!(
        out,
        "packed for {}: {} GFLOP/s at N = {}, residual {}, trial {} of {}",
        manifest.purpose.name(),
        digits(score.rmax_gflops),
        score.nmax,
        score.residual.map_or("not printed".to_owned(), digits),
        manifest.trial,
        printable(&manifest.session),
    )?;
    writeln!(out, "folder: {}", request.out.display())?;
    if with_archive {
        write_archive(&archive, request.out, &manifest)?;
        writeln!(out, "archive: {}", archive.display())?;
    }
    if let Some(accepted) = &manifest.accepted {
        writeln!(out, "{}", accepted.words())?;
    }
    let path = shlex::try_quote(&request.out.to_string_lossy())?.into_owned();
    match manifest.missing().into_iter().filter(|(field, _)| field.needed).count() {
        0 => {}
        1 => writeln!(out, "1 field that is needed is missing: hpl-tune pack --check {path} names it")?,
        count => writeln!(out, "{count} fields that are needed are missing: hpl-tune pack --check {path} names them")?,
    }
    out.flush()?;
    let refused = manifest.accepted.as_ref().is_some_and(|accepted| accepted.accepted == Some(false));
    Ok(if refused { exit::CHECK_FAILED } else { exit::DONE })
}

/// The archive, next to the folder: a slash at the end of its path would put it into the folder.
fn archive_of(folder: &Path) -> PathBuf {
    let mut path = folder.components().collect::<PathBuf>().into_os_string();
    path.push(".tar.zst");
    PathBuf::from(path)
}

/// Writes the archive of the folder to `path`.
fn write_archive(path: &Path, folder: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    let name = std::path::absolute(folder)?.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let made = manifest.made_utc.parse().map_or(0, |time: jiff::Timestamp| time.as_second().max(0).cast_unsigned());
    let bytes = archive(folder, &name, made).map_err(RecordError::write(path))?;
    Ok(replace_file(path, &bytes)?)
}

/// A session without a score, or an input that cannot be used, is the user's to mend.
pub(super) fn refused(error: PackError) -> anyhow::Error {
    match error {
        PackError::Record(error) => error.into(),
        error => bad_input(error),
    }
}

/// Names what the pack in `folder` lacks.
fn check(folder: &Path) -> anyhow::Result<u8> {
    if !folder.join(NAME).exists() {
        return Err(bad_input(format!(
            "--check {}: no pack, as it has no {NAME}; give a folder that hpl-tune pack has made",
            folder.display()
        )));
    }
    let manifest = Manifest::read(folder)?;
    let mut out = std::io::stdout().lock();
    let missing = manifest.missing();
    for (field, how) in &missing {
        let word = if field.needed { "missing" } else { "not given, and not needed" };
        writeln!(out, "{word}: {} ({}): {}", field.label, field.key, printable(how))?;
    }
    let needed = missing.iter().filter(|(field, _)| field.needed).count();
    let name = manifest.purpose.name();
    match needed {
        0 => writeln!(out, "{}: complete for {name}", folder.display())?,
        1 => writeln!(out, "{}: incomplete for {name}, 1 field is missing; pack anew with it", folder.display())?,
        _ => {
            writeln!(
                out,
                "{}: incomplete for {name}, {needed} fields are missing; pack anew with them",
                folder.display()
            )?;
        }
    }
    out.flush()?;
    Ok(if needed == 0 { exit::DONE } else { exit::CHECK_FAILED })
}

/// Writes a site file to fill in.
fn init(path: &Path) -> anyhow::Result<u8> {
    if std::fs::symlink_metadata(path).is_ok() {
        return Err(bad_input(format!("{} exists; give --init another name, or remove it", path.display())));
    }
    let facts = Facts::read(&System::here());
    replace_file(path, template(&facts).as_bytes())?;
    let mut out = std::io::stdout().lock();
    let found = facts.known().len();
    writeln!(
        out,
        "written: {}, with {found} values found on this host; fill in the others, and pack with --site",
        path.display()
    )?;
    out.flush()?;
    Ok(exit::DONE)
}
