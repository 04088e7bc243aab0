//! Weights of unequal nodes as table, JSON and picture.

use std::fmt::Write;

use objectives::weights::{Advice, AdviceRequest, Cluster, Method, WeightsError};
use serde_json::json;

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
            "{} nodes in {} groups, {speeds:.1} GFLOP/s together; P={} Q={} NB={}; memory as {}\n\n",
            cluster.nodes(),
            cluster.groups().len(),
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
        for (g, group) in cluster.groups().iter().enumerate().take(MOST_GROUPS) {
            line(&name(group), &format!("{:.1}", group.speed_gflops), &|advice| format!("{:.4}", advice.shares[g]));
        }
        line("N", "", &|advice| advice.n.to_string());
        line("predicted GFLOP/s", "", &|advice| format!("{:.1}", advice.predicted_rate_gflops));
        line("  of all speeds", "", &|advice| format!("{:.1} %", 100.0 * advice.predicted_rate_gflops / speeds));
        if let Some(timeline) = self.timeline {
            line("by the timeline", "", &|advice| format!("{:.1}", timeline(advice)));
        }
        text.push('\n');
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
