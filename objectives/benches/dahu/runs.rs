//! The tables of real runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use space::params::Coded;
use space::{Bcast, HplParams, Swap};

use crate::usual;

/// DGEMM seconds per multiply–add of the two CPUs of nodes 13 to 16 in 2019, when they were badly cooled.
const SLOW_NODES: (usize, [[f64; 2]; 4]) =
    (13, [[8.38e-11, 7.78e-11], [8.22e-11, 7.84e-11], [8.95e-11, 7.82e-11], [8.53e-11, 7.75e-11]]);

/// Runs of one set of parameters.
pub(crate) struct Run {
    pub(crate) name: String,
    pub(crate) hpl: HplParams,
    /// Mean of the measured times, in seconds.
    pub(crate) real_s: f64,
    /// SimGrid's prediction.
    pub(crate) simgrid_s: Option<f64>,
}

/// Runs that are judged together.
pub(crate) struct Set {
    pub(crate) name: String,
    /// Whether they were made while four nodes were slow.
    pub(crate) slow_nodes: bool,
    pub(crate) runs: Vec<Run>,
}

/// All sets, with the DGEMM rates of the CPUs.
pub(crate) struct Data {
    cpus: Vec<f64>,
    pub(crate) sets: Vec<Set>,
}

impl Data {
    /// Seconds per multiply–add of each CPU.
    pub(crate) fn speeds(&self, slow_nodes: bool) -> Vec<f64> {
        let mut cpus = self.cpus.clone();
        if slow_nodes {
            let (first, slow) = SLOW_NODES;
            cpus[2 * (first - 1)..][..8].copy_from_slice(slow.as_flattened());
        }
        cpus
    }

    /// The run of this name in a set whose name begins so.
    pub(crate) fn run(&self, set: &str, name: &str) -> (&Set, &Run) {
        let set = self.sets.iter().find(|known| known.name.starts_with(set)).expect("a known set");
        (set, set.runs.iter().find(|run| run.name == name).expect("a known run"))
    }
}

/// The tables in `folder`.
pub(crate) fn read(folder: &Path) -> Data {
    let cpus = table(&folder.join("dgemm_per_cpu.csv")).iter().map(|row| real(row, "time_s_per_mnk_mean")).collect();
    let mut sets = vec![sizes(folder, "2019-03", true), sizes(folder, "2018-10", false)];
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    files.sort();
    let configurations = files.iter().filter(|path| path.to_string_lossy().contains("factorial"));
    sets.extend(configurations.map(|path| {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace("factorial", "configurations");
        Set { name, slow_nodes: false, runs: runs(path, configuration) }
    }));
    sets.push(Set { name: "grids".to_owned(), slow_nodes: false, runs: runs(&folder.join("geometry.csv"), grid) });
    Data { cpus, sets }
}

type Row = BTreeMap<String, String>;

fn table(path: &Path) -> Vec<Row> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
    let keys: Vec<String> = lines.next().into_iter().flatten().collect();
    lines.map(|values| keys.iter().cloned().zip(values).collect()).collect()
}

fn real(row: &Row, key: &str) -> f64 {
    row[key].parse().unwrap_or_else(|_| panic!("{key}: {} is no number", row[key]))
}

fn count(row: &Row, key: &str) -> usize {
    row[key].parse().unwrap_or_else(|_| panic!("{key}: {} is no whole number", row[key]))
}

fn sizes(folder: &Path, date: &str, slow_nodes: bool) -> Set {
    let mut times: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for row in table(&folder.join("hpl_reality.csv")).iter().filter(|row| row["date"] == date) {
        times.entry(count(row, "matrix_size")).or_default().push(real(row, "time"));
    }
    let runs = times.into_iter().map(|(n, times)| Run {
        name: n.to_string(),
        hpl: usual(n),
        real_s: mean(&times),
        simgrid_s: None,
    });
    Set { name: date.to_owned(), slow_nodes, runs: runs.collect() }
}

/// One run for each set of parameters of a table.
fn runs(path: &Path, parameters: fn(&Row) -> (String, HplParams)) -> Vec<Run> {
    let mut found: BTreeMap<String, (HplParams, Vec<f64>, Option<f64>)> = BTreeMap::new();
    for row in table(path) {
        let (name, hpl) = parameters(&row);
        let entry = found.entry(name).or_insert((hpl, Vec::new(), None));
        match row["mode"].as_str() {
            "reality" => entry.1.push(real(&row, "time_s")),
            _ => entry.2 = Some(real(&row, "time_s")),
        }
    }
    let run = |(name, (hpl, times, simgrid_s)): (String, (HplParams, Vec<f64>, Option<f64>))| Run {
        name,
        hpl,
        real_s: mean(&times),
        simgrid_s,
    };
    found.into_iter().map(run).collect()
}

fn configuration(row: &Row) -> (String, HplParams) {
    let swap = match row["swap"].as_str() {
        "bin-exch" => Swap::BinExch,
        "long" => Swap::Long,
        _ => Swap::Mix { threshold: 64 },
    };
    let bcast = Bcast::from_name(&row["bcast"]).unwrap_or_else(|| panic!("no BCAST {}", row["bcast"]));
    let [nb, p, q, depth] = ["nb", "p", "q", "depth"].map(|key| count(row, key));
    let hpl = HplParams { nb, p, q, bcast, depth, swap, ..usual(count(row, "n")) };
    (format!("{}, DEPTH {depth}, {}", row["bcast"], row["swap"]), hpl)
}

fn grid(row: &Row) -> (String, HplParams) {
    let [p, q] = ["p", "q"].map(|key| count(row, key));
    (format!("{p:3} × {q}"), HplParams { p, q, ..usual(count(row, "n")) })
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}
