//! What a session needs to know before its first trial: the machine's rates, the target N, the domain.

use objectives::predict::Predictor;
use objectives::real::Extent;
use space::Candidate;
use space::domain::{DomainError, DomainSpec, Limits};
use space::machine::{Machine, Node};

use crate::exit::bad_input;
use crate::record::now::human;
use crate::search::budget::Budget;
use crate::search::cost;
use crate::search::near::nearest;
use crate::session::engine::{Engine, ROUND_TO};

/// Smallest N that is chosen; below it a run measures its own overhead.
pub const SMALLEST_N: usize = 256;

/// Windows are taken where they allow an order this much larger than whole runs.
const WORTH_WINDOWS: f64 = 1.25;

/// A whole run may take this part of the budget before windows take its place at an order that the user chose.
const DEAR: f64 = 1.0 / 12.0;

/// Trials that a search by windows needs at least.
const FEWEST: f64 = 8.0;

/// The target order of a search and what limits it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Order N.
    pub n: usize,
    /// The largest order that memory allows; `None` where nothing says how much there is.
    pub n_memory: Option<usize>,
    /// Whether the budget, rather than memory or the user, limits N.
    pub limited_by_budget: bool,
    /// Whether the search goes by whole runs or by windows.
    pub extent: Extent,
}

/// Why N is what it is, in words: `fixed` by the user, limited by the budget, or by the memory.
pub fn limit(fixed: bool, limited_by_budget: bool, n_memory: Option<usize>) -> String {
    match (fixed, limited_by_budget, n_memory) {
        (true, ..) => "as asked".to_owned(),
        (_, true, Some(n)) => format!("limited by the budget; memory allows N = {n}"),
        _ => "the largest that memory allows".to_owned(),
    }
}

/// Memory that runs may fill: what is available less what is kept for the system, in bytes; none where the
/// description does not say.
pub fn usable_bytes(machine: &Machine) -> u64 {
    let usable = |node: &Node| node.memory_bytes.saturating_sub(node.reserved_bytes).saturating_mul(node.count as u64);
    machine.nodes.iter().map(usable).fold(0, u64::saturating_add)
}

/// The largest order whose matrix and workspace fit, [`Engine::largest_order`].
pub fn largest_safe_n(spec: &DomainSpec, engine: &Engine) -> usize {
    // Those of one node share its memory, also where each is named.
    let most_threads = engine.mpi_job().and_then(|job| job.most_threads);
    let apart = most_threads.is_some_and(|most| most < spec.cores);
    let memory_bytes = (spec.memory_bytes as f64 * spec.unequal.fillable(apart)) as u64;
    // Of ranks that are searched those of one thread each need the most.
    let threads = spec.threads.or(spec.ranks.map(|ranks| spec.cores / ranks.max(1))).unwrap_or(1);
    engine.largest_order(memory_bytes, spec.ranks.unwrap_or(spec.cores), threads)
}

/// [`largest_safe_n`], and no larger than what fits of the candidate within `limits` that is nearest to the usual one: the NB, grid, ranks or
/// DEPTH that they leave may take more memory. Limits that leave no candidate change nothing here.
pub fn largest_n_within(spec: &DomainSpec, engine: &Engine, limits: &Limits) -> usize {
    let most = largest_safe_n(spec, engine);
    if limits.is_empty() {
        return most;
    }
    // A quarter of the memory holds nearly all that the limits leave.
    let (domain, usual) = match engine.domain_within(&DomainSpec { n: most / 2, ..spec.clone() }, limits) {
        Ok(found) => found,
        Err(DomainError::Memory { largest_n, .. }) => return most.min(largest_n),
        Err(_) => return most,
    };
    let Some(point) = nearest(domain.as_ref(), &usual) else { return most };
    // Weights as measured, for which `most` leaves room.
    let near = domain.candidate(&domain.balanced(&point));
    largest_that(|n| domain.has_memory_for(&near.at_n(n)), 0, most)
}

/// The largest order from `least` to `most` that `fits`, as all smaller ones do; `least` when none does. It is found to [`ROUND_TO`].
fn largest_that(fits: impl Fn(usize) -> bool, least: usize, most: usize) -> usize {
    if fits(most) {
        return most;
    }
    let (mut low, mut high) = (least.min(most), most);
    while high - low > ROUND_TO {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// What a search costs at any order, by the usual candidate: it runs first, and the best is seldom far from it, while the
/// fastest of a hundred thousand predictions is the one that errs most.
pub struct SearchCosts<'a> {
    predictor: &'a Predictor,
    usual: Candidate,
}

impl<'a> SearchCosts<'a> {
    /// The costs of `engine` on the machine of `spec`; `spec.n` is not read.
    ///
    /// # Errors
    /// [`DomainError`] when no candidate fits the machine at all.
    pub fn new(spec: &DomainSpec, engine: &Engine, predictor: &'a Predictor) -> Result<Self, DomainError> {
        let largest = largest_safe_n(spec, engine);
        let spec = DomainSpec { n: largest.clamp(SMALLEST_N, 8192), ..spec.clone() };
        // Where not even the smallest N fits, the domain says what it needs and what there is.
        let usual = if largest < SMALLEST_N { engine.domain(&spec)?.1 } else { engine.usual(&spec)? };
        Ok(Self { predictor, usual })
    }

    /// Expected wall-clock seconds of one trial at order `n`.
    pub fn trial_s(&self, n: usize, extent: Extent) -> f64 {
        cost::model_s(self.predictor, &self.usual.at_n(n), extent)
    }

    /// The largest order up to `most` at which a trial takes at most `limit_s`; [`SMALLEST_N`] when none does.
    fn largest(&self, most: usize, limit_s: f64, extent: Extent) -> usize {
        largest_that(|n| self.trial_s(n, extent) <= limit_s, SMALLEST_N, most)
    }
}

/// [`choose_target`] where nothing was chosen before; an N of the user is checked first.
///
/// # Errors
/// What does not fit, and the way out.
pub fn target(
    engine: &Engine,
    (spec, limits): (&DomainSpec, &Limits),
    predictor: &Predictor,
    budget: &Budget,
    n: Option<usize>,
) -> anyhow::Result<Target> {
    if let Some(n) = n {
        // Refuses what leaves no candidate.
        engine.check_fits(&DomainSpec { n, ..spec.clone() }).map_err(bad_input)?;
    }
    let costs = SearchCosts::new(spec, engine, predictor).map_err(bad_input)?;
    choose_target(engine, (spec, limits), &costs, budget, n).map_err(bad_input)
}

/// Chooses N, and whether the search goes by whole runs or by windows of them: the largest N of [`largest_n_within`] whose trial takes
/// at most `budget.run_s()`. Windows are for our engine alone. An N that the user chose is kept.
///
/// # Errors
/// What does not fit, and the way out.
pub fn choose_target(
    engine: &Engine,
    (spec, limits): (&DomainSpec, &Limits),
    costs: &SearchCosts<'_>,
    budget: &Budget,
    n: Option<usize>,
) -> Result<Target, String> {
    let ours = engine.is_ours();
    let most = largest_n_within(spec, engine, limits);
    let n_memory = (spec.memory_bytes < u64::MAX).then_some(most);
    let Some(n) = n else {
        if most == 0 {
            return Err(format!(
                "{} bytes of memory for HPL hold no run with NB up to {}; free memory, give --n, or correct memory_bytes of the \
                 machine description",
                spec.memory_bytes,
                engine.largest_nb()
            ));
        }
        let whole = largest_rounded(costs, most, budget.run_s(), Extent::Whole);
        let windows = if ours { largest_rounded(costs, most, budget.run_s(), Extent::Windows) } else { whole };
        let far = windows as f64 >= WORTH_WINDOWS * whole as f64;
        let (n, extent) = if far { (windows, Extent::Windows) } else { (whole, Extent::Whole) };
        return Ok(Target { n, n_memory, limited_by_budget: n < rounded(most), extent });
    };
    let target = |extent| Target { n, n_memory, limited_by_budget: false, extent };
    let [run_s, windows_s] = [Extent::Whole, Extent::Windows].map(|extent| costs.trial_s(n, extent));
    let enough = ours && FEWEST * windows_s <= budget.left_s();
    if run_s <= DEAR * budget.total_s() || (!enough && run_s <= budget.left_s()) {
        return Ok(target(Extent::Whole));
    }
    if enough {
        return Ok(target(Extent::Windows));
    }
    Err(format!(
        "one run at N={n} is predicted to take {}, {} of the budget are left; lower --n or raise --budget",
        human(run_s),
        human(budget.left_s())
    ))
}

fn largest_rounded(costs: &SearchCosts<'_>, most: usize, limit_s: f64, extent: Extent) -> usize {
    rounded(costs.largest(most, limit_s, extent))
}

/// `n` as a multiple that customary NB divide, where it is no smaller than that.
pub(crate) fn rounded(n: usize) -> usize {
    if n > ROUND_TO { n / ROUND_TO * ROUND_TO } else { n }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::search::schedule::tests::{predictor, spec};

    fn chosen(budget_s: f64, ours: bool, n: Option<usize>) -> Result<Target, String> {
        let (predictor, spec) = (predictor(), spec());
        let engine = Engine::chosen((!ours).then_some("netlib"), None, None).unwrap();
        let costs = SearchCosts::new(&spec, &Engine::Ours, &predictor).unwrap();
        let budget = Budget::new(Instant::now(), budget_s, 0.0);
        choose_target(&engine, (&spec, &Limits::default()), &costs, &budget, n)
    }

    #[test]
    fn the_budget_chooses_between_whole_runs_and_windows() {
        let short = chosen(120.0, true, None).unwrap();
        assert_eq!((short.extent, short.limited_by_budget), (Extent::Windows, true));
        let foreign = chosen(120.0, false, None).unwrap();
        assert_eq!(foreign.extent, Extent::Whole);
        assert!(short.n as f64 >= WORTH_WINDOWS * foreign.n as f64, "{} {}", short.n, foreign.n);
        // In a month every run at the largest N fits.
        let long = chosen(3e6, true, None).unwrap();
        assert_eq!(
            (long.extent, long.limited_by_budget, long.n),
            (Extent::Whole, false, rounded(long.n_memory.unwrap()))
        );
    }

    #[test]
    fn memory_for_no_run_is_named() {
        let (predictor, spec) = (predictor(), DomainSpec { memory_bytes: 20 << 20, ..spec() });
        let costs = SearchCosts::new(&spec, &Engine::Ours, &predictor).unwrap();
        let budget = Budget::new(Instant::now(), 120.0, 0.0);
        let within = (&spec, &Limits::default());
        let message = choose_target(&Engine::Ours, within, &costs, &budget, None).unwrap_err();
        assert!(message.contains("20971520 bytes of memory") && message.contains("memory_bytes"), "{message}");
    }

    /// The largest N left room for NB = 512 on the squarest grid alone: a session with a larger one was refused after its calibration.
    #[test]
    fn n_leaves_room_for_what_the_limits_leave() {
        let spec = DomainSpec { cores: 16, ..spec() };
        let free = largest_safe_n(&spec, &Engine::Ours);
        let within = |text: &str| {
            let limits = Limits::parse(text).unwrap();
            (largest_n_within(&spec, &Engine::Ours, &limits), limits)
        };
        for text in ["nb = 2048", "grid = '1:16'\nnb = [192, 256]", "depth = 6\nnb = 512", "nb = 6000"] {
            let (n, limits) = within(text);
            assert!(n > 0 && n < free, "{text}: {n} of {free}");
            Engine::Ours.domain_within(&DomainSpec { n: rounded(n), ..spec.clone() }, &limits).unwrap();
        }
        for text in ["", "nb = [192, 2048]", "nb = 128", "pfact = 'left'"] {
            assert_eq!(within(text).0, free, "{text}");
        }
    }

    #[test]
    fn an_order_that_the_user_chose_is_kept_or_refused() {
        assert_eq!(chosen(120.0, true, Some(4000)).unwrap().extent, Extent::Whole);
        let large = chosen(120.0, true, Some(16_000)).unwrap();
        assert_eq!((large.n, large.extent), (16_000, Extent::Windows));
        // Another engine has no windows: a run that just fits is made, one that does not is refused.
        assert_eq!(chosen(120.0, false, Some(14_000)).unwrap().extent, Extent::Whole);
        for ours in [true, false] {
            let message = chosen(30.0, ours, Some(32_000)).unwrap_err();
            assert!(message.contains("lower --n or raise --budget"), "{message}");
        }
    }
}
