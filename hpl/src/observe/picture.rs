//! Common parts of all SVG pictures.

/// Texts, background, grid and the colours of phases, one hue per phase; they also differ in lightness (Okabe and Ito's reds
/// and yellows), on light and on dark background.
const STYLE: &str = "\
text{font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif;font-size:12px;fill:#1b1f24}\
.title{font-size:17px;font-weight:600}.dim{fill:#5a6370}.num{font-variant-numeric:tabular-nums}\
.ground{fill:#fff}.grid{stroke:#c8cdd4;stroke-width:1;fill:none}\
.fact{fill:#d55e00}.lbcast{fill:#f0e442}.rs{fill:#e69f00}\
@media(prefers-color-scheme:dark){text{fill:#e8eaed}.dim{fill:#a3acb9}.ground{fill:#14171c}.grid{stroke:#3c434e}}";

/// The beginning of a document of width × height with a title and a subtitle, both starting at `left`. `style` is added to the
/// common style. The caller appends the content and `</svg>`.
pub fn open((width, height): (f64, f64), left: f64, style: &str, title: &str, subtitle: &str) -> String {
    let (title, subtitle) = (escape(title), escape(subtitle));
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>{title}</title>\n<style>{STYLE}{style}</style>\n\
         <rect class=\"ground\" width=\"{width}\" height=\"{height}\"/>\n\
         <text class=\"title\" x=\"{left}\" y=\"27\">{title}</text>\n\
         <text class=\"dim\" x=\"{left}\" y=\"48\">{subtitle}</text>\n"
    )
}

/// Distance between the ticks of an axis: the least of 1, 2 and 5 times a power of ten that cuts `span` > 0 into
/// at most `most` pieces.
///
/// ```
/// assert_eq!(hpl::observe::picture::round_step(119.3, 7.0), 20.0);
/// ```
pub fn round_step(span: f64, most: f64) -> f64 {
    let power = 10f64.powf((span / most).log10().floor());
    power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power * most >= span).unwrap_or(10.0)
}

/// A multiple of `step` with as many decimals as `step` has.
///
/// ```
/// assert_eq!(hpl::observe::picture::label(1.25, 0.05), "1.25");
/// ```
pub fn label(tick: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{tick:.decimals$}")
}

/// `text` with the special characters of HTML and SVG replaced.
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
            _ => safe.push(c),
        }
    }
    safe
}
