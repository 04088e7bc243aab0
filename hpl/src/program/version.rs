//! What `--version` says beyond the number.

use crate::backend::host::kernels::isa::Isa;

/// The lines of `--version` of a program that is built from `commit`: its version, the commit, the built-in kernels and those of them
/// that this processor runs, and how MPI comes to it.
pub fn long_version(version: &str, commit: &str) -> String {
    let all = Isa::ALL.map(Isa::name).join(", ");
    let here = Isa::detect().name();
    let mpi = if cfg!(feature = "mpi") { "built in (feature mpi)" } else { "not built in: hpl-tune mpi-setup" };
    format!(
        "{version}\ncommit: {commit}\nkernels: builtin {all}, chosen at run time: {here} on this processor\nMPI: {mpi}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_name_commit_and_kernels() {
        let text = long_version("1.2.3", "abc, with changes");
        assert!(text.starts_with("1.2.3\ncommit: abc, with changes\nkernels: builtin "), "{text}");
        assert!(
            text.contains(&format!("{} on this processor", Isa::detect().name())) && text.contains("portable"),
            "{text}"
        );
        assert_eq!(text.lines().count(), 4);
    }
}
