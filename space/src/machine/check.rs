//! What the numbers of a machine description must satisfy.
//!
//! Bounds are generous: they catch a wrong unit or a slipped digit, not an unusual machine.

use std::fmt::Display;

use super::{Accelerator, Layer, Link, Machine, MachineError, Node, Rate};

/// Longest latency and time per word, in seconds.
const MAX_S: f64 = 10.0;
/// Largest memory of a node: 1 EiB.
const MAX_BYTES: u64 = 1 << 60;
/// Smallest memory of a node: 1 MiB, below which the unit is wrong.
const MIN_BYTES: u64 = 1 << 20;
/// Largest number of nodes, cores, threads or ranks.
const MAX_COUNT: usize = 100_000_000;
/// Fastest node in GFLOP/s: an exaflop.
const MAX_GFLOPS: f64 = 1e9;
/// Fastest link in GB/s.
const MAX_GBYTES_PER_S: f64 = 1e6;

impl Machine {
    /// Checks that every value is possible: finite, none negative, counts at least 1, lists as long as the
    /// kernel's form.
    ///
    /// # Errors
    /// [`MachineError`] naming the first key whose value is not.
    pub fn check(&self) -> Result<(), MachineError> {
        if self.nodes.is_empty() {
            return Err(MachineError::NoNode);
        }
        let numbered = |name, i| Table(format!("[[{name}]] {}", i + 1));
        self.nodes.iter().enumerate().try_for_each(|(i, node)| check_node(node, &numbered("node", i)))?;
        self.rates.iter().enumerate().try_for_each(|(i, rate)| check_rate(rate, &numbered("rate", i)))?;
        self.layers.iter().enumerate().try_for_each(|(i, layer)| check_layer(layer, &numbered("layer", i)))?;
        self.links.iter().enumerate().try_for_each(|(i, link)| check_link(link, &self.nodes, &numbered("link", i)))?;
        self.accelerator.as_ref().map_or(Ok(()), check_accelerator)
    }
}

fn check_node(node: &Node, table: &Table) -> Result<(), MachineError> {
    table.count("count", node.count)?;
    table.count("cores", node.cores)?;
    let memory = MIN_BYTES..=MAX_BYTES;
    let wanted = "between 1 MiB (1048576) and 1 EiB, in bytes";
    table.require(memory.contains(&node.memory_bytes), "memory_bytes", wanted, node.memory_bytes)?;
    let free = node.reserved_bytes < node.memory_bytes;
    table.require(
        free,
        "reserved_bytes",
        format!("below memory_bytes = {}", node.memory_bytes),
        node.reserved_bytes,
    )?;
    table.real("peak_gflops", node.peak_gflops, MAX_GFLOPS)?;
    table.real("rate_gflops", node.rate_gflops, MAX_GFLOPS)?;
    table.real("link_gbytes_per_s", node.link_gbytes_per_s, MAX_GBYTES_PER_S)
}

fn check_link(link: &Link, nodes: &[Node], table: &Table) -> Result<(), MachineError> {
    let known = |name: &&String| nodes.iter().any(|node| node.name == **name);
    let stranger = link.nodes.iter().find(|name| !known(name));
    table.require(stranger.is_none(), "nodes", "names of two [[node]]", format_args!("{:?}", link.nodes))?;
    table.real("gbytes_per_s", link.gbytes_per_s, MAX_GBYTES_PER_S)
}

fn check_rate(rate: &Rate, table: &Table) -> Result<(), MachineError> {
    table.count("threads", rate.threads)?;
    let (kernel, values) = (rate.kernel, &rate.coefficients);
    table.length("coefficients", values.len(), kernel.coefficient_count())?;
    values.iter().try_for_each(|&value| table.real("coefficients", value, MAX_S))?;
    let some = values.iter().any(|&value| value > 0.0);
    table.require(some, "coefficients", "greater than 0 in one place at least", "zeros alone")?;
    table.length("valid", rate.valid.len(), kernel.size_count())?;
    for &[low, high] in &rate.valid {
        let rising = low.is_finite() && high.is_finite() && 0.0 <= low && low <= high;
        table.require(rising, "valid", "pairs 0 ≤ smallest ≤ largest", format!("[{low}, {high}]"))?;
    }
    table.real("spread", rate.spread, f64::MAX)?;
    table.real("fit_error", rate.fit_error, f64::MAX)
}

fn check_layer(layer: &Layer, table: &Table) -> Result<(), MachineError> {
    table.count("ranks", layer.ranks)?;
    table.real("alpha_s", layer.alpha_s, MAX_S)?;
    table.real("beta_s_per_word", layer.beta_s_per_word, MAX_S)?;
    table.count("shared_by", layer.shared_by)
}

fn check_accelerator(accelerator: &Accelerator) -> Result<(), MachineError> {
    let table = Table("[accelerator]".to_owned());
    let values = [
        ("memory_controllers", accelerator.memory_controllers),
        ("words_per_controller", accelerator.words_per_controller),
        ("memory_rate_hz", accelerator.memory_rate_hz),
        ("cores", accelerator.cores),
        ("flops_per_cycle", accelerator.flops_per_cycle),
        ("clock_hz", accelerator.clock_hz),
    ];
    for (key, value) in values {
        table.require(value.is_finite() && value > 0.0, key, "a number greater than 0", value)?;
    }
    table.real("latency_s", accelerator.latency_s, MAX_S)
}

/// A table of the description, for messages.
struct Table(String);

impl Table {
    fn require(
        &self,
        holds: bool,
        key: &'static str,
        wanted: impl Display,
        found: impl Display,
    ) -> Result<(), MachineError> {
        if holds {
            return Ok(());
        }
        let (wanted, found) = (wanted.to_string(), found.to_string());
        Err(MachineError::Value { table: self.0.clone(), key, wanted, found })
    }

    fn count(&self, key: &'static str, value: usize) -> Result<(), MachineError> {
        self.require((1..=MAX_COUNT).contains(&value), key, format_args!("from 1 to {MAX_COUNT}"), value)
    }

    fn real(&self, key: &'static str, value: f64, max: f64) -> Result<(), MachineError> {
        self.require((0.0..=max).contains(&value), key, format_args!("a number from 0 to {max:e}"), value)
    }

    fn length(&self, key: &'static str, found: usize, wanted: usize) -> Result<(), MachineError> {
        self.require(found == wanted, key, format_args!("{wanted} values for this kernel"), found)
    }
}
