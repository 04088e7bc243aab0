//! A plot as plotly.js takes it, with what a page shows in its place where no script runs.

use hpl::observe::picture::escape;
use maud::{Markup, html};
use serde_json::{Value, json};

/// A plot of the page.
pub(crate) struct InteractivePlot {
    /// The last part of the id of its element.
    pub(super) name: String,
    /// What there is to see, below the plot.
    pub(super) caption: Markup,
    /// plotly.js's traces. A colour `--x` is that of the style sheet, and points of trials have the numbers of these as `trials`,
    /// which the script replaces by their labels.
    pub(super) traces: Vec<Value>,
    /// plotly.js's layout, without what all plots share.
    pub(super) layout: Value,
    /// What stands here without a script.
    pub(super) still: Markup,
    /// Whether it is wider than a phone, on which it is moved sideways then.
    pub(super) is_wide: bool,
}

impl InteractivePlot {
    /// The element that the script draws into.
    pub(crate) fn figure(&self) -> Markup {
        html! {
            figure.wide[self.is_wide] {
                div.plot id=(self.id()) {}
                div.still { (self.still) }
                figcaption { (self.caption) }
            }
        }
    }

    /// What the script draws.
    pub(crate) fn data(&self) -> Value {
        json!({ "id": self.id(), "traces": self.traces, "layout": self.layout })
    }

    fn id(&self) -> String {
        format!("plot-{}", self.name)
    }
}

/// What stands in the place of a plot that only a script can draw.
pub(super) fn needs_script() -> Markup {
    html! { p { "This plot is drawn by JavaScript, which is switched off here." } }
}

/// A text of the record as plotly.js shows it unchanged: it takes `<b>` and the like for markup, and knows few names of characters.
pub(super) fn plain(text: &str) -> String {
    escape(text).replace("&quot;", "&#34;")
}

/// The title of an axis.
pub(super) fn titled(name: &str) -> Value {
    json!({ "title": { "text": plain(name) } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_the_record_is_text_for_plotly() {
        assert_eq!(plain("<b onclick='x'>\"&"), "&lt;b onclick=&#39;x&#39;&gt;&#34;&amp;");
    }
}
