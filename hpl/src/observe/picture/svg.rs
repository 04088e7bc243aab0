//! SVG elements.

use std::fmt::{self, Write};

/// Texts, background, grid and the colours of phases, one hue per phase; they also differ in lightness (Okabe and Ito's reds
/// and yellows), on light and on dark background.
const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#1b1f24}\
.title{font-size:17px;font-weight:600}.dim,.tick{fill:#5a6370}.num,.tick{font-variant-numeric:tabular-nums}\
.ground{fill:#fff}.grid{stroke:#c8cdd4;stroke-width:1;fill:none}\
.fact{fill:#d55e00}.lbcast{fill:#f0e442}.rs{fill:#e69f00}\
@media(prefers-color-scheme:dark){text{fill:#e8eaed}.dim,.tick{fill:#a3acb9}.ground{fill:#14171c}.grid{stroke:#3c434e}}";

/// An SVG document, or an element of a page, under construction. Places are (x, y) in pixels from the upper left corner.
#[derive(Debug, Clone)]
pub struct Svg(String);

/// How a shape is drawn.
#[derive(Debug, Clone, Copy)]
pub enum Paint<'a> {
    /// By classes of the style sheet.
    Class(&'a str),
    /// Filled with this colour.
    Fill(&'a str),
}

/// Which part of a text is at its place.
#[derive(Debug, Clone, Copy)]
pub enum Anchor {
    /// Its left end.
    Start,
    /// Its middle.
    Middle,
    /// Its right end.
    End,
}

impl Svg {
    /// A document of width × height with a title and a subtitle, both starting at `left`. `style` is added to the common style.
    pub fn document((width, height): (f64, f64), left: f64, style: &str, title: &str, subtitle: &str) -> Self {
        let mut svg = Self(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{STYLE}{style}</style>\n",
            escape(title)
        ));
        svg.rect(Paint::Class("ground"), (0.0, 0.0), (width, height));
        svg.text("title", (left, 27.0), Anchor::Start, title);
        svg.text("dim", (left, 48.0), Anchor::Start, subtitle);
        svg
    }

    /// An element of width × height for a page, which has the style. `title` describes it to screen readers.
    pub fn element((width, height): (f64, f64), title: &str) -> Self {
        Self(format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\"><title>{}</title>\n", escape(title)))
    }

    /// What `draw` adds is shifted to the right by `x` and down by `y`.
    pub fn shifted(&mut self, (x, y): (f64, f64), draw: impl FnOnce(&mut Self)) {
        self.add(format_args!("<g transform=\"translate({} {})\">", Pixels(x), Pixels(y)));
        draw(self);
        self.add(format_args!("</g>"));
    }

    /// A text with these classes, or none.
    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let place = format!("x=\"{}\" y=\"{}\"", Pixels(x), Pixels(y));
        self.add_text(class, &place, anchor, text);
    }

    /// A text that reads upwards, with its middle at the place.
    pub fn upward_text(&mut self, class: &str, (x, y): (f64, f64), text: &str) {
        let place = format!("transform=\"translate({} {}) rotate(-90)\"", Pixels(x), Pixels(y));
        self.add_text(class, &place, Anchor::Middle, text);
    }

    fn add_text(&mut self, class: &str, place: &str, anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = if class.is_empty() { String::new() } else { format!("class=\"{class}\" ") };
        self.add(format_args!("<text {class}{place}{anchor}>{}</text>", escape(text)));
    }

    /// A rectangle with this upper left corner.
    pub fn rect(&mut self, paint: Paint<'_>, corner: (f64, f64), size: (f64, f64)) {
        self.add(format_args!("<rect {paint} {}/>", Area(corner, size)));
    }

    /// A rectangle with a text under the pointer.
    pub fn titled_rect(&mut self, paint: Paint<'_>, corner: (f64, f64), size: (f64, f64), title: &str) {
        self.add(format_args!("<rect {paint} {}><title>{}</title></rect>", Area(corner, size), escape(title)));
    }

    /// A dot.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64) {
        self.add(format_args!("<circle class=\"{class}\" cx=\"{}\" cy=\"{}\" r=\"{radius}\"/>", Pixels(x), Pixels(y)));
    }

    /// A dot with a text under the pointer.
    pub fn titled_dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
        let (x, y, title) = (Pixels(x), Pixels(y), escape(title));
        self.add(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{title}</title></circle>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, (x, y): (f64, f64), (to_x, to_y): (f64, f64)) {
        let [x, y, to_x, to_y] = [x, y, to_x, to_y].map(Pixels);
        self.add(format_args!("<path class=\"{class}\" d=\"M{x} {y}L{to_x} {to_y}\"/>"));
    }

    /// A line through these points.
    pub fn polyline(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        self.add(format_args!("<polyline class=\"{class}\" points=\"{}\"/>", listed(points)));
    }

    /// An area with these corners.
    pub fn polygon(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        self.add(format_args!("<polygon class=\"{class}\" points=\"{}\"/>", listed(points)));
    }

    /// The finished picture.
    pub fn end(self) -> String {
        self.0 + "</svg>\n"
    }

    /// One line.
    fn add(&mut self, line: fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.0, "{line}");
    }
}

impl fmt::Display for Paint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Class(class) => write!(f, "class=\"{class}\""),
            Self::Fill(colour) => write!(f, "fill=\"{colour}\""),
        }
    }
}

/// The place and the size of a rectangle.
struct Area((f64, f64), (f64, f64));

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, width, height] = [self.0.0, self.0.1, self.1.0, self.1.1].map(Pixels);
        write!(f, "x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
    }
}

/// A number of pixels, to hundredths.
#[derive(Clone, Copy)]
struct Pixels(f64);

impl fmt::Display for Pixels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding 0 turns -0 into 0.
        write!(f, "{}", (self.0 * 100.0).round() / 100.0 + 0.0)
    }
}

fn listed(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{},{}", Pixels(x), Pixels(y))).collect::<Vec<_>>().join(" ")
}

/// `text` with the special characters of HTML and SVG replaced, and those that XML does not allow, with which no viewer shows an SVG.
///
/// ```
/// assert_eq!(hpl::observe::picture::escape("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
/// ```
pub fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            c if is_allowed(c) => safe.push(c),
            _ => safe.push(char::REPLACEMENT_CHARACTER),
        }
    }
    safe
}

/// Whether XML may have this character; not those from U+007F to U+009F, which it allows and which mean nothing.
fn is_allowed(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r') || !(c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_are_escaped() {
        let mut svg = Svg::document((10.0, 10.0), 0.0, "", "<a>", "<b>");
        svg.text("x", (0.0, 0.0), Anchor::Middle, "<c>");
        svg.upward_text("x", (0.0, 0.0), "<d>");
        svg.titled_rect(Paint::Fill("red"), (0.0, 0.0), (1.0, 1.0), "<e>");
        svg.titled_dot("x", (0.0, 0.0), 1.0, "<f>");
        let svg = svg.end() + &Svg::element((1.0, 1.0), "<g>").end();
        for text in ["a", "b", "c", "d", "e", "f", "g"] {
            assert!(!svg.contains(&format!("<{text}>")), "{text}: {svg}");
            assert!(svg.contains(&format!("&lt;{text}&gt;")), "{text}: {svg}");
        }
    }

    /// A description may be of somebody else: with an ESC in its name the picture was no XML.
    #[test]
    fn what_xml_does_not_allow_is_replaced() {
        assert_eq!(escape("a\u{1b}[2Jb\0\u{ffff} ×\n"), "a\u{fffd}[2Jb\u{fffd}\u{fffd} ×\n");
    }

    #[test]
    fn places_are_written_to_hundredths() {
        let mut svg = Svg::element((10.0, 10.0), "t");
        svg.line("grid", (1.0 / 3.0, -0.001), (2.0, 1e3));
        assert!(svg.end().contains("d=\"M0.33 0L2 1000\""));
    }
}
