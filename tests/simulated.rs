//! Sessions on simulated clusters, whose true best is known.

use std::collections::{HashMap, HashSet};
use std::num::NonZero;
use std::path::Path;
use std::thread;
use std::time::Instant;

use objectives::predict::Predictor;
use objectives::real::Extent;
use objectives::simulated::SimulatedCluster;
use space::domain::{DomainSpec, HplDomain, Limits, WeightedDomain};
use space::{Candidate, Candidates, KernelChoice, Unequal};
use tuner::record::session::{RowsByPlace, Session};
use tuner::record::{Identity, Outcome, Row, journal};
use tuner::search::model_prior;

use crate::program::{err, out, tune};
use crate::tune::rows;

/// Candidates with the best predictions that are compared to find the best in truth.
const FIRST: usize = 1000;

fn file(name: &str) -> String {
    format!("{}/../datasets/simulated/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

/// How much longer, in proportion, a whole run of `chosen` takes in truth than the best of the searched space does, noise aside;
/// by equal shares alone where `weighted` is false.
fn regret(cluster: &SimulatedCluster, chosen: &Candidate, weighted: bool) -> f64 {
    cluster.truth().timeline(chosen).total_s / best_s(cluster, chosen.hpl.n, weighted) - 1.0
}

/// Seconds that a whole run of the best of the searched space takes in truth at `n`.
fn best_s(cluster: &SimulatedCluster, n: usize, weighted: bool) -> f64 {
    let node = cluster.node();
    let unequal = if weighted { cluster.unequal() } else { Unequal::default() };
    let spec = DomainSpec {
        n,
        cores: node.count * node.cores,
        memory_bytes: u64::MAX,
        kernels: KernelChoice::Builtin,
        ranks: None,
        threads: None,
        most_threads: Some(node.cores),
        common_cores: None,
        unequal,
    };
    let domain: Box<dyn Candidates> = if spec.unequal.differs() {
        Box::new(WeightedDomain::within(&spec, &Limits::default()).unwrap())
    } else {
        Box::new(HplDomain::new(&spec).unwrap())
    };
    let predictor = Predictor::new(&cluster.machine).unwrap().slowed(cluster.unequal());
    let predicted = model_prior::table(domain.as_ref(), &predictor, Extent::Whole);
    let mut all: Vec<(f64, usize)> = predicted.log_rates_of_all().iter().copied().zip(0..).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    let first = all[..FIRST.min(all.len())].iter().map(|&(_, index)| domain.candidate(&domain.points()[index]));
    let first: Vec<Candidate> = first.collect();
    let best_s = |part: &[Candidate]| {
        let truth = cluster.truth();
        part.iter().map(|candidate| truth.timeline(candidate).total_s).fold(f64::INFINITY, f64::min)
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| {
        let parts = first.chunks(first.len().div_ceil(threads));
        let parts: Vec<_> = parts.map(|part| scope.spawn(move || best_s(part))).collect();
        parts.into_iter().map(|part| part.join().unwrap()).fold(f64::INFINITY, f64::min)
    })
}

/// What a session chose, at the order that it searched.
fn chosen(rows: &[Row]) -> Candidate {
    let n = rows[0].n;
    let last = rows.iter().rfind(|row| row.strategy == Identity::FINAL && row.passed).unwrap();
    last.candidate().at_n(n)
}

fn played(cluster: &str, budget: &str, seed: u64, folder: &Path) -> String {
    let words = ["--budget", budget, "--simulate", cluster, "--seed", &seed.to_string(), "--out"];
    let output = tune(words.iter().copied().chain([folder.to_str().unwrap()]));
    assert_eq!(output.status.code(), Some(0), "{}{}", out(&output), err(&output));
    out(&output) + &err(&output)
}

#[test]
fn a_night_on_four_simulated_nodes_finds_what_is_there_and_says_that_it_is_simulated() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    let begun = Instant::now();
    let said = played(&file("four-nodes"), "2h", 5, &folder);
    println!("two hours took {:.1} s", begun.elapsed().as_secs_f64());
    assert!(said.contains("Simulated     all of the following"), "{said}");
    assert!(said.contains("simulated-node-3: ") && said.contains("slower than typical"), "{said}");
    let text = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(text("HPL.dat").contains("GFLOP/s simulated") && text("run.sh").contains("GFLOP/s simulated"));
    assert!(text("report.html").contains("Simulated: no HPL has run"));
    let rows = rows(&folder);
    assert!(rows.iter().all(|row| row.engine == Row::SIMULATED));
    let session = Session::load(&folder.join("session.toml")).unwrap();
    let RowsByPlace { all: rows, some, elsewhere } = session.split(rows);
    assert_eq!(elsewhere, []);
    each_node_was_tried(&some, &rows);
    assert!(said.contains(&format!("trials on {} single nodes passed", session.hosts.len())), "{said}");
    let different: HashSet<Candidate> = rows.iter().map(Row::candidate).collect();
    assert!(different.len() >= 20, "{} candidates: {said}", different.len());
    // Runs hang and break off now and then; one of the first does, and rows lie in the order in which they ended.
    let hung = some.iter().find(|row| row.outcome == Outcome::TimedOut).expect("one of the first runs hangs");
    assert!(hung.wall_s < 900.0, "{hung:?}");
    assert!(rows[0].strategy == Identity::BASELINE, "{:?}", rows[0]);
    assert!(rows.iter().map(|row| row.wall_s).sum::<f64>() > 5000.0, "the clock is the simulated one");
    let cluster = SimulatedCluster::parse(&std::fs::read_to_string(file("four-nodes")).unwrap()).unwrap();
    let [by_weights, by_equal] = [true, false].map(|weighted| 100.0 * regret(&cluster, &chosen(&rows), weighted));
    println!("{by_weights:.2} % above the best, {by_equal:.2} % above that by equal shares");
    assert!(by_weights < 1.5, "{by_weights:.2} % above the best");
    // One of the four is slow, and does less.
    assert!(said.contains("speeds of the slower nodes simulated-node-3 0."), "{said}");
    assert!(!chosen(&rows).engine.weights.is_empty() && by_equal < -2.0, "{by_equal:.2} %");
}

/// Four nodes ran different candidates at the same time, each the reference, too, in less time than they took together; nothing of
/// it is a run on all nodes.
fn each_node_was_tried(some: &[Row], all: &[Row]) {
    let hosts: Vec<&str> = all[0].nodes.as_deref().unwrap().split(' ').collect();
    assert_eq!(hosts.len(), 4);
    for host in hosts {
        let of_node = || some.iter().filter(move |row| row.nodes.as_deref() == Some(host));
        assert!(of_node().any(|row| row.strategy == Identity::REFERENCE && row.passed), "{host}");
        assert!(of_node().filter(|row| row.strategy != Identity::REFERENCE).count() >= 3, "{host}");
        assert!(of_node().filter(|row| row.passed).all(|row| row.host == host), "the run says where it was");
    }
    let tried: Vec<&Row> = some.iter().filter(|row| row.strategy == "bayes" && row.repeat_of.is_none()).collect();
    let different: HashSet<Candidate> = tried.iter().map(|row| row.candidate()).collect();
    assert_eq!(different.len(), tried.len(), "one was run on two nodes");
    assert!(some.iter().all(|row| row.n == some[0].n && row.p * row.q * row.threads == 4) && some[0].n < all[0].n);
    assert!(all.iter().all(|row| row.p * row.q * row.threads == 16 && row.trial > some[some.len() - 1].trial));
    let left = || some.iter().map(|row| row.budget_left_s);
    let begun = some.iter().map(|row| row.budget_left_s + row.wall_s).fold(0.0, f64::max);
    let (passed_s, run_s) = (begun - left().fold(f64::MAX, f64::min), some.iter().map(|row| row.wall_s).sum::<f64>());
    assert!(run_s > 1.5 * passed_s, "{run_s:.0} s of runs in {passed_s:.0} s");
}

/// Resumes a session whose journal was cut, as it was when only these trials had begun: what the journal holds afterwards.
fn resumed(folder: &Path, has_begun: impl Fn(u64) -> bool) -> journal::Contents {
    for trial in std::fs::read_dir(folder.join("trials")).unwrap().map(|entry| entry.unwrap().path()) {
        if !has_begun(trial.file_name().unwrap().to_str().unwrap().parse().unwrap()) {
            std::fs::remove_dir_all(trial).unwrap();
        }
    }
    let mut session = Session::load(&folder.join("session.toml")).unwrap();
    session.elapsed_s = 0.0;
    session.save(&folder.join("session.toml")).unwrap();
    let output = tune(["--resume", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    // No program runs.
    assert!(!err(&output).contains("session.toml runs"), "{}", err(&output));
    journal::read(&folder.join("journal.jsonl")).unwrap()
}

/// A session that was killed while four nodes ran a batch, one of which had come to its end: the others run what they ran, on their
/// nodes and under their numbers, and then the session goes on.
#[test]
fn a_batch_that_was_killed_goes_on_on_its_nodes() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    played(&file("four-nodes"), "1h", 3, &folder);
    let path = folder.join("journal.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let before = journal::read(&path).unwrap().rows;
    // The second batch: its four starts follow the four ends of the first.
    let lines: Vec<&str> = whole.lines().collect();
    assert!(lines[8..12].iter().all(|line| line.contains("\"started\":")), "{}", lines[8]);
    std::fs::write(&path, lines[..13].join("\n") + "\n").unwrap();
    let ended = journal::read(&path).unwrap().rows[4].trial;
    let after = resumed(&folder, |trial| trial <= 3 || trial == ended);
    let key = |row: &Row| (row.trial, row.nodes.clone(), row.candidate(), row.why.clone());
    let batch = |rows: &[Row]| -> Vec<_> {
        let mut of: Vec<_> = rows.iter().filter(|row| (4..8).contains(&row.trial)).map(key).collect();
        of.sort_by_key(|(trial, ..)| *trial);
        of
    };
    assert_eq!(batch(&after.rows), batch(&before));
    let numbers: HashSet<u64> = after.rows.iter().map(|row| row.trial).collect();
    assert!(numbers.len() == after.rows.len() && after.under_way.is_empty(), "{:?}", after.under_way);
    assert!(after.rows.iter().any(|row| row.strategy == Identity::FINAL && row.passed));
}

/// The text of a cluster of `count` nodes like the four, on which no run hangs or breaks off.
fn small_nodes(count: usize, seed: u64) -> String {
    let text = std::fs::read_to_string(file("four-nodes")).unwrap();
    let more = text.replace("count = 4\n", &format!("count = {count}\n"));
    let joined = more.replace("ranks = 16\n", &format!("ranks = {}\n", 4 * count));
    let steady = joined.replace("breaks_off = 0.05\n", "breaks_off = 0.0\n").replace("hangs = 0.03\n", "hangs = 0.0\n");
    assert!(more != text && joined != more && steady != joined);
    steady.replace("seed = 1\n", &format!("seed = {seed}\n"))
}

/// Sixteen nodes, of which one is slow and shares no run: single ones first, then three groups of four at the same time, then all.
#[test]
fn groups_of_simulated_nodes_run_at_the_same_time() {
    let parent = tempfile::tempdir().unwrap();
    let (path, folder) = (parent.path().join("cluster.toml"), parent.path().join("run"));
    std::fs::write(&path, small_nodes(16, 1)).unwrap();
    let words = ["--budget", "1h", "--simulate", path.to_str().unwrap(), "--groups", "1,4", "--out"];
    let output = tune(words.iter().copied().chain([folder.to_str().unwrap()]));
    let said = out(&output) + &err(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    assert!(said.contains("trials on 16 single nodes passed"), "{said}");
    assert!(said.contains("trials on 3 groups of 4 nodes passed"), "{said}");
    let session = Session::load(&folder.join("session.toml")).unwrap();
    let RowsByPlace { all, some, elsewhere } = session.split(rows(&folder));
    assert_eq!(elsewhere, []);
    let (single, groups): (Vec<Row>, Vec<Row>) = some.into_iter().partition(|row| nodes(row).len() == 1);
    assert!(groups.iter().all(|row| nodes(row).len() == 4 && !nodes(row).contains(&"simulated-node-3")));
    let names: HashSet<&str> = groups.iter().filter_map(|row| row.nodes.as_deref()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        let of_group = || groups.iter().filter(move |row| row.nodes.as_deref() == Some(name));
        assert!(of_group().any(|row| row.strategy == Identity::REFERENCE && row.passed), "{name}");
        assert!(of_group().any(|row| row.strategy == "bayes"), "{name}");
    }
    // One stage after the other, each at an order by which a node holds as much.
    let last = |rows: &[Row]| rows.iter().map(|row| row.trial).max().unwrap();
    let first = |rows: &[Row]| rows.iter().map(|row| row.trial).min().unwrap();
    assert!(last(&single) < first(&groups) && last(&groups) < first(&all));
    assert!(groups.iter().all(|row| row.p * row.q * row.threads == 16));
    let of_a_node = |row: &Row, nodes: usize| (row.n as f64).powi(2) / nodes as f64;
    for (row, nodes) in [(&single[0], 1), (&groups[0], 4)] {
        assert!((of_a_node(row, nodes) / of_a_node(&all[0], 16) - 1.0).abs() < 0.05, "{}", row.n);
    }
    // Those of a batch began at the same moment of the cluster's clock.
    let begun = |row: &Row| (row.budget_left_s + row.wall_s).round() as i64;
    let moments: HashSet<i64> = groups.iter().map(begun).collect();
    let together = moments.iter().filter(|moment| groups.iter().filter(|row| begun(row) == **moment).count() == 3);
    assert!(together.count() >= 2, "{:?}", groups.iter().map(begun).collect::<Vec<_>>());
}

fn nodes(row: &Row) -> Vec<&str> {
    row.nodes.as_deref().unwrap_or_default().split(' ').collect()
}

/// What the sizes that are chosen by themselves, single nodes alone and groups of four are worth: the regrets of as many nights as
/// `HPL_TUNE_NIGHTS` says, on 16 small nodes or on the Dahu of `HPL_TUNE_CLUSTER=dahu`. By hand:
/// `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture simulated::nights_with_and_without_groups`.
#[test]
#[ignore = "a benchmark"]
fn nights_with_and_without_groups() {
    let variable = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let nights: u64 = variable("HPL_TUNE_NIGHTS", "5").parse().unwrap();
    let (is_dahu, budget) = (variable("HPL_TUNE_CLUSTER", "") == "dahu", variable("HPL_TUNE_NIGHT", "1h"));
    for seed in 1..=nights {
        let text = match is_dahu {
            true => std::fs::read_to_string(file("dahu")).unwrap().replace("seed = 1\n", &format!("seed = {seed}\n")),
            false => small_nodes(16, seed),
        };
        let cluster = SimulatedCluster::parse(&text).unwrap();
        for groups in variable("HPL_TUNE_GROUPS", "auto 1 1,4").split(' ') {
            let parent = tempfile::tempdir().unwrap();
            let (path, folder) = (parent.path().join("cluster.toml"), parent.path().join("run"));
            std::fs::write(&path, &text).unwrap();
            let seed_word = seed.to_string();
            let words = ["--budget", &budget, "--simulate", path.to_str().unwrap(), "--seed", &seed_word, "--out"];
            let sizes = ["--groups", groups];
            let sizes = if groups == "auto" { &[][..] } else { &sizes[..] };
            let begun = Instant::now();
            let output = tune(words.iter().copied().chain([folder.to_str().unwrap()]).chain(sizes.iter().copied()));
            assert_eq!(output.status.code(), Some(0), "{}", err(&output));
            let session = Session::load(&folder.join("session.toml")).unwrap();
            let RowsByPlace { all, some, .. } = session.split(rows(&folder));
            let mut counts = std::collections::BTreeMap::new();
            some.iter().chain(&all).for_each(|row| *counts.entry(nodes(row).len()).or_insert(0) += 1);
            let found = chosen(&all);
            println!(
                "seed {seed}, --groups {groups}: trials by nodes {counts:?}, N {}, NB {} {}×{}×{}t, regret {:.2} %, {:.0} s",
                found.hpl.n,
                found.hpl.nb,
                found.hpl.p,
                found.hpl.q,
                found.engine.threads,
                100.0 * regret(&cluster, &found, true),
                begun.elapsed().as_secs_f64()
            );
        }
    }
}

/// A session that was killed right after its final run: the time that is left goes to rounds of default, expert and best.
#[test]
fn a_session_killed_after_its_final_run_goes_on_with_its_rounds() {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("run");
    played(&file("four-nodes"), "1h", 3, &folder);
    let path = folder.join("journal.jsonl");
    let whole = std::fs::read_to_string(&path).unwrap();
    let is_final = |line: &&str| line.contains("\"strategy\":\"final\"") && !line.contains("\"started\":");
    let lines: Vec<&str> = whole.lines().collect();
    let end = lines.iter().position(is_final).unwrap() + 1;
    std::fs::write(&path, lines[..end].join("\n") + "\n").unwrap();
    let before = journal::read(&path).unwrap().rows;
    let after = resumed(&folder, |trial| before.iter().any(|row| row.trial == trial)).rows;
    let rounds = after.iter().skip(before.len());
    let (confirms, others): (Vec<&Row>, Vec<&Row>) = rounds.partition(|row| row.strategy == Identity::CONFIRM);
    assert!(confirms.len() >= 2 && others.iter().all(|row| row.strategy != Identity::FINAL), "{others:?}");
}

#[test]
fn a_file_that_describes_no_cluster_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let good = std::fs::read_to_string(file("four-nodes")).unwrap();
    let refused = |text: &str, words: &[&str]| {
        let path = folder.path().join("cluster.toml");
        std::fs::write(&path, text).unwrap();
        let out_folder = folder.path().join("run");
        let output =
            tune(["--budget", "1h", "--simulate", path.to_str().unwrap(), "--out", out_folder.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", err(&output));
        assert!(words.iter().all(|word| err(&output).contains(word)), "{words:?}: {}", err(&output));
        assert!(!out_folder.exists());
    };
    refused("no TOML", &["--simulate", "cluster.toml"]);
    refused(&good.replace("noise = 0.01", "noise = 7.0"), &["noise", "below 1"]);
    refused(&good.replace("nodes = [2]", "nodes = [4]"), &["[[slow]]"]);
    refused(&good.replace("[[machine.phase]]", "[[machine.faces]]"), &["faces"]);
    refused(&good.replace("schema_version = 1", "schema_version = 9"), &["schema_version"]);
}

/// 32 nodes of 32 cores, four of them slow; wrong rates are told. The nights `HPL_TUNE_NIGHTS`, 1-10 by default, of the length
/// `HPL_TUNE_NIGHT`, 3h by default, with estimates that scatter by `HPL_TUNE_NOISE`, 0.01 by default. By hand, in half an hour:
/// `cargo test --release -p hpl-tune --test tests -- --ignored --nocapture simulated::ten_nights`.
#[test]
#[ignore = "a benchmark"]
fn ten_nights_on_a_simulated_dahu() {
    let text = std::fs::read_to_string(file("dahu")).unwrap();
    let variable = |name: &str, usual: &str| std::env::var(name).unwrap_or_else(|_| usual.to_owned());
    let (nights, night) = (variable("HPL_TUNE_NIGHTS", "1-10"), variable("HPL_TUNE_NIGHT", "3h"));
    let text = text.replace("noise = 0.01\n", &format!("noise = {}\n", variable("HPL_TUNE_NOISE", "0.01")));
    let (first, last) = nights.split_once('-').unwrap();
    // The truth of a candidate is the same in each night.
    let mut bests: HashMap<usize, f64> = HashMap::new();
    let mut times: HashMap<Candidate, f64> = HashMap::new();
    for seed in first.parse::<u64>().unwrap()..=last.parse().unwrap() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("dahu.toml");
        std::fs::write(&path, text.replace("seed = 1\n", &format!("seed = {seed}\n"))).unwrap();
        let folder = parent.path().join("run");
        let begun = Instant::now();
        let said = played(path.to_str().unwrap(), &night, seed, &folder);
        let session = Session::load(&folder.join("session.toml")).unwrap();
        let RowsByPlace { all: rows, some, .. } = session.split(rows(&folder));
        let wall_s = begun.elapsed().as_secs_f64();
        let cluster = SimulatedCluster::parse(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let found = chosen(&rows);
        let best_s = *bests.entry(found.hpl.n).or_insert_with(|| best_s(&cluster, found.hpl.n, true));
        let mut regret = |of: &Candidate| {
            let time_s = *times.entry(of.clone()).or_insert_with(|| cluster.truth().timeline(of).total_s);
            100.0 * (time_s / best_s - 1.0)
        };
        let searched: Vec<Candidate> =
            rows.iter().take_while(|row| row.strategy != Identity::FINAL).map(Row::candidate).collect();
        let regrets: Vec<f64> = searched.iter().map(&mut regret).collect();
        let best_tried = regrets.iter().copied().fold(f64::INFINITY, f64::min);
        let near =
            regrets.iter().position(|regret| *regret <= 0.5).map_or("none".to_owned(), |at| (at + 1).to_string());
        let slow = ["dahu-4", "dahu-12", "dahu-21", "dahu-30"];
        let named = slow.iter().filter(|name| said.contains(&format!("simulated-{name}: "))).count();
        println!(
            "seed {seed}: N {}, {} trials on single nodes, {} on all before the final run, the first within 0.5 %: {near}, the best of them \
             {best_tried:.2} %, in {wall_s:.0} s, {:.2} simulated hours, {named} of 4 slow nodes named, NB {} {}×{}×{}t, regret {:.2} %, default {:.2} %",
            found.hpl.n,
            some.len(),
            searched.len(),
            (rows[0].budget_left_s + rows[0].wall_s - rows[rows.len() - 1].budget_left_s) / 3600.0,
            found.hpl.nb,
            found.hpl.p,
            found.hpl.q,
            found.engine.threads,
            regret(&found),
            regrets[0],
        );
    }
}
