//! A recorded landscape: the space that a table covers, with the runs of each of its points.

use std::collections::{BTreeMap, HashMap};
use std::path::{Component, Path, PathBuf};

use space::dims::{Dim, DimKind, Level, MAX_LEVELS, Point, Space};
use space::listed::Listed;
use space::stats::mean;

pub use self::description::{
    Cost, Description, Dimension, FailedRows, Goal, LANDSCAPE_SCHEMA, LevelScale, MeasuredColumn, ModelColumn, Noise,
};
use super::smooth::smooth;
use super::table::{Table, TableError};
use crate::record::decode::Decoder;
use crate::record::plain;

mod description;

/// A point of a landscape.
#[derive(Debug, Clone, PartialEq)]
pub struct LandscapePoint {
    /// Measured values in the table's unit, one or more; none when every run failed.
    pub runs: Vec<f64>,
    /// Relative standard deviation to add to a recorded value, 0 where the recorded runs show their own.
    pub cv: f64,
    /// Seconds that an evaluation costs: the mean of the runs that passed, or of the failed ones where none did.
    pub cost_s: f64,
    /// The model's value, where there is a model.
    pub model: Option<f64>,
}

/// A recorded landscape.
#[derive(Debug, Clone)]
pub struct Landscape {
    /// Its name.
    pub name: String,
    /// Which values are good.
    pub goal: Goal,
    /// The recorded points.
    pub space: Listed,
    /// What was recorded at each point, in the order of the space.
    pub sites: Vec<LandscapePoint>,
    /// Position of the point that users start from, where the description names it.
    pub usual: Option<usize>,
}

/// Why there is no landscape.
#[derive(Debug, thiserror::Error)]
pub enum LandscapeError {
    /// The description cannot be read.
    #[error("cannot read {}: {cause}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The description is not what it should be.
    #[error("{}: {reason}", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The first thing wrong with it.
        reason: String,
    },
    /// A table is not what it should be.
    #[error(transparent)]
    Table(#[from] TableError),
}

impl Landscape {
    /// Reads a description and its table, which lies in its folder or below that; `table` and `model` stand in for the files that the
    /// description names; `decoder` reads those that are Parquet.
    ///
    /// # Errors
    /// [`LandscapeError`] naming file, key or row.
    pub fn read(
        path: &Path,
        table: Option<&Path>,
        model: Option<&Path>,
        decoder: &Decoder,
    ) -> Result<Self, LandscapeError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| LandscapeError::Read { path: path.to_path_buf(), cause })?;
        let wrong = |reason: String| LandscapeError::Description { path: path.to_path_buf(), reason };
        let description: Description = toml::from_str(&text).map_err(|error| {
            wrong(format!("not the TOML file that describes a table, as those in datasets/landscapes do: {error}"))
        })?;
        description.check().map_err(wrong)?;
        // A description may be of somebody else: it names no device, and no private file of the user.
        let is_below = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        let beside = |name: &Path| {
            if !name.components().all(is_below) {
                return Err(wrong(format!(
                    "'{}' is not in the folder of this file; put the table there, or name it by --table or --model",
                    name.display()
                )));
            }
            let table = path.parent().unwrap_or(Path::new("")).join(name);
            // Nor by a link, and no pipe.
            match plain::check(&table) {
                Ok(()) => Ok(table),
                Err(cause) => Err(TableError::Read { path: table, cause }.into()),
            }
        };
        let runs = match table {
            Some(given) => Table::read(given, decoder)?,
            None => Table::read(&beside(&description.table)?, decoder)?,
        };
        let named = description.model.as_ref().and_then(|model| model.table.as_deref());
        let other = match (model, named) {
            (Some(given), _) => Some(Table::read(given, decoder)?),
            (None, Some(name)) => Some(Table::read(&beside(name)?, decoder)?),
            (None, None) => None,
        };
        if model.is_some() && description.model.is_none() {
            return Err(wrong("--model needs a [model] section that names the column; add one".to_owned()));
        }
        let mut landscape = Self::build(&description, &runs, other.as_ref().unwrap_or(&runs), path)?;
        if let Some(name) = &description.smooth_with {
            let with = description.dimension.iter().position(|dimension| dimension.name == *name);
            let with = with.ok_or_else(|| wrong(format!("smooth_with names '{name}', which is not a dimension")))?;
            landscape.smooth_with(with);
            if let Some(Noise::Cv(cv)) = description.noise {
                // A fitted value shows no spread of its own, however many runs it is made of.
                landscape.sites.iter_mut().for_each(|site| site.cv = cv);
            }
        }
        Ok(landscape)
    }

    /// One fitted value in the place of the runs of every point, see [`smooth`].
    fn smooth_with(&mut self, dim: usize) {
        let values: Vec<Option<f64>> = (0..self.len()).map(|at| self.truth(at)).collect();
        for (site, value) in self.sites.iter_mut().zip(smooth(&self.space, &values, dim)) {
            site.runs = value.map_or_else(Vec::new, |value| vec![value]);
        }
    }

    fn build(description: &Description, runs: &Table, model: &Table, path: &Path) -> Result<Self, LandscapeError> {
        let wrong = |reason: String| LandscapeError::Description { path: path.to_path_buf(), reason };
        let rows = rows_where(runs, &description.runs)?;
        if rows.is_empty() {
            return Err(wrong(format!("no row of {} is a run by [runs]; correct it", runs.path().display())));
        }
        let axes = description.dimension.iter().map(|dimension| DimColumns::new(dimension, runs, &rows));
        let axes: Vec<DimColumns> = axes.collect::<Result<_, _>>()?;
        if let Some(axis) = axes.iter().find(|axis| axis.dim.levels.len() > MAX_LEVELS) {
            let reason = format!("{} has more than {MAX_LEVELS} levels in the table; leave it out", axis.dim.name);
            return Err(wrong(reason));
        }
        let mut index: HashMap<Point, usize> = HashMap::new();
        let (mut points, mut sites) = (Vec::new(), Vec::<LandscapePoint>::new());
        let mut costs = Vec::<RunCosts>::new();
        let columns = ValueColumns::new(description, runs)?;
        for &row in &rows {
            let point = DimColumns::point(&axes, runs, row)?.expect("the levels come from these rows");
            let at = *index.entry(point.clone()).or_insert_with(|| {
                points.push(point);
                sites.push(LandscapePoint { runs: Vec::new(), cv: 0.0, cost_s: 1.0, model: None });
                costs.push(RunCosts::default());
                points.len() - 1
            });
            columns.record(runs, row, (&mut sites[at], &mut costs[at]))?;
        }
        for (site, costs) in sites.iter_mut().zip(&costs) {
            site.cost_s = costs.mean_s().unwrap_or(site.cost_s);
        }
        if let Some(section) = &description.model {
            let column = model.column(&section.column)?;
            for row in rows_where(model, &section.rows)? {
                // A model may know more points than were measured.
                if let Some(at) = DimColumns::point(&axes, model, row)?.and_then(|point| index.get(&point)) {
                    sites[*at].model = Some(model.positive(row, column)?);
                }
            }
        }
        if matches!(description.noise, Some(Noise::Cv(_))) {
            sites.iter_mut().filter(|site| site.runs.len() > 1).for_each(|site| site.cv = 0.0);
        }
        let dims: Vec<Dim> = axes.into_iter().map(|axis| axis.dim).collect();
        let usual = description.usual.as_ref().map(|levels| usual(levels, &dims, &index)).transpose().map_err(wrong)?;
        let space = Listed::new(dims, points).expect("points are distinct and made of levels");
        let (name, goal) = (description.name.clone(), description.value.goal);
        if sites.iter().all(|site| site.runs.is_empty()) {
            return Err(wrong(format!("no run of {} passed", runs.path().display())));
        }
        Ok(Self { name, goal, space, sites, usual })
    }

    /// The mean value of a point in the table's unit, `None` where it fails.
    pub fn truth(&self, at: usize) -> Option<f64> {
        let runs = &self.sites[at].runs;
        (!runs.is_empty()).then(|| runs.iter().sum::<f64>() / runs.len() as f64)
    }

    /// A value as a rate: more is better.
    pub fn rate(&self, value: f64) -> f64 {
        match self.goal {
            Goal::Maximize => value,
            Goal::Minimize => 1.0 / value,
        }
    }

    /// Whether a model's value is known at every point.
    pub fn has_model(&self) -> bool {
        self.sites.iter().all(|site| site.model.is_some())
    }

    /// Number of points.
    pub fn len(&self) -> usize {
        self.space.points().len()
    }

    /// Whether there is no point; [`Landscape::read`] gives none such.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The position of the point with these labels.
fn usual(labels: &BTreeMap<String, String>, dims: &[Dim], index: &HashMap<Point, usize>) -> Result<usize, String> {
    if let Some(name) = labels.keys().find(|name| dims.iter().all(|dim| dim.name != **name)) {
        return Err(format!("[usual] {name} is not a dimension; remove it"));
    }
    let level = |dim: &Dim| {
        let label = labels.get(&dim.name).ok_or_else(|| format!("[usual] lacks {}; give its level", dim.name))?;
        let at = dim.levels.iter().position(|level| level.label == *label);
        at.map(|at| at as u16).ok_or_else(|| format!("[usual] {} = \"{label}\" is in no row of the table", dim.name))
    };
    let point = Point(dims.iter().map(level).collect::<Result<_, String>>()?);
    index.get(&point).copied().ok_or_else(|| "[usual] is not a point of the table; give one that was run".to_owned())
}

/// The rows whose cells are as `wanted`.
fn rows_where(table: &Table, wanted: &BTreeMap<String, String>) -> Result<Vec<usize>, TableError> {
    let pairs = wanted.iter().map(|(name, text)| Ok((table.column(name)?, text)));
    let pairs: Vec<(usize, &String)> = pairs.collect::<Result<_, TableError>>()?;
    let fits = |row: &usize| pairs.iter().all(|(column, text)| table.text(*row, *column) == *text);
    Ok((0..table.len()).filter(fits).collect())
}

/// The columns of what is recorded at a point.
struct ValueColumns<'a> {
    value: usize,
    cost: Option<usize>,
    cv: Option<usize>,
    fixed_cv: f64,
    outcome: Option<(usize, &'a [String])>,
}

impl<'a> ValueColumns<'a> {
    fn new(description: &'a Description, table: &Table) -> Result<Self, TableError> {
        let (cv, fixed_cv) = match &description.noise {
            Some(Noise::Column(name)) => (Some(table.column(name)?), 0.0),
            Some(Noise::Cv(cv)) => (None, *cv),
            None => (None, 0.0),
        };
        let outcome = description.failure.as_ref();
        Ok(Self {
            value: table.column(&description.value.column)?,
            cost: description.cost.as_ref().map(|cost| table.column(&cost.column)).transpose()?,
            cv,
            fixed_cv,
            outcome: outcome.map(|f| Ok((table.column(&f.column)?, f.passed.as_slice()))).transpose()?,
        })
    }

    fn record(
        &self,
        table: &Table,
        row: usize,
        (site, costs): (&mut LandscapePoint, &mut RunCosts),
    ) -> Result<(), TableError> {
        let passed =
            self.outcome.is_none_or(|(column, passed)| passed.iter().any(|text| text == table.text(row, column)));
        if let Some(cost) = self.cost {
            let of_kind = if passed { &mut costs.passed_s } else { &mut costs.failed_s };
            of_kind.push(table.positive(row, cost)?);
        }
        if passed {
            site.runs.push(table.positive(row, self.value)?);
            site.cv = self.cv.map(|column| table.number(row, column)).transpose()?.unwrap_or(self.fixed_cv);
        }
        Ok(())
    }
}

/// Seconds of each run of a point.
#[derive(Default)]
struct RunCosts {
    passed_s: Vec<f64>,
    failed_s: Vec<f64>,
}

impl RunCosts {
    /// Mean of the runs that an evaluation of the point may be; `None` where no cost is recorded.
    fn mean_s(&self) -> Option<f64> {
        let runs = if self.passed_s.is_empty() { &self.failed_s } else { &self.passed_s };
        (!runs.is_empty()).then(|| mean(runs))
    }
}

/// A dimension with the columns that it is read from.
struct DimColumns {
    dim: Dim,
    columns: Vec<usize>,
    names: Vec<String>,
    scale: LevelScale,
}

impl DimColumns {
    /// The levels that `rows` hold: ordered ones by position, categorical ones by their first appearance.
    fn new(dimension: &Dimension, table: &Table, rows: &[usize]) -> Result<Self, TableError> {
        let names = dimension.ratio.clone().map_or_else(|| vec![dimension.name.clone()], Vec::from);
        let columns = names.iter().map(|name| table.column(name)).collect::<Result<_, _>>()?;
        let dim = Dim { name: dimension.name.clone(), kind: dimension.kind, levels: Vec::new() };
        let mut axis = Self { dim, columns, names, scale: dimension.scale };
        let mut levels: Vec<Level> = Vec::new();
        for &row in rows {
            let level = axis.level(table, row, &axis.columns)?;
            if !levels.iter().any(|known| axis.same(known, &level)) {
                levels.push(Level {
                    feature: if dimension.kind == DimKind::Categorical { levels.len() as f64 } else { level.feature },
                    ..level
                });
            }
        }
        levels.sort_by(|a, b| a.feature.total_cmp(&b.feature));
        axis.dim.levels = levels;
        Ok(axis)
    }

    fn same(&self, a: &Level, b: &Level) -> bool {
        match self.dim.kind {
            DimKind::Categorical => a.label == b.label,
            DimKind::Ordered => a.feature == b.feature,
        }
    }

    /// What a row holds on this axis; the feature of a categorical level is its place among the levels, not known here.
    fn level(&self, table: &Table, row: usize, columns: &[usize]) -> Result<Level, TableError> {
        let label = columns.iter().map(|column| table.text(row, *column)).collect::<Vec<_>>().join(":");
        if self.dim.kind == DimKind::Categorical {
            return Ok(Level { label, feature: 0.0 });
        }
        let number = |column: usize| match (self.scale, columns.len()) {
            (LevelScale::Linear, 1) => table.number(row, column),
            _ => table.positive(row, column),
        };
        let value = match *columns {
            [above, below] => number(above)? / number(below)?,
            _ => number(columns[0])?,
        };
        Ok(Level { label, feature: if self.scale == LevelScale::Log { value.log2() } else { value } })
    }

    /// The point of a row, `None` where it has a level that `axes` do not have.
    fn point(axes: &[Self], table: &Table, row: usize) -> Result<Option<Point>, TableError> {
        let mut levels = Vec::with_capacity(axes.len());
        for axis in axes {
            let columns = axis.names.iter().map(|name| table.column(name)).collect::<Result<Vec<_>, _>>()?;
            let level = axis.level(table, row, &columns)?;
            let Some(at) = axis.dim.levels.iter().position(|known| axis.same(known, &level)) else { return Ok(None) };
            levels.push(at as u16);
        }
        Ok(Some(Point(levels)))
    }
}

#[cfg(test)]
pub(crate) mod tests;
