//! Counts with the word for what is counted.

/// So many of `what`, a word in the singular whose plural ends with s.
///
/// ```
/// assert_eq!([1, 2].map(|count| space::counted(count, "rank")), ["1 rank", "2 ranks"]);
/// ```
pub fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}
