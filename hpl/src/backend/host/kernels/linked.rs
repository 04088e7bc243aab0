//! The BLAS that another program loads.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::blas::is_blas_name;

/// The BLAS library that the dynamic linker finds for `program`, according to `ldd`; `None` if it loads no library with a known
/// name, is linked statically, or `ldd` fails.
pub fn linked(program: &Path) -> Option<PathBuf> {
    let ldd = Command::new("ldd").arg(program).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    of_ldd(&String::from_utf8_lossy(&ldd.stdout))
}

/// The first BLAS of lines such as `libopenblas.so.0 => /lib/libopenblas.so.0 (0x00007f5a)`.
fn of_ldd(text: &str) -> Option<PathBuf> {
    let library = |line: &str| {
        let (name, target) = line.split_once(" => ")?;
        let path = target.rsplit_once(" (").map_or(target, |(path, _)| path).trim();
        (is_blas_name(name.trim()) && path.starts_with('/')).then(|| PathBuf::from(path))
    };
    text.lines().find_map(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_blas_found_is_returned() {
        let text = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibm.so.6 => /lib/libm.so.6 (0x00007f1)\n\
                    \tlibblis.so.4 => not found\n\tlibopenblas.so.0 => /opt/my libs/libopenblas.so.0 (0x00007f5a)\n\
                    \tlibblas.so.3 => /lib/libblas.so.3 (0x00007f6a)\n";
        assert_eq!(of_ldd(text), Some(PathBuf::from("/opt/my libs/libopenblas.so.0")));
        assert_eq!(of_ldd("\tstatically linked\n"), None);
        assert_eq!(linked(Path::new("/no/such/program")), None);
    }
}
