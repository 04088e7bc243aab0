"""The programs, built for an old C library, and all that is packed with them."""

import gzip
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import notices
from project import Failed, run

# The C library that built programs need at most: that of RHEL 7 (2014).
GLIBC = (2, 17)
PROGRAMS = ("hpl-tune", "xhpl")


@dataclass(frozen=True)
class Entry:
    """A file of a package, as a path below its prefix (usr, or the folder of a Python environment)."""

    path: str
    data: bytes
    mode: int = 0o644


def built(project):
    """The folder of the two programs, built here by zig; the tools are those of requirements.txt."""
    tools = project.root / "target/packaging"
    # Tools that another Python or an older requirements.txt has made, or that are not complete, are made anew.
    made_by, maker = tools / "made-by", sys.version + "\n" + project.text("packaging/requirements.txt").decode()
    if not made_by.is_file() or made_by.read_text() != maker:
        run([sys.executable, "-m", "venv", "--clear", tools])
        run([tools / "bin/pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:",
             "-r", project.root / "packaging/requirements.txt"])
        made_by.write_text(maker)
    folder = project.root / "target/zig"
    triple = f"{project.processor}-unknown-linux-gnu"
    # The folders of the registry, whose names are in the flags below, are there once cargo has fetched packages.
    run(["cargo", "fetch", "--locked", "--target", triple], package="cargo", quiet=False, cwd=project.root)
    # No path of this machine is in the programs.
    sources = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")) / "registry/src"
    renamed = {str(index): "/cargo" for index in sorted(sources.glob("*"))} | {str(project.root): "/hpl-tune"}
    for old in renamed:
        if re.search(r"\s", old):
            raise Failed(f"'{old}' has a space, at which the flags of rustc are divided; build in a folder without one, or pack what is built "
                         "by --programs target/release")
    flags = " ".join(f"--remap-path-prefix={old}={new}" for old, new in renamed.items())
    environment = {**os.environ, "PATH": f"{tools}/bin:{os.environ['PATH']}", "RUSTFLAGS": flags,
                   "CARGO_PROFILE_RELEASE_STRIP": "symbols", "HPL_TUNE_COMMIT": project.commit}
    run(["cargo", "zigbuild", "--release", "--locked", "--target", f"{triple}.{GLIBC[0]}.{GLIBC[1]}",
         "--target-dir", folder, "-p", "hpl", "-p", "hpl-tune", "--bins"], quiet=False, env=environment, cwd=project.root)
    programs = folder / triple / "release"
    for name in PROGRAMS:
        if needed_glibc(programs / name) > GLIBC:
            raise Failed(f"{programs / name} needs glibc {needed_glibc(programs / name)}, not {GLIBC}: what was it linked by?")
    return programs


def needed_glibc(program):
    """The newest version of the C library that a program names."""
    versions = re.findall(r"Name: GLIBC_(\d+)\.(\d+)", elf(program, "-VW"))
    if not versions:
        raise Failed(f"{program} names no version of glibc: packages are made of programs for it, not for musl, and not of static ones")
    return max((int(major), int(minor)) for major, minor in versions)


def needed_libraries(program):
    """The shared libraries that a program names."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]", elf(program, "-dW"))


def elf(program, flag):
    """What readelf says of a program, in English: its words are translated."""
    return run(["readelf", flag, program], package="binutils", env={**os.environ, "LC_ALL": "C"})


def contents(project, folder, scratch):
    """All that is packed, sorted by path: programs, completions, manual, licences."""
    for name in PROGRAMS:
        if not (folder / name).is_file():
            raise Failed(f"there is no {folder / name}; cargo build --release -p hpl -p hpl-tune makes both programs")
    tune = folder / "hpl-tune"
    said = run([tune, "--version"])
    if said.splitlines()[0] != f"hpl-tune {project.version}":
        raise Failed(f"{tune} is not version {project.version}: {said}")
    pages = scratch / "man"
    run([tune, "man", "--out", pages])

    def completions(shell):
        return run([tune, "completions", shell]).encode()

    entries = [Entry(f"bin/{name}", (folder / name).read_bytes(), 0o755) for name in PROGRAMS]
    entries += [Entry(f"share/man/man1/{page.name}", page.read_bytes()) for page in pages.iterdir()]
    entries += [
        Entry("share/bash-completion/completions/hpl-tune", completions("bash")),
        Entry("share/zsh/site-functions/_hpl-tune", completions("zsh")),
        Entry("share/fish/vendor_completions.d/hpl-tune.fish", completions("fish")),
        # What mpi-setup compiles is in the program; this is for readers.
        Entry("share/doc/hpl-tune/calls.c", project.text("hpl/src/comm/mpi/calls.c")),
        Entry("share/doc/hpl-tune/LICENSE-MIT", project.text("LICENSE-MIT")),
        Entry("share/doc/hpl-tune/LICENSE-APACHE", project.text("LICENSE-APACHE")),
        Entry("share/doc/hpl-tune/third-party.txt", notices.text(project)),
    ]
    return sorted(entries, key=lambda entry: entry.path)


def installed(project, entries, root):
    """Writes a package's files below `root`/usr, as Debian and Red Hat lay them out.

    The programs lie in a folder of their own, with links in usr/bin: mpi-setup puts its xhpl beside the program that it is a copy of.
    """
    for entry in entries:
        path, data = entry.path, entry.data
        if path.startswith("bin/"):
            path = path.replace("bin/", "lib/hpl-tune/")
        if path.startswith("share/man/"):
            path, data = path + ".gz", gzip.compress(data, mtime=0)
        target = root / "usr" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
        target.chmod(entry.mode)
        if entry.path.startswith("bin/"):
            link = root / "usr" / entry.path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(f"../{path}")
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir() and not path.is_symlink())]:
        folder.chmod(0o755)
    for path in root.rglob("*"):
        os.utime(path, (project.epoch, project.epoch), follow_symlinks=False)
