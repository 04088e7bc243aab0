//! Launchers: the words before a program that start it on many ranks.

/// Known launchers by name, with the words of their command. `none` starts the program alone.
pub const LAUNCHERS: [(&str, &str); 6] = [
    ("none", ""),
    // Open MPI binds to cores by itself, one per rank, unless ranks have several.
    ("mpirun", "mpirun -np {np} --map-by slot:PE={threads} --bind-to core"),
    ("mpiexec", "mpiexec -n {np}"),
    ("srun", "srun --ntasks={np} --cpus-per-task={threads} --cpu-bind=cores"),
    ("flux", "flux run --ntasks={np} --cores-per-task={threads}"),
    ("aprun", "aprun -n {np} -d {threads}"),
];

/// The words of a launcher: of a known one, or of the template `text` itself.
pub fn words(text: &str) -> Vec<&str> {
    let known = LAUNCHERS.iter().find(|(name, _)| *name == text);
    known.map_or(text, |(_, words)| words).split_whitespace().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launcher_is_a_name_or_its_own_words() {
        assert_eq!(words("mpiexec"), ["mpiexec", "-n", "{np}"]);
        assert_eq!(words("srun -N 2 -n {np}"), ["srun", "-N", "2", "-n", "{np}"]);
        assert!(words("none").is_empty());
    }
}
