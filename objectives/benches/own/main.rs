//! How well the calibrated timeline predicts our own engine: uniform draws from the whole search space, each run once.
//!
//!     cargo bench -p objectives --bench own -- measure --n 4000 --draws 60 --seed 1 --rows FILE [--rounds 4] [--seconds S]
//!     cargo bench -p objectives --bench own -- calibrate --machine machine.toml --n 4000 --seconds 20
//!     cargo bench -p objectives --bench own -- judge --rows FILE --machine machine.toml
//!     cargo bench -p objectives --bench own -- refine --rows FILE --machine machine.toml
//!     cargo bench -p objectives --bench own -- landscape --n 4000 --table FILE.csv [--seconds S]
//!     cargo bench -p objectives --bench own -- record --n 4000 --draws 1000 --seed 1 --table FILE.csv [--seconds S] SCENARIO
//!     cargo bench -p objectives --bench own -- predict --n 4000 --machine machine.toml --table FILE.csv
//!
//! `measure`, `landscape` and `record` go on where FILE ends, so that a long series can be taken in short turns; the others only read. `landscape` and `predict` write the
//! tables of `datasets/landscapes/xhpl-own-n4000.toml`. Noise of a machine
//! that others share from outside only ever slows: the quickest of a candidate's runs is its time, the quickest of its odd runs
//! beside that of its even ones the noise left. `refine` corrects the model by the first candidates and predicts the last.
//!
//! `record` draws points of the whole search space of this machine, each once; a run that fails, or takes longer than `--limit`
//! seconds (60) where it is a command, is a row with `passed` 0. Its SCENARIO is our engine on threads of this process, unless:
//!
//!     --slow KERNELS --speed PART                   two ranks, the second on slower kernels that reach this part of the first's speed
//!     --busy-core CPU                               another program takes this CPU: 50 ms of work, 50 ms of sleep
//!     --launcher WORDS --program XHPL --guard HPL_TUNE [--ranks R] [--most-threads T]       our xhpl, its ranks processes
//!     --engine netlib --launcher WORDS --program XHPL --guard HPL_TUNE                      another program, by its profile

mod draws;
mod judge;
mod landscape;
mod record;
mod refine;

use std::path::PathBuf;

use objectives::calibration::{CalibrationOptions, calibrate as measure_machine};

/// Words after the verb, in pairs `--key value`.
struct Flags(Vec<String>);

impl Flags {
    fn text(&self, key: &str) -> Option<&str> {
        let at = self.0.iter().position(|word| word == key)?;
        self.0.get(at + 1).map(String::as_str)
    }

    fn number(&self, key: &str, default: usize) -> usize {
        self.text(key).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{key} {text}: no number")))
    }

    fn path(&self, key: &str) -> PathBuf {
        PathBuf::from(self.text(key).unwrap_or_else(|| panic!("{key} FILE is missing")))
    }
}

fn main() {
    // `cargo bench` adds `--bench`.
    let mut words = std::env::args().skip(1).filter(|word| word != "--bench");
    let verb = words.next();
    let flags = Flags(words.collect());
    match verb.as_deref() {
        Some("measure") => draws::measure(&flags),
        Some("calibrate") => calibrate(&flags),
        Some("judge") => judge::judge(&flags),
        Some("refine") => refine::refine(&flags),
        Some("landscape") => landscape::measure(&flags),
        Some("record") => record::record(&flags),
        // Started by `record`.
        Some(record::VERB) => record::take(&flags),
        Some("predict") => landscape::predict(&flags),
        _ => println!("measure, calibrate, judge, refine, landscape, record or predict: see the head of this file"),
    }
}

/// A calibration as a session makes it.
fn calibrate(flags: &Flags) {
    let options = CalibrationOptions {
        kernels: space::KernelChoice::Builtin,
        cores: hpl::machine::host::facts().cores_allowed,
        budget_s: flags.number("--seconds", 20) as f64,
        max_n: flags.number("--n", 4000),
        origin: "bench own".to_owned(),
    };
    let found = measure_machine(&options, &mut |_, _| ()).expect("a calibration");
    println!("{:.1} s, warnings: {:#?}", found.elapsed_s, found.warnings);
    for rate in &found.machine.phases {
        let (spread, error) = (100.0 * rate.spread, 100.0 * rate.fit_error);
        println!(
            "{:?} {} threads, {} runs, N {:?}: spread {spread:.1} %, error {error:.1} %, {:?}",
            rate.phase, rate.threads, rate.runs, rate.n, rate.coefficients
        );
    }
    let text = found.machine.to_toml().expect("a description");
    std::fs::write(flags.path("--machine"), text).expect("a file to write");
}
