//! Says to the sources that they are built for loom. Not by RUSTFLAGS, which other crates would follow, too.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(loom)");
    println!("cargo::rustc-check-cfg=cfg(feature, values(\"mpi\"))");
    println!("cargo::rustc-cfg=loom");
    println!("cargo::rustc-env=HPL_BUILT_FROM=tests/loom");
}
