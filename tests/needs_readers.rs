//! Other programs read our files: Parquet by Python's libraries, the notebook by Jupyter's client, comparisons by ReFrame.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::docs::pages::{Page, root};

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

const NOTEBOOK: &str = r"
import sys, nbformat, nbclient
notebook = nbformat.read(sys.argv[1], as_version=4)
nbformat.validate(notebook)
assert not any(cell.get('outputs') for cell in notebook.cells), 'the notebook is kept without outputs'
nbclient.NotebookClient(notebook, timeout=120, kernel_name='python3').execute()
for cell in notebook.cells:
    for output in cell.get('outputs', []):
        print(output.get('text', ''))
";

/// The notebook of the book runs to its end on a session, and each of its cells prints something.
#[test]
#[ignore = "needs polars, nbclient and ipykernel: tests/run --install"]
fn the_notebook_reads_a_session() {
    let folder = crate::tune::folder();
    let mut command = Command::new(python());
    command.args(["-c", NOTEBOOK]).arg(root().join("docs/session.ipynb")).env("HPL_TUNE_RUN", folder);
    let output = command.output().unwrap();
    let (said, text) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    assert!(output.status.success(), "{said}");
    for words in ["gflops", "best_so_far", "mean error of", "update_s"] {
        assert!(text.contains(words), "'{words}' is not in: {text}");
    }
}

/// Runs the test of `datasets/reframe` in `home` with xhpl, compared with the earlier runs in the file `earlier`.
fn reframe(home: &Path, earlier: &str) -> Output {
    let xhpl = home.join("xhpl");
    if !xhpl.exists() {
        let tune = Path::new(env!("CARGO_BIN_EXE_hpl-tune"));
        std::fs::hard_link(tune, &xhpl).or_else(|_| std::fs::copy(tune, &xhpl).map(drop)).unwrap();
    }
    let set = |name: &str, value: &str| ["-S".to_owned(), format!("HplRegression.{name}={value}")];
    let mut command = Command::new(python().with_file_name("reframe"));
    command.args(["--nocolor", "-r", "--prefix", "out", "-c"]);
    command.arg(root().join("datasets/reframe/hpl_regression.py").canonicalize().unwrap());
    command.args(set("xhpl", xhpl.to_str().unwrap()));
    command.args(set("hpl_tune", env!("CARGO_BIN_EXE_hpl-tune")));
    command.args(set("dat", home.join("HPL.dat").to_str().unwrap()));
    if !earlier.is_empty() {
        command.args(set("earlier", home.join(earlier).to_str().unwrap()));
    }
    // Its settings of this user, and a file of its own in the home folder, are left alone.
    command.env("HOME", home).env("TMPDIR", home).env_remove("RFM_CONFIG_FILES").current_dir(home);
    command.output().unwrap()
}

/// Passes the first time and after slower runs, fails after faster ones.
#[test]
#[ignore = "needs ReFrame: tests/run --install"]
fn reframe_tells_slower_runs() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let dat = crate::program::hpl_dat(home, 300, 32, 1, 1);
    let text = std::fs::read_to_string(&dat).unwrap();
    // Seven runs of one N.
    let repeated: Vec<String> = text
        .lines()
        .map(|line| match line {
            _ if line.ends_with("# of problems sizes (N)") => "7 # of problems sizes (N)".to_owned(),
            _ if line.ends_with("Ns") => format!("{} Ns", ["300"; 7].join(" ")),
            _ => line.to_owned(),
        })
        .collect();
    std::fs::write(&dat, repeated.join("\n") + "\n").unwrap();
    let passed = |output: &Output| {
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            text.contains("PASSED") || text.contains("FAILED"),
            "{text}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        (output.status.success(), text)
    };
    let (good, text) = passed(&reframe(home, ""));
    assert!(good, "{text}");
    // What it has left is what the next nights are compared with: here at
    // rates that no other work on the machine explains.
    let left =
        Command::new("find").arg("out/output").args(["-name", "tonight.json"]).current_dir(home).output().unwrap();
    let left = std::fs::read_to_string(home.join(String::from_utf8_lossy(&left.stdout).trim())).unwrap();
    assert_eq!(left.lines().count(), 7);
    let at_rate = |name: &str, factor: f64| {
        let line = |line: &str| {
            let mut result: space::RunResult = serde_json::from_str(line).unwrap();
            result.rate_gflops *= factor;
            serde_json::to_string(&result).unwrap() + "\n"
        };
        std::fs::write(home.join(name), left.lines().map(line).collect::<String>()).unwrap();
    };
    at_rate("slow.json", 1e-3);
    at_rate("fast.json", 1e3);
    let (good, text) = passed(&reframe(home, "slow.json"));
    assert!(good && text.contains("GFLOP/s"), "{text}");
    let (good, text) = passed(&reframe(home, "fast.json"));
    assert!(!good && text.contains("ended with 6") && text.contains("slower"), "{text}");
}
