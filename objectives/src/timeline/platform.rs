//! The parameters of a machine from which a timeline computes its costs.

use space::machine::{Layer, Machine, RankCosts, RateKernel};
use space::stats::summary;

use super::shape::WORD;

/// Why a platform is invalid.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlatformError {
    /// A number outside its range.
    #[error("platform: {key} must be {wanted}, found {found}")]
    Value {
        /// The number's name.
        key: &'static str,
        /// What is accepted.
        wanted: &'static str,
        /// The value found.
        found: f64,
    },
    /// No speed of any rank.
    #[error("platform: no seconds per multiply–add; give one value for all ranks or one per CPU")]
    NoSpeed,
    /// A machine description without a rate that the timeline needs.
    #[error("the machine description has no [[rate]] of kernel {kernel:?}; calibrate the machine, or add it")]
    NoRate {
        /// The kernel.
        kernel: RateKernel,
    },
    /// A machine description without messages.
    #[error("the machine description has no [[layer]] of more than one rank; add one with alpha_s and beta_s_per_word")]
    NoLayer,
    /// A layer beyond that of a node and that of the network.
    #[error(
        "[[layer]] {name}: the timeline knows two layers of more than one rank, a node and the network; leave one out, or \
         give --model mcl"
    )]
    MoreLayers {
        /// Name of the layer.
        name: String,
    },
    /// A layer without latency.
    #[error("[[layer]] {name}: the timeline needs alpha_s, the latency of a message in seconds")]
    NoLatency {
        /// Name of the layer.
        name: String,
    },
}

/// The machine parameters of a timeline, in seconds and bytes, independent of grid and NB.
///
/// Ranks are numbered as MPI numbers them, node after node.
#[derive(Debug, Clone, PartialEq)]
pub struct Platform {
    /// Ranks on one node, at least 1.
    pub ranks_per_node: usize,
    /// Consecutive ranks with the same speed, at least 1: those of one CPU.
    pub ranks_per_cpu: usize,
    /// Seconds per multiply–add in a large DGEMM under full load, one entry per CPU; used again from the first
    /// when there are more CPUs, so that one entry serves equal ranks.
    pub multiply_add_s: Vec<f64>,
    /// Relative standard deviation of the time of one DGEMM call; the noise only slows a call, so it is taken as half-normal,
    /// \[Cornebize\].
    pub spread: f64,
    /// Costs of DGEMM beyond its multiply–adds.
    pub gemm: GemmTerms,
    /// Cache that a panel of one rank may fill, in bytes.
    pub cache_bytes: f64,
    /// Panel factorization in seconds per m·k² (two flops at right-looking's full count, half of which are
    /// saved), without messages, by the CPU of median speed; on other CPUs it scales with the time of products.
    pub panel_s: Cached,
    /// Copy of rows within a rank, in seconds per byte.
    pub copy_s: Cached,
    /// Messages within a node.
    pub inside: LinkCosts,
    /// Messages between nodes; the rate is that of a node's link, which all ranks of the node share.
    pub between: LinkCosts,
    /// One pivot exchange with one partner: latency in seconds.
    pub pivot_s: f64,
    /// Its rate, in seconds per byte of a row of the panel.
    pub pivot_s_per_byte: f64,
}

/// A cost that depends on whether the data is in cache.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cached {
    /// From cache.
    pub near: f64,
    /// From memory.
    pub far: f64,
}

/// A link between two ranks: `latency_s` + bytes × `s_per_byte`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinkCosts {
    /// Seconds per message.
    pub latency_s: f64,
    /// Seconds per byte; for messages through shared memory, from cache and from memory.
    pub s_per_byte: Cached,
}

/// DGEMM C(m×n) −= A(m×k)·B(k×n) beyond its m·n·k multiply–adds, in seconds.
///
/// The m·n term may be negative if the fit to wide products overestimates small k.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GemmTerms {
    /// Per element of C.
    pub mn_s: f64,
    /// Per element of A.
    pub mk_s: f64,
    /// Per element of B.
    pub nk_s: f64,
    /// Per call.
    pub call_s: f64,
}

impl From<[f64; 2]> for Cached {
    /// From cache, from memory.
    fn from([near, far]: [f64; 2]) -> Self {
        Self { near, far }
    }
}

/// Coefficients of the first rate of a kernel.
fn coefficients(machine: &Machine, kernel: RateKernel) -> Result<&[f64], PlatformError> {
    let rate = machine.rates.iter().find(|rate| rate.kernel == kernel);
    rate.map(|rate| rate.coefficients.as_slice()).ok_or(PlatformError::NoRate { kernel })
}

fn latency_s(layer: &Layer) -> Result<f64, PlatformError> {
    layer.alpha_s.ok_or_else(|| PlatformError::NoLatency { name: layer.name.clone() })
}

/// Costs of a rank from calibrated rates: a swapped row is read and written twice.
fn calibrated(machine: &Machine, inside: &Layer) -> Result<RankCosts, PlatformError> {
    let panel_s = coefficients(machine, RateKernel::Panel)?[0];
    let copy_s = coefficients(machine, RateKernel::Swap)?[0] / (2.0 * WORD);
    let message_s = inside.beta_s_per_word / WORD;
    Ok(RankCosts {
        cpus: 1,
        spread: 0.0,
        dgemm_mn_s: 0.0,
        cache_bytes: 1.0,
        panel_s: [panel_s; 2],
        copy_s_per_byte: [copy_s; 2],
        inside_s_per_byte: [message_s; 2],
        pivot_s: latency_s(inside)?,
        pivot_s_per_byte: message_s,
    })
}

impl Platform {
    /// The platform of a machine description, ranks of one thread.
    ///
    /// The innermost layer of several ranks is the node, the next one the network, whose rate is that of a node's link; with one
    /// layer all ranks are in one node. Without `[timeline]` the panel, copies and pivots cost what the calibrated rates say, the
    /// same from cache and from memory.
    ///
    /// # Errors
    /// [`PlatformError`] naming what the description lacks, or the layer that it has beyond two.
    pub fn new(machine: &Machine) -> Result<Self, PlatformError> {
        let dgemm = coefficients(machine, RateKernel::Dgemm)?;
        let mut layers = machine.layers.iter().filter(|layer| layer.ranks > 1);
        let inside = layers.next().ok_or(PlatformError::NoLayer)?;
        let between = layers.next().unwrap_or(inside);
        if let Some(third) = layers.next() {
            return Err(PlatformError::MoreLayers { name: third.name.clone() });
        }
        let costs = match &machine.timeline {
            Some(costs) => costs.clone(),
            None => calibrated(machine, inside)?,
        };
        let platform = Self {
            ranks_per_node: inside.ranks,
            ranks_per_cpu: (inside.ranks / costs.cpus).max(1),
            multiply_add_s: vec![dgemm[0]],
            spread: costs.spread,
            gemm: GemmTerms { mn_s: dgemm[1] + costs.dgemm_mn_s, mk_s: dgemm[2], nk_s: dgemm[3], call_s: dgemm[4] },
            cache_bytes: costs.cache_bytes,
            panel_s: Cached::from(costs.panel_s),
            copy_s: Cached::from(costs.copy_s_per_byte),
            inside: LinkCosts { latency_s: latency_s(inside)?, s_per_byte: Cached::from(costs.inside_s_per_byte) },
            between: LinkCosts {
                latency_s: latency_s(between)?,
                s_per_byte: Cached::from([between.beta_s_per_word / WORD; 2]),
            },
            pivot_s: costs.pivot_s,
            pivot_s_per_byte: costs.pivot_s_per_byte,
        };
        platform.check()?;
        Ok(platform)
    }

    /// Seconds per multiply–add of rank `rank`.
    ///
    /// # Panics
    /// When there is no speed; [`check`](Self::check) says so before.
    pub fn rank_s(&self, rank: usize) -> f64 {
        self.multiply_add_s[rank / self.ranks_per_cpu % self.multiply_add_s.len()]
    }

    /// Seconds per multiply–add of the median CPU.
    ///
    /// # Panics
    /// As [`rank_s`](Self::rank_s).
    pub(super) fn median_s(&self) -> f64 {
        summary(&self.multiply_add_s).median
    }

    /// Node of rank `rank`.
    pub fn node(&self, rank: usize) -> usize {
        rank / self.ranks_per_node
    }

    /// Checks that every number is possible.
    ///
    /// # Errors
    /// [`PlatformError`] naming the first that is not.
    pub fn check(&self) -> Result<(), PlatformError> {
        if self.multiply_add_s.is_empty() {
            return Err(PlatformError::NoSpeed);
        }
        let value = |key, wanted, found| Err(PlatformError::Value { key, wanted, found });
        for (key, count) in [("ranks_per_node", self.ranks_per_node), ("ranks_per_cpu", self.ranks_per_cpu)] {
            if count == 0 {
                return value(key, "at least 1", 0.0);
            }
        }
        if let Some(&slow) = self.multiply_add_s.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
            return value("multiply_add_s", "a number above 0", slow);
        }
        if !self.gemm.mn_s.is_finite() {
            return value("gemm.mn_s", "a number", self.gemm.mn_s);
        }
        self.costs().try_for_each(|(key, cost)| {
            if cost.is_finite() && cost >= 0.0 { Ok(()) } else { value(key, "a number from 0", cost) }
        })
    }

    /// All non-negative parameters that are no counts, with their names.
    fn costs(&self) -> impl Iterator<Item = (&'static str, f64)> {
        [
            ("spread", self.spread),
            ("gemm.mk_s", self.gemm.mk_s),
            ("gemm.nk_s", self.gemm.nk_s),
            ("gemm.call_s", self.gemm.call_s),
            ("cache_bytes", self.cache_bytes),
            ("panel_s.near", self.panel_s.near),
            ("panel_s.far", self.panel_s.far),
            ("copy_s.near", self.copy_s.near),
            ("copy_s.far", self.copy_s.far),
            ("inside.latency_s", self.inside.latency_s),
            ("inside.s_per_byte.near", self.inside.s_per_byte.near),
            ("inside.s_per_byte.far", self.inside.s_per_byte.far),
            ("between.latency_s", self.between.latency_s),
            ("between.s_per_byte.near", self.between.s_per_byte.near),
            ("between.s_per_byte.far", self.between.s_per_byte.far),
            ("pivot_s", self.pivot_s),
            ("pivot_s_per_byte", self.pivot_s_per_byte),
        ]
        .into_iter()
    }
}
