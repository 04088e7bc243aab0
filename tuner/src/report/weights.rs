//! Weights of unequal nodes as table, JSON and picture.

use std::fmt::Write;

use objectives::weights::{Advice, AdviceRequest, Cluster, Method, WeightsError};
use serde_json::json;
use space::counted;

use super::owners::{self, Bar, Owned};

/// All methods side by side.
pub struct MethodComparison<'a> {
    /// The nodes.
    pub cluster: &'a Cluster,
    /// What was asked.
    pub request: &'a AdviceRequest,
    /// What each method says.
    pub advices: &'a [(Method, Result<Advice, WeightsError>)],
    /// GFLOP/s of an advice by the timeline, where that can be predicted.
    pub timeline: Option<&'a dyn Fn(&Advice) -> f64>,
}

/// Version of the JSON.
const SCHEMA: u32 = 1;
/// Width of a column of the table.
const COLUMN: usize = 13;
/// Groups that a table shows.
const MOST_GROUPS: usize = 40;

impl MethodComparison<'_> {
    /// Sum of the speeds of all nodes in GFLOP/s.
    fn speeds(&self) -> f64 {
        self.cluster.groups().iter().map(|group| group.count as f64 * group.speed_gflops).sum()
    }

    /// The table for the terminal.
    pub fn table(&self) -> String {
        let (cluster, request, speeds) = (self.cluster, self.request, self.speeds());
        let mut text = format!(
            "{} in {}, {speeds:.1} GFLOP/s together; P={} Q={} NB={}; memory as {}\n\n",
            counted(cluster.nodes(), "node"),
            counted(cluster.groups().len(), "group"),
            request.grid.0,
            request.grid.1,
            request.nb,
            request.memory.name()
        );
        let name = |group: &objectives::weights::NodeGroup| format!("{} ×{}", group.name, group.count);
        let width = cluster.groups().iter().map(|group| name(group).chars().count()).max().unwrap_or(0).max(18);
        // Writing to a String cannot fail.
        let _ = write!(text, "{:<width$}{:>10}", "share of a node", "GFLOP/s");
        for (method, _) in self.advices {
            let _ = write!(text, "{:>COLUMN$}", method.name());
        }
        text.push('\n');
        let mut line = |head: &str, speed: &str, cell: &dyn Fn(&Advice) -> String| {
            let _ = write!(text, "{head:<width$}{speed:>10}");
            for (_, advice) in self.advices {
                let _ = write!(text, "{:>COLUMN$}", advice.as_ref().map_or_else(|_| "–".to_owned(), cell));
            }
            text.push('\n');
        };
        let decimals = decimals(cluster.nodes());
        for (g, group) in cluster.groups().iter().enumerate().take(MOST_GROUPS) {
            let share = |advice: &Advice| format!("{:.decimals$}", advice.shares[g]);
            line(&name(group), &format!("{:.1}", group.speed_gflops), &share);
        }
        line("N", "", &|advice| advice.n.to_string());
        line("predicted GFLOP/s", "", &|advice| format!("{:.1}", advice.predicted_rate_gflops));
        line("  of all speeds", "", &|advice| format!("{:.1} %", 100.0 * advice.predicted_rate_gflops / speeds));
        if let Some(timeline) = self.timeline {
            line("by the timeline", "", &|advice| format!("{:.1}", timeline(advice)));
        }
        text.push('\n');
        let groups = cluster.groups().len();
        if groups > MOST_GROUPS {
            let _ = writeln!(text, "the first {MOST_GROUPS} of {groups} groups are shown; --json has all");
        }
        for (method, advice) in self.advices {
            if let Err(error) = advice {
                let _ = writeln!(text, "{}: {error}", method.name());
            }
            if let Some(slem) = advice.as_ref().ok().and_then(|advice| advice.slem.as_ref()) {
                let _ = writeln!(
                    text,
                    "slem: {}; modulus {:.6} (at most {:.0e} above the least), scaled in {} iterations to {:.0e} (factor {:.3} each)",
                    slem.units, slem.modulus, slem.gap, slem.iterations, slem.row_error, slem.convergence
                );
            }
        }
        text.push_str(
            "predicted: the slowest node of each step, panels as fast as updates, no latencies; an upper bound.\n",
        );
        text.push_str(match self.timeline {
            Some(_) => "by the timeline: panels, messages and look-ahead too, with the description's phases as those of the fastest node.\n",
            None => "not by the timeline: the description has no [[phase]]; see hpl-tune survey --machine.\n",
        });
        text
    }

    /// This comparison as JSON.
    ///
    /// # Errors
    /// Of the serializer; there is no reason for one.
    pub fn json(&self) -> serde_json::Result<String> {
        let methods = self.advices.iter().map(|(method, advice)| match advice {
            Err(error) => json!({ "method": method.name(), "error": error.to_string() }),
            Ok(advice) => json!({
                "method": method.name(),
                "n": advice.n,
                "shares": advice.shares,
                "rows": advice.grid.rows,
                "columns": advice.grid.columns,
                "predicted_time_s": advice.predicted_time_s,
                "predicted_rate_gflops": advice.predicted_rate_gflops,
                "timeline_rate_gflops": self.timeline.map(|timeline| timeline(advice)),
                "slem": advice.slem.as_ref().map(|slem| json!({
                    "units": slem.units,
                    "modulus": slem.modulus,
                    "gap": slem.gap,
                    "iterations": slem.iterations,
                    "row_error": slem.row_error,
                })),
            }),
        });
        let groups = self
            .cluster
            .groups()
            .iter()
            .map(|group| json!({ "name": group.name, "count": group.count, "speed_gflops": group.speed_gflops }));
        let (p, q) = self.request.grid;
        let whole = json!({
            "schema_version": SCHEMA,
            "p": p,
            "q": q,
            "nb": self.request.nb,
            "memory": self.request.memory.name(),
            "groups": groups.collect::<Vec<_>>(),
            "methods": methods.collect::<Vec<_>>(),
        });
        Ok(serde_json::to_string_pretty(&whole)? + "\n")
    }
}

/// Decimals of the shares of so many nodes: four, or as many as three digits of an equal share take.
fn decimals(nodes: usize) -> usize {
    (2 + (nodes as f64).log10().ceil() as usize).max(4)
}

/// Most bars; of more nodes one of each group is shown.
const MOST_BARS: usize = 16;

/// Who owns which block under two sets of weights for the same order, and how busy each node is while it updates, of
/// the time that the run takes: an SVG.
pub fn picture(cluster: &Cluster, nb: usize, advices: [&Advice; 2]) -> String {
    owners::picture(advices.map(|advice| owned(cluster, nb, advice)), "predicted busy with updates, of the run")
}

fn owned<'a>(cluster: &Cluster, nb: usize, advice: &'a Advice) -> Owned<'a> {
    let grid = &advice.grid;
    let work = 2.0 / 3.0 * (advice.n as f64).powi(3) * 1e-9;
    let mut shown: Vec<usize> = (0..grid.groups.len()).collect();
    if shown.len() > MOST_BARS {
        // One node of each group.
        shown.dedup_by_key(|place| grid.groups[*place]);
        shown.truncate(MOST_BARS);
    }
    let bar = |place: usize| {
        let group = &cluster.groups()[grid.groups[place]];
        let busy = grid.part(place % grid.p, place / grid.p) * work / group.speed_gflops / advice.predicted_time_s;
        Bar { place, busy, name: group.name.clone() }
    };
    Owned {
        title: format!("{} weights", advice.method.name()),
        outcome: format!("{:.0} GFLOP/s predicted", advice.predicted_rate_gflops),
        size: (advice.n, nb),
        rows: &grid.rows,
        columns: &grid.columns,
        kinds: &grid.groups,
        bars: shown.into_iter().map(bar).collect(),
    }
}

#[cfg(test)]
mod tests {
    use objectives::weights::slem::SlemOptions;
    use objectives::weights::{Combine, MemoryRule, NodeGroup, NodeOrder, advise};

    use super::*;

    /// The table of so many groups of `count` nodes each.
    fn table(groups: usize, count: usize) -> String {
        let group = |at: usize| NodeGroup {
            name: format!("n{at}"),
            count,
            speed_gflops: 100.0 + at as f64,
            memory_bytes: 64 << 30,
            reserved_bytes: 2 << 30,
        };
        let cluster = Cluster::new((0..groups).map(group).collect(), vec![vec![1.0; groups]; groups]).unwrap();
        let request = AdviceRequest {
            method: Method::Proportional,
            memory: MemoryRule::Cap,
            combine: Combine::Mean,
            grid: (1, cluster.nodes()),
            order: NodeOrder::ByShare,
            nb: 192,
            n: Some(100_000),
            slem: SlemOptions::default(),
        };
        let advices = [(Method::Proportional, advise(&cluster, &request))];
        MethodComparison { cluster: &cluster, request: &request, advices: &advices, timeline: None }.table()
    }

    /// Groups were left out without a word.
    #[test]
    fn a_table_says_how_many_groups_it_leaves_out() {
        let said = "the first 40 of 41 groups are shown; --json has all\n";
        assert!(table(41, 1).contains(said), "{}", table(41, 1));
        assert!(!table(40, 1).contains("groups are shown"));
    }

    /// By four decimals each of some thousand nodes had the same share.
    #[test]
    fn shares_of_many_nodes_have_digits_that_differ() {
        assert_eq!([1, 32, 100, 128, 9408].map(decimals), [4, 4, 4, 5, 6]);
        let text = table(2, 100);
        assert!(text.contains("0.00498") && text.contains("0.00502"), "{text}");
        assert!(text.starts_with("200 nodes in 2 groups, "), "{text}");
        let text = table(1, 1);
        assert!(text.starts_with("1 node in 1 group, "), "{text}");
    }
}
