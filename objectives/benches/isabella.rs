//! The two Isabella clusters, predicted, with what \[SLEM-HPL\] measured: `cargo bench -p objectives --bench isabella`.
//!
//! N, NB and P×Q of the runs are not published. So each way of sharing is predicted at its own best N on two grids, one
//! row of nodes and four rows; all predictions leave out panels, latencies and look-ahead and are upper bounds.

use objectives::weights::slem::SlemOptions;
use objectives::weights::{AdviceRequest, Cluster, Combine, MemoryRule, Method, NodeOrder, advise};
use space::machine::{Machine, published};

/// A way of sharing that a measured run may have had.
struct Way {
    name: &'static str,
    method: Method,
    memory: MemoryRule,
}

const EQUAL: Way = Way { name: "equal shares of nodes", method: Method::Equal, memory: MemoryRule::Cap };
const SPEED: Way = Way { name: "as the speeds", method: Method::Proportional, memory: MemoryRule::Cap };
const SLEM: Way = Way { name: "SLEM, memory as cap", method: Method::Slem, memory: MemoryRule::Cap };
const PAPER: Way = Way { name: "SLEM × memory, eq. (3)", method: Method::Slem, memory: MemoryRule::Paper };

/// A measured run: the ways it may have had, and why it differs from their predictions.
struct Run {
    ways: &'static [Way],
    why: &'static str,
}

/// Each cluster's runs, in the order of its description.
const RUNS: [(&str, [Run; 3]); 2] = [
    (
        "isabella-hpc1",
        [
            Run {
                ways: &[EQUAL],
                why: "faster than equal shares of nodes allow: a rank on every core instead of every node gives a node as \
                 many shares as cores. That bound is below, and what is left of it the panels, messages and the small \
                 memory per core of a part of the nodes",
            },
            Run {
                ways: &[SPEED, PAPER],
                why: "far below shares as the speeds, near those of eq. (3): memory as a factor takes work from fast nodes \
                 with little memory; its dealing also never gives a column two adjacent blocks",
            },
            Run {
                ways: &[SLEM, PAPER],
                why: "twice what eq. (3) allows with the peaks as speeds, and 0.8 of the bound with memory as a cap: the \
                 printed weights cannot be those of the run. The stated peak counts the X4600 twice; of the sum of the \
                 nodes it is the second figure",
            },
        ],
    ),
    (
        "isabella-hpc2",
        [
            Run {
                ways: &[EQUAL],
                why: "imbalance cannot explain it: the two kinds of node differ by a fifth. Neither N (it may be small) nor \
                 ranks and threads are stated; as a gain of weights over it the paper's factor of 3 has no basis",
            },
            Run {
                ways: &[SPEED],
                why: "the same nodes at half of their bound: links (SDR for four nodes) and N are not stated",
            },
            Run {
                ways: &[SLEM, PAPER],
                why: "eq. (3) favours the four slower nodes, which have twice the memory; what SLEM wins over the \
                 heterogeneous run is 3 %, about what weights can win here at all",
            },
        ],
    ),
];

fn main() {
    for (name, runs) in RUNS {
        let machine = published::find(name).expect("it comes along").machine().expect("it is well formed");
        let cluster = Cluster::from_machine(&machine).expect("its nodes are known");
        let sum: f64 = cluster.groups().iter().map(|group| group.count as f64 * group.speed_gflops).sum();
        println!("## {name}: {} nodes, {sum:.1} GFLOP/s together", cluster.nodes());
        for (measured, Run { ways, why }) in machine.measured.iter().zip(runs) {
            let stated = measured.peak_gflops.expect("both descriptions state it");
            let percent = |rate: f64, of: f64| 100.0 * rate / of;
            println!("{}", measured.note);
            println!(
                "  measured                    {:7.1} GFLOP/s, {:4.1} % of the stated peak, {:4.1} % of the nodes' sum",
                measured.rate_gflops,
                percent(measured.rate_gflops, stated),
                percent(measured.rate_gflops, sum)
            );
            for way in ways {
                let rates = [1, 4].map(|p| rate(&cluster, way, p));
                let [low, high] = [rates[0].min(rates[1]), rates[0].max(rates[1])];
                println!(
                    "  {:26} at most {low:.0} … {high:.0} GFLOP/s, {:.1} … {:.1} % of the stated peak; measured is {:.2} of it",
                    way.name,
                    percent(low, stated),
                    percent(high, stated),
                    measured.rate_gflops / high
                );
            }
            if matches!(ways[0].method, Method::Equal) {
                let rate = rank_per_core(&machine);
                println!("  a rank on every core       at most {rate:.0} GFLOP/s, {:.1} %", percent(rate, stated));
            }
            println!("  why: {why}.");
        }
        println!();
    }
}

/// Predicted GFLOP/s at the best N on `p` rows of nodes.
fn rate(cluster: &Cluster, way: &Way, p: usize) -> f64 {
    let request = AdviceRequest {
        method: way.method,
        memory: way.memory,
        combine: Combine::Mean,
        grid: (p, cluster.nodes() / p),
        order: NodeOrder::ByShare,
        nb: 192,
        n: None,
        slem: SlemOptions::default(),
    };
    advise(cluster, &request).expect("the nodes hold some matrix").predicted_rate_gflops
}

/// All cores at the pace of the slowest kind, in GFLOP/s.
fn rank_per_core(machine: &Machine) -> f64 {
    let of_core = machine.nodes.iter().map(|node| node.peak_gflops / node.cores as f64);
    let cores: usize = machine.nodes.iter().map(|node| node.count * node.cores).sum();
    of_core.fold(f64::INFINITY, f64::min) * cores as f64
}
