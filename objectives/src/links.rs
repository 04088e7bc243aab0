//! The links of surveyed ranks as layers, and the links that differ from their layer.
//!
//! A pair of ranks is within a socket, within a host, or on two hosts. If the ranks of a host are not consecutive, one layer
//! represents all links.

use std::collections::HashMap;

use hpl::measure::survey::{LinkSurvey, RankSurvey};
use space::machine::{Layer, Link};
use space::stats::summary;

/// Maximum relative difference of a link to the median of its layer; the spread of the layer, if larger.
const UNLIKE: f64 = 0.2;

/// The links found by a survey.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Links {
    /// Layers, innermost first.
    pub layers: Vec<Layer>,
    /// Links that differ from their layer.
    pub links: Vec<Link>,
}

/// The level that joins two ranks, innermost first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Joined {
    Socket,
    Node,
    Network,
}

impl Joined {
    const ALL: [Self; 3] = [Self::Socket, Self::Node, Self::Network];

    fn name(self) -> &'static str {
        match self {
            Self::Socket => "socket",
            Self::Node => "node",
            Self::Network => "network",
        }
    }
}

/// A pair of ranks, the lower one first, with its measurements.
struct MeasuredPair<'a> {
    ranks: [usize; 2],
    link: &'a LinkSurvey,
    gbytes_per_s: f64,
}

impl Links {
    /// The links between ranks of `threads` cores each, whose names are given by `name`.
    pub fn new(found: &[RankSurvey], threads: usize, name: impl Fn(&RankSurvey) -> String) -> Self {
        let places = RankHosts::new(found);
        let pairs = pairs(found);
        let (mut layers, mut links): (Vec<Layer>, Vec<Link>) = Default::default();
        for level in Joined::ALL {
            let of_level: Vec<&MeasuredPair<'_>> =
                pairs.iter().filter(|pair| places.level(pair.ranks) == level).collect();
            if of_level.is_empty() {
                continue;
            }
            let inner = layers.last().map_or(threads, |layer| layer.ranks);
            let ranks = (places.most(level) * threads).next_multiple_of(inner);
            let rates = summary(&of_level.iter().map(|pair| pair.gbytes_per_s).collect::<Vec<_>>());
            let own = match level {
                // The only rank of a host measures the link that all ranks of a run have there together.
                Joined::Network if places.most(Joined::Node) == 1 => Some(threads),
                Joined::Network if places.successive => None,
                // Each rank is a node of its own to the closed forms: in the innermost layer they share no link.
                _ => layers.is_empty().then_some(1),
            };
            layers.push(layer(level, &of_level, rates.median, ranks, own));
            let unlike = UNLIKE.max(rates.spread);
            let others = of_level.iter().filter(|pair| (pair.gbytes_per_s / rates.median - 1.0).abs() > unlike);
            links.extend(others.map(|pair| Link {
                nodes: pair.ranks.map(|rank| name(&found[rank])),
                gbytes_per_s: pair.gbytes_per_s,
            }));
        }
        Self { layers, links }
    }
}

/// The layer of some pairs, each with the bandwidth `gbytes_per_s` while all ranks exchange. `own`: how many ranks share what such a pair has;
/// without it a pair has what the measurements leave it of a link that is faster alone.
fn layer(level: Joined, pairs: &[&MeasuredPair<'_>], gbytes_per_s: f64, ranks: usize, own: Option<usize>) -> Layer {
    let median = |of: &dyn Fn(&MeasuredPair<'_>) -> Option<f64>| {
        let values: Vec<f64> = pairs.iter().filter_map(|pair| of(pair)).collect();
        (!values.is_empty()).then(|| summary(&values).median)
    };
    let alone = median(&|pair| pair.link.alone_gbytes_per_s);
    let measured = alone.map_or(1.0, |alone| (alone / gbytes_per_s).round()).clamp(1.0, ranks as f64);
    let (senders, shared_by) = own.map_or((measured, measured as usize), |ranks| (1.0, ranks));
    Layer {
        name: level.name().to_owned(),
        ranks,
        alpha_s: median(&|pair| Some(pair.link.latency_s)),
        // The bandwidth per rank while all ranks exchange is the measured one.
        beta_s_per_word: 8e-9 / (gbytes_per_s * senders),
        shared_by,
    }
}

/// All pairs once, with the slower of both measurements.
fn pairs(found: &[RankSurvey]) -> Vec<MeasuredPair<'_>> {
    let of_rank = |rank: &RankSurvey, other: usize| {
        let link = found.get(other)?.links.iter().find(|link| link.other == rank.rank)?;
        Some(link.gbytes_per_s)
    };
    let pair =
        |(rank, link): (&RankSurvey, &'_ LinkSurvey)| of_rank(rank, link.other).map(|back| back.min(link.gbytes_per_s));
    let all = found.iter().flat_map(|rank| rank.links.iter().map(move |link| (rank, link)));
    let once = all.filter(|(rank, link)| rank.rank < link.other);
    once.filter_map(|(rank, link)| {
        let gbytes_per_s = pair((rank, link))?;
        Some(MeasuredPair { ranks: [rank.rank, link.other], link, gbytes_per_s })
    })
    .collect()
}

/// Host and socket of each rank, by number.
struct RankHosts {
    hosts: Vec<usize>,
    /// Host and socket together; the host alone if the socket is unknown.
    sockets: Vec<usize>,
    /// Whether the ranks of each host, and of each socket, are consecutive.
    successive: bool,
}

impl RankHosts {
    fn new(found: &[RankSurvey]) -> Self {
        let hosts = numbered(found.iter().map(|rank| rank.host.as_str()));
        let known = found.iter().all(|rank| rank.socket.is_some());
        let sockets = numbered(found.iter().map(|rank| (rank.host.as_str(), rank.socket.filter(|_| known))));
        let successive = successive(&hosts) && successive(&sockets);
        Self { hosts, sockets, successive }
    }

    fn level(&self, [a, b]: [usize; 2]) -> Joined {
        let several = self.sockets.iter().max() > self.hosts.iter().max();
        match () {
            () if !self.successive => Joined::Network,
            () if several && self.sockets[a] == self.sockets[b] => Joined::Socket,
            () if self.hosts[a] == self.hosts[b] => Joined::Node,
            () => Joined::Network,
        }
    }

    /// Ranks of the largest unit of a level.
    fn most(&self, level: Joined) -> usize {
        let largest = |of: &[usize]| {
            let mut counts: HashMap<usize, usize> = HashMap::new();
            of.iter().for_each(|unit| *counts.entry(*unit).or_default() += 1);
            counts.into_values().max().unwrap_or(1)
        };
        match level {
            Joined::Socket => largest(&self.sockets),
            Joined::Node => largest(&self.hosts),
            Joined::Network => self.hosts.len(),
        }
    }
}

/// Each value's number, in the order of their first appearance.
fn numbered<T: std::hash::Hash + Eq>(values: impl Iterator<Item = T>) -> Vec<usize> {
    let mut known = HashMap::new();
    let number = |value| {
        let next = known.len();
        *known.entry(value).or_insert(next)
    };
    values.map(number).collect()
}

/// Whether equal numbers are consecutive: then the numbers rise.
fn successive(numbers: &[usize]) -> bool {
    numbers.is_sorted()
}

#[cfg(test)]
mod tests {
    use hpl::measure::survey::partners;
    use space::machine::Machine;

    use super::*;

    /// Ranks of hosts with two sockets each, whose links have these bandwidths within a socket, a host, and between hosts.
    fn survey(hosts: usize, each: usize, gbytes_per_s: [f64; 3]) -> Vec<RankSurvey> {
        let ranks = hosts * each;
        let socket = |rank: usize| rank / (each / 2).max(1);
        let link = |rank: usize, other: usize| {
            let level = match () {
                () if socket(rank) == socket(other) => 0,
                () if rank / each == other / each => 1,
                () => 2,
            };
            let gbytes_per_s = gbytes_per_s[level];
            let alone = (rank.min(other) == 0).then_some(gbytes_per_s * if level == 2 { 4.0 } else { 1.0 });
            LinkSurvey {
                other,
                latency_s: 1e-6 * (1 + level) as f64,
                gbytes_per_s,
                spread: 0.0,
                alone_gbytes_per_s: alone,
            }
        };
        let rank = |rank: usize| RankSurvey {
            rank,
            host: format!("n{}", rank / each),
            socket: Some(socket(rank) % 2),
            memory_bytes: 1 << 30,
            dgemm_gflops: vec![10.0],
            hpl_gflops: vec![9.0],
            links: partners(rank, ranks).map(|other| link(rank, other)).collect(),
            ..RankSurvey::default()
        };
        (0..ranks).map(rank).collect()
    }

    fn name(rank: &RankSurvey) -> String {
        format!("{}-{}", rank.host, rank.rank)
    }

    #[test]
    fn thousands_of_ranks_are_three_layers_and_the_links_that_differ() {
        let mut found = survey(256, 8, [20.0, 10.0, 2.0]);
        // A bad cable between two ranks: both ends see it.
        for (rank, other) in [(16, 24), (24, 16)] {
            found[rank].links.iter_mut().filter(|link| link.other == other).for_each(|link| link.gbytes_per_s = 0.5);
        }
        let Links { layers, links } = Links::new(&found, 2, name);
        let shape: Vec<_> = layers.iter().map(|layer| (layer.name.as_str(), layer.ranks, layer.shared_by)).collect();
        assert_eq!(shape, [("socket", 8, 1), ("node", 16, 1), ("network", 4096, 4)]);
        assert_eq!(layers.iter().map(|layer| layer.alpha_s.unwrap()).collect::<Vec<_>>(), [1e-6, 2e-6, 3e-6]);
        // A rank's bandwidth in a shared layer is the measured one.
        let share = |layer: &Layer| 8e-9 / (layer.beta_s_per_word * layer.shared_by as f64);
        assert!(layers.iter().zip([20.0, 10.0, 2.0]).all(|(layer, wanted)| (share(layer) - wanted).abs() < 1e-9));
        let bad = Link { nodes: ["n2-16".to_owned(), "n3-24".to_owned()], gbytes_per_s: 0.5 };
        assert_eq!(links, [bad]);
    }

    /// Alone each of them has four times as much: that is the network's doing, not that of other ranks on its host.
    #[test]
    fn all_cores_of_a_host_share_the_link_that_its_only_rank_measures() {
        let Links { layers, links } = Links::new(&survey(16, 1, [0.0, 0.0, 2.0]), 32, name);
        let [network] = &layers[..] else { panic!("{layers:?}") };
        assert_eq!((network.name.as_str(), network.ranks, network.shared_by), ("network", 512, 32));
        assert!((network.beta_s_per_word - 4e-9).abs() < 1e-20 && links.is_empty(), "{network:?}");
    }

    #[test]
    fn layers_make_a_description_whatever_the_hosts() {
        for (hosts, each) in [(1, 2), (1, 4), (3, 1), (3, 2), (5, 6)] {
            let links = Links::new(&survey(hosts, each, [20.0, 10.0, 2.0]), 3, name);
            let node = space::machine::Node { name: "x".into(), count: 1, cores: 3, ..Default::default() };
            let machine = Machine { nodes: vec![node], layers: links.layers, ..Machine::default() };
            Machine::parse(&machine.to_toml().unwrap()).unwrap();
        }
        assert_eq!(Links::new(&survey(1, 2, [1.0; 3])[..1], 1, name), Links::default());
        // Ranks dealt to the hosts in turn have a single layer.
        let mut mixed = survey(2, 4, [20.0, 10.0, 2.0]);
        mixed.iter_mut().for_each(|rank| rank.host = format!("n{}", rank.rank % 2));
        let layers = Links::new(&mixed, 1, name).layers;
        assert_eq!(layers.iter().map(|layer| (layer.name.as_str(), layer.ranks)).collect::<Vec<_>>(), [("network", 8)]);
    }
}
