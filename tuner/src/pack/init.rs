//! A `site.toml` to fill in: every key with a comment, and the value where it was found on this host.

use super::facts::Facts;
use super::site::{KEYS, Kind};

/// Its text, for the host of these facts.
pub fn template(facts: &Facts) -> String {
    let known = facts.known();
    let mut text = format!(
        "# What hpl-tune pack cannot find out, for --site. Written on {} at {}.\n\
         # Lines without # in front were found there: look them over, they count in place of what pack finds. For the others take the\n\
         # # away and give the value, or leave them out: what is not given is missing, and hpl-tune pack --check names it.\n",
        facts.host, facts.read_utc,
    );
    let mut table = "";
    for key in KEYS {
        let (of, name) = key.parts();
        if of != table {
            text += &format!("\n[{of}]\n");
            table = of;
        }
        text += &format!("# {}{}\n", key.about, choices(key.kind));
        let value = known.get(key.path).map(|value| quoted(key.kind, value));
        text += &match value {
            Some(value) => format!("{name} = {value}\n"),
            None => format!("# {name} = {}\n", empty(key.kind)),
        };
    }
    text
}

fn choices(kind: Kind) -> String {
    match kind {
        Kind::Word(words) => format!(": {}", words.join(", ")),
        _ => String::new(),
    }
}

fn quoted(kind: Kind, value: &str) -> String {
    match kind {
        Kind::Text | Kind::Word(_) => toml::Value::String(value.to_owned()).to_string(),
        Kind::Count | Kind::Number | Kind::Flag => value.to_owned(),
    }
}

fn empty(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Word(_) => "\"\"",
        Kind::Count | Kind::Number => "0",
        Kind::Flag => "false",
    }
}

#[cfg(test)]
mod tests {
    use super::super::facts::System;
    use super::super::site::Site;
    use super::*;

    #[test]
    fn what_is_written_is_read_back_with_what_the_host_tells() {
        let mut facts = Facts::read(&System::at(tempfile::tempdir().unwrap().path()));
        facts.os = Some("A \"quoted\" Linux".to_owned());
        let text = template(&facts);
        let site = Site::parse(&text).unwrap();
        assert_eq!(site.text("system.os"), Some("A \"quoted\" Linux"));
        assert_eq!(site.iter().count(), facts.known().len());
        assert!(KEYS.iter().all(|key| text.contains(key.about)));
        // With all signs taken away every key is read, as empty or by its kind.
        let all = text.replace("\n# organisation", "\norganisation").replace("\n# year", "\nyear");
        assert_eq!(Site::parse(&all).unwrap().text("system.year"), Some("0"));
    }
}
