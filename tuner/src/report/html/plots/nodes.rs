//! The speeds of the nodes.

use maud::html;
use serde_json::json;

use super::figure::{InteractivePlot, plain};
use crate::report::Summary;
use crate::report::html::tables::bars;
use crate::report::nodes::{NodeSpeed, speeds};

/// The speed of each node as part of the fastest. `None` for one node, or where the record has no speeds of nodes.
pub(super) fn nodes(summary: &Summary) -> Option<InteractivePlot> {
    let of = |node: &NodeSpeed| Some((node.host.clone(), node.speed?));
    let nodes: Vec<(String, f64)> = speeds(&summary.session).iter().filter_map(of).collect();
    if nodes.is_empty() {
        return None;
    }
    let percent: Vec<f64> = nodes.iter().map(|(_, speed)| 100.0 * speed).collect();
    let colors: Vec<&str> = nodes.iter().map(|(_, speed)| if *speed < 1.0 { "--best" } else { "--other" }).collect();
    let trace = json!({
        "name": "speed", "type": "bar", "x": nodes.iter().map(|(host, _)| plain(host)).collect::<Vec<_>>(), "y": percent,
        "hovertemplate": "%{x}: %{y:.1f} % of the fastest<extra></extra>", "marker": { "color": colors },
    });
    let rows: Vec<_> =
        nodes.iter().map(|(host, speed)| (host.clone(), *speed, format!("{:.1} %", 100.0 * speed))).collect();
    Some(InteractivePlot {
        name: "nodes".to_owned(),
        caption: html! { "Speed of each node as part of the fastest, all at once; the shares of the matrix follow from it." },
        traces: vec![trace],
        layout: json!({
            "xaxis": { "type": "category", "automargin": true }, "yaxis": { "title": { "text": "of the fastest, %" }, "range": [0, 105] },
            "showlegend": false, "height": 300,
        }),
        still: bars(&rows),
        is_wide: nodes.len() > 12,
    })
}

#[cfg(test)]
mod tests {
    use space::{Share, Unequal};

    use super::*;
    use crate::record::session::Session;
    use crate::report::summary::tests::session;

    #[test]
    fn slow_nodes_stand_out() {
        let speeds = [1.0, 0.8].map(|speed| Share::new(speed).unwrap()).to_vec();
        let hosts = vec!["n1".to_owned(), "<n2>".to_owned()];
        let of = |hosts: &[String], unequal: Unequal| Session { hosts: hosts.to_vec(), unequal, ..session() };
        let summary = Summary::new(&of(&hosts, Unequal::nodes(speeds, 4)), &[]);
        let plot = nodes(&summary).unwrap();
        assert_eq!((&plot.traces[0]["x"], &plot.traces[0]["y"]), (&json!(["n1", "&lt;n2&gt;"]), &json!([100.0, 80.0])));
        assert_eq!(plot.traces[0]["marker"]["color"], json!(["--other", "--best"]));
        assert!(nodes(&Summary::new(&of(&hosts, Unequal::default()), &[])).is_none(), "nothing is known of them");
        assert!(nodes(&Summary::new(&of(&hosts[..1], Unequal::default()), &[])).is_none());
    }
}
