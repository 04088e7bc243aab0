//! Everything that values are taken from, and what follows from it: when a pack is written, and again when it is verified.

use super::Purpose;
use super::acceptance::Accepted;
use super::facts::Facts;
use super::nodes::{NodeFacts, differ};
use super::peak::{Peak, PeakNodes};
use super::power::{Judged, Power, Statement};
use super::repeats::{Repeats, repeats};
use super::scored::Scored;
use super::site::Site;

/// Everything that values are taken from.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// What it is for.
    pub purpose: Purpose,
    /// The run.
    pub scored: &'a Scored,
    /// This host; `None` where the run was on another one.
    pub facts: Option<&'a Facts>,
    /// Whether the programs that the session names may be asked: they belong to this user, and are on this host.
    pub programs: bool,
    /// The site file.
    pub site: &'a Site,
    /// The readings of a meter.
    pub power: Option<&'a Power>,
    /// The nodes of the run.
    pub nodes: &'a [NodeFacts],
    /// What was promised, in GFLOP/s.
    pub target_gflops: Option<f64>,
}

/// What follows from these.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// Rpeak, or what is missing for it.
    pub peak: Result<Peak, String>,
    /// What people say of the readings.
    pub said: Statement,
    /// The level that they reach.
    pub judged: Judged,
    /// The verdict.
    pub accepted: Accepted,
    /// The repeats.
    pub repeats: Vec<Repeats>,
}

impl Derived {
    /// What follows from `sources`.
    pub fn new(sources: &Sources<'_>) -> Self {
        let Sources { scored, site, facts, .. } = *sources;
        let given = site.number("system.nodes").map(|nodes| nodes as usize);
        let said = Statement::new(site, given.or(scored.nodes()));
        let of = PeakNodes {
            count: scored.nodes(),
            processor: facts.map(|facts| &facts.processor),
            accelerators: facts.and_then(|facts| facts.accelerators.as_ref()).map(Vec::len),
            on_accelerators: !scored.engine.calibrates(),
            differ: differ(sources.nodes, &scored.session.nodes) || differ(&[], &scored.described),
        };
        Self {
            peak: Peak::new(&of, site).and_then(|peak| match site.number("peak.gflops") {
                Some(_) => Ok(peak),
                None => peak.of_score(scored.printed.rate_gflops),
            }),
            judged: Judged::new(sources.power, &said),
            said,
            accepted: Accepted::new(scored.printed.rate_gflops, sources.target_gflops, sources.nodes),
            repeats: repeats(&scored.rows, &scored.row.candidate()),
        }
    }
}
