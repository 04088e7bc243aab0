//! Which run is to be predicted: what the user says over HPL.dat over what the machine's description suggests.

use objectives::scenario::{Placement, Run};
use space::domain::{MAX_PLACES, squarest};
use space::machine::{Machine, Measured};
use space::{Bcast, HplParams, Pmap, Swap};

use crate::exit::bad_input;

/// What a user says of the run; what is left open follows from the machine's description.
#[derive(Debug, Clone, Copy, Default)]
pub struct WantedRun {
    /// The run of a HPL.dat, which the fields below change.
    pub dat: Option<HplParams>,
    /// Nodes that the ranks spread over evenly.
    pub nodes: Option<usize>,
    /// Order N.
    pub n: Option<usize>,
    /// Blocking factor NB.
    pub nb: Option<usize>,
    /// Process rows P.
    pub p: Option<usize>,
    /// Process columns Q.
    pub q: Option<usize>,
    /// Threads of each rank.
    pub threads: Option<usize>,
    /// DEPTH.
    pub depth: Option<usize>,
    /// BCAST.
    pub bcast: Option<Bcast>,
    /// SWAP.
    pub swap: Option<Swap>,
    /// PMAP.
    pub pmap: Option<Pmap>,
}

/// A run to be predicted.
#[derive(Debug, Clone, Copy)]
pub struct Question {
    /// What HPL.dat would say.
    pub hpl: HplParams,
    /// Nodes; `None` for as few as hold the ranks.
    pub nodes: Option<usize>,
    /// Threads of each rank.
    pub threads: usize,
}

impl Question {
    /// The run that is wanted.
    ///
    /// # Errors
    /// Sizes that fit no grid, or a size that neither flags nor
    /// description give.
    pub fn new(wanted: &WantedRun, machine: &Machine) -> anyhow::Result<Self> {
        let dat = wanted.dat;
        let threads = wanted.threads.unwrap_or(1);
        let (p, q) = grid(wanted, machine, dat.as_ref(), threads)?;
        if p.checked_mul(q).is_none_or(|ranks| ranks > MAX_PLACES) {
            return Err(bad_input(format!(
                "P×Q = {p}×{q} is more than {MAX_PLACES} ranks; lower --p, --q or --nodes, or count and cores of [[node]]"
            )));
        }
        let nodes = wanted.nodes.or_else(|| fewest_nodes(machine, p * q, threads));
        let measured = same_shape(machine, nodes, (p, q));
        let nb = wanted.nb.or(dat.map(|dat| dat.nb)).or(measured.and_then(|run| run.nb)).or_else(|| usual_nb(machine));
        let mut hpl = dat.unwrap_or_else(|| HplParams::baseline(1, p, q));
        (hpl.p, hpl.q, hpl.nb) = (p, q, nb.unwrap_or(hpl.nb));
        let question = Self { hpl, nodes, threads }.with(wanted);
        let n = wanted.n.or(dat.map(|dat| dat.n)).or(measured.and_then(|run| run.n));
        let n = match n.or(question.largest_n(machine)?).or_else(|| question.filled_n(machine)) {
            Some(n) => n,
            None => {
                return Err(bad_input(
                    "no N: the description states neither memory_bytes nor a measured run with n; give --n",
                ));
            }
        };
        Ok(question.at(n))
    }

    /// The run of a measured row; `None` where its N or its ranks are not stated.
    pub fn of_measured(measured: &Measured, nb: Option<usize>, n: Option<usize>) -> Option<Self> {
        let ((p, q), n) = (measured.grid()?, measured.n.or(n)?);
        let mut hpl = HplParams::baseline(n, p, q);
        hpl.nb = measured.nb.or(nb).unwrap_or(hpl.nb);
        Some(Self { hpl, nodes: measured.nodes, threads: 1 })
    }

    /// This run with the threads, DEPTH, BCAST, SWAP and PMAP that are wanted.
    pub fn with(self, wanted: &WantedRun) -> Self {
        let HplParams { depth, bcast, swap, pmap, .. } = self.hpl;
        let hpl = HplParams {
            depth: wanted.depth.unwrap_or(depth),
            bcast: wanted.bcast.unwrap_or(bcast),
            swap: wanted.swap.unwrap_or(swap),
            pmap: wanted.pmap.unwrap_or(pmap),
            ..self.hpl
        };
        Self { hpl, threads: wanted.threads.unwrap_or(self.threads), ..self }
    }

    /// This run at order `n`.
    pub fn at(self, n: usize) -> Self {
        Self { hpl: HplParams { n, ..self.hpl }, ..self }
    }

    /// The run as the closed forms take it.
    pub fn run(&self) -> Run {
        let HplParams { n, nb, p, q, .. } = self.hpl;
        Run { n, nb, p, q, nodes: self.nodes, threads: self.threads }
    }

    /// The largest N, a multiple of NB, that fits the memory; `None` where the description does not state it.
    ///
    /// # Errors
    /// Ranks that do not fit the machine.
    pub fn largest_n(&self, machine: &Machine) -> anyhow::Result<Option<usize>> {
        let smallest = self.at(1).run();
        let placement = Placement::new(machine, &smallest).map_err(bad_input)?;
        let largest = placement.largest_n(smallest.ranks()).map(|n| n / self.hpl.nb * self.hpl.nb);
        Ok(largest.filter(|n| *n > 0))
    }

    /// N with as much matrix per rank as the largest measured run has, a multiple of NB.
    fn filled_n(&self, machine: &Machine) -> Option<usize> {
        let (n, ranks) = machine.measured.iter().filter_map(|run| run.n.zip(run.ranks())).max()?;
        let n = n as f64 * (self.hpl.ranks() as f64 / ranks as f64).sqrt();
        Some((n as usize / self.hpl.nb * self.hpl.nb).max(1))
    }
}

/// As few equal nodes as hold the ranks, where they spread evenly over them.
fn fewest_nodes(machine: &Machine, ranks: usize, threads: usize) -> Option<usize> {
    let [node] = machine.nodes.as_slice() else { return None };
    let nodes = ranks.div_ceil(node.ranks(threads));
    ranks.is_multiple_of(nodes).then_some(nodes)
}

/// NB of the machine's measured runs, where they or the description's choices state one; on devices that of the fastest DGEMM stated.
pub fn usual_nb(machine: &Machine) -> Option<usize> {
    let published = || machine.choices.and_then(|published| published.nb);
    let of_device = || {
        let rates = machine.device.iter().flat_map(|device| &device.dgemm_gflops);
        rates.max_by(|a, b| a[1].total_cmp(&b[1])).map(|[k, _]| *k as usize)
    };
    machine.measured.iter().find_map(|run| run.nb).or_else(published).or_else(of_device)
}

/// The measured run of the largest known N with this grid's ranks, and as many nodes if the user says how many.
fn same_shape(machine: &Machine, nodes: Option<usize>, (p, q): (usize, usize)) -> Option<&Measured> {
    let alike = |run: &&Measured| {
        run.ranks() == Some(p * q) && run.n.is_some() && (nodes.is_none() || run.nodes.is_none() || run.nodes == nodes)
    };
    machine.measured.iter().filter(alike).max_by_key(|run| run.n)
}

/// P and Q: as given; else of as many ranks as the nodes hold, as square as they allow; else those of a measured run.
fn grid(
    wanted: &WantedRun,
    machine: &Machine,
    dat: Option<&HplParams>,
    threads: usize,
) -> anyhow::Result<(usize, usize)> {
    if let (Some(p), Some(q)) = (wanted.p, wanted.q) {
        return Ok((p, q));
    }
    if let Some(dat) = dat {
        return Ok((wanted.p.unwrap_or(dat.p), wanted.q.unwrap_or(dat.q)));
    }
    let ranks = ranks(wanted, machine, threads);
    let ranks = ranks.ok_or_else(|| {
        bad_input("no P×Q: the description has no [[node]] and no measured run with p and q; give --p and --q")
    })?;
    let side = wanted.p.or(wanted.q).unwrap_or(1);
    if !ranks.is_multiple_of(side) {
        return Err(bad_input(format!(
            "{ranks} ranks cannot form a grid with a side of {side}; give --p and --q, or other --nodes"
        )));
    }
    Ok(match (wanted.p, wanted.q) {
        (Some(p), _) => (p, ranks / p),
        (None, Some(q)) => (ranks / q, q),
        (None, None) => {
            let known =
                machine.measured.iter().filter(|run| run.ranks() == Some(ranks)).find_map(|run| run.p.zip(run.q));
            known.unwrap_or_else(|| squarest(ranks))
        }
    })
}

/// Ranks of the nodes asked for, of all by default.
fn ranks(wanted: &WantedRun, machine: &Machine, threads: usize) -> Option<usize> {
    if machine.nodes.is_empty() {
        return machine.measured.iter().filter_map(Measured::ranks).max();
    }
    let mut left = wanted.nodes.unwrap_or(usize::MAX);
    let ranks = machine.nodes.iter().map(|node| {
        let nodes = node.count.min(left);
        left -= nodes;
        nodes.saturating_mul(node.ranks(threads))
    });
    // More nodes than there are: the placement says so.
    let ranks = ranks.fold(0, usize::saturating_add);
    Some(ranks.max(wanted.nodes.unwrap_or(1)))
}
