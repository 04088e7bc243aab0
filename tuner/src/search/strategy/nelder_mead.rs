//! Nelder and Mead's simplex over the ordered dimensions \[NM\].
//!
//! The simplex (argmin's) moves in the unit cube of the ordered features; leaving the cube is undone by reflection, and each
//! vertex is rounded to the nearest level. It is run twice: on the posterior mean, where steps are free, and on the recorded
//! rates, where the first vertex without a record is what to run next. So it needs no state: the record replays it.

use std::cell::{Cell, RefCell};

use argmin::core::{CostFunction, Executor};
use space::dims::{DimKind, Point, Space};

use super::context::{fits, most_expected, untried};
use super::gp::kernel::unit_positions;
use super::local::{LocalSearch, values};
use super::surrogate::Surrogate;
use super::{Ctx, Proposal, Strategy, bayes};

/// The simplex from the best tried point; its neighbours and local search once the simplex is as small as the noise.
#[derive(Debug, Clone, Copy, Default)]
pub struct NelderMead;

impl Strategy for NelderMead {
    fn name(&self) -> &'static str {
        "nelder-mead"
    }

    fn ask(&self, ctx: &Ctx<'_>) -> Option<Proposal> {
        let surrogate = Surrogate::new(ctx);
        let propose = |point: Point, why: &str| {
            let predicted = Some(surrogate.prediction(&point));
            Proposal { point, repeat_of: None, reference: None, why: why.to_owned(), predicted }
        };
        let Some((start, best)) = bayes::leaders_by(&surrogate, ctx, 1).into_iter().next() else {
            return most_expected(ctx, untried(ctx)).map(|point| propose(point.clone(), "best expected by the model"));
        };
        let values = values(ctx.history);
        let cube = Cube::new(ctx.space, &start);
        let noise = surrogate.noise_sd();

        let seen = RefCell::new(Vec::new());
        cube.search(f64::EPSILON, |point| {
            let mean = surrogate.prediction(point).rate_gflops.ln();
            if !values.contains_key(point) && fits(ctx, point) {
                seen.borrow_mut().push((mean, point.clone()));
            }
            Some(-mean)
        });
        let refined = seen.into_inner().into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((mean, point)) = refined
            && mean > best.rate_gflops.ln()
        {
            return Some(propose(point, "simplex on the posterior mean"));
        }
        // A point that did not pass is worse than all that did, but finite: the simplex computes with it.
        let worst = values.values().copied().filter(|value| value.is_finite()).fold(0.0, f64::min);
        // So is one that does not fit the time left.
        let known = |point: &Point| {
            let no_time = || (!fits(ctx, point)).then_some(f64::NEG_INFINITY);
            values.get(point).copied().or_else(no_time)
        };
        let next = cube.search(noise, |point| known(point).map(|value| -value.max(worst - 1.0)));
        match next {
            Some(point) => Some(propose(point, "simplex on the runs")),
            None => LocalSearch.ask(ctx),
        }
    }
}

/// The ordered dimensions around a point.
struct Cube<'a> {
    space: &'a dyn Space,
    start: Point,
    /// Dimension and positions of its levels in 0..1.
    axes: Vec<(usize, Vec<f64>)>,
}

/// Length of the first simplex along each axis.
const FIRST_STEP: f64 = 0.25;
const ITERATIONS: u64 = 200;

impl<'a> Cube<'a> {
    fn new(space: &'a dyn Space, start: &Point) -> Self {
        let dims = space.dims().iter().enumerate();
        let axes = dims.filter(|(_, dim)| dim.kind == DimKind::Ordered).map(|(i, dim)| (i, unit_positions(dim)));
        let axes = axes.filter(|(_, positions)| positions.iter().any(|&at| at > 0.0)).collect();
        Self { space, start: start.clone(), axes }
    }

    /// The canonical point nearest to a vertex.
    fn point(&self, vertex: &[f64]) -> Option<Point> {
        let mut point = self.start.clone();
        for ((dim, positions), &at) in self.axes.iter().zip(vertex) {
            let at = fold(at);
            let near = |level: &usize| (positions[*level] - at).abs();
            let level = (0..positions.len()).min_by(|a, b| near(a).total_cmp(&near(b)))?;
            point.0[*dim] = u16::try_from(level).ok()?;
        }
        self.space.canonical(&point)
    }

    fn first_simplex(&self) -> Vec<Vec<f64>> {
        let origin: Vec<f64> =
            self.axes.iter().map(|(dim, positions)| positions[usize::from(self.start.0[*dim])]).collect();
        let moved = |axis: usize| {
            // At least as far as the next level, towards the farther wall.
            let (at, positions) = (origin[axis], &self.axes[axis].1);
            let inward = if at > 0.5 { -1.0 } else { 1.0 };
            let gaps = positions.iter().map(|level| (level - at) * inward).filter(|gap| *gap > 0.0);
            let mut vertex = origin.clone();
            vertex[axis] += inward * gaps.fold(f64::INFINITY, f64::min).clamp(FIRST_STEP, 1.0);
            vertex
        };
        std::iter::once(origin.clone()).chain((0..origin.len()).map(moved)).collect()
    }

    /// Minimises the `known` costs until the costs of the vertices agree within `floor`, or until a point has none: that is the answer.
    fn search(&self, floor: f64, known: impl Fn(&Point) -> Option<f64>) -> Option<Point> {
        let simplex = self.first_simplex();
        let problem = Replay { cube: self, known, unknown: Cell::new(None) };
        // argmin panics when the first simplex has no cost.
        let start_is_known = simplex.iter().all(|vertex| (&problem).cost(vertex).is_ok());
        if start_is_known
            && simplex.len() > 1
            && let Ok(solver) = argmin::solver::neldermead::NelderMead::new(simplex).with_sd_tolerance(floor)
        {
            // An error is an unknown point, which the problem keeps.
            let _stopped =
                Executor::new(&problem, solver).configure(|state| state.max_iters(ITERATIONS)).ctrlc(false).run();
        }
        problem.unknown.into_inner()
    }
}

/// Reflects a coordinate at the walls 0 and 1 until it is between them.
fn fold(at: f64) -> f64 {
    let round = at.rem_euclid(2.0);
    if round > 1.0 { 2.0 - round } else { round }
}

struct Replay<'a, F> {
    cube: &'a Cube<'a>,
    known: F,
    /// The first point that has no cost.
    unknown: Cell<Option<Point>>,
}

/// The simplex reached a point without a record.
#[derive(Debug, thiserror::Error)]
#[error("no run recorded at this vertex")]
struct Unrecorded;

impl<F: Fn(&Point) -> Option<f64>> CostFunction for &Replay<'_, F> {
    type Param = Vec<f64>;
    type Output = f64;

    fn cost(&self, vertex: &Self::Param) -> Result<f64, argmin::core::Error> {
        // The rules forbid a vertex that is no point.
        let Some(point) = self.cube.point(vertex) else { return Ok(f64::INFINITY) };
        (self.known)(&point).ok_or_else(|| {
            self.unknown.set(Some(point));
            Unrecorded.into()
        })
    }
}

#[cfg(test)]
mod tests {
    use space::listed::Listed;

    use super::super::testing::ordered;
    use super::*;

    #[test]
    fn folding_keeps_the_cube() {
        for (at, inside) in [(0.3, 0.3), (1.25, 0.75), (-0.25, 0.25), (2.5, 0.5), (-1.5, 0.5)] {
            assert!((fold(at) - inside).abs() < 1e-12, "{at}");
        }
    }

    #[test]
    fn finds_the_top_of_a_hill_beside_a_wall() {
        let axis: Vec<f64> = (0..40).map(f64::from).collect();
        let space = Listed::product(vec![ordered("nb", &axis), ordered("grid", &axis)], |_| true);
        let cube = Cube::new(&space, &Point(vec![3, 35]));
        let best = RefCell::new((f64::INFINITY, Point(vec![])));
        let unknown = cube.search(1e-9, |point| {
            let (x, y) = (f64::from(point.0[0]) - 38.0, f64::from(point.0[1]) - 12.0);
            let cost = x * x + 0.5 * y * y + 0.3 * x * y;
            if cost < best.borrow().0 {
                *best.borrow_mut() = (cost, point.clone());
            }
            Some(cost)
        });
        assert_eq!(unknown, None);
        assert!(best.borrow().0 <= 4.0, "{best:?}");
    }
}
