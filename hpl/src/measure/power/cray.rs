//! The counters of a Cray node, `/sys/cray/pm_counters`.

use std::path::Path;

use super::files;
use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};

/// The energy of the node in joules, ten times a second: `48291 J 1700000000000000 us`.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    let path = root.join("sys/cray/pm_counters/energy");
    if !path.exists() {
        return;
    }
    match files::number(&path) {
        Ok(_) => found.push(SensorFacts::new("pm_counters", "node", Covers::Node), Access::Energy(path, 1.0)),
        Err(error) => {
            let way_out =
                "ask the site why the counters of the node are closed; they are open to all users as delivered";
            found.unreadable.push(Unreadable::of(("pm_counters", "node"), Covers::Node, &error, way_out));
        }
    }
}
