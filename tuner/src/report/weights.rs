//! Weights of unequal nodes as table, JSON and picture.

use std::fmt::Write;

use hpl::layout::Axis;
use hpl::picture::escape;
use objectives::weights::{Advice, Cluster, Method, Request, WeightsError};
use serde_json::json;

/// All methods side by side.
pub struct Comparison<'a> {
    /// The nodes.
    pub cluster: &'a Cluster,
    /// What was asked.
    pub request: &'a Request,
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

impl Comparison<'_> {
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
            "predicted: the slowest node of each step, without panels, latencies and look-ahead; an upper bound.\n",
        );
        text.push_str(match self.timeline {
            Some(_) => "by the timeline: panels, messages and look-ahead too, with the description's phases as those of the fastest node.\n",
            None => "not by the timeline: the description has no [[phase]]; see hpl-tune survey --machine.\n",
        });
        text
    }

    /// The same as JSON.
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

/// Most blocks that are drawn along one side of the matrix; more are dealt in larger blocks.
const MOST_BLOCKS: usize = 48;
/// Side of a drawn matrix.
const SIDE: f64 = 300.0;
/// Between the drawings.
const GAP: f64 = 60.0;
/// Longest bar.
const BAR: f64 = 200.0;
/// Height of a bar with its gap.
const ROW: f64 = 18.0;
/// Most bars; of more nodes one of each group is shown.
const MOST_BARS: usize = 16;

/// Who owns which block under two sets of weights for the same order, and how busy each node is while it updates, of
/// the time that the run takes: an SVG.
pub fn picture(cluster: &Cluster, nb: usize, advices: [&Advice; 2]) -> String {
    let bars = advices[0].grid.groups.len().min(MOST_BARS) as f64;
    let (width, height) = (2.0 * SIDE + 3.0 * GAP, SIDE + 150.0 + bars * ROW);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>Owners of the blocks and predicted busy time of the nodes</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (at, advice) in advices.into_iter().enumerate() {
        let left = GAP + at as f64 * (SIDE + GAP);
        svg.push_str(&panel(cluster, nb, advice, left));
    }
    svg + "</svg>\n"
}

fn panel(cluster: &Cluster, nb: usize, advice: &Advice, left: f64) -> String {
    let (grid, top) = (&advice.grid, 44.0);
    let mut svg = format!(
        "<text x=\"{left}\" y=\"20\" font-weight=\"bold\">{} weights, N = {}</text>\n\
         <text x=\"{left}\" y=\"36\" fill=\"#555\">{:.0} GFLOP/s predicted</text>\n",
        advice.method.name(),
        advice.n,
        advice.predicted_rate_gflops
    );
    let drawn_nb = advice.n.div_ceil(MOST_BLOCKS).max(nb);
    let (rows, columns) =
        (Axis::weighted(advice.n, drawn_nb, &grid.rows), Axis::weighted(advice.n, drawn_nb, &grid.columns));
    let scale = SIDE / advice.n as f64;
    // Writing to a String cannot fail.
    // One process row owns whole block columns.
    let bands = if grid.p == 1 { 1 } else { rows.blocks() };
    for k in 0..columns.blocks() {
        for i in 0..bands {
            let (row, column) = (if grid.p == 1 { 0..advice.n } else { rows.block(i) }, columns.block(k));
            let place = rows.block_owner(i) + columns.block_owner(k) * grid.p;
            let _ = writeln!(
                svg,
                "<rect x=\"{:.2}\" y=\"{:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\" stroke=\"#fff\" stroke-width=\".4\"/>",
                left + column.start as f64 * scale,
                top + row.start as f64 * scale,
                column.len() as f64 * scale,
                row.len() as f64 * scale,
                color(place, grid.groups.len())
            );
        }
    }
    let drawn = if drawn_nb == nb { format!("blocks of NB = {nb}") } else { format!("drawn in blocks of {drawn_nb}") };
    let under = top + SIDE + 18.0;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{under}\" fill=\"#555\">{drawn}</text>");
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{}\">predicted busy with updates, of the run:</text>", under + 26.0);
    let work = 2.0 / 3.0 * (advice.n as f64).powi(3) * 1e-9;
    let mut bars: Vec<usize> = (0..grid.groups.len()).collect();
    if bars.len() > MOST_BARS {
        // One node of each group.
        bars.dedup_by_key(|place| grid.groups[*place]);
    }
    for (row, &place) in bars.iter().enumerate().take(MOST_BARS) {
        let g = grid.groups[place];
        let part = grid.part(place % grid.p, place / grid.p);
        let busy = part * work / cluster.groups()[g].speed_gflops / advice.predicted_time_s;
        let y = under + 40.0 + row as f64 * ROW;
        let _ = writeln!(
            svg,
            "<rect x=\"{left}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"13\" fill=\"{}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{:.0} % {}</text>",
            (busy.min(1.0) * BAR).max(0.5),
            color(place, grid.groups.len()),
            left + busy.min(1.0) * BAR + 5.0,
            y + 11.0,
            100.0 * busy,
            escape(&cluster.groups()[g].name)
        );
    }
    svg
}

/// A colour of its own for each place, neighbours far apart in hue.
fn color(place: usize, places: usize) -> String {
    let turn = (place as f64 * 0.618_034).fract();
    let lightness = if places > 8 && place % 2 == 1 { 68 } else { 55 };
    format!("hsl({:.0} 55% {lightness}%)", 360.0 * turn)
}
