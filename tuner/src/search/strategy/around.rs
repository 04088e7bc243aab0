//! The points that a context has not tried.

use std::collections::HashSet;

use rand::RngExt;
use space::dims::Point;

use super::{Ctx, rng};

/// All points without a trial, in the order of the space.
pub(crate) fn untried<'a>(ctx: &Ctx<'a>) -> Vec<&'a Point> {
    let tried: HashSet<&Point> = ctx.history.trials.iter().map(|trial| &trial.point).collect();
    ctx.space.points().iter().filter(|point| !tried.contains(point)).collect()
}

/// The point that the prior expects most of; equals are drawn.
pub(crate) fn most_expected<'a>(ctx: &Ctx<'_>, points: Vec<&'a Point>) -> Option<&'a Point> {
    let mut rng = rng(ctx);
    let ranked = points.into_iter().map(|point| (finite(ctx.prior.log_rate(point)), rng.random::<u64>(), point));
    ranked.max_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))).map(|(_, _, point)| point)
}

/// A model may answer NaN or infinity where it knows nothing: no point is expected to be worse.
pub(crate) fn finite(log_rate: f64) -> f64 {
    if log_rate.is_finite() { log_rate } else { -50.0 }
}
