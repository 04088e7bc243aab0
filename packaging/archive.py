"""The source archive: the commit with the packages that it is built from, so that cargo builds it without a network."""

import io
import json
import os
import re
import shutil
import tarfile

from project import PROCESSORS, Failed, run

# What cargo reads in the root of the archive.
SETTINGS = """\
[source.crates-io]
replace-with = "vendored-sources"

[source.vendored-sources]
directory = "vendor"
"""
# Sections of a Cargo.toml that name files.
TARGETS = ("[lib]", "[[bin]]", "[[example]]", "[[test]]", "[[bench]]")


def pack(project, scratch, out):
    """Writes the archive and returns its path."""
    if not (project.root / ".git").exists():
        raise Failed("source is made of a commit, and this is no repository; the archive that it came from is the source")
    name = f"hpl-tune-{project.version}"
    root = scratch / name
    commit = scratch / "commit.tar"
    run(["git", "-C", project.root, "archive", f"--output={commit}", f"--prefix={name}/", "HEAD"], package="git")
    with tarfile.open(commit) as file:
        file.extractall(scratch)
    run(["cargo", "vendor", "--locked", "--versioned-dirs", "vendor"], package="cargo", cwd=root)
    (root / ".cargo").mkdir()
    (root / ".cargo/config.toml").write_text(SETTINGS)
    for package in foreign(root):
        emptied(package)
    # What is left must do, without a network and without what lies in the home of cargo.
    run(metadata(f"{project.processor}-unknown-linux-gnu"), cwd=root, env={**os.environ, "CARGO_HOME": str(scratch / "no-home")})
    path = out / f"{name}.tar.xz"
    with tarfile.open(path, "w:xz", preset=6) as file:
        for member in sorted(root.rglob("*")):
            if member.is_symlink() or not member.is_dir():
                add(file, member, str(member.relative_to(scratch)), project.epoch)
    return path


def add(file, path, name, epoch):
    """Adds a file without what belongs to this machine: owner, time, umask."""
    member = file.gettarinfo(str(path), name)
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = epoch
    member.mode = 0o755 if member.mode & 0o100 else 0o644
    file.addfile(member, io.BytesIO(path.read_bytes()) if member.isreg() else None)


def foreign(root):
    """Folders of vendored packages that no build on Linux uses: those of other systems."""
    used = set()
    for processor in PROCESSORS:
        found = json.loads(run(metadata(f"{processor}-unknown-linux-gnu"), cwd=root))
        used |= {f"{package['name']}-{package['version']}" for package in found["packages"]}
    return [folder for folder in sorted((root / "vendor").iterdir()) if folder.name not in used]


def metadata(platform):
    """The command that asks cargo which packages a platform needs, of those that are here."""
    return ["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--all-features", "--filter-platform", platform]


def emptied(folder):
    """Leaves of a package what cargo reads to settle versions: its Cargo.toml, without the sources that are large and never compiled."""
    settings = (folder / "Cargo.toml").read_text()
    sections = re.split(r"^(?=\[)", settings, flags=re.M)
    kept = "".join(section for section in sections if not section.startswith(TARGETS))
    checksum = json.loads((folder / ".cargo-checksum.json").read_text())["package"]
    shutil.rmtree(folder)
    (folder / "src").mkdir(parents=True)
    (folder / "src/lib.rs").write_text("// For another system than Linux: left out of this archive.\n")
    settings = re.sub(r"^(build|links) = .*\n", "", kept, flags=re.M)
    (folder / "Cargo.toml").write_text(f'{settings}\n[lib]\npath = "src/lib.rs"\n')
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))
