//! What is known of the rows that were looked at before, so that the next look asks neither space nor model for each of them again.

use objectives::predict::Predictor;
use space::Candidates;
use space::dims::Point;

use crate::record::{Finished, Objective};
use crate::search::cost::{CostEstimate, modelled_solve_s};
use crate::search::history::{History, point_of};
use crate::search::model::SessionModel;

/// The points of the rows of a session and the times by its model, in the order of the rows.
#[derive(Debug, Default)]
pub struct KnownRows {
    points: Vec<KnownPoint>,
    /// Seconds of factorization and back substitution.
    solve_s: Vec<f64>,
    /// [`SessionModel::learned`] of the model that says so.
    learned: usize,
}

/// The point of a row, without memory of its own where the space has it: small blocks among those of a look would keep their pages.
#[derive(Debug)]
enum KnownPoint {
    None,
    /// Its place among the points of the space.
    At(usize),
    Other(Box<Point>),
}

impl KnownPoint {
    fn of<R: Finished>(row: &R, domain: &dyn Candidates) -> Self {
        let Some(point) = point_of(row, domain) else { return Self::None };
        let points = domain.points();
        // Mostly they are in order; those of a recorded table may not be.
        let place = points.binary_search(&point).ok();
        let place = place.or_else(|| points.iter().position(|of_space| *of_space == point));
        place.map_or_else(|| Self::Other(Box::new(point)), Self::At)
    }

    fn point(&self, domain: &dyn Candidates) -> Option<Point> {
        match self {
            Self::None => None,
            Self::At(place) => Some(domain.points()[*place].clone()),
            Self::Other(point) => Some(Point::clone(point)),
        }
    }
}

impl KnownRows {
    /// Looks at the rows that are new, and at the times of all where the model has learned since.
    pub(super) fn look<R: Finished>(&mut self, rows: &[R], domain: &dyn Candidates, model: &SessionModel<'_>) {
        self.points.extend(rows[self.points.len()..].iter().map(|row| KnownPoint::of(row, domain)));
        if self.learned != model.learned() {
            self.learned = model.learned();
            self.solve_s.clear();
        }
        self.solve_s.extend(rows[self.solve_s.len()..].iter().map(|row| modelled_solve_s(row, &model.predictor)));
    }

    /// As [`History::from_rows`], of the rows that were looked at.
    pub(super) fn history<R: Finished>(&self, rows: &[R], domain: &dyn Candidates, objective: Objective) -> History {
        History::at_points(rows, |at| self.points[at].point(domain), domain.spec().n, objective)
    }

    /// As [`CostEstimate::new`], of the rows that were looked at.
    pub(super) fn cost<'a, R: Finished>(&self, rows: &[R], predictor: &'a Predictor) -> CostEstimate<'a> {
        CostEstimate::of_modelled(rows, &self.solve_s, predictor)
    }
}

#[cfg(test)]
mod tests {
    use space::dims::Space;
    use space::domain::HplDomain;

    use super::*;
    use crate::record::arbitrary::row_of;
    use crate::search::schedule::tests::spec;

    #[test]
    fn the_points_of_a_domain_are_in_order_and_those_of_rows_at_their_places() {
        let domain = HplDomain::new(&spec()).unwrap();
        let points = domain.points();
        assert!(points.is_sorted());
        for place in [0, points.len() / 3, points.len() - 1] {
            let row = row_of(0, &domain.candidate(&points[place]));
            assert!(matches!(KnownPoint::of(&row, &domain), KnownPoint::At(at) if at == place), "{place}");
        }
    }
}
