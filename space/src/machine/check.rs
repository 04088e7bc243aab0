//! What the numbers of a machine description must satisfy.
//!
//! Bounds are generous: they catch a wrong unit or a slipped digit, not an unusual machine.

use std::fmt::Display;

use super::{
    Accelerator, DeviceRates, Layer, Link, Machine, MachineError, Measured, Node, Offload, PhaseRate, RankCosts, Rate,
    RateKernel,
};

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
/// Fastest run in GFLOP/s: a thousand exaflops.
const MAX_RUN_GFLOPS: f64 = 1e12;
/// Shortest time per flop of one rank, and per word of a layer, in seconds.
const MIN_S: f64 = 1e-18;
/// Largest order of a run.
const MAX_MEASURED_N: usize = 1_000_000_000;

impl Machine {
    /// Checks that every value is possible: finite, none negative, counts at least 1, lists as long as the
    /// kernel's form.
    ///
    /// # Errors
    /// [`MachineError`] naming the first key whose value is not.
    pub fn check(&self) -> Result<(), MachineError> {
        if self.nodes.is_empty() && self.measured.is_empty() {
            return Err(MachineError::NoNode);
        }
        each("node", &self.nodes, check_node)?;
        each("rate", &self.rates, check_rate)?;
        each("phase", &self.phases, check_phase)?;
        each("layer", &self.layers, check_layer)?;
        check_nesting(&self.layers)?;
        each("link", &self.links, |link, table| check_link(link, &self.nodes, table))?;
        each("measured", &self.measured, check_measured)?;
        self.accelerator.as_ref().map_or(Ok(()), check_accelerator)?;
        self.offload.as_ref().map_or(Ok(()), check_offload)?;
        self.device.as_ref().map_or(Ok(()), check_device)?;
        let nb = self.choices.and_then(|published| published.nb);
        nb.map_or(Ok(()), |nb| Table("[choices]".to_owned()).count("nb", nb))?;
        self.timeline.as_ref().map_or(Ok(()), check_timeline)
    }
}

/// Checks every table of a list under its number.
fn each<T>(name: &str, list: &[T], check: impl Fn(&T, &Table) -> Result<(), MachineError>) -> Result<(), MachineError> {
    list.iter().enumerate().try_for_each(|(i, entry)| check(entry, &Table(format!("[[{name}]] {}", i + 1))))
}

fn check_node(node: &Node, table: &Table) -> Result<(), MachineError> {
    table.count("count", node.count)?;
    table.count("cores", node.cores)?;
    if node.memory_bytes > 0 {
        let wanted = "between 1 MiB (1048576) and 1 EiB, in bytes";
        table.require(
            (MIN_BYTES..=MAX_BYTES).contains(&node.memory_bytes),
            "memory_bytes",
            wanted,
            node.memory_bytes,
        )?;
        let wanted = format_args!("below memory_bytes = {}", node.memory_bytes);
        table.require(node.reserved_bytes < node.memory_bytes, "reserved_bytes", wanted, node.reserved_bytes)?;
    }
    node.accelerators.map_or(Ok(()), |count| table.count("accelerators", count))?;
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
    if kernel == RateKernel::Dgemm {
        let wanted = format_args!("0 or at least {MIN_S:e} s per multiply-add in the first place");
        table.require(values[0] == 0.0 || values[0] >= MIN_S, "coefficients", wanted, values[0])?;
    }
    table.length("valid", rate.valid.len(), kernel.size_count())?;
    for &[low, high] in &rate.valid {
        let rising = low.is_finite() && high.is_finite() && 0.0 <= low && low <= high;
        table.require(rising, "valid", "pairs 0 ≤ smallest ≤ largest", format!("[{low}, {high}]"))?;
    }
    table.real("spread", rate.spread, f64::MAX)?;
    table.real("fit_error", rate.fit_error, f64::MAX)
}

fn check_phase(rate: &PhaseRate, table: &Table) -> Result<(), MachineError> {
    table.count("threads", rate.threads)?;
    let values = &rate.coefficients;
    table.length("coefficients", values.len(), rate.phase.coefficient_count())?;
    values.iter().try_for_each(|&value| table.real("coefficients", value, MAX_S))?;
    let some = values.iter().any(|&value| value > 0.0);
    table.require(some, "coefficients", "greater than 0 in one place at least", "zeros alone")?;
    for (key, [low, high]) in [("n", rate.n), ("nb", rate.nb)] {
        table.require(low <= high, key, "a pair smallest ≤ largest", format_args!("[{low}, {high}]"))?;
    }
    table.real("spread", rate.spread, f64::MAX)?;
    table.real("fit_error", rate.fit_error, f64::MAX)
}

fn check_layer(layer: &Layer, table: &Table) -> Result<(), MachineError> {
    table.count("ranks", layer.ranks)?;
    layer.alpha_s.map_or(Ok(()), |alpha_s| table.real("alpha_s", alpha_s, MAX_S))?;
    let beta_s = layer.beta_s_per_word;
    table.real("beta_s_per_word", beta_s, MAX_S)?;
    let wanted = format_args!("0 or at least {MIN_S:e} s per word of 8 bytes");
    table.require(beta_s == 0.0 || beta_s >= MIN_S, "beta_s_per_word", wanted, beta_s)?;
    table.count("shared_by", layer.shared_by)
}

/// Layers multiply: each joins whole units of the one inside it.
fn check_nesting(layers: &[Layer]) -> Result<(), MachineError> {
    for (i, pair) in layers.windows(2).enumerate() {
        let table = Table(format!("[[layer]] {} ({})", i + 2, pair[1].name));
        let inner = pair[0].ranks;
        let wanted = format_args!("a multiple of the {inner} that [[layer]] {} ({}) joins", i + 1, pair[0].name);
        table.require(pair[1].ranks.is_multiple_of(inner), "ranks", wanted, pair[1].ranks)?;
    }
    Ok(())
}

fn check_measured(run: &Measured, table: &Table) -> Result<(), MachineError> {
    table.above("rate_gflops", run.rate_gflops, MAX_RUN_GFLOPS)?;
    let reals = [
        ("time_s", run.time_s),
        ("peak_gflops", run.peak_gflops),
        ("published_model_gflops", run.published_model_gflops),
    ];
    reals.iter().try_for_each(|&(key, value)| value.map_or(Ok(()), |value| table.above(key, value, MAX_RUN_GFLOPS)))?;
    let counts = [("nb", run.nb), ("p", run.p), ("q", run.q), ("nodes", run.nodes), ("ranks", run.ranks)];
    counts.iter().try_for_each(|&(key, value)| value.map_or(Ok(()), |value| table.count(key, value)))?;
    let n = run.n.unwrap_or(1);
    table.require((1..=MAX_MEASURED_N).contains(&n), "n", format_args!("from 1 to {MAX_MEASURED_N}"), n)?;
    let (Some(p), Some(q), Some(ranks)) = (run.p, run.q, run.ranks) else { return Ok(()) };
    table.require(p.checked_mul(q) == Some(ranks), "ranks", format_args!("p·q = {p}·{q}"), ranks)
}

fn check_offload(offload: &Offload) -> Result<(), MachineError> {
    let table = Table("[offload]".to_owned());
    table.above("steady_gflops", offload.steady_gflops, MAX_GFLOPS)?;
    let share = offload.hidden_steps;
    table.require(share > 0.0 && share < 1.0, "hidden_steps", "a share above 0 and below 1", share)
}

fn check_device(device: &DeviceRates) -> Result<(), MachineError> {
    let table = Table("[device]".to_owned());
    let pairs = &device.dgemm_gflops;
    let rising = !pairs.is_empty() && pairs.windows(2).all(|pair| pair[0][0] < pair[1][0]);
    let wanted = "pairs [k, GFLOP/s], one at least, with k ascending";
    table.require(rising, "dgemm_gflops", wanted, format_args!("{pairs:?}"))?;
    for &[k, gflops] in pairs {
        let wanted = format_args!("pairs [k, GFLOP/s] of a k from 1 and a rate above 0, at most {MAX_GFLOPS:e}");
        let possible = (1.0..=MAX_COUNT as f64).contains(&k) && gflops > 0.0 && gflops <= MAX_GFLOPS;
        table.require(possible, "dgemm_gflops", wanted, format_args!("[{k}, {gflops}]"))?;
    }
    table.real("dgemm_half", device.dgemm_half, MAX_COUNT as f64)?;
    let share = device.trsm_share;
    table.require(share > 0.0 && share <= 1.0, "trsm_share", "a share above 0, at most 1", share)?;
    table.above("memory_gbytes_per_s", device.memory_gbytes_per_s, MAX_GBYTES_PER_S)?;
    table.above("link_gbytes_per_s", device.link_gbytes_per_s, MAX_GBYTES_PER_S)?;
    let seconds = [("launch_s", device.launch_s), ("host_panel_column_s", device.host_panel_column_s)];
    seconds.iter().try_for_each(|&(key, value)| table.real(key, value, MAX_S))?;
    device.host_panel_gflops.map_or(Ok(()), |rate| table.above("host_panel_gflops", rate, MAX_GFLOPS))?;
    let share = device.panel_share;
    table.require((0.0..1.0).contains(&share), "panel_share", "a share from 0, below 1", share)?;
    match (device.panel_s, device.panel_row_s, device.panel_nb) {
        (None, None, None) => Ok(()),
        (Some(panel_s), Some(row_s), Some(nb)) => {
            table.real("panel_s", panel_s, MAX_S)?;
            table.real("panel_row_s", row_s, MAX_S)?;
            table.count("panel_nb", nb)
        }
        _ => {
            table.require(false, "panel_s", "stated together with panel_row_s and panel_nb", "one or two of the three")
        }
    }
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
    let gflops = accelerator.cores * accelerator.flops_per_cycle * accelerator.clock_hz * 1e-9;
    let wanted = format_args!("such that cores · flops_per_cycle · clock_hz is at most {MAX_GFLOPS:e} GFLOP/s");
    table.require(gflops <= MAX_GFLOPS, "clock_hz", wanted, accelerator.clock_hz)?;
    table.real("latency_s", accelerator.latency_s, MAX_S)
}

/// Checks that every cost is possible.
fn check_timeline(costs: &RankCosts) -> Result<(), MachineError> {
    let table = Table("[timeline]".to_owned());
    table.count("cpus", costs.cpus)?;
    table.real("spread", costs.spread, 1.0)?;
    let wanted = format_args!("a number from -1e-6 to 1e-6");
    table.require(costs.dgemm_mn_s.abs() <= 1e-6, "dgemm_mn_s", wanted, costs.dgemm_mn_s)?;
    table.above("cache_bytes", costs.cache_bytes, MAX_BYTES as f64)?;
    let pairs = [
        ("panel_s", costs.panel_s),
        ("copy_s_per_byte", costs.copy_s_per_byte),
        ("inside_s_per_byte", costs.inside_s_per_byte),
    ];
    pairs
        .iter()
        .flat_map(|(key, pair)| pair.map(|cost| (*key, cost)))
        .try_for_each(|(key, cost)| table.real(key, cost, MAX_S))?;
    table.real("pivot_s", costs.pivot_s, MAX_S)?;
    table.real("pivot_s_per_byte", costs.pivot_s_per_byte, MAX_S)
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

    fn above(&self, key: &'static str, value: f64, max: f64) -> Result<(), MachineError> {
        let wanted = format_args!("a number above 0, at most {max:e}");
        self.require(value > 0.0 && value <= max, key, wanted, value)
    }

    fn length(&self, key: &'static str, found: usize, wanted: usize) -> Result<(), MachineError> {
        self.require(found == wanted, key, format_args!("{wanted} values for this form"), found)
    }
}
