//! The acceptance report as a page.

use maud::{Markup, html};
use space::counted;

use super::text::verdict;
use super::{Acceptance, NodeFound};
use crate::report::html::frame;

/// One page that needs nothing else.
pub(crate) fn page(of: &Acceptance) -> String {
    let word = if of.accepted { "accepted" } else { "not accepted" };
    let facts = [
        ("nodes", of.nodes.len().to_string(), format!("{} with a fault", of.left_out.len())),
        (
            "typical",
            format!("{:.2} GFLOP/s", of.typical_gflops),
            format!("HPL of N = {}, {}", of.n, counted(of.threads, "thread")),
        ),
        (
            "half of the nodes",
            format!("within {:.1} %", 100.0 * of.mad),
            "median of what they differ from the typical".to_owned(),
        ),
        (
            "equal shares",
            format!("{:.1} GFLOP/s", of.all.rate_gflops),
            "at most, predicted, messages not counted".to_owned(),
        ),
    ];
    let body = html! {
        h1 { "Nodes: " (word) }
        p { "HPL on every node at once, " (of.date_utc) " UTC." }
        dl.facts {
            @for (name, value, detail) in &facts {
                div { dt { (name) } dd { (value) small { (detail) } } }
            }
        }
        @for line in verdict(of) { p { (line) } }
        h2 { "What each node reaches" }
        div.wide {
            table {
                tr {
                    th { "node" } th { "HPL GFLOP/s" } th { "spread" } th { "of typical" } th { "without it" }
                    th { "DGEMM GFLOP/s" } th { "cores" } th { "memory GiB" } th { "links GB/s" }
                    th { "faults and likely causes" }
                }
                @for node in &of.nodes { (row(node)) }
            }
        }
    };
    frame(&format!("hpl-tune nodes: {word}"), &body)
}

fn row(node: &NodeFound) -> Markup {
    let said: Vec<&str> = node.faults.iter().chain(&node.causes).map(String::as_str).collect();
    html! {
        tr {
            td { (node.host) }
            td.n { (format!("{:.2}", node.hpl_gflops)) }
            td.n { (format!("{:.1} %", 100.0 * node.hpl_spread)) }
            td.n { (format!("{:.1} %", 100.0 * node.of_typical)) }
            td.n { (node.without_it.map_or("–".to_owned(), |gain| format!("{:+.1} %", 100.0 * gain))) }
            td.n { (format!("{:.2}", node.dgemm_gflops)) }
            td.n { (node.cores) }
            td.n { (format!("{:.1}", node.memory_bytes as f64 / f64::from(1 << 30))) }
            td.n { (node.links()) }
            td { (said.join("; ")) }
        }
    }
}
