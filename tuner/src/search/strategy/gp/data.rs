//! What was observed: one mean per distinct point, or each run by itself.

use std::cmp::Ordering;
use std::collections::HashMap;

use space::dims::Point;

/// One run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Observed<'a> {
    pub(crate) point: &'a Point,
    pub(crate) y: f64,
    /// Number of changes of the machine's speed before it.
    pub(crate) changes: usize,
    /// When it was, in the length of a usual run.
    pub(crate) time: f64,
    /// The trial in which it was measured in turn with another one; `None` where it was measured alone.
    pub(crate) pair: Option<usize>,
}

/// Observations, each by itself or repeats of a point gathered in their mean.
///
/// Where the speed does not wander, equal noise makes the mean and the count of repeats sufficient, together with the sum of squares
/// within the points, which only the noise depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Data {
    /// Points, in the order of their first observation.
    pub(crate) points: Vec<Point>,
    /// Mean observation of each.
    pub(crate) y: Vec<f64>,
    /// Number of observations of each.
    pub(crate) count: Vec<f64>,
    /// Value of the linear basis at each.
    pub(crate) basis: Vec<f64>,
    /// Number of changes of the machine's speed before each.
    pub(crate) changes: Vec<usize>,
    /// When each was, in the length of a usual run; of gathered ones the first.
    pub(crate) time: Vec<f64>,
    /// The pair that each is of; `None` for those measured alone, and gathered ones.
    pub(crate) pair: Vec<Option<usize>>,
    /// When the last observation was, in the same unit.
    pub(crate) now: f64,
    /// Sum over all observations of the squared distance to the mean of their point.
    pub(crate) within: f64,
}

impl Data {
    /// Gathers (point, y) of which no time is known; `basis` gives the value of the linear basis of a point.
    pub(crate) fn new<'a>(observations: impl Iterator<Item = (&'a Point, f64)>, basis: impl Fn(&Point) -> f64) -> Self {
        Self::gathered(observations.map(|(point, y)| Observed { point, y, changes: 0, time: 0.0, pair: None }), basis)
    }

    /// The mean of each point: what was seen of a point before and after a change is not one mean.
    pub(crate) fn gathered<'a>(runs: impl Iterator<Item = Observed<'a>>, basis: impl Fn(&Point) -> f64) -> Self {
        let mut data = Self::default();
        let mut index: HashMap<(&Point, usize), usize> = HashMap::new();
        for run in runs {
            data.now = data.now.max(run.time);
            let i = *index.entry((run.point, run.changes)).or_insert_with(|| {
                data.push(Observed { y: 0.0, pair: None, ..run }, 0.0, basis(run.point));
                data.points.len() - 1
            });
            // Welford's update of mean and sum of squares.
            data.count[i] += 1.0;
            let before = run.y - data.y[i];
            data.y[i] += before / data.count[i];
            data.within += before * (run.y - data.y[i]);
        }
        data
    }

    /// Each observation on its own, in their order.
    pub(crate) fn single<'a>(runs: impl Iterator<Item = Observed<'a>>, basis: impl Fn(&Point) -> f64) -> Self {
        let mut data = Self::default();
        runs.for_each(|run| data.push(run, 1.0, basis(run.point)));
        data
    }

    fn push(&mut self, Observed { point, y, changes, time, pair }: Observed<'_>, count: f64, basis: f64) {
        self.points.push(point.clone());
        self.y.push(y);
        self.count.push(count);
        self.basis.push(basis);
        self.changes.push(changes);
        self.time.push(time);
        self.pair.push(pair);
        self.now = self.now.max(time);
    }

    /// Number of means.
    pub(crate) fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether these two were measured in turn.
    pub(crate) fn is_pair(&self, a: usize, b: usize) -> bool {
        self.pair[a].is_some() && self.pair[a] == self.pair[b]
    }

    /// Number of observations beyond the first of each point.
    pub(crate) fn repeats(&self) -> f64 {
        self.count.iter().map(|count| count - 1.0).sum()
    }

    /// At most `limit` observations, of points of which the best half by their means, the rest spread over the others. The sum of squares
    /// within points is kept in proportion to the repeats.
    pub(crate) fn thinned(self, limit: usize) -> Self {
        self.kept(limit, |_| true, |a, b| b.total_cmp(&a))
    }

    /// The same, where points that cannot `lead` come after all others.
    pub(crate) fn thinned_for(self, limit: usize, lead: impl Fn(&Point) -> bool) -> Self {
        self.kept(limit, lead, |a, b| b.total_cmp(&a))
    }

    /// The same with the worst half.
    pub(crate) fn thinned_to_the_worst(self, limit: usize) -> Self {
        self.kept(limit, |_| true, |a, b| a.total_cmp(&b))
    }

    /// At most `limit` observations, spread over all of at most so many points: half of them the first, those that can `lead` before the
    /// others and by their means in this order, the rest spread over the others.
    fn kept(self, limit: usize, lead: impl Fn(&Point) -> bool, by: impl Fn(f64, f64) -> Ordering) -> Self {
        if self.len() <= limit {
            return self;
        }
        let alike = self.alike();
        let mean = |group: &[usize]| group.iter().map(|&i| self.y[i]).sum::<f64>() / group.len() as f64;
        let means: Vec<f64> = alike.iter().map(|group| mean(group)).collect();
        let follows: Vec<bool> = alike.iter().map(|group| !lead(&self.points[group[0]])).collect();
        let mut order: Vec<usize> = (0..alike.len()).collect();
        order.sort_by(|&i, &j| follows[i].cmp(&follows[j]).then(by(means[i], means[j])).then(i.cmp(&j)));
        let (first, others) = order.split_at((limit / 2).min(order.len()));
        let spread = (limit - first.len()).min(others.len());
        let kept = first.iter().copied().chain((0..spread).map(|k| others[k * others.len() / spread]));
        let rows: Vec<usize> = kept.flat_map(|group| alike[group].iter().copied()).collect();
        let count = rows.len().min(limit);
        let mut thin = Self { now: self.now, ..Self::default() };
        for i in (0..count).map(|k| rows[k * rows.len() / count]) {
            let (changes, time, pair) = (self.changes[i], self.time[i], self.pair[i]);
            let run = Observed { point: &self.points[i], y: self.y[i], changes, time, pair };
            thin.push(run, self.count[i], self.basis[i]);
        }
        thin.within = if self.within > 0.0 { self.within * thin.repeats() / self.repeats() } else { 0.0 };
        thin
    }

    /// The observations of each point and time between changes, in the order of the first.
    pub(crate) fn alike(&self) -> Vec<Vec<usize>> {
        let mut alike: Vec<Vec<usize>> = Vec::new();
        let mut index: HashMap<(&Point, usize), usize> = HashMap::new();
        for (i, place) in self.points.iter().zip(self.changes.iter().copied()).enumerate() {
            let group = *index.entry(place).or_insert_with(|| {
                alike.push(Vec::new());
                alike.len() - 1
            });
            alike[group].push(i);
        }
        alike
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
        let leads = data.clone().thinned_for(64, |point| point.0[0] < 200);
        assert_eq!((leads.len(), &leads.points[0]), (64, &Point(vec![199])));
        assert!((168..200).all(|i| leads.points.contains(&Point(vec![i]))));
        assert!(leads.points.iter().any(|point| point.0[0] > 280), "the others are not forgotten");
        let mut thin = data.thinned(64);
        assert_eq!(thin.len(), 64);
        assert_eq!(thin.points[0], Point(vec![299]));
        thin.points.sort();
        thin.points.dedup();
        assert_eq!(thin.len(), 64);
    }
}
