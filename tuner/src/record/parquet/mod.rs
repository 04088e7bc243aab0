//! Parquet files of the record, for pandas, duckdb and R.
//!
//! A row type names its columns once, in [`ParquetRow::COLUMNS`]; values pass through serde, so that a Parquet
//! file holds exactly what the journal holds. Files are replaced in one step ([`replace_file`]).

use std::io::Cursor;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use polars::prelude::{
    ArrowDataType, ArrowField, Column, CompatLevel, DataFrame, KeyValueMetadata, NamedFrom, ParallelStrategy,
    ParquetCompression, ParquetReader, ParquetWriter, PolarsError, PolarsResult, SchemaExt, SerReader, Series,
};
use polars_parquet::write::schema_to_metadata_key;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use space::result::PhaseTime;

use crate::error::RecordError;
use crate::record::folder::replace_file;
use crate::record::{ROW_SCHEMA, Row};

mod seal;

/// Type of a column; every column may hold nulls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// Unsigned 64-bit integer.
    UInt,
    /// 64-bit floating point.
    Float,
    /// True or false.
    Bool,
    /// UTF-8 text.
    Text,
}
use Type::{Bool, Float, Text, UInt};

/// A flat struct whose fields are the columns of a Parquet file.
pub trait ParquetRow: Serialize + DeserializeOwned {
    /// What a row is called where files of it are decoded elsewhere, see [`crate::record::decode`].
    const KIND: &'static str;
    /// Its fields by name, in order.
    const COLUMNS: &'static [(&'static str, Type)];
}

impl ParquetRow for Row {
    const KIND: &'static str = "rows";
    const COLUMNS: &'static [(&'static str, Type)] = &[
        ("schema_version", UInt),
        ("session", Text),
        ("trial", UInt),
        ("repeat_of", UInt),
        ("paired_with", UInt),
        ("strategy", Text),
        ("why", Text),
        ("extent", Text),
        ("engine", Text),
        ("n", UInt),
        ("nb", UInt),
        ("p", UInt),
        ("q", UInt),
        ("nbmin", UInt),
        ("ndiv", UInt),
        ("depth", UInt),
        ("align", UInt),
        ("pmap", Text),
        ("pfact", Text),
        ("rfact", Text),
        ("bcast", Text),
        ("swap", Text),
        ("swap_threshold", UInt),
        ("l1", Text),
        ("u", Text),
        ("equil", Bool),
        ("threads", UInt),
        ("huge_pages", Bool),
        ("kernels", Text),
        ("rank_kernels", Text),
        ("split", Float),
        ("weights", Text),
        ("extra", Text),
        ("max_clock_mhz", UInt),
        ("package_limit_w", UInt),
        ("gpu_limit_w", UInt),
        ("predicted_rate_gflops", Float),
        ("predicted_sd", Float),
        ("estimated_rate_gflops", Float),
        ("estimated_sd", Float),
        ("reference_trial", UInt),
        ("reference_rate_gflops", Float),
        ("log_ratio", Float),
        ("log_ratio_sd", Float),
        ("outcome", Text),
        ("failure_detail", Text),
        ("time_s", Float),
        ("rate_gflops", Float),
        ("residual", Float),
        ("passed", Bool),
        ("wall_s", Float),
        ("cost_fraction", Float),
        ("budget_left_s", Float),
        ("steal_share", Float),
        ("clock_hz", Float),
        ("gpu_clock_hz", Float),
        ("gpu_temperature_c", Float),
        ("nodes_apart", Text),
        ("energy_j", Float),
        ("power_w", Float),
        ("gflops_per_w", Float),
        ("power_coverage", Float),
        ("run_energy_j", Float),
        ("run_power_w", Float),
        ("run_power_coverage", Float),
        ("estimated_energy_j", Float),
        ("estimated_power_w", Float),
        ("power_limit_w", UInt),
        ("power_source", Text),
        ("started_utc", Text),
        ("seed", UInt),
        ("command", Text),
        ("host", Text),
        ("nodes", Text),
        ("kernel", Text),
        ("versions", Text),
        ("output_sha256", Text),
    ];
}

impl ParquetRow for PhaseTime {
    const KIND: &'static str = "phases";
    const COLUMNS: &'static [(&'static str, Type)] = &[
        ("step", UInt),
        ("rank", UInt),
        ("fact_s", Float),
        ("lbcast_s", Float),
        ("rs_s", Float),
        ("update_s", Float),
        ("trsv_s", Float),
        ("end_s", Float),
    ];
}

/// Write `rows` to the Parquet file at `path`, replacing what is there in one step.
///
/// # Errors
/// [`RecordError::Write`] with the path; what was there stays then.
pub fn write<T: ParquetRow>(path: &Path, rows: &[T]) -> Result<(), RecordError> {
    let bytes = encode(rows).map_err(|e| RecordError::write(path)(std::io::Error::other(e.to_string())))?;
    replace_file(path, &bytes)
}

/// What is wrong with the bytes of a file.
#[derive(Debug, Serialize, Deserialize)]
pub enum Fault {
    /// They are not Parquet, are cut short, or lack a column.
    Damaged(String),
    /// Their `schema_version` column is newer than this program.
    Newer(u64),
}

impl Fault {
    /// The error that names the file.
    pub fn at(self, path: &Path) -> RecordError {
        match self {
            Self::Damaged(reason) => RecordError::damaged(path, reason),
            Self::Newer(found) => RecordError::Newer { path: path.to_path_buf(), found, known: ROW_SCHEMA },
        }
    }
}

/// Read the Parquet file at `path`, which this program wrote; those of others are for [`crate::record::decode`]. Columns that `T` does
/// not have are ignored.
///
/// # Errors
/// [`RecordError::Damaged`] when the file is not Parquet, cut short, or lacks a column that no row may lack;
/// [`RecordError::Newer`] when its `schema_version` column says so.
pub fn read<T: ParquetRow>(path: &Path) -> Result<Vec<T>, RecordError> {
    let bytes = std::fs::read(path).map_err(RecordError::read(path))?;
    rows(bytes).map_err(|fault| fault.at(path))
}

/// The rows of a file of these bytes.
///
/// # Errors
/// [`Fault`].
pub fn rows<T: ParquetRow>(bytes: Vec<u8>) -> Result<Vec<T>, Fault> {
    if seal::broken(&bytes) {
        return Err(Fault::Damaged("its checksum does not match its content".to_owned()));
    }
    // Files that others wrote have no seal, and the decoder panics where a page contradicts the footer.
    let is_of_a_row =
        |field: &ArrowField| field.name == "schema_version" || T::COLUMNS.iter().any(|&(name, _)| field.name == name);
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(bytes, is_of_a_row)))
        .map_err(|_| Fault::Damaged("a page differs from what the footer says".to_owned()))?;
    let damaged = |error: PolarsError| Fault::Damaged(error.to_string());
    let frame = decoded.map_err(damaged)?;
    if let Ok(versions) = frame.column("schema_version") {
        let newest = versions.as_materialized_series().u64().map_err(damaged)?.iter().flatten().max();
        if let Some(found) = newest.filter(|&found| found > u64::from(ROW_SCHEMA)) {
            return Err(Fault::Newer(found));
        }
    }
    // The number of its rows, which the footer alone states then, may be any.
    if frame.width() == 0 && frame.height() > 0 {
        return Err(Fault::Damaged(format!("it has none of the columns of {}, as {}", T::KIND, T::COLUMNS[0].0)));
    }
    let mut maps = vec![Map::new(); frame.height()];
    for &(name, kind) in T::COLUMNS {
        // Columns that files of older builds lack are nulls where a row may lack them; for others the row says what is missing.
        if frame.get_column_index(name).is_none() {
            continue;
        }
        let column = frame.column(name).map_err(damaged)?.as_materialized_series();
        for (map, value) in maps.iter_mut().zip(values(column, kind).map_err(damaged)?) {
            map.insert(name.to_owned(), value);
        }
    }
    let rows = maps.into_iter().enumerate().map(|(row, map)| {
        serde_json::from_value(Value::Object(map)).map_err(|e| Fault::Damaged(format!("row {}: {e}", row + 1)))
    });
    rows.collect()
}

/// Names and cells, as text, of the columns of numbers, truths and words of any Parquet file; a null is an empty text. Columns of other
/// types, as times and lists, are left out.
///
/// # Errors
/// What is wrong with it.
pub fn cells(bytes: Vec<u8>) -> Result<(Vec<String>, Vec<Vec<String>>), String> {
    let decoded = catch_unwind(AssertUnwindSafe(|| decode(bytes, is_plain)));
    let frame = decoded.map_err(|_| "a page differs from what the footer says".to_owned())?;
    let frame = frame.map_err(|error| error.to_string())?;
    let names: Vec<String> = frame.get_column_names().iter().map(|name| name.to_string()).collect();
    if names.is_empty() {
        return Err("it has no columns of numbers, truths or words".to_owned());
    }
    let text = |column: &Column, row: usize| {
        let value = column.get(row).map_err(|error| error.to_string())?;
        Ok(if value.is_null() { String::new() } else { value.str_value().into_owned() })
    };
    let row = |row| frame.columns().iter().map(|column| text(column, row)).collect();
    Ok((names, (0..frame.height()).map(row).collect::<Result<_, String>>()?))
}

fn encode<T: ParquetRow>(rows: &[T]) -> PolarsResult<Vec<u8>> {
    let values: Vec<Value> = rows
        .iter()
        .map(|row| serde_json::to_value(row).map_err(|e| PolarsError::ComputeError(e.to_string().into())))
        .collect::<PolarsResult<_>>()?;
    let columns: Vec<Column> = T::COLUMNS.iter().map(|&(name, kind)| column(&values, name, kind).into()).collect();
    let mut frame = DataFrame::new(rows.len(), columns)?;
    // Polars would declare its texts as views, which pyarrow can read but not filter.
    let schema = schema_to_metadata_key(&frame.schema().to_arrow(CompatLevel::oldest()));
    let metadata = vec![(schema.key, schema.value.unwrap_or_default()), (seal::KEY.into(), seal::BLANK.into())];
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes)
        .with_compression(ParquetCompression::Snappy)
        .set_parallel(false)
        .with_key_value_metadata(Some(KeyValueMetadata::from_static(metadata)))
        .finish(&mut frame)?;
    seal::close(&mut bytes);
    Ok(bytes)
}

/// The columns of a file that are `wanted`.
fn decode(bytes: Vec<u8>, wanted: impl Fn(&ArrowField) -> bool) -> PolarsResult<DataFrame> {
    let mut reader = ParquetReader::new(Cursor::new(bytes));
    // Without what writers say of the types in their memory, as that words are a dictionary: the types of the file are enough.
    let mut metadata = reader.get_metadata()?.as_ref().clone();
    metadata.key_value_metadata = None;
    reader.set_metadata(Arc::new(metadata));
    let schema = reader.schema()?;
    let columns = schema.iter_values().filter(|&field| wanted(field)).map(|field| field.name.to_string()).collect();
    reader.with_columns(Some(columns)).read_parallel(ParallelStrategy::None).finish()
}

/// Whether a column has numbers, truths or words.
fn is_plain(column: &ArrowField) -> bool {
    use ArrowDataType::{
        Boolean, Float32, Float64, Int8, Int16, Int32, Int64, LargeUtf8, Null, UInt8, UInt16, UInt32, UInt64, Utf8,
        Utf8View,
    };
    matches!(
        column.dtype,
        Boolean
            | Float32
            | Float64
            | Int8
            | Int16
            | Int32
            | Int64
            | LargeUtf8
            | Null
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Utf8
            | Utf8View
    )
}

/// One column of a file from the serde values of its rows.
fn column(rows: &[Value], name: &str, kind: Type) -> Series {
    let cells = rows.iter().map(|row| &row[name]);
    match kind {
        UInt => Series::new(name.into(), cells.map(Value::as_u64).collect::<Vec<_>>()),
        Float => Series::new(name.into(), cells.map(Value::as_f64).collect::<Vec<_>>()),
        Bool => Series::new(name.into(), cells.map(Value::as_bool).collect::<Vec<_>>()),
        Text => Series::new(name.into(), cells.map(Value::as_str).collect::<Vec<_>>()),
    }
}

/// The serde values of one column of a file.
fn values(column: &Series, kind: Type) -> PolarsResult<Vec<Value>> {
    Ok(match kind {
        UInt => column.u64()?.iter().map(Value::from).collect(),
        Float => column.f64()?.iter().map(Value::from).collect(),
        Bool => column.bool()?.iter().map(Value::from).collect(),
        Text => column.str()?.iter().map(Value::from).collect(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::arbitrary::{any_row, row};

    /// Fails when a field is added to the row and not to its columns, or the other way round.
    #[test]
    fn columns_are_the_fields_in_order() {
        fn keys<T: ParquetRow>(value: &T) -> Vec<String> {
            let text = serde_json::to_string(value).unwrap();
            let mut places: Vec<(usize, String)> = T::COLUMNS
                .iter()
                .map(|(name, _)| (text.find(&format!("\"{name}\":")).unwrap(), (*name).into()))
                .collect();
            places.sort();
            let fields = serde_json::to_value(value).unwrap().as_object().unwrap().len();
            assert_eq!(fields, places.len());
            places.into_iter().map(|(_, name)| name).collect()
        }
        let names = |columns: &[(&str, Type)]| columns.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>();
        assert_eq!(keys(&row(0)), names(Row::COLUMNS));
        assert_eq!(keys(&PhaseTime::default()), names(PhaseTime::COLUMNS));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn rows_come_back(rows in proptest::collection::vec(any_row(), 0..5)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("trials.parquet");
            write(&path, &rows).unwrap();
            prop_assert_eq!(read::<Row>(&path).unwrap(), rows);
        }

        #[test]
        fn damage_is_named(cut in 0.0..1.0f64, flip in 1..=255u8) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("trials.parquet");
            let bytes = encode(&[row(0), row(1)]).unwrap();
            let place = (cut * bytes.len() as f64) as usize;
            std::fs::write(&path, &bytes[..place]).unwrap();
            let message = read::<Row>(&path).unwrap_err().to_string();
            prop_assert!(message.contains("trials.parquet is damaged"), "{}", message);
            let mut flipped = bytes;
            flipped[place] ^= flip;
            // A file whose checksum lost its name is read like anybody's; one flip then changes no value.
            std::fs::write(&path, &flipped).unwrap();
            match read::<Row>(&path) {
                Ok(rows) => prop_assert_eq!(rows, [row(0), row(1)]),
                Err(error) => prop_assert!(error.to_string().contains("trials.parquet is damaged"), "{}", error),
            }
        }
    }

    #[test]
    fn phases_come_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("0.parquet");
        let phases = [PhaseTime { step: 3, rank: 1, fact_s: 0.1, ..PhaseTime::default() }];
        write(&path, &phases).unwrap();
        assert_eq!(read::<PhaseTime>(&path).unwrap(), phases);
    }

    /// Of pyarrow 26: short integers, words as a dictionary, times and lists. Such a table was refused as damaged.
    #[test]
    fn plain_columns_of_the_tables_of_others_are_read() {
        let bytes = include_bytes!("../../../../tests/data/table-by-pyarrow.parquet");
        let (names, cells) = cells(bytes.to_vec()).unwrap();
        assert_eq!(names, ["n", "nb", "p", "pfact", "passed", "gflops"]);
        assert_eq!(cells[0], ["1000", "64", "1", "left", "true", "1.5"]);
        assert_eq!(cells[2], ["2000", "192", "2", "", "true", "2.5"]);
    }

    #[test]
    fn a_missing_column_and_a_newer_schema_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trials.parquet");
        write(&path, &[PhaseTime::default()]).unwrap();
        let message = read::<Row>(&path).unwrap_err().to_string();
        assert!(message.contains("it has none of the columns of rows, as schema_version"), "{message}");
        write(&path, &[Row { schema_version: ROW_SCHEMA + 1, ..row(0) }]).unwrap();
        assert!(matches!(read::<Row>(&path), Err(RecordError::Newer { .. })));
    }

    #[test]
    #[ignore = "needs the right to mount: tests/run runs it where that is given"]
    fn needs_mount_a_full_disk_leaves_the_old_file() {
        let disk = crate::record::folder::small_disk::SmallDisk::mount();
        let path = disk.path().join("trials.parquet");
        write(&path, &[row(0)]).unwrap();
        disk.fill();
        let error = write(&path, &[row(0), row(1)]).unwrap_err();
        assert!(error.to_string().contains("free some space"), "{error}");
        assert_eq!(read::<Row>(&path).unwrap(), [row(0)]);
    }
}
