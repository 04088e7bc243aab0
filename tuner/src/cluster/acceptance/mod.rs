//! Whether the nodes of a job are alike: what each reaches while all work, which to leave out, and what that gains.
//!
//! Typical is the median over the nodes. The gain of leaving nodes out is given by a bound: equal shares run at the speed of the
//! slowest node; messages are not counted.

mod page;
mod text;

use hpl::measure::survey::{LinkSurvey, RankSurvey};
use serde::Serialize;
use space::domain::{largest_n, squarest};
use space::stats::{median, summary};
use space::{Share, Unequal, counted};

pub(crate) use page::page;

/// NB of the HPL runs of a survey of nodes.
pub(crate) const SURVEY_NB: usize = 128;
/// Version of `nodes.json`.
const SCHEMA: u32 = 1;
/// A node with less than this part of the typical memory bounds N for all.
const MEMORY: f64 = 0.9;
/// A link with less than this part of the typical bandwidth is reported, where that is beyond the noise of its round trips.
const LINK: f64 = 0.8;
/// Leaving nodes out for less than this gain is not advised.
const WORTH: f64 = 0.01;
/// A clock below this part of the typical one is a cause.
const CLOCK: f64 = 0.97;
/// More CPU time than this taken by the hypervisor is a cause.
const STOLEN: f64 = 0.02;
/// More runnable processes than this before the runs are a cause.
pub(crate) const LOAD: f64 = 1.0;

/// What was found of one node.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct NodeFound {
    /// Its name.
    pub(crate) host: String,
    /// Processor model.
    pub(crate) cpu: String,
    /// Physical cores.
    pub(crate) cores: usize,
    /// Memory that can be filled, in bytes.
    pub(crate) memory_bytes: u64,
    /// Median rate of its HPL runs in GFLOP/s.
    pub(crate) hpl_gflops: f64,
    /// Their (third − first quartile) / median.
    pub(crate) hpl_spread: f64,
    /// Median rate of its products in GFLOP/s.
    pub(crate) dgemm_gflops: f64,
    /// Bandwidth of its slowest link in GB/s; `None` of a node alone.
    pub(crate) slowest_link_gbytes_per_s: Option<f64>,
    /// The same of its fastest one, by which it is judged: a slow link may be the other node's fault.
    pub(crate) fastest_link_gbytes_per_s: Option<f64>,
    /// Its HPL rate over the typical one.
    pub(crate) of_typical: f64,
    /// Whether that is lower than noise explains and the tolerance allows.
    pub(crate) slow: bool,
    /// What equal shares gain without it, as a share, messages not counted; below 0 for a loss, `None` of a node alone.
    pub(crate) without_it: Option<f64>,
    /// What is wrong with it, a clause each.
    pub(crate) faults: Vec<String>,
    /// What may be the cause of a low rate, a clause each.
    pub(crate) causes: Vec<String>,
}

/// What equal shares reach on some nodes at most, messages not counted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Bound {
    /// Nodes.
    pub(crate) nodes: usize,
    /// Nodes × the rate of the slowest, in GFLOP/s.
    pub(crate) rate_gflops: f64,
    /// The largest N, by the node with the least memory.
    pub(crate) n: usize,
}

/// What is said of all nodes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Acceptance {
    schema_version: u32,
    /// When, in UTC.
    pub(crate) date_utc: String,
    /// Order of the HPL run of each node.
    pub(crate) n: usize,
    /// Its threads.
    pub(crate) threads: usize,
    /// Share by which a node may be slower than the typical one.
    pub(crate) tolerance: f64,
    /// Median over the nodes of their HPL rates, in GFLOP/s; of an even number the larger of the two in the middle, so that half of the
    /// nodes may be slow.
    pub(crate) typical_gflops: f64,
    /// Median over the nodes of what they differ from that, as a share of it.
    pub(crate) mad: f64,
    /// The nodes, in the order of the job.
    pub(crate) nodes: Vec<NodeFound>,
    /// Names of those with a fault.
    pub(crate) left_out: Vec<String>,
    /// Of all nodes.
    pub(crate) all: Bound,
    /// Of those without a fault, where there are some of both.
    pub(crate) rest: Option<Bound>,
    /// Of those that are fastest by equal shares, where these are not all.
    pub(crate) fastest: Option<Bound>,
    /// Names of the others, which are the slowest.
    pub(crate) too_slow: Vec<String>,
    /// Sum of all rates in GFLOP/s: what shares by weights reach at most.
    pub(crate) sum_gflops: f64,
    /// Whether no node has a fault.
    pub(crate) accepted: bool,
}

impl Acceptance {
    /// Judges the nodes `found`, a rank of `threads` threads on each, which made HPL runs of order `n`.
    pub(crate) fn new(found: &[RankSurvey], n: usize, threads: usize, tolerance: f64) -> Self {
        let rates: Vec<f64> = found.iter().map(rate).collect();
        let typical_gflops = summary(&rates).median;
        let off: Vec<f64> = rates.iter().map(|rate| (rate / typical_gflops - 1.0).abs()).collect();
        let typical = Typical::new(found, typical_gflops);
        let mut nodes: Vec<NodeFound> = found.iter().map(|rank| typical.judge(rank, tolerance)).collect();
        let all = bound(nodes.iter());
        for index in 0..nodes.len() {
            let others = nodes.iter().enumerate().filter(|(other, _)| *other != index).map(|(_, node)| node);
            let without = (nodes.len() > 1).then(|| bound(others).rate_gflops / all.rate_gflops - 1.0);
            nodes[index].without_it = without;
        }
        let too_slow = too_slow(&nodes);
        let fast = nodes.iter().filter(|node| !too_slow.contains(&node.host));
        let fastest = (!too_slow.is_empty()).then(|| bound(fast));
        let sound = || nodes.iter().filter(|node| node.faults.is_empty());
        let left_out: Vec<String> =
            nodes.iter().filter(|node| !node.faults.is_empty()).map(|node| node.host.clone()).collect();
        let rest = (!left_out.is_empty() && sound().next().is_some()).then(|| bound(sound()));
        Self {
            schema_version: SCHEMA,
            date_utc: jiff::Timestamp::now().strftime("%Y-%m-%d %H:%M").to_string(),
            n,
            threads,
            tolerance,
            typical_gflops,
            mad: median(&off).unwrap_or(0.0),
            all,
            rest,
            fastest,
            too_slow,
            sum_gflops: rates.iter().sum(),
            accepted: left_out.is_empty(),
            left_out,
            nodes,
        }
    }

    /// Speeds of the nodes, those that are not slow as 1; nothing where none is slow, or they have unequally many cores. Runs have
    /// `used_cores` of each, which may be fewer than a process sees there that is bound to none.
    pub(crate) fn unequal(&self, used_cores: usize) -> Unequal {
        if !self.are_cores_alike() || !self.has_slow() {
            return Unequal::default();
        }
        let speed = |node: &NodeFound| Share::new(if node.slow { node.of_typical } else { 1.0 }).unwrap_or_default();
        Unequal::nodes(self.nodes.iter().map(speed).collect(), used_cores)
    }

    /// Whether a node is slow.
    pub(crate) fn has_slow(&self) -> bool {
        self.nodes.iter().any(|node| node.slow)
    }

    /// Whether all nodes have as many cores.
    pub(crate) fn are_cores_alike(&self) -> bool {
        self.nodes.iter().all(|node| node.cores == self.nodes[0].cores)
    }

    /// What the rate of some nodes by equal shares is more than that of all, as a share of it.
    pub(crate) fn gain(&self, some: Bound) -> f64 {
        some.rate_gflops / self.all.rate_gflops - 1.0
    }
}

/// The nodes that are typical.
struct Typical {
    rate_gflops: f64,
    dgemm_gflops: f64,
    spread: f64,
    memory_bytes: f64,
    cores: usize,
    link_gbytes_per_s: Option<f64>,
    link_spread: f64,
    clock_hz: Option<f64>,
    kernels: String,
    cpu: String,
}

impl NodeFound {
    /// Bandwidths of its slowest and its fastest link in GB/s, `0.31…0.66`.
    fn links(&self) -> String {
        let both = self.slowest_link_gbytes_per_s.zip(self.fastest_link_gbytes_per_s);
        both.map_or("–".to_owned(), |(slowest, fastest)| format!("{slowest:.2}…{fastest:.2}"))
    }
}

impl Typical {
    fn new(found: &[RankSurvey], rate_gflops: f64) -> Self {
        let middle = |of: &dyn Fn(&RankSurvey) -> Option<f64>| {
            let values: Vec<f64> = found.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| summary(&values).median)
        };
        let mut by_rate: Vec<&RankSurvey> = found.iter().collect();
        by_rate.sort_by(|a, b| rate(a).total_cmp(&rate(b)));
        // Of two that are as common, that of the faster node.
        let most_common = |of: fn(&RankSurvey) -> &str| {
            let count = |name: &&str| by_rate.iter().filter(|rank| of(rank) == *name).count();
            by_rate.iter().map(|rank| of(rank)).max_by_key(count).unwrap_or_default().to_owned()
        };
        Self {
            rate_gflops,
            dgemm_gflops: middle(&|rank| Some(summary(&rank.dgemm_gflops).median)).unwrap_or(0.0),
            spread: middle(&|rank| Some(summary(&rank.hpl_gflops).spread)).unwrap_or(0.0),
            memory_bytes: middle(&|rank| Some(rank.memory_bytes as f64)).unwrap_or(0.0),
            cores: middle(&|rank| Some(rank.cores as f64)).unwrap_or(0.0) as usize,
            // Two nodes have the same link: there is no typical one.
            link_gbytes_per_s: middle(&|rank| Some(fastest_link(rank)?.gbytes_per_s)).filter(|_| found.len() > 2),
            link_spread: middle(&|rank| Some(fastest_link(rank)?.spread)).unwrap_or(0.0),
            clock_hz: middle(&|rank| rank.clock_hz),
            kernels: most_common(|rank| &rank.kernels),
            cpu: most_common(|rank| &rank.cpu),
        }
    }

    fn judge(&self, rank: &RankSurvey, tolerance: f64) -> NodeFound {
        let (hpl, dgemm) = (summary(&rank.hpl_gflops), summary(&rank.dgemm_gflops));
        let of_typical = hpl.median / self.rate_gflops;
        let below = 1.0 - of_typical;
        let repeats = rank.hpl_gflops.len();
        let is_slow = below > tolerance && below > noise(hpl.spread, self.spread, repeats);
        let memory = rank.memory_bytes as f64 / self.memory_bytes;
        // A slow link to a bad node is no fault of this one: that one has no fast link.
        let bad_link = fastest_link(rank).zip(self.link_gbytes_per_s).and_then(|(own, typical)| {
            let ratio = own.gbytes_per_s / typical;
            (ratio < LINK && 1.0 - ratio > noise(own.spread, self.link_spread, repeats)).then_some(ratio)
        });
        let faults = [
            is_slow.then(|| format!("{:.1} % slower than typical", 100.0 * below)),
            (rank.cores < self.cores).then(|| format!("{}, the others {}", counted(rank.cores, "core"), self.cores)),
            (memory < MEMORY).then(|| format!("{:.0} % of the typical memory, which bounds N for all", 100.0 * memory)),
            bad_link.map(|ratio| format!("its fastest link has {:.0} % of the typical bandwidth", 100.0 * ratio)),
        ];
        let clock = rank.clock_hz.zip(self.clock_hz).map(|(own, typical)| own / typical);
        let causes = [
            (rank.cpu != self.cpu).then(|| format!("another processor, {}", rank.cpu)),
            (rank.kernels != self.kernels).then(|| format!("other kernels, {}", rank.kernels)),
            clock
                .filter(|ratio| *ratio < CLOCK)
                .map(|ratio| format!("its clock is {:.0} % of the typical", 100.0 * ratio)),
            rank.stolen
                .filter(|share| *share > STOLEN)
                .map(|share| format!("its hypervisor took {:.0} % of the CPU time", 100.0 * share)),
            rank.load.filter(|load| *load > LOAD).map(|load| format!("{load:.1} processes ran there before")),
            (dgemm.median > (1.0 - tolerance) * self.dgemm_gflops)
                .then(|| "DGEMM is as fast as elsewhere: look at its memory and at what else runs there".to_owned()),
        ];
        NodeFound {
            host: rank.host.clone(),
            cpu: rank.cpu.clone(),
            cores: rank.cores,
            memory_bytes: rank.memory_bytes,
            hpl_gflops: hpl.median,
            hpl_spread: hpl.spread,
            dgemm_gflops: dgemm.median,
            slowest_link_gbytes_per_s: rank.links.iter().map(|link| link.gbytes_per_s).reduce(f64::min),
            fastest_link_gbytes_per_s: fastest_link(rank).map(|link| link.gbytes_per_s),
            of_typical,
            slow: is_slow,
            without_it: None,
            faults: faults.into_iter().flatten().collect(),
            causes: if is_slow { causes.into_iter().flatten().collect() } else { Vec::new() },
        }
    }
}

/// Two standard errors of the difference between two medians of `repeats` values each, whose quartiles are so far apart: the
/// median of normal values has 1.25 times the error of their mean, the quartiles are 1.35 standard deviations apart.
fn noise(own: f64, usual: f64, repeats: usize) -> f64 {
    2.0 * 1.25 / 1.35 * own.hypot(usual) / (repeats.max(1) as f64).sqrt()
}

/// The nodes without which equal shares are fastest, messages not counted; none where that gains less than [`WORTH`].
fn too_slow(nodes: &[NodeFound]) -> Vec<String> {
    let mut by_rate: Vec<&NodeFound> = nodes.iter().collect();
    by_rate.sort_by(|a, b| a.hpl_gflops.total_cmp(&b.hpl_gflops));
    let without = |left_out: usize| (nodes.len() - left_out) as f64 * by_rate[left_out].hpl_gflops;
    let best = (0..nodes.len()).max_by(|a, b| without(*a).total_cmp(&without(*b)).then(b.cmp(a))).unwrap_or(0);
    let worth = best > 0 && without(best) > (1.0 + WORTH) * without(0);
    by_rate[..if worth { best } else { 0 }].iter().map(|node| node.host.clone()).collect()
}

fn rate(rank: &RankSurvey) -> f64 {
    summary(&rank.hpl_gflops).median
}

fn fastest_link(rank: &RankSurvey) -> Option<&LinkSurvey> {
    rank.links.iter().max_by(|a, b| a.gbytes_per_s.total_cmp(&b.gbytes_per_s))
}

/// What equal shares reach on `nodes`.
fn bound<'a>(nodes: impl Iterator<Item = &'a NodeFound> + Clone) -> Bound {
    let count = nodes.clone().count();
    let slowest = nodes.clone().map(|node| node.hpl_gflops).fold(f64::INFINITY, f64::min);
    let memory_bytes = nodes.map(|node| node.memory_bytes).min().unwrap_or(0).saturating_mul(count as u64);
    let (p, q) = squarest(count);
    Bound { nodes: count, rate_gflops: count as f64 * slowest, n: largest_n(memory_bytes, p, q, SURVEY_NB, 1) }
}

#[cfg(test)]
mod tests;
