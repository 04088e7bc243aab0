//! The texts of a pack: sheets of fields, tunables, and what a competition wants.

use std::fmt::Write as _;

use jiff::Timestamp;

use super::asked::CONFIGURATION;
use super::manifest::{Field, Manifest};
use super::scored::Scored;
use crate::report::{OURS_ALONE, words};

/// The sheet of all fields: a line each, those without a value with how they are given.
pub fn sheet(manifest: &Manifest) -> String {
    let mut text = format!(
        "HPL result, packed for {} by {}\nSession {}, trial {}, engine {}, {}\n\n",
        manifest.purpose.name(),
        manifest.made_by,
        manifest.session,
        manifest.trial,
        manifest.engine,
        manifest.made_utc,
    );
    for field in &manifest.fields {
        text += &line(field);
    }
    let missing = manifest.fields.iter().filter(|field| field.value.is_none() && field.needed).count();
    let _ = match missing {
        0 => writeln!(text, "\nNothing that is needed is missing."),
        1 => writeln!(text, "\n1 field that is needed is missing."),
        _ => writeln!(text, "\n{missing} fields that are needed are missing."),
    };
    text
}

fn line(field: &Field) -> String {
    match (&field.value, &field.from) {
        (Some(value), Some(from)) => format!("{}: {value}  [{from}]\n", field.label),
        (Some(value), None) => format!("{}: {value}\n", field.label),
        (None, _) => {
            let wanted = if field.needed { "missing" } else { "not given" };
            format!("{}: ({wanted}: {})\n", field.label, field.how.as_deref().unwrap_or("unknown"))
        }
    }
}

/// `cert-1-configuration.txt` of a competition: its 17 fields, one a line, in its order.
pub fn configuration(manifest: &Manifest) -> String {
    let line = |asked: &super::asked::Asked| {
        format!("{}: {}\n", asked.label, manifest.value(asked.key).unwrap_or("(missing)"))
    };
    CONFIGURATION.iter().map(line).collect()
}

/// `cert-1-hpl.tstamps`: start and end of the job, as `date` prints them in UTC; `None` where they are not known.
pub fn tstamps(scored: &Scored) -> Option<String> {
    let job = scored.stamps.job.as_ref()?;
    let line = |time: &Timestamp| time.strftime("%a %b %e %H:%M:%S UTC %Y\n").to_string();
    Some(line(&job.start_utc) + &line(&job.end_utc))
}

/// `cert-1-hpl.run` of a competition: `run.sh` as it runs from the folder `hpl` of the pack.
pub fn certified_run(run_sh: &str) -> String {
    run_sh.replacen("\"$(dirname -- \"$0\")\"", "\"$(dirname -- \"$0\")/..\"", 1)
}

/// `tunables.csv`: each tunable with its default and the value of the packed run. The default is the configuration that the session
/// started from; it is empty where that never ran.
///
/// # Errors
/// None that a text in memory can have.
pub fn tunables(scored: &Scored) -> Result<Vec<u8>, csv::Error> {
    let used = scored.row.candidate();
    let default = scored.baseline.as_ref().map(|baseline| words(&baseline.at_n(used.hpl.n)));
    let mut table = csv::Writer::from_writer(Vec::new());
    table.write_record(["tunable", "default", "used"])?;
    for (name, value) in words(&used) {
        // What another engine does not take is no tunable of its run.
        if !scored.engine.is_ours() && OURS_ALONE.contains(&name.as_str()) {
            continue;
        }
        let before = default.as_ref().and_then(|words| words.iter().find(|(known, _)| *known == name));
        table.write_record([&*name, before.map_or("", |(_, value)| value.as_str()), &*value])?;
    }
    table.into_inner().map_err(|error| error.into_error().into())
}

/// `timestamps.txt`: the spans of the run in UTC.
pub fn stamps(manifest: &Manifest) -> String {
    let mut text = String::new();
    for (name, span) in [("job", &manifest.stamps.job), ("core phase", &manifest.stamps.core)] {
        let _ = match span {
            Some(span) => {
                writeln!(text, "{name}: {} to {}, {:.3} s", span.start_utc, span.end_utc, span.seconds())
            }
            None => writeln!(text, "{name}: (missing)"),
        };
    }
    if let Some(why) = &manifest.stamps.core_missing {
        let _ = writeln!(text, "the core phase is missing: {why}");
    }
    text
}
