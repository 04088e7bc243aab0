//! Flags of `predict` and `machines`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser};
use objectives::mcl::{InnerGrid, LayerExtent, MemoryBandwidth};
use objectives::scenario::{Choices, FactPlace, Layering};
use space::machine::Machine;
use space::params::Coded;
use space::{Bcast, Pmap, Swap};

use crate::predict::{MODELS, Model};

/// Flags of `machines`.
#[derive(Debug, Args)]
pub struct MachinesArgs {
    /// Print the description of this machine, to copy and change
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
    /// Print the list as JSON
    #[arg(long, conflicts_with = "name")]
    pub json: bool,
}

/// Flags of `predict`.
#[derive(Debug, Args)]
pub struct PredictArgs {
    /// A name that `hpl-tune machines` lists, or the path of a machine.toml
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: String,
    /// Model: mcl, netlib, overlap, device, calibrated or timeline; by default the first of timeline, calibrated, overlap, device
    /// and mcl that the machine file has the figures for
    #[arg(long, value_name = "MODEL", value_parser = one_of(&MODELS))]
    pub model: Option<Model>,
    /// HPL.dat that names exactly one run; flags below change it
    #[arg(long, value_name = "FILE")]
    pub dat: Option<PathBuf>,
    /// Nodes that the ranks spread over evenly; by default all, or as few as hold P·Q ranks
    #[arg(long, value_name = "NODES", value_parser = count)]
    pub nodes: Option<usize>,
    /// Matrix order; by default that of a measured run of as many nodes and ranks, else the largest that fits the
    /// memory, else as much matrix per rank as the largest measured run has
    #[arg(long, value_name = "N", value_parser = count)]
    pub n: Option<usize>,
    /// Blocking factor; by default that of the measured runs or of the description, else 128; on devices that of the fastest DGEMM stated
    #[arg(long, value_name = "NB", value_parser = count)]
    pub nb: Option<usize>,
    /// Process rows; by default P×Q is as square as the ranks allow, with P at most Q
    #[arg(long, value_name = "P", value_parser = count)]
    pub p: Option<usize>,
    /// Process columns
    #[arg(long, value_name = "Q", value_parser = count)]
    pub q: Option<usize>,
    /// Threads of each rank; 1 by default
    #[arg(long, value_name = "T", value_parser = count)]
    pub threads: Option<usize>,
    /// Look-ahead, if the model includes it
    #[arg(long, value_name = "DEPTH")]
    pub depth: Option<usize>,
    /// Broadcast, if the model includes it: 1ring, 1ringM, 2ring, 2ringM, long or longM
    #[arg(long, value_name = "BCAST", value_parser = coded::<Bcast>())]
    pub bcast: Option<Bcast>,
    /// Row exchange, if the model includes it: bin-exch, long, or a number of columns for mix with this threshold
    #[arg(long, value_name = "SWAP", value_parser = swap)]
    pub swap: Option<Swap>,
    /// Order of the ranks in the grid, if the model includes it: row or column
    #[arg(long, value_name = "PMAP", value_parser = coded::<Pmap>())]
    pub pmap: Option<Pmap>,
    /// Choices that the published models leave open
    #[command(flatten)]
    pub choices: ChoiceArgs,
    /// Predict the machine's measured runs, each with its N, NB, P, Q and nodes, and compare
    #[arg(long, conflicts_with_all = ["dat", "nodes", "n", "p", "q", "plot"])]
    pub measured: bool,
    /// Predict each measured run by three rates fitted to all others, and compare
    #[arg(long, conflicts_with_all = ["dat", "nodes", "n", "p", "q", "threads", "depth", "bcast", "swap", "pmap",
        "plot", "model", "measured", "reading", "update_coefficient", "memory", "layers", "inner_grid", "round_n",
        "rank_gflops", "alpha", "link", "split", "fact", "host_panel_gflops"])]
    pub leave_one_out: bool,
    /// Draw GFLOP/s over N, the phases over the run, and weak scaling over nodes
    #[arg(long, value_name = "FILE.svg", value_parser = PathBufValueParser::new().try_map(svg))]
    pub plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Choices that the closed forms leave open.
#[derive(Debug, Clone, Copy, Args)]
pub struct ChoiceArgs {
    /// mcl: charge a layer for its own full extent (cumulative) or for what it adds to the one inside (printed)
    #[arg(long, value_name = "READING", default_value = "cumulative", value_parser = one_of(&READINGS))]
    pub reading: LayerExtent,
    /// Words sent by a row exchange per word of U: 3 in the paper, 2 on full-duplex links
    #[arg(long, value_name = "FACTOR", default_value_t = 2.0, value_parser = positive)]
    pub update_coefficient: f64,
    /// mcl: bandwidth of an accelerator's memory: equivalent or simple-sum
    #[arg(long, value_name = "MEMORY", default_value = "equivalent", value_parser = one_of(&MEMORIES))]
    pub memory: MemoryBandwidth,
    /// Charge all layers that the run uses (all), or a rank's memory and the layer that joins all ranks (ends); by default what
    /// the choices of the description say, else all
    #[arg(long, value_name = "LAYERS", value_parser = one_of(&LAYERINGS))]
    pub layers: Option<Layering>,
    /// mcl: grid of the ranks inside a layer: square, or primes: row after row where a side would be prime
    #[arg(long, value_name = "GRID", default_value = "square", value_parser = one_of(&INNER_GRIDS))]
    pub inner_grid: InnerGrid,
    /// mcl: N rounded up to a multiple of NB·lcm(P, Q), for reproducing the paper
    #[arg(long)]
    pub round_n: bool,
    /// DGEMM of one rank in GFLOP/s, in place of what the machine file says
    #[arg(long, value_name = "GFLOPS", value_parser = positive)]
    pub rank_gflops: Option<f64>,
    /// Seconds per message of the layers whose latency the machine file does not state
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub alpha: Option<f64>,
    /// Bandwidth between ranks in GB/s, where the machine file states no layer
    #[arg(long, value_name = "GB/S", value_parser = positive)]
    pub link: Option<f64>,
    /// device: fraction of a rank's columns in the right section of the split update, 0 (no split) or more and below 1
    #[arg(long, value_name = "F", value_parser = split)]
    pub split: Option<f64>,
    /// device: panels factored by the threads of the host or on the device; by default on the device where P = 1, as our engine does,
    /// if the machine file says how long that takes and --host-panel-gflops is not given
    #[arg(long, value_name = "PLACE", value_parser = one_of(&FACT_PLACES))]
    pub fact: Option<FactPlace>,
    /// device: panel factorization by the host threads of one device, in GFLOP/s, in place of what the machine file says
    #[arg(long, value_name = "GFLOPS", value_parser = positive)]
    pub host_panel_gflops: Option<f64>,
}

const READINGS: [(&str, LayerExtent); 2] = [("cumulative", LayerExtent::Cumulative), ("printed", LayerExtent::Printed)];
const MEMORIES: [(&str, MemoryBandwidth); 2] =
    [("equivalent", MemoryBandwidth::Equivalent), ("simple-sum", MemoryBandwidth::SimpleSum)];
const LAYERINGS: [(&str, Layering); 2] = [("all", Layering::All), ("ends", Layering::Ends)];
const FACT_PLACES: [(&str, FactPlace); 2] = [("host", FactPlace::Host), ("device", FactPlace::Device)];
const INNER_GRIDS: [(&str, InnerGrid); 2] = [("square", InnerGrid::Square), ("primes", InnerGrid::PrimesKeepGrid)];

impl ChoiceArgs {
    /// The choices as the models take them: flags over what the description was published with.
    pub fn choices(&self, machine: &Machine) -> Choices {
        Choices {
            reading: self.reading,
            update_coefficient: self.update_coefficient,
            memory: self.memory,
            layering: self.layers.or(machine.choices.and_then(|published| published.layers)).unwrap_or_default(),
            inner: self.inner_grid,
            round_n: self.round_n,
            rank_gflops: self.rank_gflops,
            alpha_s: self.alpha,
            link_gbytes_per_s: self.link,
            split: self.split.unwrap_or_default(),
            fact: self.fact,
            host_panel_gflops: self.host_panel_gflops,
        }
    }
}

/// Takes the names of a table.
fn one_of<T: Copy + Send + Sync>(known: &'static [(&'static str, T)]) -> impl TypedValueParser<Value = T> {
    let value = |text: &str| known.iter().find(|(name, _)| *name == text).map(|(_, value)| *value);
    named(known.iter().map(|(name, _)| *name), value)
}

/// Takes HPL's names of a parameter's values.
fn coded<T: Coded + Send + Sync>() -> impl TypedValueParser<Value = T> {
    named(T::ALL.iter().map(|(_, name)| *name), T::from_name)
}

fn named<T: Clone + Send + Sync + 'static>(
    names: impl Iterator<Item = &'static str>,
    value: impl Fn(&str) -> Option<T> + Clone + Send + Sync + 'static,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(move |text| value(&text).ok_or("unknown"))
}

fn swap(text: &str) -> Result<Swap, String> {
    match text {
        "bin-exch" => Ok(Swap::BinExch),
        "long" => Ok(Swap::Long),
        "mix" => Ok(Swap::Mix { threshold: 64 }),
        _ => match text.parse() {
            Ok(threshold) => Ok(Swap::Mix { threshold }),
            Err(_) => Err("give bin-exch, long, mix or a number of columns".to_owned()),
        },
    }
}

fn count(text: &str) -> Result<usize, String> {
    let valid = text.parse::<usize>().ok().filter(|count| (1..=1_000_000_000).contains(count));
    valid.ok_or_else(|| format!("'{text}' is not a whole number from 1 to 1000000000"))
}

fn split(text: &str) -> Result<f64, String> {
    let valid = text.parse::<f64>().ok().filter(|value| (0.0..1.0).contains(value));
    valid.ok_or_else(|| format!("'{text}' is not a number of at least 0 and below 1"))
}

fn svg(path: PathBuf) -> Result<PathBuf, String> {
    let path = super::values::to_write(path)?;
    let is_svg = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("svg"));
    let named = path.with_extension("svg");
    is_svg.then_some(path).ok_or_else(|| format!("pictures are SVG; give {}", named.display()))
}

pub(super) fn positive(text: &str) -> Result<f64, String> {
    let valid = text.parse::<f64>().ok().filter(|value| value.is_finite() && *value > 0.0 && *value < 1e12);
    valid.ok_or_else(|| format!("'{text}' is not a number above 0 and below 1e12"))
}
