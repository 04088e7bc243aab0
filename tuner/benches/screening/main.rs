//! What a session takes before its first run on machines of many sizes, and whether its short way to predict candidates
//! orders them as the exact walk does.
//!
//!     cargo bench -p hpl-tune --bench screening                    # seconds and memory of the real program, on one core
//!     cargo bench -p hpl-tune --bench screening -- ranking [draws] # against all steps on all ranks
//!
//! The machines are made up; nothing here is a measurement of one.

#[path = "../../../tests/machines.rs"]
mod machines;
mod ranking;

use machines::{begin, machine};

/// Name, nodes, cores of a node, NUMA domains of a node, bytes of a node; limits in seconds and MB.
type Case = (&'static str, usize, usize, usize, u64, f64, u64);

const CASES: [Case; 5] = [
    ("16 cores", 1, 16, 1, 64 << 30, 1.5, 200),
    ("64 cores", 1, 64, 2, 256 << 30, 4.0, 400),
    ("192 cores, 2 sockets, 8 NUMA domains", 1, 192, 8, 768 << 30, 4.0, 400),
    ("64 nodes × 128 cores", 64, 128, 8, 512 << 30, 15.0, 1000),
    ("9408 nodes × 8 ranks", 9408, 8, 1, 512 << 30, 60.0, 2000),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == "ranking") {
        let draws = words.get(1).and_then(|word| word.parse().ok()).unwrap_or(200);
        return ranking::report(draws);
    }
    println!("machine                                  seconds (limit)    MB (limit)  candidates");
    for (name, nodes, cores, domains, memory_bytes, limit_s, limit_mb) in CASES {
        // Four fifths of the memory are for the matrix.
        let machine = machine(nodes, cores, domains, memory_bytes / 5 * 4);
        let begun = begin(&["taskset", "-c", "0"], env!("CARGO_BIN_EXE_hpl-tune"), &machine);
        let candidates = begun.said.iter().find(|line| line.contains("candidates")).cloned().unwrap_or_default();
        let mb = begun.peak_bytes / 1_000_000;
        println!("{name:<40} {:>7.2} ({limit_s:>4.1})  {mb:>7} ({limit_mb:>4})  {candidates}", begun.seconds);
        if !begun.said.last().is_some_and(|line| line.starts_with("searching")) {
            println!("  did not search: {:?}", begun.said);
        }
    }
}
