//! What is known of the fields that are asked for, and where each value is from.

use std::collections::BTreeMap;

use space::KernelChoice;

use super::Purpose;
use super::acceptance::Accepted;
use super::asked::asked;
use super::facts::{Facts, libraries};
use super::manifest::Field;
use super::peak::Peak;
use super::repeats::{Repeats, n_half};
use super::scored::Scored;
use super::sources::{Derived, Sources};
use crate::record::Row;
use crate::report::digits;

/// Where values are from that a program of the run says: who verifies a pack elsewhere cannot ask it.
pub const OF_PROGRAMS: [&str; 3] = [LDD, LAUNCHER, NOTE];
const LDD: &str = "what ldd finds for the program";
const LAUNCHER: &str = "the launcher";
const NOTE: &str = "the note in the program";

/// Values by key, and why one is missing where there is more to say than how it is given.
#[derive(Debug, Default)]
struct KnownValues {
    known: BTreeMap<String, (String, String)>,
    missing: BTreeMap<&'static str, String>,
}

impl KnownValues {
    fn put(&mut self, key: &str, value: Option<String>, from: &str) {
        if let Some(value) = value {
            self.known.insert(key.to_owned(), (value, from.to_owned()));
        }
    }

    fn put_or(&mut self, key: &'static str, value: Result<String, String>, from: &str) {
        match value {
            Ok(value) => self.put(key, Some(value), from),
            Err(why) => drop(self.missing.insert(key, why)),
        }
    }
}

/// The fields of the purpose, with their values.
pub fn fields(sources: &Sources<'_>, derived: &Derived) -> Vec<Field> {
    let mut values = KnownValues::default();
    of_system(&mut values, sources);
    of_run(&mut values, sources, derived);
    of_power(&mut values, sources, derived);
    of_acceptance(&mut values, derived);
    let field = |asked: super::asked::Asked| {
        let (value, from) = values.known.get(asked.key).cloned().unzip();
        let why = || values.missing.get(asked.key).cloned().unwrap_or_else(|| asked.how());
        let how = value.is_none().then(why);
        Field { key: asked.key.to_owned(), label: asked.label.to_owned(), value, from, how, needed: asked.needed }
    };
    asked(sources.purpose).into_iter().map(field).collect()
}

/// What the host and the session say about the system, and the site file in its place.
fn of_system(values: &mut KnownValues, sources: &Sources<'_>) {
    let Sources { scored, site, .. } = sources;
    let known = sources.facts.map(Facts::known).unwrap_or_default();
    for (key, value) in known {
        values.put(key, Some(value), "this host");
    }
    values.put("system.nodes", scored.nodes().map(|nodes| nodes.to_string()), "the session");
    let ours = scored.engine.is_ours();
    let kernel = scored.row.kernel.clone().filter(|_| ours);
    values.put("system.math_library", kernel, "the run");
    if sources.programs {
        if let (false, KernelChoice::Blas(path)) = (ours, scored.engine.calibrated_kernels()) {
            values.put("system.math_library", Some(path.display().to_string()), LDD);
        }
        values.put("system.mpi", libraries::mpi(&scored.engine), LAUNCHER);
        values.put("system.compiler", libraries::compiler(&scored.engine, &scored.row), NOTE);
    }
    let binary = format!("{}: its own engine in Rust, not Netlib's program", scored.row.versions);
    values.put("system.binary", ours.then_some(binary), "the run");
    if sources.facts.is_none() {
        let here = format!("the run was on {}, this is another host: pack there, or", scored.row.host);
        let keys = super::site::KEYS.iter().filter(|key| key.path.starts_with("system."));
        for key in keys {
            values.missing.insert(key.path, format!("{here} {}", key.how()));
        }
    }
    for (key, value) in site.iter() {
        values.put(key, Some(value.to_owned()), "site.toml");
    }
}

/// The score, its time stamps, Rpeak and repeats.
fn of_run(values: &mut KnownValues, sources: &Sources<'_>, derived: &Derived) {
    let Sources { scored, .. } = sources;
    let Scored { printed, stamps, row, .. } = scored;
    let mut put = |key, value: Option<String>| values.put(key, value, "the run");
    put("run.rmax_gflops", Some(printed.rate_gflops.to_string()));
    put("run.nmax", Some(printed.params.n.to_string()));
    put("run.time_s", Some(printed.time_s.to_string()));
    put("run.residual", printed.residual.map(|residual| residual.to_string()));
    put("run.cores_used", scored.cores_used().map(|cores| cores.to_string()));
    put("run.output_sha256", row.output_sha256.clone());
    for (start, end, span) in [
        ("run.job_start_utc", "run.job_end_utc", &stamps.job),
        ("run.core_start_utc", "run.core_end_utc", &stamps.core),
    ] {
        put(start, span.as_ref().map(|span| span.start_utc.to_string()));
        put(end, span.as_ref().map(|span| span.end_utc.to_string()));
    }
    let half = n_half(&scored.rows, row, printed.rate_gflops);
    put("run.n_half", half.map(|(n, rate)| format!("{n} ({} GFLOP/s)", digits(rate))));
    let own = derived.repeats.iter().find(|repeats| repeats.n == printed.params.n);
    put("run.repeats", own.map(words));
    put("run.power", recorded_power(row));
    if let Some(why) = &stamps.core_missing {
        for key in ["run.core_start_utc", "run.core_end_utc"] {
            values.missing.insert(key, why.clone());
        }
    }
    let peak = derived.peak.as_ref();
    let or_why = |value: fn(&Peak) -> String| peak.map(value).map_err(Clone::clone);
    // What the site gives of a factor is no value of the whole.
    values.known.retain(|key, _| !key.starts_with("peak."));
    values.put_or("peak.gflops", or_why(|peak| round(peak.gflops)), "computed");
    values.put_or("peak.formula", or_why(|peak| format!("{} ({})", peak.formula, peak.from)), "computed");
    values.put("peak.clock_ghz", peak.ok().and_then(|peak| peak.clock_ghz).map(|ghz| ghz.to_string()), "computed");
    let efficiency = peak.map(|peak| format!("{:.2} %", 100.0 * printed.rate_gflops / peak.gflops));
    values.put_or("run.efficiency", efficiency.map_err(|why| format!("Rpeak is missing: {why}")), "computed");
}

/// The power in the row of the run; that of a meter which is packed with it is another value.
fn recorded_power(row: &Row) -> Option<String> {
    let (watts, source) = (row.power_w?, row.power_source.as_ref()?);
    let coverage = row.power_coverage.map_or(String::new(), |part| format!(", {:.0} % of it read", 100.0 * part));
    Some(format!("{watts:.1} W{coverage}; {source}"))
}

/// Repeats in one line.
fn words(repeats: &Repeats) -> String {
    let Repeats { n, runs, median_gflops, range_gflops: [low, high], interval_gflops, level } = repeats;
    if *runs == 1 {
        return format!("1 passed whole run at N = {n}, so no interval");
    }
    let median = format!("median {} GFLOP/s of {runs} passed whole runs at N = {n}", digits(*median_gflops));
    let range = format!("{} to {}", digits(*low), digits(*high));
    match interval_gflops.zip(*level) {
        Some(([from, to], level)) => {
            format!(
                "{median}; all from {range}; exact interval {} to {}, {:.1} %",
                digits(from),
                digits(to),
                100.0 * level
            )
        }
        None => format!("{median}; all from {range}; fewer than 6, so no interval"),
    }
}

/// A figure in GFLOP/s without the last bits of a product.
fn round(gflops: f64) -> String {
    format!("{}", (gflops * 1e3).round() / 1e3)
}

/// Power of all nodes, by the meter where its file is given, else as the site file states it.
fn of_power(values: &mut KnownValues, sources: &Sources<'_>, derived: &Derived) {
    let scale = || {
        derived
            .said
            .scale()
            .ok_or_else(|| format!("{}; the readings are those of the nodes behind the meter", nodes_measured_how()))
    };
    let from = match derived.said.scale() {
        Some(scale) if scale > 1.0 => format!("the meter, times {scale:.4} for all nodes"),
        _ => "the meter".to_owned(),
    };
    let mut core_watts = sources.site.number("power.core_watts");
    if let Some(power) = sources.power {
        let none = "no reading lies wholly in it; is --power-offset right, and are both in UTC?";
        let mean = |mean: Option<f64>| scale().and_then(|scale| Ok(scale * mean.ok_or(none)?));
        let core = mean(power.core.as_ref().map(|core| core.mean_watts));
        core_watts = core.as_ref().ok().copied();
        for key in ["power.core_watts", "power.run_watts"] {
            values.known.remove(key);
        }
        let watts = |watts: Result<f64, String>| watts.map(|watts| format!("{watts:.1}"));
        values.put_or("power.core_watts", watts(core), &from);
        values.put_or("power.run_watts", watts(mean(power.run.as_ref().map(|run| run.mean_watts))), &from);
        // A competition counts the network.
        if sources.purpose != Purpose::Scc || sources.site.flag("power.network_measured") == Some(true) {
            values.known.remove("power.peak_watts");
            values.put_or("power.peak_watts", watts(mean(power.peak_watts)), &from);
        } else {
            values.missing.insert("power.peak_watts", NETWORK_HOW.to_owned());
        }
        let coverage = power.core.as_ref().map(|core| {
            format!("{:.2} % by {} readings, one each {:.2} s", 100.0 * core.coverage(), core.values, power.interval_s)
        });
        values.put_or("power.coverage", coverage.ok_or_else(|| none.to_owned()), "the meter");
        let next = derived.judged.missing_for_next.join("; ");
        let level = match (derived.judged.level, next.as_str()) {
            (0, _) => Err(format!("no level is reached; L1 needs {next}")),
            (_, "") => Ok(derived.judged.words()),
            (level, _) => Ok(format!("{} (L{} needs {next})", derived.judged.words(), level + 1)),
        };
        values.put_or("power.level", level, "the meter and site.toml");
    }
    let per_watt = core_watts.filter(|watts| *watts > 0.0).map(|watts| sources.scored.printed.rate_gflops / watts);
    values.put("power.gflops_per_watt", per_watt.map(|rate| format!("{rate:.4}")), "computed");
}

/// How a peak is given that counts the network.
const NETWORK_HOW: &str = "it counts the network: in site.toml, [power] network_measured = true where that is behind the meter, else [power] peak_watts = …";

fn nodes_measured_how() -> String {
    super::site::find("power.nodes_measured").map_or(String::new(), super::site::Key::how)
}

fn of_acceptance(values: &mut KnownValues, derived: &Derived) {
    let Accepted { target_gflops, of_target, node_spread, accepted } = &derived.accepted;
    values.put("acceptance.target_gflops", target_gflops.map(|target| target.to_string()), "--target");
    values.put("acceptance.of_target", of_target.map(|share| format!("{share:.4}")), "computed");
    values.put("acceptance.node_spread", node_spread.map(|spread| format!("{:.2} %", 100.0 * spread)), "nodes.json");
    values.put("acceptance.verdict", accepted.map(|_| derived.accepted.words()), "computed");
}
