//! What is expected of each point before it is run.
//!
//! The prior's log rate. Where there is no prior, all points being expected alike, the middle of an ordered dimension is
//! expected to be better than its ends: who chose the range meant to enclose the best value. That is a weak belief: a
//! model is trusted more (see [`super::surrogate`]), and runs that contradict it end it.

use space::dims::{Dim, DimKind, Point};

use super::context::finite;
use super::gp::kernel::unit_positions;
use super::warp::USUAL_LOSS;
use super::{Ctx, Prior};

/// Expected log rates; those of a quadratic prior have its maximum at 0.
pub(crate) struct Expected<'a> {
    prior: &'a dyn Prior,
    /// Positions in 0..1 of each ordered dimension; empty where there is a prior.
    bowl: Vec<Option<Vec<f64>>>,
    /// Of all points of the space, in its order.
    pub(crate) all: Vec<f64>,
    /// The highest of them.
    pub(crate) top: f64,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(ctx: &'a Ctx<'a>, prior: &'a dyn Prior) -> Self {
        let prior_logs: Vec<f64> = prior.log_rates(ctx.space.points()).into_iter().map(finite).collect();
        let is_flat = prior_logs.windows(2).all(|pair| pair[0] == pair[1]);
        let positions = |dim: &Dim| (dim.kind == DimKind::Ordered).then(|| unit_positions(dim));
        let bowl = if is_flat { ctx.space.dims().iter().map(positions).collect() } else { Vec::new() };
        let mut expected = Self { prior, bowl, all: prior_logs, top: 0.0 };
        let depths: Vec<f64> = ctx.space.points().iter().map(|point| expected.depth(point)).collect();
        expected.all.iter_mut().zip(depths).for_each(|(log, depth)| *log -= depth);
        expected.top = expected.all.iter().copied().reduce(f64::max).unwrap_or(0.0);
        expected
    }

    /// Whether it is a guess by position, without a prior.
    pub(crate) fn is_guess(&self) -> bool {
        !self.bowl.is_empty()
    }

    /// The expected log rate of a point, which need not be of the space.
    pub(crate) fn log_rate(&self, point: &Point) -> f64 {
        finite(self.prior.log_rate(point)) - self.depth(point)
    }

    fn depth(&self, point: &Point) -> f64 {
        let end = |positions: &[f64], level: u16| {
            positions.get(usize::from(level)).map_or(1.0, |at| (2.0 * at - 1.0).powi(2))
        };
        let dims = self.bowl.iter().zip(&point.0);
        dims.map(|(positions, &level)| positions.as_ref().map_or(0.0, |positions| USUAL_LOSS * end(positions, level)))
            .sum()
    }
}
