//! A landscape of our own engine on two cores, for judging searches: a factorial plan, every configuration once in random
//! order, those that looked best four times more.

use std::collections::HashMap;
use std::fs::{OpenOptions, read_to_string};
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use hpl::program::{RunOptions, Runner};
use objectives::predict::Predictor;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use space::machine::Machine;
use space::params::Coded;
use space::{Bcast, Candidate, EngineParams, HplParams, KernelChoice, Looking, Share, Swap};

use crate::Flags;

const LAYOUTS: [(usize, usize, usize); 3] = [(1, 1, 2), (1, 2, 1), (2, 1, 1)];
const NBS: [usize; 12] = [32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320];
const PFACTS: [Looking; 3] = [Looking::Right, Looking::Crout, Looking::Left];
const NBMINS: [usize; 2] = [4, 16];
const DEPTHS: [usize; 3] = [0, 1, 2];
const BCASTS: [Bcast; 3] = [Bcast::OneRingM, Bcast::TwoRing, Bcast::Long];
const SWAPS: [Swap; 3] = [Swap::Mix { threshold: 64 }, Swap::Long, Swap::BinExch];
const SPLITS: [f64; 2] = [0.0, 0.3];

/// Configurations that are run again, and how often.
const LEADERS: usize = 150;
const REPEATS: usize = 4;
/// The usual configuration is run again after so many others, to show whether the machine kept its speed.
const BETWEEN: usize = 20;

const NAMES: &str = "nb,p,q,threads,pfact,nbmin,bcast,depth,swap,split";

/// The configuration's cells under [`NAMES`].
fn cells(candidate: &Candidate) -> String {
    let (hpl, engine) = (&candidate.hpl, &candidate.engine);
    let HplParams { nb, p, q, nbmin, depth, .. } = hpl;
    let (threads, split) = (engine.threads, engine.split.get());
    let (pfact, bcast, swap) = (hpl.pfact.name(), hpl.bcast.name(), hpl.swap.name());
    format!("{nb},{p},{q},{threads},{pfact},{nbmin},{bcast},{depth},{swap},{split}")
}

/// All configurations of order `n`; what cannot matter has the first of its values.
fn plan(n: usize) -> Vec<Candidate> {
    let lengths =
        [LAYOUTS.len(), NBS.len(), PFACTS.len(), NBMINS.len(), DEPTHS.len(), BCASTS.len(), SWAPS.len(), SPLITS.len()];
    let one = |index: usize| {
        let mut rest = index;
        let [layout, nb, pfact, nbmin, depth, bcast, swap, split] = lengths.map(|length| {
            let level = rest % length;
            rest /= length;
            level
        });
        let (p, q, threads) = LAYOUTS[layout];
        let matters = (q > 1 || bcast == 0) && (p > 1 || swap + split == 0);
        let hpl = HplParams {
            nb: NBS[nb],
            pfact: PFACTS[pfact],
            nbmin: NBMINS[nbmin],
            depth: DEPTHS[depth],
            bcast: BCASTS[bcast],
            swap: SWAPS[swap],
            ..HplParams::baseline(n, p, q)
        };
        let split = Share::new(SPLITS[split]).expect("a share");
        matters.then(|| Candidate { hpl, engine: EngineParams { threads, split, ..EngineParams::default() } })
    };
    (0..lengths.iter().product()).filter_map(one).collect()
}

/// `candidates` with the usual one before every [`BETWEEN`] of them.
fn with_usual(candidates: &[Candidate]) -> Vec<Candidate> {
    let usual = Candidate { hpl: HplParams::baseline(candidates[0].hpl.n, 1, 2), engine: EngineParams::default() };
    candidates.chunks(BETWEEN).flat_map(|some| [std::slice::from_ref(&usual), some].concat()).collect()
}

/// What is run, in its order: the first rates of all must be known before the leaders are.
fn order(n: usize, first: &HashMap<String, f64>) -> Vec<Candidate> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut once = plan(n);
    once.shuffle(&mut rng);
    let mut all = with_usual(&once);
    let rate = |candidate: &Candidate| first.get(&cells(candidate)).copied();
    if once.iter().all(|candidate| rate(candidate).is_some()) {
        once.sort_by(|a, b| rate(b).partial_cmp(&rate(a)).expect("rates are finite"));
        once.truncate(LEADERS);
        for _ in 0..REPEATS {
            once.shuffle(&mut rng);
            all.extend(with_usual(&once));
        }
    }
    all
}

/// The rows of the table at `path`: the configuration's cells and the rate.
fn read(path: &Path) -> Vec<(String, f64)> {
    let text = read_to_string(path).unwrap_or_default();
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        let (candidate, measured) = cells.split_at(NAMES.split(',').count());
        (candidate.join(","), measured[1].parse().expect("a rate"))
    };
    text.lines().skip(1).map(row).collect()
}

/// Runs what the table lacks, until the seconds are used.
pub(crate) fn measure(flags: &Flags) {
    let (path, n, seconds) = (flags.path("--table"), flags.number("--n", 4000), flags.number("--seconds", 500));
    let runner = Runner::new(&KernelChoice::Builtin).expect("built-in kernels");
    let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("a file to write");
    if read(&path).is_empty() {
        writeln!(file, "{NAMES},time_s,rate_gflops,passed").expect("a header written");
    }
    let start = Instant::now();
    loop {
        let rows = read(&path);
        let first = rows.iter().rev().cloned().collect();
        let all = order(n, &first);
        println!("{} of {} runs are there, {:.0} s", rows.len(), all.len(), start.elapsed().as_secs_f64());
        if rows.len() == all.len() || start.elapsed().as_secs() >= seconds as u64 {
            return;
        }
        for candidate in all[rows.len()..].iter().take_while(|_| start.elapsed().as_secs() < seconds as u64) {
            let options = RunOptions { threshold: 16.0, force: false, watch: &() };
            let run = runner.run(candidate, &options).expect("a run").result;
            let passed = u8::from(run.passed);
            writeln!(file, "{},{:.6},{:.4},{passed}", cells(candidate), run.time_s, run.rate_gflops)
                .expect("a row written");
        }
    }
}

/// What a calibrated machine's model says of each configuration, as a table of its own.
pub(crate) fn predict(flags: &Flags) {
    let text = read_to_string(flags.path("--machine")).expect("a machine");
    let predictor = Predictor::new(&Machine::parse(&text).expect("a machine")).expect("rates");
    let row = |candidate: &Candidate| format!("{},{:.4}\n", cells(candidate), predictor.rate_gflops(candidate));
    let rows: String = plan(flags.number("--n", 4000)).iter().map(row).collect();
    std::fs::write(flags.path("--table"), format!("{NAMES},rate_gflops\n{rows}")).expect("a file to write");
}
