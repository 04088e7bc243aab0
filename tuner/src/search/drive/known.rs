//! What is known of the rows that were looked at before, so that the next look asks neither space nor model for each of them again.

use std::collections::HashMap;

use objectives::predict::Predictor;
use space::Candidates;
use space::dims::Point;

use crate::record::{Finished, Objective};
use crate::search::cost::{CostEstimate, ModelledTime};
use crate::search::history::{History, point_of};
use crate::search::model::SessionModel;

/// The points of the rows of a session and the times by its model, in the order of the rows.
#[derive(Debug, Default)]
pub struct KnownRows {
    /// Their places among the points of the space, without memory of their own: [`NO_PLACE`] where they have none.
    places: Vec<u32>,
    /// Points that are not among those of the space, by the row.
    others: HashMap<usize, Point>,
    modelled: Vec<ModelledTime>,
    /// [`SessionModel::learned`] of the model that says so.
    learned: usize,
}

/// The place of what is not among the points of the space.
const NO_PLACE: u32 = u32::MAX;

/// The place of `point` among the points of the space.
fn place_of(point: &Point, domain: &dyn Candidates) -> Option<u32> {
    let points = domain.points();
    // Mostly they are in order; those of a recorded table may not be.
    let place = points.binary_search(point).ok();
    let place = place.or_else(|| points.iter().position(|of_space| of_space == point));
    place.and_then(|place| u32::try_from(place).ok()).filter(|place| *place != NO_PLACE)
}

impl KnownRows {
    /// Looks at the rows that are new, and at the times of all where the model has learned since.
    pub(super) fn look<R: Finished>(&mut self, rows: &[R], domain: &dyn Candidates, model: &SessionModel<'_>) {
        for (at, row) in rows.iter().enumerate().skip(self.places.len()) {
            let point = point_of(row, domain);
            let place = point.as_ref().and_then(|point| place_of(point, domain));
            self.places.push(place.unwrap_or(NO_PLACE));
            self.others.extend(point.filter(|_| place.is_none()).map(|point| (at, point)));
        }
        if self.learned != model.learned() {
            self.learned = model.learned();
            self.modelled.clear();
        }
        self.modelled.extend(rows[self.modelled.len()..].iter().map(|row| ModelledTime::new(row, &model.predictor)));
    }

    fn point(&self, at: usize, domain: &dyn Candidates) -> Option<Point> {
        domain.points().get(self.places[at] as usize).or_else(|| self.others.get(&at)).cloned()
    }

    /// As [`History::from_rows`], of the rows that were looked at.
    pub(super) fn history<R: Finished>(&self, rows: &[R], domain: &dyn Candidates, objective: Objective) -> History {
        History::at_points(rows, |at| self.point(at, domain), domain.spec().n, objective)
    }

    /// As [`CostEstimate::new`], of the rows that were looked at.
    pub(super) fn cost<'a, R: Finished>(&self, rows: &[R], predictor: &'a Predictor) -> CostEstimate<'a> {
        CostEstimate::of_modelled(rows, &self.modelled, predictor)
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
            let point = point_of(&row_of(0, &domain.candidate(&points[place])), &domain).unwrap();
            assert_eq!(place_of(&point, &domain), Some(place as u32));
        }
    }
}
