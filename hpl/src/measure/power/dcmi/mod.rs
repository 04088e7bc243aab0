//! The management controller of a node as a sensor.

pub(super) mod asked;

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use self::asked::{Dcmi, PATIENCE};
use super::found::{FoundSensors, Unreadable};
use super::sensor::{Access, Covers, SensorFacts};

const SOURCE: &str = "dcmi";
/// Where the kernel has the controller.
const DEVICES: [&str; 3] = ["dev/ipmi0", "dev/ipmi/0", "dev/ipmidev/0"];
/// Programs that ask it, with their arguments.
const PROGRAMS: [(&str, &[&str]); 2] =
    [("ipmitool", &["dcmi", "power", "reading"]), ("ipmi-dcmi", &["--get-system-power-statistics"])];
/// Time for the first one, for which the session waits.
const FIRST_PATIENCE: Duration = Duration::from_secs(5);
/// Seconds that may lie between two answers.
const APART_S: f64 = 20.0;

/// The controller of the node below `root`, where nothing that was found measures the processors.
pub(super) fn find(root: &Path, found: &mut FoundSensors) {
    let processors = found.sensors.iter().any(|(facts, _)| facts.covers != Covers::Accelerator);
    if processors || !DEVICES.iter().any(|device| root.join(device).exists()) {
        return;
    }
    // A name alone is searched on the path of programs, which need not have those of administrators.
    let on_path = |name: &str| if root == Path::new("/") { name.into() } else { root.join("usr/bin").join(name) };
    let places = |name: &str| [on_path(name), root.join("usr/sbin").join(name)];
    let programs = PROGRAMS.into_iter().flat_map(|(name, words)| places(name).map(|program| (name, program, words)));
    for (name, program, arguments) in programs {
        let dcmi = Dcmi::new(&program, arguments, FIRST_PATIENCE);
        match dcmi.first() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Ok(Ok(_)) => {
                let dcmi = Dcmi::new(&program, arguments, PATIENCE);
                let facts = SensorFacts { apart_s: Some(APART_S), ..SensorFacts::new(SOURCE, "node", Covers::Node) };
                found.push(facts, Access::Asked(dcmi.into()));
                return;
            }
            Ok(Err(why)) => return unreadable(found, format!("{name} says: {why}"), &way_out(&why)),
            Err(error) => return unreadable(found, format!("{name}: {error}"), "see whether that program can be run"),
        }
    }
    let why = "there is a management controller, and no program to ask it".to_owned();
    unreadable(found, why, "install ipmitool, or ipmi-dcmi of FreeIPMI");
}

fn unreadable(found: &mut FoundSensors, why: String, way_out: &str) {
    let (source, name, way_out) = (SOURCE.to_owned(), "node".to_owned(), way_out.to_owned());
    found.unreadable.push(Unreadable { source, name, covers: Covers::Node, why, way_out });
}

fn way_out(why: &str) -> String {
    if why.to_lowercase().contains("permission denied") {
        "sudo chmod a+rw /dev/ipmi0 until the next boot, which lets everyone command the controller; docs/power.md has a udev rule for a group"
            .to_owned()
    } else {
        "see what ipmitool dcmi power reading says as root: not every controller has DCMI, and some have it switched off".to_owned()
    }
}
