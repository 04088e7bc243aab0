//! Files from somebody else make the program load nothing, run nothing and write nothing that its user did not ask for.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{err, machine_toml, tune};

/// A library that leaves a file behind when it is loaded, and that file.
fn library_with_a_trace(folder: &Path) -> (PathBuf, PathBuf) {
    let [source, library, trace] = ["trace.c", "libtrace.so", "loaded"].map(|name| folder.join(name));
    let create = format!("creat(\"{}\", 0600)", trace.display());
    let code = format!("int creat(const char *, unsigned);\n__attribute__((constructor)) void f(void) {{ {create}; }}\n");
    std::fs::write(&source, code).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    assert!(built.unwrap().success());
    (library, trace)
}

#[test]
fn a_description_does_not_make_a_library_be_loaded() {
    let folder = tempfile::tempdir().unwrap();
    let (library, trace) = library_with_a_trace(folder.path());
    let (machine, new) = (folder.path().join("machine.toml"), folder.path().join("new"));
    let text = std::fs::read_to_string(machine_toml()).unwrap();
    let named = text.replacen("kernels = \"builtin\"", &format!("kernels = \"{}\"", library.display()), 1);
    assert_ne!(named, text);
    std::fs::write(&machine, named).unwrap();
    let [machine, new, library] = [&machine, &new, &library].map(|path| path.to_str().unwrap());
    let given = ["--budget", "30s", "--n", "200", "--machine", machine, "--out", new];
    for more in [[].as_slice(), &["--dry-run"]] {
        let output = tune(given.iter().chain(more));
        let text = err(&output);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.contains(&format!("--blas {library}")) && text.contains("[host] kernels"), "{text}");
        assert!(!trace.exists() && !Path::new(new).exists());
    }
    // Who names it has it loaded: the test sees what it looks for.
    tune(given.iter().chain(&["--blas", library]));
    assert!(trace.exists());
}
