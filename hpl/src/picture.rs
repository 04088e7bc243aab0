//! What all our SVG pictures share.

/// Distance between the ticks of an axis: the least of 1, 2 and 5 times a power of ten that cuts `span` > 0 into
/// at most `most` pieces.
///
/// ```
/// assert_eq!(hpl::picture::round_step(119.3, 7.0), 20.0);
/// ```
pub fn round_step(span: f64, most: f64) -> f64 {
    let power = 10f64.powf((span / most).log10().floor());
    power * [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power * most >= span).unwrap_or(10.0)
}

/// A multiple of `step` with as many decimals as `step` has.
///
/// ```
/// assert_eq!(hpl::picture::label(1.25, 0.05), "1.25");
/// ```
pub fn label(tick: f64, step: f64) -> String {
    let decimals = (-step.log10().floor()).max(0.0) as usize;
    format!("{tick:.decimals$}")
}

/// `text` with what means something to HTML and SVG replaced.
///
/// ```
/// assert_eq!(hpl::picture::escape("a < b & \"c\""), "a &lt; b &amp; &quot;c&quot;");
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
