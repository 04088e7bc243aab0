//! A space given by the list of its points: a recorded table, or a product of dimensions with a rule.

use std::collections::HashMap;

use crate::dims::{Dim, Point, Space};

/// A finite space with a list of its points; every listed point is canonical.
#[derive(Debug, Clone)]
pub struct Listed {
    dims: Vec<Dim>,
    points: Vec<Point>,
    index: HashMap<Point, usize>,
}

/// Why a list of points is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListedError {
    /// A point is there twice.
    #[error("points {first} and {second} are the same point")]
    Duplicate {
        /// Index of its first appearance.
        first: usize,
        /// Index of the second.
        second: usize,
    },
    /// A point with a level that its dimension does not have, or with too few or too many levels.
    #[error("point {index} does not fit the dimensions")]
    NoSuchLevel {
        /// Index of the point.
        index: usize,
    },
}

impl Listed {
    /// The space of exactly these points.
    ///
    /// # Errors
    /// [`ListedError`] for a point that is there twice or does not fit `dims`.
    pub fn new(dims: Vec<Dim>, points: Vec<Point>) -> Result<Self, ListedError> {
        let mut index = HashMap::with_capacity(points.len());
        for (at, point) in points.iter().enumerate() {
            let fits = |(level, dim): (&u16, &Dim)| usize::from(*level) < dim.levels.len();
            if point.0.len() != dims.len() || !point.0.iter().zip(&dims).all(fits) {
                return Err(ListedError::NoSuchLevel { index: at });
            }
            if let Some(first) = index.insert(point.clone(), at) {
                return Err(ListedError::Duplicate { first, second: at });
            }
        }
        Ok(Self { dims, points, index })
    }

    /// All combinations of levels that `rule` lets pass, in lexicographic order.
    ///
    /// # Panics
    /// When a dimension has more than 65 535 levels.
    pub fn product(dims: Vec<Dim>, rule: impl Fn(&[u16]) -> bool) -> Self {
        let mut points = vec![Vec::new()];
        for dim in &dims {
            let count = u16::try_from(dim.levels.len()).expect("levels are counted in 16 bits");
            let grow = |head: Vec<u16>| (0..count).map(move |level| [head.clone(), vec![level]].concat());
            points = points.into_iter().flat_map(grow).collect();
        }
        let points = points.into_iter().filter(|point| rule(point)).map(Point).collect();
        Self::new(dims, points).expect("combinations of levels are distinct")
    }

    /// Position of a point in [`Space::points`], `None` when it is not listed.
    pub fn position(&self, point: &Point) -> Option<usize> {
        self.index.get(point).copied()
    }
}

impl Space for Listed {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        self.index.contains_key(point).then(|| point.clone())
    }

    fn points(&self) -> &[Point] {
        &self.points
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dims::{DimKind, Level};

    fn dim(levels: usize) -> Dim {
        let level = |i: usize| Level { label: i.to_string(), feature: i as f64 };
        Dim { name: "nb".into(), kind: DimKind::Ordered, levels: (0..levels).map(level).collect() }
    }

    #[test]
    fn a_product_obeys_its_rule_and_knows_its_points() {
        let space = Listed::product(vec![dim(3), dim(2)], |levels| levels[0] + levels[1] < 3);
        assert_eq!(space.points().len(), 5);
        for (i, point) in space.points().iter().enumerate() {
            assert_eq!(space.position(point), Some(i));
            assert_eq!(space.canonical(point).as_ref(), Some(point));
        }
        assert_eq!(space.canonical(&Point(vec![2, 1])), None);
    }

    #[test]
    fn points_that_are_none_or_come_twice_are_refused() {
        let of = |points: &[&[u16]]| {
            Listed::new(vec![dim(3), dim(2)], points.iter().map(|levels| Point(levels.to_vec())).collect()).err()
        };
        assert_eq!(of(&[&[0, 0], &[1, 0], &[0, 0]]), Some(ListedError::Duplicate { first: 0, second: 2 }));
        assert_eq!(of(&[&[0, 2]]), Some(ListedError::NoSuchLevel { index: 0 }));
        assert_eq!(of(&[&[0]]), Some(ListedError::NoSuchLevel { index: 0 }));
        assert_eq!(of(&[&[2, 1]]), None);
    }
}
