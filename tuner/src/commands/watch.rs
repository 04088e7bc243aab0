//! `hpl-tune watch`: a session on the screen, or as one text where there is no terminal.

use std::io::{IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use crate::cli::watch::WatchArgs;
use crate::exit::{self, bad_input};
use crate::watch::draw::plain;
use crate::watch::live::live;
use crate::watch::look::Look;
use crate::watch::model::WatchModel;
use crate::watch::reading::Reader;
use crate::watch::terminal::has_keyboard;

/// Where sessions without --out have their folders.
const RUNS: &str = "runs";

/// Shows the session in a run folder until the user leaves.
///
/// # Errors
/// A folder that is none, or cannot be read.
pub fn watch(args: &WatchArgs) -> anyhow::Result<u8> {
    let folder = args.folder.clone().map_or_else(newest, Ok)?;
    let mut reader = Reader::open(&folder)?;
    let variable = |name: &str| std::env::var(name).ok();
    let look = Look::new(args.color, args.ascii, variable);
    let dumb = variable("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    if !args.once && !dumb && stdout().is_terminal() && has_keyboard() {
        return live(reader, look);
    }
    let mut out = stdout().lock();
    out.write_all(plain(&WatchModel::new(reader.look()), look).as_bytes())?;
    out.flush()?;
    Ok(exit::DONE)
}

/// The run folder in runs/ that was written to last.
fn newest() -> anyhow::Result<PathBuf> {
    newest_in(Path::new(RUNS)).ok_or_else(|| {
        bad_input(format!("there is no run folder in {RUNS}/ here; give one, as in hpl-tune watch {RUNS}/DIR"))
    })
}

fn newest_in(runs: &Path) -> Option<PathBuf> {
    let folders = std::fs::read_dir(runs).ok()?.flatten().map(|entry| entry.path());
    let written = folders.filter_map(|folder| {
        let about = std::fs::metadata(folder.join("session.toml")).ok()?;
        Some((about.modified().ok()?, folder))
    });
    written.max().map(|(_, folder)| folder)
}

#[cfg(test)]
mod tests {
    use std::fs::{File, create_dir_all};
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn the_newest_folder_is_the_one_written_to_last() {
        let runs = tempfile::tempdir().unwrap();
        assert_eq!(newest_in(&runs.path().join("none")), None);
        assert_eq!(newest_in(runs.path()), None);
        for (name, age_s) in [("a-20261101-000000", 5), ("b-20261102-000000", 50)] {
            create_dir_all(runs.path().join(name)).unwrap();
            let file = File::create(runs.path().join(name).join("session.toml")).unwrap();
            file.set_modified(SystemTime::now() - Duration::from_secs(age_s)).unwrap();
        }
        create_dir_all(runs.path().join("c-no-session")).unwrap();
        assert_eq!(newest_in(runs.path()).unwrap(), runs.path().join("a-20261101-000000"));
    }
}
