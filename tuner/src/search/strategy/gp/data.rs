//! What was observed: one mean per distinct point.

use std::cmp::Ordering;
use std::collections::HashMap;

use space::dims::Point;

/// Observations, repeats of a point gathered in their mean.
///
/// Equal noise makes the mean and the count of repeats sufficient, together with the sum of squares
/// within the points, which only the noise depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    /// Distinct points, in the order of their first observation.
    pub(crate) points: Vec<Point>,
    /// Mean observation of each.
    pub(crate) y: Vec<f64>,
    /// Number of observations of each.
    pub(crate) count: Vec<f64>,
    /// Value of the linear basis at each.
    pub(crate) basis: Vec<f64>,
    /// Number of changes of the machine's speed before each.
    pub(crate) changes: Vec<usize>,
    /// Sum over all observations of the squared distance to the mean of their point.
    pub(crate) within: f64,
}

impl Data {
    /// Gathers (point, y); `basis` gives the value of the linear basis of a point.
    pub(crate) fn new<'a>(observations: impl Iterator<Item = (&'a Point, f64)>, basis: impl Fn(&Point) -> f64) -> Self {
        Self::in_parts(observations.map(|(point, y)| (point, y, 0)), basis)
    }

    /// Gathers (point, y, number of changes before): what was seen of a point before and after a change is not one mean.
    pub(crate) fn in_parts<'a>(
        observations: impl Iterator<Item = (&'a Point, f64, usize)>,
        basis: impl Fn(&Point) -> f64,
    ) -> Self {
        let mut data = Self::default();
        let mut index: HashMap<(&Point, usize), usize> = HashMap::new();
        for (point, y, changes) in observations {
            let i = *index.entry((point, changes)).or_insert_with(|| {
                data.points.push(point.clone());
                data.basis.push(basis(point));
                data.changes.push(changes);
                data.y.push(0.0);
                data.count.push(0.0);
                data.points.len() - 1
            });
            // Welford's update of mean and sum of squares.
            data.count[i] += 1.0;
            let before = y - data.y[i];
            data.y[i] += before / data.count[i];
            data.within += before * (y - data.y[i]);
        }
        data
    }

    /// Each observation on its own, in their order.
    pub(crate) fn single<'a>(
        observations: impl Iterator<Item = (&'a Point, f64, usize)>,
        basis: impl Fn(&Point) -> f64,
    ) -> Self {
        let mut data = Self::default();
        for (point, y, changes) in observations {
            data.points.push(point.clone());
            data.basis.push(basis(point));
            data.y.push(y);
            data.count.push(1.0);
            data.changes.push(changes);
        }
        data
    }

    /// Number of distinct points.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Number of observations beyond the first of each point.
    pub(crate) fn repeats(&self) -> f64 {
        self.count.iter().map(|count| count - 1.0).sum()
    }

    /// At most `limit` points: the best half by y, the rest spread over the others. The sum of squares within points is kept
    /// in proportion to the repeats.
    pub(crate) fn thinned(self, limit: usize) -> Self {
        self.kept(limit, |a, b| b.total_cmp(&a))
    }

    /// The same with the worst half by y.
    pub(crate) fn thinned_to_the_worst(self, limit: usize) -> Self {
        self.kept(limit, |a, b| a.total_cmp(&b))
    }

    /// At most `limit` points: half of them the first by y in this order, the rest spread over the others.
    fn kept(self, limit: usize, by: impl Fn(f64, f64) -> Ordering) -> Self {
        if self.len() <= limit {
            return self;
        }
        let mut order: Vec<usize> = (0..self.len()).collect();
        order.sort_by(|&i, &j| by(self.y[i], self.y[j]).then(i.cmp(&j)));
        let (first, others) = order.split_at(limit / 2);
        let spread = limit - first.len();
        let kept = first.iter().copied().chain((0..spread).map(|k| others[k * others.len() / spread]));
        let mut thin = Self::default();
        for i in kept {
            thin.points.push(self.points[i].clone());
            thin.y.push(self.y[i]);
            thin.count.push(self.count[i]);
            thin.basis.push(self.basis[i]);
            thin.changes.push(self.changes[i]);
        }
        thin.within = if self.within > 0.0 { self.within * thin.repeats() / self.repeats() } else { 0.0 };
        thin
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_gathered() {
        let (a, b) = (Point(vec![0]), Point(vec![1]));
        let observations = [(&a, 1.0), (&b, 5.0), (&a, 3.0)];
        let data = Data::new(observations.into_iter(), |point| f64::from(point.0[0]));
        assert_eq!(data.y, [2.0, 5.0]);
        assert_eq!(data.count, [2.0, 1.0]);
        assert_eq!(data.basis, [0.0, 1.0]);
        assert!((data.within - 2.0).abs() < 1e-12);
    }

    #[test]
    fn thinning_keeps_the_best_and_distinct_points() {
        let points: Vec<Point> = (0..300).map(|i| Point(vec![i])).collect();
        let data = Data::new(points.iter().map(|point| (point, f64::from(point.0[0]))), |_| 0.0);
        let worst = data.clone().thinned_to_the_worst(64);
        assert_eq!((worst.len(), &worst.points[0]), (64, &Point(vec![0])));
        let mut thin = data.thinned(64);
        assert_eq!(thin.len(), 64);
        assert_eq!(thin.points[0], Point(vec![299]));
        thin.points.sort();
        thin.points.dedup();
        assert_eq!(thin.len(), 64);
    }
}
