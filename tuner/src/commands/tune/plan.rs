//! What is known before the first trial, and what will be done.

use objectives::real::Extent;
use space::{Candidates, counted};

use crate::earlier;
use crate::record::store::Store;
use crate::search::budget::{Budget, CLOSING_S};
use crate::search::cost::CostEstimate;
use crate::search::model::SessionModel;
use crate::search::model_prior;
use crate::search::progress::Progress;
use crate::search::schedule::{Setup, kept_for_final_s, promotions_s, rounds_s};
use crate::search::strategy::informed::ComparableRuns;
use crate::session::forecast::Forecast;
use crate::session::prepare;
use crate::session::room::SPEED_UNKNOWN;

/// The runs of earlier sessions at their points, where there are such.
pub(super) fn earlier_runs(
    store: &Store,
    domain: &dyn Candidates,
    progress: &Progress,
) -> anyhow::Result<Vec<ComparableRuns>> {
    let mut earlier = earlier::load(store.folder())?;
    let elsewhere = store.elsewhere();
    earlier.extend(elsewhere.iter().filter_map(|row| earlier::read::of_row(row, store.folder().root())));
    if earlier.is_empty() {
        return Ok(Vec::new());
    }
    let session = store.session();
    let here = session.node_names();
    let host = here.as_ref().unwrap_or(&session.host);
    let placed = earlier::place::groups(domain, &earlier, host, &session.engine);
    progress.line(&placed.sentence(earlier.len()));
    Ok(placed.groups)
}

/// Says what will be done before it is done.
pub(super) fn say_plan(
    store: &Store,
    setup: &Setup<'_>,
    model: &SessionModel<'_>,
    budget: &Budget,
    progress: &Progress,
) {
    let (session, prior, predictor) = (store.session(), model.prior.as_ref(), &model.predictor);
    let Setup { domain, baseline, expert, extent, .. } = *setup;
    let n = domain.spec().n;
    let limit = prepare::limit(session.n_fixed, session.n_limited_by_budget, session.n_memory);
    let by = match session.extent {
        Extent::Whole => "each trial is a whole run",
        Extent::Windows => {
            "each trial measures windows of the run and extrapolates to the whole; the final run is whole, at \
        the largest N that fits"
        }
    };
    let kernels = session.kernels.as_ref().map(|kernels| format!("kernels {kernels}"));
    let kernels = kernels.unwrap_or_else(|| session.engine.clone());
    progress.line(&format!("N = {n} ({limit}), {kernels}; {by}"));
    progress.line(&format!(
        "{}, {}",
        counted(domain.points().len(), "candidate"),
        counted(model_prior::distinct(domain, prior), "distinct prediction")
    ));
    if session.unequal.differs() {
        progress.line(&format!("{}: weights near these are searched", session.speeds()));
    }
    if session.notes.iter().any(|note| note == SPEED_UNKNOWN) && store.rows().is_empty() {
        progress.line("plan: the first run shows how long runs take, and how many of them the budget has room for");
        return;
    }
    let cost = CostEstimate::new(store.rows(), predictor);
    let whole_s = cost.at_most(baseline, Extent::Whole);
    let kept_s = match session.extent {
        Extent::Whole => whole_s,
        Extent::Windows => {
            kept_for_final_s([cost.of(baseline, Extent::Whole), whole_s], budget.total_s(), setup.n_is_chosen)
        }
    };
    let forecast = Forecast {
        total_s: budget.total_s(),
        spent_s: budget.spent_s(),
        reserve_s: kept_s + CLOSING_S,
        promotions_s: promotions_s(whole_s, extent, budget.total_s()),
        rounds_s: rounds_s(&cost, (baseline, expert), (extent, setup.pairs_with_usual()), budget.total_s()),
        trial_s: cost.of(baseline, session.extent),
    };
    progress.line(&forecast.sentence());
}
