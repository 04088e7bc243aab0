//! Input and output of a probe.

use space::machine::RateKernel;

/// Cores, time and limits of a probe.
#[derive(Debug, Clone)]
pub struct ProbeOptions {
    /// Logical CPUs to keep busy, each with one thread; at least one.
    pub cores: Vec<usize>,
    /// Wall-clock seconds of the whole probe.
    pub budget_s: f64,
    /// Order of the largest matrix that will be run: shapes do not exceed it.
    pub max_n: usize,
    /// Bytes that the probe may use.
    pub memory_bytes: u64,
}

/// The measured quantity of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quantity {
    /// A kernel, for the sizes of its form.
    Rate(RateKernel),
    /// Copy of `words` by each core within its memory.
    Copy,
    /// One pivot exchange between two ranks, inside the factorization of a panel of m local rows and k columns.
    Pivot,
    /// A message of `words` from one rank to another: packed, sent, unpacked.
    Message,
}

/// One measured point.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// The measured quantity.
    pub quantity: Quantity,
    /// Threads of each rank; 1 for copies, pivots and messages.
    pub threads: usize,
    /// Sizes local to one rank, in the order of the kernel's form; m and k of a pivot's panel; the words of a copy or
    /// message.
    pub sizes: Vec<usize>,
    /// Median over the rounds of the slowest core's time in seconds: CPU time of kernels, wall clock of messages.
    pub time_s: f64,
    /// (third − first quartile) / median over the rounds.
    pub spread: f64,
    /// Rounds.
    pub rounds: usize,
    /// Rounds in which another process ran on one of the cores.
    pub disturbed: usize,
}
