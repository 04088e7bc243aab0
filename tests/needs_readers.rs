//! Other programs read our Parquet files.

use std::path::Path;
use std::process::Command;

const SCRIPT: &str = r"
import sys, pyarrow.parquet as pq, duckdb
path = sys.argv[1]
rows = [r for r in pq.read_table(path).to_pylist() if r['passed'] and r['rate_gflops'] is not None]
rows.sort(key=lambda r: -r['rate_gflops'])
top = duckdb.sql(f'''select trial, rate_gflops from '{path}' where passed and rate_gflops is not null order by rate_gflops desc limit 5''').fetchall()
assert [t for t, _ in top] == [r['trial'] for r in rows[:5]], (top, rows[:5])
print(*[t for t, _ in top])
";

#[test]
#[ignore = "needs pyarrow and duckdb: tests/run --install"]
fn pyarrow_and_duckdb_list_the_same_top_five() {
    let folder = crate::tune::folder();
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/readers/bin/python");
    let output = Command::new(python).args(["-c", SCRIPT]).arg(folder.join("trials.parquet")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Windows have an estimate instead of a rate.
    let measured = crate::tune::rows(folder).iter().filter(|row| row.passed && row.rate_gflops.is_some()).count();
    assert_eq!(text.split_whitespace().count(), 5.min(measured));
}
