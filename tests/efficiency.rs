//! Sessions that search for efficiency, or below a power limit, with clock and power limit varied: on a simulated node whose true best is
//! known.

use std::path::Path;
use std::sync::OnceLock;

use objectives::simulated::{Asked, Clock, SimulatedCluster, SimulatedRun};
use space::domain::{DomainSpec, HplDomain, Limits, SettingsDomain};
use space::{Candidate, Candidates, KernelChoice, Unequal};
use tuner::record::session::Session;
use tuner::record::{Identity, Row};
use tuner::report::Summary;

use crate::docs::pages::root;
use crate::program::{err, out, tune};
use crate::tune::rows;

const N: usize = 20_000;
/// The trials of a search.
const TRIALS: usize = 20;
/// Simulated time for about as many, the final run and the comparisons after it.
const BUDGET: &str = "28m";

/// What is searched besides clock and power limit.
const SPACE: &str = "\
[nb]\nvalues = [64, 128, 192, 256, 384]\n[nbmin]\nfixed = 8\n[ndiv]\nfixed = 2\n[pfact]\nfixed = 'right'\n[rfact]\nfixed = 'crout'\n\
[bcast]\nvalues = ['1ringM', 'long']\n[swap]\nfixed = 'long'\n[split]\nvalues = [0.0, 0.5]\n[depth]\nvalues = [0, 1]\n";

fn cluster() -> SimulatedCluster {
    let text = std::fs::read_to_string(root().join("datasets/simulated/clocks.toml")).unwrap();
    SimulatedCluster { noise: 0.0, ..SimulatedCluster::parse(&text).unwrap() }
}

/// A candidate with what it truly does, noise aside.
struct Truth {
    rate_gflops: f64,
    core_w: f64,
    run_gflops_per_w: f64,
}

fn truth(cluster: &SimulatedCluster, candidate: &Candidate) -> Truth {
    let run = cluster.run(candidate, Asked::Whole, Clock::default()).unwrap();
    let power = cluster.power(candidate, &run).unwrap();
    let SimulatedRun::Whole(result, _) = &run else { panic!("{run:?}") };
    let rate_gflops = result.rate_gflops;
    Truth { rate_gflops, core_w: power.core_w, run_gflops_per_w: rate_gflops / power.run_w }
}

/// All points of the searched space, in truth.
fn space() -> &'static Vec<Truth> {
    static ALL: OnceLock<Vec<Truth>> = OnceLock::new();
    ALL.get_or_init(|| {
        let cluster = cluster();
        let node = cluster.node();
        let spec = DomainSpec {
            n: N,
            cores: node.cores,
            memory_bytes: u64::MAX,
            kernels: KernelChoice::Builtin,
            ranks: None,
            threads: None,
            most_threads: Some(node.cores),
            common_cores: None,
            unequal: Unequal::default(),
        };
        let limits = Limits::parse(SPACE).unwrap();
        let inner = HplDomain::within(&spec, &limits).unwrap();
        let domain = SettingsDomain::new(Box::new(inner), &cluster.setting_levels(), &limits).unwrap();
        let points = space::dims::Space::points(&domain);
        points.iter().map(|point| truth(&cluster, &domain.candidate(point))).collect()
    })
}

/// A session with this seed of all that is random, and these further flags.
fn played(seed: u64, flags: &[&str], folder: &Path) -> (Vec<Row>, Summary, String) {
    let text = std::fs::read_to_string(root().join("datasets/simulated/clocks.toml")).unwrap();
    let [file, limits] = ["clocks.toml", "limits.toml"].map(|name| folder.join(name));
    std::fs::write(&file, text.replace("seed = 1\n", &format!("seed = {seed}\n"))).unwrap();
    std::fs::write(&limits, SPACE).unwrap();
    let (run, seed, n) = (folder.join("run"), seed.to_string(), N.to_string());
    let words = ["--budget", BUDGET, "--n", &n, "--seed", &seed, "--vary", "clock,power-cap", "--space"];
    let places = [limits.to_str().unwrap(), "--simulate", file.to_str().unwrap(), "--out", run.to_str().unwrap()];
    let output = tune(words.iter().chain(&places).chain(flags));
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let session = Session::load(&run.join("session.toml")).unwrap();
    let rows = session.split(rows(&run)).all;
    let summary = Summary::new(&session, &rows);
    (rows, summary, out(&output))
}

/// What the session chose after how many trials.
fn chosen(rows: &[Row]) -> (usize, Candidate) {
    let at = rows.iter().position(|row| row.strategy == Identity::FINAL && row.passed).unwrap();
    (at, rows[at].candidate().at_n(N))
}

/// Sessions by efficiency that are within 1 % of the best of the space after at most so many trials.
fn by_efficiency(seeds: std::ops::RangeInclusive<u64>, most_trials: usize) -> usize {
    let best = space().iter().map(|point| point.run_gflops_per_w).fold(0.0, f64::max);
    let fastest = space().iter().max_by(|a, b| a.rate_gflops.total_cmp(&b.rate_gflops)).unwrap();
    println!(
        "{} candidates, the best has {best:.4} GFLOPS/W, the fastest {:.4} at {:.1} GFLOP/s",
        space().len(),
        fastest.run_gflops_per_w,
        fastest.rate_gflops
    );
    assert!(space().len() >= 2000);
    let within = |seed: u64| {
        let folder = tempfile::tempdir().unwrap();
        let (rows, ..) = played(seed, &["--objective", "gflops-per-watt"], folder.path());
        let (trials, candidate) = chosen(&rows);
        let found = truth(&cluster(), &candidate).run_gflops_per_w;
        let loss = 100.0 * (1.0 - found / best);
        let (hpl, settings) = (candidate.hpl, candidate.engine.settings);
        println!(
            "seed {seed:2}: {trials} trials, NB {} {}×{}×{}t DEPTH {} at {} MHz, {} W: {found:.4} GFLOPS/W, {loss:.2} % below the best",
            hpl.nb,
            hpl.p,
            hpl.q,
            candidate.engine.threads,
            hpl.depth,
            settings.max_clock_mhz.unwrap(),
            settings.package_limit_w.unwrap()
        );
        assert!(rows.iter().all(|row| row.max_clock_mhz.is_some() && row.power_source.as_deref() != Some("measured")));
        trials <= most_trials && loss <= 1.0
    };
    seeds.filter(|&seed| within(seed)).count()
}

#[test]
fn two_searches_for_efficiency_find_the_clock() {
    // How many trials fit depends a little on how busy this machine is.
    assert!(by_efficiency(1..=2, TRIALS + 5) >= 1);
}

/// By hand, in some minutes:
/// `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture efficiency::twenty_searches`.
#[test]
#[ignore = "20 sessions; run by hand"]
fn twenty_searches_for_efficiency_find_the_clock() {
    let good = by_efficiency(1..=20, TRIALS);
    println!("{good} of 20 are within 1 % of the best after at most {TRIALS} trials");
    assert!(good >= 18);
}

/// Of the candidates below the limit the fastest is found, and it is below the limit in truth.
#[test]
fn below_a_power_limit_the_fastest_is_found() {
    const LIMIT_W: f64 = 190.0;
    let below = space().iter().filter(|point| point.core_w <= LIMIT_W);
    let best = below.map(|point| point.rate_gflops).fold(0.0, f64::max);
    let folder = tempfile::tempdir().unwrap();
    let (rows, summary, said) = played(3, &["--power-limit", "0.19kW"], folder.path());
    let (trials, candidate) = chosen(&rows);
    let found = truth(&cluster(), &candidate);
    println!(
        "{trials} trials: {:.2} GFLOP/s at {:.1} W, {:.2} % below the best at {LIMIT_W} W",
        found.rate_gflops,
        found.core_w,
        100.0 * (1.0 - found.rate_gflops / best)
    );
    assert!(found.core_w <= 1.01 * LIMIT_W && found.rate_gflops >= 0.97 * best);
    assert!(rows.iter().any(|row| row.power_w.is_some_and(|watts| watts > LIMIT_W)), "the usual one is above");
    assert!(rows.iter().all(|row| row.power_limit_w == Some(190)));
    assert_eq!(summary.best.unwrap().candidate.at_n(N), candidate);
    let line = said.lines().find(|line| line.starts_with("Objective")).unwrap_or_else(|| panic!("{said}"));
    assert!(line.contains("at no more than 190 W in the core phase; the best takes "), "{line}");
    let page = std::fs::read_to_string(folder.path().join("run/report.html")).unwrap();
    assert!(page.contains("no more than 190 W") && page.contains("max_clock_mhz"));
}

#[test]
fn a_limit_that_nothing_keeps_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, summary, said) = played(4, &["--power-limit", "50W"], folder.path());
    let least = rows.iter().filter(|row| row.passed).filter_map(|row| row.power_w).fold(f64::INFINITY, f64::min);
    assert!(summary.best.unwrap().power_w.unwrap() <= 1.02 * least);
    assert!(said.contains("no candidate keeps it: the best takes "), "{said}");
}

#[test]
fn a_power_limit_needs_a_source_and_belongs_to_the_rate() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    let refused = |flags: &[&str], expected: &str| {
        let words =
            ["--budget", "30s", "--power-root", home.path().to_str().unwrap(), "--out", folder.to_str().unwrap()];
        let output = tune(words.iter().chain(flags));
        assert_eq!(output.status.code(), Some(2), "{}", err(&output));
        assert!(err(&output).contains(expected), "{expected}: {}", err(&output));
        assert!(!folder.exists());
    };
    refused(&["--power-limit", "10kW"], "--power-limit: power: not recorded, no sensor was found");
    refused(&["--power-limit", "10kW", "--objective", "gflops-per-watt"], "is a limit of --objective gflops");
    refused(&["--power-limit", "10"], "write it with its unit, as 800W, 10kW or 2.5MW");
}
