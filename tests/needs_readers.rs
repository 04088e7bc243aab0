//! Other programs read our Parquet files.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::docs::pages::Page;

const SCRIPT: &str = r"
import sys, pyarrow.parquet as pq, duckdb
path = sys.argv[1]
rows = [r for r in pq.read_table(path).to_pylist() if r['passed'] and r['rate_gflops'] is not None]
rows.sort(key=lambda r: -r['rate_gflops'])
top = duckdb.sql(f'''select trial, rate_gflops from '{path}' where passed and rate_gflops is not null order by rate_gflops desc limit 5''').fetchall()
assert [t for t, _ in top] == [r['trial'] for r in rows[:5]], (top, rows[:5])
print(*[t for t, _ in top])
";

/// Of the virtual environment that `tests/run --install` makes.
fn python() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/readers/bin/python")
}

#[test]
#[ignore = "needs pyarrow and duckdb: tests/run --install"]
fn pyarrow_and_duckdb_list_the_same_top_five() {
    let folder = crate::tune::folder();
    let output = Command::new(python()).args(["-c", SCRIPT]).arg(folder.join("trials.parquet")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Windows have an estimate instead of a rate.
    let measured = crate::tune::rows(folder).iter().filter(|row| row.passed && row.rate_gflops.is_some()).count();
    assert_eq!(text.split_whitespace().count(), 5.min(measured));
}

/// The snippets of the book run in the folder of a session and print something.
#[test]
#[ignore = "needs polars, pandas and duckdb: tests/run --install"]
fn the_snippets_of_the_book_read_a_session() {
    let folder = crate::tune::folder();
    let blocks = Page::read("docs/reading-results.md").blocks();
    let snippets: Vec<_> = blocks.iter().filter(|block| block.language == "python").collect();
    assert!(snippets.len() >= 3);
    for block in snippets {
        let output = Command::new(python()).args(["-c", &block.text]).current_dir(folder).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !output.stdout.is_empty(), "{}: {said}", block.place);
    }
}
