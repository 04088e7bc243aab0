//! A page that needs no other file, and cannot ask for one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sha2::{Digest, Sha256};

const STYLE: &str = include_str!("style.css");

/// A page of tables and texts, without scripts.
pub(crate) fn frame(title: &str, body: &Markup) -> String {
    scripted(title, body, &[], &html! {})
}

/// A page with `data` at its end, and after it `scripts` that are part of the program.
///
/// Its policy lets a browser run these scripts, known by their hashes, and fetch nothing.
pub(super) fn scripted(title: &str, body: &Markup, scripts: &[&str], data: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy(scripts));
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                (data)
                @for script in scripts { script { (PreEscaped(script)) } }
            }
        }
    };
    page.into_string()
}

/// `data` as a script that is not run. `<` is written as JSON writes any character, so that no text ends the script.
pub(super) fn json(id: &str, data: &serde_json::Value) -> Markup {
    let text = data.to_string().replace('<', "\\u003c");
    html! { script type="application/json" id=(id) { (PreEscaped(text)) } }
}

/// Styles of the page and of its plots, pictures made from plots, the scripts; nothing else, and nothing from elsewhere.
fn policy(scripts: &[&str]) -> String {
    let mut policy = "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:".to_owned();
    if !scripts.is_empty() {
        policy += "; script-src";
    }
    for script in scripts {
        policy += &format!(" 'sha256-{}'", STANDARD.encode(Sha256::digest(script)));
    }
    policy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_cannot_end_its_script() {
        let data = serde_json::json!({ "why": "</script><script>alert(1)</script><!--" });
        let text = json("data", &data).into_string();
        assert_eq!(text.matches('<').count(), 2, "{text}");
        let inner = text.strip_prefix("<script type=\"application/json\" id=\"data\">").unwrap();
        let inner = inner.strip_suffix("</script>").unwrap();
        assert_eq!(serde_json::from_str::<serde_json::Value>(inner).unwrap(), data);
    }

    /// The first test value of CSP's specification of hashes.
    #[test]
    fn the_policy_names_each_script_by_its_hash() {
        let known = "'sha256-qznLcsROx4GACP2dm0UCKCzCG+HiZ1guq6ZZDob/Tng='";
        assert!(policy(&["alert('Hello, world.');"]).ends_with(&format!("; script-src {known}")));
        assert!(!policy(&[]).contains("script-src"));
    }
}
