//! A space whose candidates also have settings of the nodes: each candidate of another space at each of the settings.

use super::error::DomainError;
use super::limits::Limits;
use super::spec::{Candidates, DomainSpec, MAX_POINTS, TOO_MANY_POINTS};
use crate::Candidate;
use crate::dims::{Dim, DimKind, Level, Point, Space};
use crate::settings::{NodeSettings, SettingLevels};

/// All candidates of an inner space at all settings.
pub struct SettingsDomain {
    inner: Box<dyn Candidates>,
    /// What the nodes were found with, which `limits` may exclude.
    found: NodeSettings,
    levels: SettingLevels,
    dims: Vec<Dim>,
    points: Vec<Point>,
}

impl SettingsDomain {
    /// The points that the inner space may have, so that all are no more than [`MAX_POINTS`] at the settings of `levels` that
    /// `limits` allow.
    ///
    /// # Errors
    /// As [`SettingsDomain::new`].
    pub fn most_inner(levels: &SettingLevels, limits: &Limits) -> Result<usize, DomainError> {
        Ok(MAX_POINTS / limits.settings(levels)?.combinations())
    }

    /// The candidates of `inner` at the settings of `levels` that `limits` allow.
    ///
    /// # Errors
    /// [`DomainError::Limit`] of a setting that has no value left, or one above what the node was found with;
    /// [`DomainError::TooMany`] where there are more than [`TOO_MANY_POINTS`].
    pub fn new(inner: Box<dyn Candidates>, levels: &SettingLevels, limits: &Limits) -> Result<Self, DomainError> {
        let found = levels.as_found();
        let levels = limits.settings(levels)?;
        let of = |(name, values): (&'static str, &[u32])| (!values.is_empty()).then(|| dim(name, values));
        let own: Vec<Dim> = values(&levels).filter_map(of).collect();
        let dims = inner.dims().iter().cloned().chain(own.iter().cloned()).collect();
        let count = inner.points().len().saturating_mul(levels.combinations());
        if count > TOO_MANY_POINTS {
            return Err(DomainError::TooMany { most: TOO_MANY_POINTS });
        }
        let mut points = Vec::with_capacity(count);
        for point in inner.points() {
            let mut all = vec![point.0.clone()];
            for dim in &own {
                let each =
                    |at: &Vec<u16>| (0..dim.levels.len() as u16).map(|level| with(at, level)).collect::<Vec<_>>();
                all = all.iter().flat_map(each).collect();
            }
            points.extend(all.into_iter().map(Point));
        }
        Ok(Self { inner, found, levels, dims, points })
    }

    /// The settings at the levels behind those of the inner space.
    fn settings(&self, own: &[u16]) -> Option<NodeSettings> {
        let mut own = own.iter();
        let mut next = |values: &[u32]| {
            if values.is_empty() { Some(None) } else { values.get(usize::from(*own.next()?)).copied().map(Some) }
        };
        Some(NodeSettings {
            max_clock_mhz: next(&self.levels.max_clock_mhz)?,
            package_limit_w: next(&self.levels.package_limit_w)?,
            gpu_limit_w: next(&self.levels.gpu_limit_w)?,
        })
    }
}

fn values(levels: &SettingLevels) -> impl Iterator<Item = (&'static str, &[u32])> {
    NodeSettings::NAMES.into_iter().zip(levels.values())
}

fn dim(name: &str, values: &[u32]) -> Dim {
    let level = |&value: &u32| Level { label: value.to_string(), feature: f64::from(value.max(1)).log2() };
    Dim { name: name.to_owned(), kind: DimKind::Ordered, levels: values.iter().map(level).collect() }
}

fn with(levels: &[u16], level: u16) -> Vec<u16> {
    levels.iter().copied().chain([level]).collect()
}

impl Space for SettingsDomain {
    fn dims(&self) -> &[Dim] {
        &self.dims
    }

    fn canonical(&self, point: &Point) -> Option<Point> {
        let (inner, own) = point.0.split_at_checked(self.inner.dims().len())?;
        self.settings(own)?;
        let inner = self.inner.canonical(&Point(inner.to_vec()))?;
        Some(Point(inner.0.iter().chain(own).copied().collect()))
    }

    fn points(&self) -> &[Point] {
        &self.points
    }

    fn effects(&self) -> Vec<f64> {
        let own = &self.dims[self.inner.dims().len()..];
        self.inner.effects().into_iter().chain(own.iter().map(|dim| crate::effects::effect(&dim.name))).collect()
    }
}

impl Candidates for SettingsDomain {
    fn spec(&self) -> &DomainSpec {
        self.inner.spec()
    }

    fn candidate(&self, point: &Point) -> Candidate {
        let (inner, own) = point.0.split_at(self.inner.dims().len());
        let mut candidate = self.inner.candidate(&Point(inner.to_vec()));
        candidate.engine.settings = self.settings(own).expect("a point of this domain");
        candidate
    }

    /// A candidate without a setting was run on the node as it was found.
    fn point(&self, candidate: &Candidate) -> Option<Point> {
        let mut inner = candidate.clone();
        let asked = std::mem::take(&mut inner.engine.settings);
        let mut point = self.inner.point(&inner)?;
        let each = asked.values().into_iter().zip(self.found.values());
        for (values, (value, found)) in self.levels.values().into_iter().zip(each) {
            if values.is_empty() {
                // Not a dimension here: only the node as it was found.
                value.is_none().then_some(())?;
                continue;
            }
            let level = values.iter().position(|known| Some(*known) == value.or(found))?;
            point.0.push(u16::try_from(level).ok()?);
        }
        Some(point)
    }

    fn has_memory_for(&self, candidate: &Candidate) -> bool {
        self.inner.has_memory_for(candidate)
    }

    fn balanced(&self, point: &Point) -> Point {
        let (inner, own) = point.0.split_at(self.inner.dims().len());
        let inner = self.inner.balanced(&Point(inner.to_vec()));
        Point([inner.0.as_slice(), own].concat())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HplDomain, WeightedDomain, default_candidate};
    use super::*;
    use crate::{KernelChoice, Share, Unequal};

    fn spec() -> DomainSpec {
        DomainSpec {
            n: 1000,
            cores: 2,
            memory_bytes: 1 << 30,
            kernels: KernelChoice::Builtin,
            ranks: Some(1),
            threads: None,
            most_threads: None,
            common_cores: None,
            unequal: Unequal::default(),
        }
    }

    #[test]
    fn each_candidate_is_at_each_of_the_settings_and_comes_back() {
        let limits = Limits::parse("[nb]\nvalues = [64, 128]\n[max_clock_mhz]\nwithout = [2000]\n").unwrap();
        let gpu_limit_w = vec![350, 700];
        let levels =
            SettingLevels { max_clock_mhz: vec![1500, 2000, 2500], package_limit_w: vec![100, 200], gpu_limit_w };
        let inner = HplDomain::within(&spec(), &limits).unwrap();
        let count = inner.points().len();
        let domain = SettingsDomain::new(Box::new(inner), &levels, &limits).unwrap();
        assert_eq!(domain.points().len(), 8 * count);
        for point in domain.points() {
            assert_eq!(domain.point(&domain.candidate(point)).as_ref(), Some(point));
            assert_eq!(domain.canonical(point).as_ref(), Some(point));
        }
        let names: Vec<&str> = domain.dims().iter().map(|dim| dim.name.as_str()).collect();
        assert_eq!(names[names.len() - 3..], NodeSettings::NAMES);
        assert_eq!(domain.effects().len(), names.len());
        // A run of a session that left the node alone.
        let mut usual = domain.candidate(&domain.points()[0]);
        usual.engine.settings = NodeSettings::default();
        let found = domain.candidate(&domain.point(&usual).unwrap()).engine.settings;
        assert_eq!(found.values(), [Some(2500), Some(200), Some(700)]);
        usual.engine.settings.max_clock_mhz = Some(2000);
        assert_eq!(domain.point(&usual), None, "it is excluded");
        assert!(HplDomain::new(&spec()).unwrap().point(&default_candidate(&spec())).is_some());
    }

    #[test]
    fn the_inner_space_has_room_by_the_settings_that_are_allowed() {
        let levels = SettingLevels { max_clock_mhz: vec![1500, 2000, 2500], ..SettingLevels::default() };
        let most = |text: &str| SettingsDomain::most_inner(&levels, &Limits::parse(text).unwrap());
        assert_eq!(most(""), Ok(MAX_POINTS / 3));
        assert_eq!(most("max_clock_mhz = 2000"), Ok(MAX_POINTS));
        assert_eq!(most("max_clock_mhz = [1600, 1700, 1800, 1900]"), Ok(MAX_POINTS / 4));
    }

    #[test]
    fn more_points_than_can_be_searched_are_refused() {
        let inner = HplDomain::within(&spec(), &Limits::parse("nb = 64").unwrap()).unwrap();
        let all: Vec<u32> = (1..=2000).collect();
        let levels = SettingLevels { max_clock_mhz: all.clone(), package_limit_w: all, ..SettingLevels::default() };
        let refused = SettingsDomain::new(Box::new(inner), &levels, &Limits::default()).err();
        assert_eq!(refused, Some(DomainError::TooMany { most: TOO_MANY_POINTS }));
    }

    #[test]
    fn weights_are_balanced_at_each_of_the_settings() {
        let speeds = [1.0, 0.5].map(|speed| Share::new(speed).unwrap()).to_vec();
        let unequal = Unequal { speeds, ..Unequal::default() };
        let limits = Limits::parse("nb = 64\ndepth = 1\n").unwrap();
        let inner = WeightedDomain::within(&DomainSpec { ranks: Some(2), unequal, ..spec() }, &limits).unwrap();
        let levels = SettingLevels { max_clock_mhz: vec![1500, 2500], ..SettingLevels::default() };
        let domain = SettingsDomain::new(Box::new(inner.clone()), &levels, &limits).unwrap();
        let mut changed = 0;
        for point in domain.points() {
            let (own, balanced) = (domain.candidate(point), domain.candidate(&domain.balanced(point)));
            let without = Point(point.0[..inner.dims().len()].to_vec());
            let expected = inner.candidate(&inner.balanced(&without));
            assert_eq!(balanced.engine.weights, expected.engine.weights);
            assert_eq!(own.engine.settings, balanced.engine.settings);
            changed += usize::from(own != balanced);
        }
        assert!(changed > 0, "some have other weights than the measured ones");
    }

    #[test]
    fn settings_above_what_was_found_are_refused() {
        let levels = SettingLevels { max_clock_mhz: vec![1500, 2500], ..SettingLevels::default() };
        let limits = Limits::parse("[max_clock_mhz]\nvalues = [3000]\n").unwrap();
        let inner = HplDomain::new(&spec()).unwrap();
        let refused = SettingsDomain::new(Box::new(inner), &levels, &limits).err().unwrap().to_string();
        assert!(refused.contains("[max_clock_mhz]: '3000' is above 2500"), "{refused}");
    }
}
