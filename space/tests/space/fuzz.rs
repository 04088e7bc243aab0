//! Many thousand malformed HPL.dat: no panic, no hang, and what is accepted is what Netlib's reader takes.

use std::panic::catch_unwind;
use std::time::{Duration, Instant};

use space::Swap;
use space::dat::{DatError, HplDat, MAX_RUNS};
use space::params::Coded;

use crate::mutate::malformed;

/// No file takes longer, on the busiest machine.
const SLOWEST: Duration = Duration::from_secs(20);

/// What became of some cases.
#[derive(Debug, Default)]
struct Count {
    accepted: usize,
    /// By the line that is named; 0 for too many runs.
    rejected: [usize; 32],
    slowest: Duration,
}

fn run(cases: std::ops::Range<u64>) -> Count {
    let mut count = Count::default();
    for case in cases {
        let bytes = malformed(case);
        let start = Instant::now();
        let outcome = catch_unwind(|| try_one(&bytes));
        let time = start.elapsed();
        count.slowest = count.slowest.max(time);
        let text = || String::from_utf8_lossy(&bytes).into_owned();
        assert!(time < SLOWEST, "case {case} took {time:?}:\n{}", text());
        match outcome {
            Ok(None) => count.accepted += 1,
            Ok(Some(line)) => count.rejected[line] += 1,
            Err(_) => panic!("case {case}:\n{}", text()),
        }
    }
    count
}

/// Checks one file; the line that it is rejected for.
fn try_one(bytes: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(bytes);
    match HplDat::parse(&text) {
        Err(error) => Some(named_line(&error)),
        Ok(dat) => {
            accepted(&text, &dat);
            None
        }
    }
}

/// The line that the message names, which must be fit for a terminal.
fn named_line(error: &DatError) -> usize {
    let message = error.to_string();
    assert!(message.len() < 400 && !message.contains(|c: char| c.is_control()), "{message:?}");
    if let DatError::TooManyRuns { runs } = error {
        assert!(*runs > MAX_RUNS as f64);
        return 0;
    }
    let number = message.strip_prefix("HPL.dat line ").unwrap().split(':').next().unwrap().parse().unwrap();
    assert!((1..=31).contains(&number), "{message}");
    number
}

/// What is accepted can be run, written and read again, and means the same to Netlib's reader.
fn accepted(text: &str, dat: &HplDat) {
    let runs = dat.runs();
    assert!((1..=MAX_RUNS).contains(&runs.len()));
    assert!(runs.iter().all(|run| run.nb >= 1 && run.p >= 1 && run.q >= 1 && run.ndiv >= 2 && run.align >= 1));
    match dat.write() {
        // Control characters of comments are not written.
        Ok(text) => {
            let back = HplDat::parse(&text).unwrap();
            assert_eq!(HplDat { comments: dat.comments.clone(), ..back }, *dat);
        }
        Err(error) => assert!(matches!(error, DatError::Value { line: 3, .. }), "{error}"),
    }
    assert_eq!(netlib(text), (numbers_of(dat), dat.threshold));
}

/// All numbers of a file in its order but for the device and the thresholds.
fn numbers_of(dat: &HplDat) -> Vec<i64> {
    fn list(all: &mut Vec<i64>, values: impl ExactSizeIterator<Item = usize>) {
        all.push(values.len() as i64);
        all.extend(values.map(|value| value as i64));
    }
    let mut all = Vec::new();
    list(&mut all, dat.ns.iter().copied());
    list(&mut all, dat.nbs.iter().copied());
    all.push(dat.pmap.code() as i64);
    list(&mut all, dat.grids.iter().map(|grid| grid.0));
    all.extend(dat.grids.iter().map(|grid| grid.1 as i64));
    list(&mut all, dat.pfacts.iter().map(|value| value.code()));
    list(&mut all, dat.nbmins.iter().copied());
    list(&mut all, dat.ndivs.iter().copied());
    list(&mut all, dat.rfacts.iter().map(|value| value.code()));
    list(&mut all, dat.bcasts.iter().map(|value| value.code()));
    list(&mut all, dat.depths.iter().copied());
    let (l1, u) = (dat.l1.code() as i64, dat.u.code() as i64);
    all.extend([dat.swap.code() as i64, l1, u, i64::from(dat.equil), dat.align as i64]);
    if let Swap::Mix { threshold } = dat.swap {
        all.push(threshold as i64);
    }
    all
}

/// What Netlib's reader takes from a file (\[HPL\] `HPL_pdinfo.c`): a word of each line, of a list as many as its
/// count, each time on by the length of the word plus one.
fn netlib(text: &str) -> (Vec<i64>, f64) {
    let mut lines = text.lines().skip(4);
    let mut all = Vec::new();
    let word_of = |line: &str| line.split_ascii_whitespace().next().expect("no blank line is accepted").to_owned();
    let atoi = |word: &str| word.parse::<i64>().expect("no other words are accepted");
    let list = |all: &mut Vec<i64>, lines: &mut dyn Iterator<Item = &str>, rows: usize| {
        let count = atoi(&word_of(lines.next().unwrap()));
        assert!((1..=20).contains(&count));
        all.push(count);
        for _ in 0..rows {
            let (line, mut at) = (lines.next().unwrap(), 0);
            for _ in 0..count {
                let word = word_of(&line[at..]);
                all.push(atoi(&word));
                at += word.len() + 1;
            }
        }
    };
    list(&mut all, &mut lines, 1);
    list(&mut all, &mut lines, 1);
    all.push(atoi(&word_of(lines.next().unwrap())));
    list(&mut all, &mut lines, 2);
    let threshold = word_of(lines.next().unwrap()).parse().unwrap();
    for _ in 0..6 {
        list(&mut all, &mut lines, 1);
    }
    let tail: Vec<i64> = lines.take(6).map(|line| atoi(&word_of(line))).collect();
    let [swap, swap_threshold, l1, u, equil, align] = tail.try_into().unwrap();
    all.extend([swap, l1, u, equil, align]);
    all.extend((swap == 2).then_some(swap_threshold));
    (all, threshold)
}

#[test]
fn a_sample_of_malformed_files() {
    let count = run(0..5_000);
    let rejected: usize = count.rejected.iter().sum();
    assert!(count.accepted > 300 && rejected > 3_000, "{count:?}");
    // Each line can be what is wrong.
    assert!(count.rejected.iter().all(|&of_line| of_line > 0), "{count:?}");
}

/// All: `cargo test --release -p space --test space -- --ignored --nocapture malformed`.
#[test]
#[ignore = "a hundred thousand files"]
fn a_hundred_thousand_malformed_files() {
    let start = Instant::now();
    let count = run(0..100_000);
    let rejected: usize = count.rejected.iter().sum();
    println!(
        "{} accepted, {rejected} rejected in {:.1} s, the slowest in {:.1} ms; by line (0: too many runs): {:?}",
        count.accepted,
        start.elapsed().as_secs_f64(),
        count.slowest.as_secs_f64() * 1e3,
        count.rejected
    );
    assert_eq!(count.accepted + rejected, 100_000);
}
