//! `hpl-tune weights`: shares of unequal nodes by every method, with their predicted rates.

use std::io::Write;
use std::path::Path;

use objectives::real::printable;
use objectives::timeline::own::OwnModel;
use objectives::weights::slem::SlemOptions;
use objectives::weights::{
    Advice, AdviceRequest, Cluster, Combine, MemoryRule, Method, NodeOrder, WeightsError, advise, makespan, rank_counts,
};
use space::Share;
use space::machine::Machine;
use space::weights_file::{WeightedNode, WeightsFile};

use crate::cli::weights::{CombineArg, MemoryArg, MethodArg, WeightsArgs};
use crate::commands::measured::measured;
use crate::commands::survey::is_of_ranks;
use crate::exit::{self, bad_input};
use crate::record::folder::replace_file;
use crate::report::weights::{MethodComparison, picture};
use crate::session::input;

/// Computes the weights, prints them side by side and writes the files that are asked for.
///
/// # Errors
/// A machine, grid or order that cannot be, or a file that cannot be written.
pub fn weights(args: &WeightsArgs) -> anyhow::Result<u8> {
    if let Some(dat) = &args.measure {
        return measured(args, dat);
    }
    let machine = input::load(name(args))?;
    let cluster = cluster(args, &machine)?;
    let request = request(args, &machine, &cluster);
    if let Some(wrong) = single_block(request.n, request.nb) {
        return Err(bad_input(wrong));
    }
    let advices = Method::ALL.map(|method| (method, advise(&cluster, &AdviceRequest { method, ..request })));
    if advices.iter().any(|(_, advice)| advice.as_ref().is_ok_and(|advice| advice.n <= request.nb)) {
        let nb = request.nb;
        return Err(bad_input(format!(
            "--nb {nb}: N must be well above NB, for which the nodes lack memory; lower --nb"
        )));
    }
    let timeline = by_timeline(&machine, &cluster, request.nb);
    let timeline = timeline.as_ref().map(|timeline| timeline as &dyn Fn(&Advice) -> f64);
    let comparison = MethodComparison { cluster: &cluster, request: &request, advices: &advices, timeline };
    let mut out = std::io::stdout().lock();
    // The description may be of somebody else.
    let text = if args.json { comparison.json()? } else { printable(&comparison.table()).into_owned() };
    out.write_all(text.as_bytes())?;

    let (_, chosen) = advices.iter().find(|(method, _)| *method == request.method).expect("all methods are there");
    let chosen = chosen.as_ref().map_err(|error| bad_input(format!("{}: {error}", request.method.name())))?;
    let mut wrote = Vec::new();
    let mut write = |path: Option<&Path>, text: &dyn Fn() -> anyhow::Result<String>| -> anyhow::Result<()> {
        let Some(path) = path else { return Ok(()) };
        replace_file(path, text()?.as_bytes())?;
        wrote.push(path.display().to_string());
        Ok(())
    };
    write(args.out.as_deref(), &|| weights_file(args, &cluster, chosen))?;
    write(args.node_perf.as_deref(), &|| Ok(node_perf(&cluster, chosen)))?;
    write(args.picture.as_deref(), &|| drawn(&cluster, &request, chosen))?;
    if let Some(ranks) = args.ranks {
        let hosts = hosts(&machine, &cluster, chosen, ranks as usize)?;
        write(args.hostfile.as_deref(), &|| Ok(hosts.clone()))?;
        if !args.json {
            let (method, hosts) = (request.method.name(), printable(&hosts));
            write!(out, "\n{ranks} equal ranks by {method} weights:\n{hosts}")?;
        }
    }
    if !args.json && !wrote.is_empty() {
        writeln!(out, "\n{} weights written to {}", request.method.name(), wrote.join(", "))?;
    }
    out.flush()?;
    Ok(exit::DONE)
}

/// What is wrong with an N of a single block: it has no updates, whose work is shared, and would take no time.
fn single_block(n: Option<usize>, nb: usize) -> Option<String> {
    let n = n.filter(|n| *n <= nb)?;
    Some(format!(
        "--n {n}: N must be above NB = {nb}, as a single block has no updates to share; raise --n or lower --nb"
    ))
}

/// What `--machine` says; without `--measure` it is there.
fn name(args: &WeightsArgs) -> &str {
    args.machine.as_deref().unwrap_or_default()
}

fn cluster(args: &WeightsArgs, machine: &Machine) -> anyhow::Result<Cluster> {
    let named = |error: WeightsError| bad_input(format!("{}: {error}", name(args)));
    let Some(speeds) = &args.speeds else { return Cluster::from_machine(machine).map_err(named) };
    let (wanted, found) = (machine.nodes.len(), speeds.len());
    if wanted != found {
        return Err(bad_input(format!("--speeds: {}", WeightsError::Count { what: "speeds", wanted, found })));
    }
    let mut machine = machine.clone();
    // A rate must be present; the speeds replace it below.
    machine.nodes.iter_mut().for_each(|node| node.rate_gflops = 1.0);
    Cluster::from_machine(&machine)
        .map_err(named)?
        .with_speeds(speeds)
        .map_err(|error| bad_input(format!("--speeds: {error}")))
}

/// GFLOP/s by the timeline, where the description has the phases of a node.
fn by_timeline(machine: &Machine, cluster: &Cluster, nb: usize) -> Option<impl Fn(&Advice) -> f64> {
    let groups = cluster.groups().iter().zip(&machine.nodes);
    let fastest = groups.max_by(|(a, _), (b, _)| a.speed_gflops.total_cmp(&b.speed_gflops));
    let threads = fastest.map_or(1, |(_, node)| node.cores);
    let model = OwnModel::new(&makespan::one_process_per_node(machine, threads))?;
    Some(move |advice: &Advice| makespan::timeline_rate_gflops(&model, cluster, &advice.grid, advice.n, nb, threads))
}

fn request(args: &WeightsArgs, machine: &Machine, cluster: &Cluster) -> AdviceRequest {
    let nodes = cluster.nodes();
    let grid = match (args.p.map(|p| p as usize), args.q.map(|q| q as usize)) {
        (None, None) => (1, nodes),
        (Some(p), None) => (p, nodes / p),
        (None, Some(q)) => (nodes / q, q),
        (Some(p), Some(q)) => (p, q),
    };
    AdviceRequest {
        method: match args.method {
            MethodArg::Equal => Method::Equal,
            MethodArg::Proportional => Method::Proportional,
            MethodArg::Slem => Method::Slem,
            MethodArg::Model => Method::Model,
        },
        memory: match args.memory {
            MemoryArg::Cap => MemoryRule::Cap,
            MemoryArg::Paper => MemoryRule::Paper,
        },
        combine: match args.combine {
            CombineArg::Mean => Combine::Mean,
            CombineArg::Min => Combine::Minimum,
        },
        grid,
        // A run starts the ranks of a survey where that has found them.
        order: if is_of_ranks(machine) { NodeOrder::OfRanks } else { NodeOrder::ByShare },
        nb: args.nb as usize,
        n: args.n.map(|n| n as usize),
        slem: SlemOptions { message_unit: args.message_unit },
    }
}

/// The groups of the nodes in the order of the ranks, along process rows.
fn by_rank(advice: &Advice) -> impl Iterator<Item = usize> {
    let grid = &advice.grid;
    (0..grid.p).flat_map(move |i| (0..grid.q).map(move |j| grid.groups[i + j * grid.p]))
}

fn weights_file(args: &WeightsArgs, cluster: &Cluster, advice: &Advice) -> anyhow::Result<String> {
    let weights = advice.grid.weights();
    let node = |g: usize| -> anyhow::Result<WeightedNode> {
        Ok(WeightedNode { name: cluster.groups()[g].name.clone(), speed: Share::new(advice.shares[g])? })
    };
    let origin = format!(
        "hpl-tune weights --machine {}: {} weights for N={} P={} Q={} NB={}",
        name(args),
        advice.method.name(),
        advice.n,
        advice.grid.p,
        advice.grid.q,
        args.nb
    );
    if weights.is_empty() {
        return Err(bad_input("one node needs no weights; leave out --out"));
    }
    let nodes = by_rank(advice).map(node).collect::<Result<_, _>>()?;
    Ok(WeightsFile { origin, rows: weights.rows, columns: weights.columns, nodes }.to_toml()?)
}

/// HPL-GPU's file: a line per host with its speed, the fastest 1; the first match wins.
fn node_perf(cluster: &Cluster, advice: &Advice) -> String {
    let most = advice.shares.iter().copied().fold(0.0, f64::max);
    let line = |(group, share): (&objectives::weights::NodeGroup, &f64)| {
        let name = group.name.replace(char::is_whitespace, "-");
        format!("{name} {:.4}\n", share / most)
    };
    let lines: String = cluster.groups().iter().zip(&advice.shares).map(line).collect();
    format!(
        "# {} weights, N={}; hosts of a group with several nodes: one line each\n{lines}",
        advice.method.name(),
        advice.n
    )
}

/// The picture next to that of equal weights, whether they fit or not.
fn drawn(cluster: &Cluster, request: &AdviceRequest, advice: &Advice) -> anyhow::Result<String> {
    let (shares, _) = Method::Equal.shares(cluster, advice.n, &request.slem)?;
    let grid = request.placed(cluster, &shares)?;
    let predicted_time_s = makespan::time_s(cluster, &grid, advice.n, request.nb);
    let predicted_rate_gflops = space::flops::rate_gflops(advice.n, predicted_time_s);
    let equal = Advice {
        shares,
        grid,
        method: Method::Equal,
        predicted_time_s,
        predicted_rate_gflops,
        n: advice.n,
        slem: None,
    };
    Ok(picture(cluster, request.nb, [&equal, advice]))
}

/// Lines `host slots=ranks` for `ranks` equal ranks, none of which lack a core.
fn hosts(machine: &Machine, cluster: &Cluster, advice: &Advice, ranks: usize) -> anyhow::Result<String> {
    let single = || cluster.groups().iter().enumerate().flat_map(|(g, group)| (0..group.count).map(move |i| (g, i)));
    let shares: Vec<f64> = single().map(|(g, _)| advice.shares[g]).collect();
    let cores: Vec<usize> = single().map(|(g, _)| machine.nodes[g].cores).collect();
    let counts = rank_counts(&shares, &cores, ranks).ok_or_else(|| {
        let room: usize = cores.iter().zip(&shares).filter(|(_, share)| **share > 0.0).map(|(cores, _)| cores).sum();
        bad_input(format!("--ranks {ranks}: the nodes with a share have {room} cores; lower it"))
    })?;
    let host = |(g, i): (usize, usize)| {
        let group = &cluster.groups()[g];
        let name = group.name.replace(char::is_whitespace, "-");
        if group.count == 1 { name } else { format!("{name}-{}", i + 1) }
    };
    Ok(single().zip(counts).map(|(node, count)| format!("{} slots={count}\n", host(node))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_of_a_single_block_is_refused() {
        let wrong = single_block(Some(192), 192).unwrap();
        assert!(wrong.contains("--n 192") && wrong.contains("NB = 192") && wrong.contains("lower --nb"), "{wrong}");
        assert_eq!([Some(193), None].map(|n| single_block(n, 192)), [None, None]);
    }
}
