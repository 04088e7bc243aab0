//! The known word that a mistyped one was meant to be.

/// How much two words must have in common, from 0 to 1: that of the suggestions of clap.
const ALIKE: f64 = 0.7;

/// The word of `known` that is nearest to `word`, where one is near; case does not matter.
///
/// ```
/// assert_eq!(space::nearest::nearest("bcats", ["nb", "bcast"]), Some("bcast"));
/// assert_eq!(space::nearest::nearest("frobs", ["nb", "bcast"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_lowercase();
    let alike = known.into_iter().map(|known| (strsim::jaro(&word, &known.to_lowercase()), known));
    alike.filter(|(alike, _)| *alike > ALIKE).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, known)| known)
}

/// `; did you mean 'bcast'?`, or nothing: the end of a message about `word`.
pub fn hint<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, known).map_or(String::new(), |known| format!("; did you mean '{known}'?"))
}
