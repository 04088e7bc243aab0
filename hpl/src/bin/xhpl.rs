//! The program `xhpl`.

use std::process::ExitCode;

fn main() -> ExitCode {
    hpl::program::xhpl::main()
}
