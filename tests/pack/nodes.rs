//! Packs of runs on several nodes that nothing names.

use std::path::{Path, PathBuf};

use super::{copy, edit, pack_of, read, run};
use crate::program::err;

/// The run folder as one of a session whose launcher reached `nodes` described nodes, in `home`.
fn launched(home: &Path, nodes: usize) -> PathBuf {
    let folder = home.join("run");
    copy(run(), &folder);
    edit(&folder, "session.toml", |text| {
        text.to_owned() + "\n[mpi_job]\nlauncher = \"my-launcher -n {np}\"\nprogram = \"/no/such/xhpl\"\n"
    });
    edit(&folder, "machine.toml", |text| text.replacen("\ncount = 1\n", &format!("\ncount = {nodes}\n"), 1));
    folder
}

#[test]
fn a_run_on_nodes_that_only_the_description_names_is_not_one_of_this_host() {
    let home = tempfile::tempdir().unwrap();
    let (folder, packed) = (launched(home.path(), 4), home.path().join("packed"));
    let output = pack_of(&folder, "top500", &packed, &["--no-archive"]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let sheet = read(&packed, "top500.txt");
    assert!(sheet.contains("\nNodes: 4  [the session]\n"), "{sheet}");
    assert_eq!(read(&packed, "nodes.csv").lines().count(), 1, "none is named");
    assert!(read(&packed, "record/machine.toml").contains("count = 4"));
}
