//! What made the difference between the trials, beside what chance explains.

use maud::html;
use serde_json::json;

use super::figure::{InteractivePlot, plain};
use crate::report::Summary;
use crate::report::html::tables::bars;
use crate::report::importance::Importance;

/// The part of the variance that each dimension explains by itself, and what chance explains at most in 95 % of such searches.
/// `None` where it is not judged or too few candidates ran.
pub(super) fn importance(summary: &Summary) -> Option<InteractivePlot> {
    if summary.importance.is_empty() {
        return None;
    }
    // The first one stands at the top.
    let dims: Vec<&Importance> = summary.importance.iter().rev().collect();
    let names: Vec<String> = dims.iter().map(|dim| plain(&dim.dimension)).collect();
    let percent = |part: fn(&Importance) -> f64| dims.iter().map(|dim| 100.0 * part(dim)).collect::<Vec<f64>>();
    let text: Vec<String> =
        dims.iter().map(|dim| format!("<b>{}</b><br>{}", plain(&dim.dimension), plain(&words(dim)))).collect();
    let colors: Vec<&str> = dims.iter().map(|dim| if dim.is_shown() { "--other" } else { "--faint" }).collect();
    let explained = json!({
        "name": "explained", "type": "bar", "orientation": "h", "y": names, "x": percent(|dim| dim.explained), "text": text,
        "textposition": "none", "hovertemplate": "%{text}<extra></extra>", "marker": { "color": colors },
    });
    let chance = json!({
        "name": "chance: up to", "mode": "markers", "y": names, "x": percent(|dim| dim.chance), "text": text,
        "hovertemplate": "%{text}<extra></extra>",
        "marker": { "color": "--text", "symbol": "line-ns", "size": 14, "line": { "color": "--text", "width": 2 } },
    });
    let shown: Vec<_> = summary.importance.iter().filter(|dim| dim.is_shown()).collect();
    let still: Vec<_> = shown.iter().map(|dim| (dim.dimension.clone(), dim.explained, words(dim))).collect();
    Some(InteractivePlot {
        name: "importance".to_owned(),
        caption: html! {
            "Part of the variance between the trials of the search that each dimension explains by itself; the mark is what chance \
             explains at most in 95 % of such searches. Pale bars: chance explains as much. The search looks at good regions only."
            @if shown.is_empty() { " No dimension explains more than chance." }
        },
        traces: vec![explained, chance],
        layout: json!({
            "xaxis": { "title": { "text": "explained, %" }, "rangemode": "tozero" }, "yaxis": { "type": "category", "automargin": true },
            "showlegend": false, "height": 80 + 24 * dims.len(), "bargap": 0.35,
        }),
        still: bars(&still),
        is_wide: false,
    })
}

fn words(dim: &Importance) -> String {
    let p = if dim.p_value < 0.01 { "p < 0.01".to_owned() } else { format!("p = {:.2}", dim.p_value) };
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    format!("{} (chance: up to {}; {p}), {} values", percent(dim.explained), percent(dim.chance), dim.values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::summary::tests::session;

    #[test]
    fn what_chance_explains_too_is_pale_and_the_first_is_at_the_top() {
        let dim = |dimension: &str, explained: f64, p_value: f64| Importance {
            dimension: dimension.to_owned(),
            explained,
            values: 3,
            p_value,
            chance: 0.2,
        };
        let mut summary = Summary::new(&session(), &[]);
        assert!(importance(&summary).is_none());
        summary.importance = vec![dim("NB", 0.41, 0.004), dim("<b>", 0.1, 0.3)];
        let plot = importance(&summary).unwrap();
        assert_eq!((&plot.traces[0]["y"], &plot.traces[0]["x"]), (&json!(["&lt;b&gt;", "NB"]), &json!([10.0, 41.0])));
        assert_eq!(plot.traces[0]["marker"]["color"], json!(["--faint", "--other"]));
        assert_eq!(plot.traces[1]["x"], json!([20.0, 20.0]));
        assert_eq!(plot.traces[0]["text"][1], "<b>NB</b><br>41 % (chance: up to 20 %; p &lt; 0.01), 3 values");
        let still = plot.still.into_string();
        assert!(still.contains("NB") && !still.contains("<b>"), "{still}");
    }
}
