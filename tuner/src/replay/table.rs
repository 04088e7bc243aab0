//! A recorded table: CSV or Parquet, every cell as text.

use std::path::{Path, PathBuf};

use crate::error::RecordError;
use crate::record::decode::Decoder;

/// Named columns of text cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    path: PathBuf,
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// Why a table cannot be used; every message names the file.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The file cannot be read.
    #[error("cannot read {}: {cause}; give the path of the table with --table", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// The file is no such table.
    #[error("{}: {reason}; a table is CSV with a header line, or Parquet (name ending in .parquet)", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The first thing wrong with it.
        reason: String,
    },
    /// A column that the description names is not there.
    #[error("{} has no column '{name}' of numbers or words, it has {}; correct the landscape's description", path.display(), known.join(", "))]
    NoColumn {
        /// The file.
        path: PathBuf,
        /// The column asked for.
        name: String,
        /// The columns there are.
        known: Vec<String>,
    },
    /// A cell holds no usable number.
    #[error("{} row {row}: {column} is '{found}', not {wanted}", path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// Row below the header, from 1.
        row: usize,
        /// The column.
        column: String,
        /// The cell.
        found: String,
        /// What it should be.
        wanted: &'static str,
    },
}

impl Table {
    /// Reads the table at `path`, by `decoder` where it is Parquet.
    ///
    /// # Errors
    /// [`TableError`] when the file cannot be read or is no table.
    pub fn read(path: &Path, decoder: &Decoder) -> Result<Self, TableError> {
        let unread = |cause| TableError::Read { path: path.to_path_buf(), cause };
        let damaged = |reason| TableError::Damaged { path: path.to_path_buf(), reason };
        let is_parquet = path.extension().is_some_and(|extension| extension == "parquet");
        let (names, rows) = if is_parquet {
            decoder.cells(path).map_err(|error| match error {
                RecordError::Read { cause, .. } => unread(cause),
                RecordError::Damaged { reason, .. } => damaged(reason),
                other => damaged(other.to_string()),
            })?
        } else {
            csv_cells(&std::fs::read(path).map_err(unread)?).map_err(damaged)?
        };
        Ok(Self { path: path.to_path_buf(), names, rows })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The file that it was read from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The index of a column.
    ///
    /// # Errors
    /// [`TableError::NoColumn`] with the names there are.
    pub fn column(&self, name: &str) -> Result<usize, TableError> {
        self.names.iter().position(|known| known == name).ok_or_else(|| TableError::NoColumn {
            path: self.path.clone(),
            name: name.to_owned(),
            known: self.names.clone(),
        })
    }

    /// A cell; `row` counts from 0.
    pub fn text(&self, row: usize, column: usize) -> &str {
        &self.rows[row][column]
    }

    /// A cell as a finite number.
    ///
    /// # Errors
    /// [`TableError::Number`] with the row and what was found.
    pub fn number(&self, row: usize, column: usize) -> Result<f64, TableError> {
        self.checked(row, column, "a finite number", |_| true)
    }

    /// A cell as a finite number above 0.
    ///
    /// # Errors
    /// [`TableError::Number`] with the row and what was found.
    pub fn positive(&self, row: usize, column: usize) -> Result<f64, TableError> {
        self.checked(row, column, "a number above 0", |value| value > 0.0)
    }

    fn checked(
        &self,
        row: usize,
        column: usize,
        wanted: &'static str,
        is_fine: fn(f64) -> bool,
    ) -> Result<f64, TableError> {
        let found = self.text(row, column);
        let value = found.trim().parse().ok().filter(|value: &f64| value.is_finite() && is_fine(*value));
        value.ok_or_else(|| TableError::Number {
            path: self.path.clone(),
            row: row + 1,
            column: self.names[column].clone(),
            found: found.to_owned(),
            wanted,
        })
    }
}

fn csv_cells(bytes: &[u8]) -> Result<(Vec<String>, Vec<Vec<String>>), String> {
    let mut reader = csv::Reader::from_reader(bytes);
    let texts = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect::<Vec<_>>();
    let names = texts(reader.headers().map_err(|error| error.to_string())?);
    let rows = reader.records().map(|record| record.map(|record| texts(&record)).map_err(|error| error.to_string()));
    Ok((names, rows.collect::<Result<_, _>>()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Table, TableError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, text).unwrap();
        Table::read(&path, &Decoder::Here)
    }

    #[test]
    fn cells_are_found_by_name() {
        let table = read("nb,time_s,note\n64,2.5,\"a, b\"\n128,NaN,\n").unwrap();
        assert_eq!((table.len(), table.column("time_s").unwrap()), (2, 1));
        assert_eq!(table.text(0, 2), "a, b");
        assert_eq!(table.number(0, 1).unwrap(), 2.5);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_row() {
        let table = read("nb,time_s\n64,2.5\n128,NaN\n0,-1\n").unwrap();
        for (error, wanted) in [
            (table.column("rate").unwrap_err(), "no column 'rate' of numbers or words, it has nb, time_s"),
            (table.number(1, 1).unwrap_err(), "row 2: time_s is 'NaN'"),
            (table.positive(2, 0).unwrap_err(), "row 3: nb is '0', not a number above 0"),
            (read("a,b\n1\n").unwrap_err(), "found record with 1 fields"),
        ] {
            assert!(error.to_string().contains(wanted) && error.to_string().contains("t.csv"), "{error}");
        }
    }
}
