//! Tables, lists of words and bars, from which a page is put together.

use maud::{Markup, Render, html};

/// Names with their values.
pub(super) fn words(lines: &[(impl Render, impl Render)]) -> Markup {
    html! {
        table.words {
            @for (name, value) in lines {
                tr { th { (name) } td { (value) } }
            }
        }
    }
}

/// A table of names, bars of a length from 0 to 1, and texts.
pub(super) fn bars(rows: &[(String, f64, String)]) -> Markup {
    html! {
        table.bars {
            @for (name, part, value) in rows {
                tr {
                    th { (name) }
                    td.bar { span style={ "width:" (format!("{:.1}", 100.0 * part.clamp(0.0, 1.0))) "%" } {} }
                    td { (value) }
                }
            }
        }
    }
}

/// A table of texts; cells that begin like a number stand to the right.
pub(super) fn table<'a>(header: impl Iterator<Item = &'a str>, lines: impl Iterator<Item = Vec<String>>) -> Markup {
    html! {
        div.wide {
            table {
                tr { @for name in header { th { (name) } } }
                @for line in lines {
                    tr {
                        @for cell in &line { td.n[cell.parse::<f64>().is_ok()] { (cell) } }
                    }
                }
            }
        }
    }
}
