//! Texts with placeholders: `-np {np}`.

use super::error::ProfileError;

/// A text with named placeholders.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Template {
    parts: Vec<TemplatePart>,
}

#[derive(Debug, Clone, PartialEq)]
enum TemplatePart {
    Text(String),
    Placeholder(String),
}

impl Template {
    /// Parses `text`, the value of the key `place`; every placeholder must be one of `known`.
    pub(super) fn parse(text: &str, place: &str, known: &[&str]) -> Result<Self, ProfileError> {
        let unbalanced = || ProfileError::Brace { place: place.to_owned(), text: text.to_owned() };
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                plain.push_str(brace);
                rest = after;
                continue;
            }
            let (name, after) = rest.split_once('}').filter(|_| brace == "{").ok_or_else(unbalanced)?;
            if !known.contains(&name) {
                let (place, name) = (place.to_owned(), name.to_owned());
                return Err(ProfileError::Placeholder { place, name, known: known.join(" ") });
            }
            parts.extend([TemplatePart::Text(std::mem::take(&mut plain)), TemplatePart::Placeholder(name.to_owned())]);
            rest = after;
        }
        plain.push_str(rest);
        parts.push(TemplatePart::Text(plain));
        Ok(Self { parts })
    }

    /// The text with its placeholders filled.
    pub(super) fn fill(&self, value: impl Fn(&str) -> String) -> String {
        let part = |part: &TemplatePart| match part {
            TemplatePart::Text(text) => text.clone(),
            TemplatePart::Placeholder(name) => value(name),
        };
        self.parts.iter().map(part).collect()
    }

    /// Whether it is a placeholder of this name and nothing else.
    pub(super) fn is(&self, name: &str) -> bool {
        self.has(name)
            && self.parts.iter().all(|part| match part {
                TemplatePart::Text(text) => text.is_empty(),
                TemplatePart::Placeholder(found) => found == name,
            })
    }

    /// Whether it has a placeholder of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.parts.iter().any(|part| matches!(part, TemplatePart::Placeholder(found) if found == name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_filled_and_braces_can_be_written() {
        let filled =
            |text: &str| Template::parse(text, "command", &["np", "q"]).map(|t| t.fill(|name| format!("<{name}>")));
        assert_eq!(filled("-np={np},{q}x").unwrap(), "-np=<np>,<q>x");
        assert_eq!(filled("awk {{print}}").unwrap(), "awk {print}");
        let is = |text: &str| Template::parse(text, "command", &["np", "q"]).unwrap().is("np");
        assert_eq!([is("{np}"), is("-np={np}"), is("{q}"), is("np")], [true, false, false, false]);
        assert_eq!(filled("").unwrap(), "");
        assert_eq!(filled("é{q}é").unwrap(), "é<q>é");
        for (bad, words) in
            [("{ranks}", "unknown placeholder {ranks}"), ("{np", "brace"), ("np}", "brace"), ("{}", "{}")]
        {
            let message = filled(bad).unwrap_err().to_string();
            assert!(message.starts_with("command: ") && message.contains(words), "{message}");
        }
    }
}
