//! How well the calibrated timeline predicts our own engine: uniform draws from the whole search space, each run once.
//!
//!     cargo bench -p objectives --bench own -- measure --n 4000 --draws 60 --seed 1 --rows FILE [--seconds S]
//!     cargo bench -p objectives --bench own -- judge --rows FILE --machine machine.toml
//!
//! `measure` goes on where FILE ends, so that a long series can be taken in short turns; `judge` only reads.

mod draws;

use std::path::PathBuf;

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
        _ => println!("measure or judge: see the head of this file; both need a quiet machine or its rows"),
    }
}
