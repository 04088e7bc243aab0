//! The prior effect of each dimension of HPL, before any run.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Standard deviations of log rates by names of dimensions, with their sources.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Effects {
    #[serde(rename = "schema_version")]
    _schema_version: u32,
    #[serde(rename = "source")]
    _source: String,
    unknown: f64,
    effects: BTreeMap<String, f64>,
}

static EFFECTS: LazyLock<Effects> = LazyLock::new(|| {
    toml::from_str(include_str!("../../datasets/effects.toml")).expect("the shipped file is read by a test")
});

/// The standard deviation, over the levels of the dimension of this name, of what it adds to the logarithm of the rate.
pub(crate) fn effect(name: &str) -> f64 {
    EFFECTS.effects.get(name).copied().unwrap_or(EFFECTS.unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_sources_call_important_has_the_larger_effect() {
        for (more, less) in
            [("nb", "ndiv"), ("nb", "pfact"), ("grid", "swap"), ("bcast", "rfact"), ("depth", "unheard-of")]
        {
            assert!(effect(more) > 1.5 * effect(less), "{more} {less}");
        }
    }
}
