//! The timeline judged on Dahu: `cargo bench -p objectives --bench dahu -- [--rows] [FOLDER]`.
//!
//! Real runs of Netlib's program and SimGrid's predictions of them are read from FOLDER, `../shared/data/dahu` beside the repository
//! unless given: they are other people's and no part of it. Every `factorial*.csv` there is a set of configurations. Three parameters are fitted, for each level of the
//! timeline by itself, on three runs: the two smallest of 2019-03 and one configuration. See [`fit`].

mod fit;
mod judge;
mod runs;
mod slow;

use std::path::{Path, PathBuf};
use std::time::Instant;

use objectives::timeline::{Platform, Schedule, events, recursion};
use space::HplParams;
use space::machine::published;

use fit::{Fit, Level};
use judge::Case;

fn main() {
    let folder = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data/dahu");
    let folder = folder.map_or_else(beside, PathBuf::from);
    if !folder.is_dir() {
        println!("{} is no folder: nothing to judge on; name one with the tables", folder.display());
        return;
    }
    let data = runs::read(&folder);
    let rows = std::env::args().any(|argument| argument == "--rows");
    let machine = published::find("dahu").expect("it comes along").machine().expect("it is well formed");
    let platform = Platform::new(&machine).expect("it describes a platform");
    let levels: [(&str, Level); 2] = [
        ("recursion", |hpl, platform| recursion::time_s(hpl, platform, Schedule::Netlib)),
        ("events", |hpl, platform| events::time_s(hpl, platform, Schedule::Netlib)),
    ];
    for (name, level) in levels {
        let start = Instant::now();
        let fit = fit::fit(&data, &platform, level);
        println!("## {name}: {fit}");
        for set in &data.sets {
            let platform = fit.platform(&platform, &data.speeds(set.slow_nodes));
            let cases: Vec<Case> = set.runs.iter().map(|run| Case::new(run, level(&run.hpl, &platform))).collect();
            judge::print(&set.name, &cases, rows);
        }
        if name == "recursion" {
            slow::print(&data, &fit, &platform);
        }
        println!("{:.1} s\n", start.elapsed().as_secs_f64());
    }
}

/// Parameters that all runs have but for what they vary: NB 128, 32×32, BCAST 2ring, DEPTH 1, SWAP bin-exch.
fn usual(n: usize) -> HplParams {
    let (bcast, swap) = (space::Bcast::TwoRing, space::Swap::BinExch);
    HplParams { nb: 128, bcast, depth: 1, swap, ..HplParams::baseline(n, 32, 32) }
}

/// The fitted parameters as text.
impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { dgemm, pivot_s, link_s_per_byte, errors } = self;
        let [a, b, c] = errors.map(|error| 100.0 * error);
        write!(f, "3 parameters fitted on 3 runs: DGEMM × {dgemm:.3}, pivot {:.1} us, ", 1e6 * pivot_s)?;
        write!(f, "link {:.1} GB/s; errors there {a:+.1} {b:+.1} {c:+.1} %", 1e-9 / link_s_per_byte)
    }
}
