//! The file of `--result`.

use super::{DAT, folder, refuses, xhpl};

#[test]
fn a_result_that_cannot_be_written_is_refused_before_the_run() {
    let folder = folder(DAT);
    let flags: [&[&str]; 2] = [&[], &["--windows", "auto"]];
    for flags in flags {
        let refused = xhpl(&folder, &[&["--result", "none/result.json"], flags].concat());
        refuses(&refused, 5, &["cannot write to --result none/result.json", "No such file"]);
    }
}
