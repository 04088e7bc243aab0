"""The source archive: the commit with the packages that it is built from, so that cargo builds it without a network."""

import io
import json
import re
import shutil
import tarfile

from project import PROCESSORS, Failed, run

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
    # Read by cargo: sources are in vendor/ and nowhere else.
    settings = run(["cargo", "vendor", "--locked", "--quiet", "--versioned-dirs", "vendor"], package="cargo", cwd=root)
    (root / ".cargo").mkdir()
    (root / ".cargo/config.toml").write_text(settings)
    for package in foreign(root):
        emptied(package)
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
        platform = f"{processor}-unknown-linux-gnu"
        found = json.loads(run(["cargo", "metadata", "--format-version", "1", "--locked", "--offline", "--all-features",
                                "--filter-platform", platform], cwd=root))
        used |= {f"{package['name']}-{package['version']}" for package in found["packages"]}
    return [folder for folder in sorted((root / "vendor").iterdir()) if folder.name not in used]


def emptied(folder):
    """Leaves of a package what cargo reads to settle versions: its Cargo.toml, without the sources that are large and never compiled."""
    settings = (folder / "Cargo.toml").read_text()
    sections = re.split(r"^(?=\[)", settings, flags=re.M)
    kept = "".join(section for section in sections if not section.startswith(TARGETS))
    checksum = json.loads((folder / ".cargo-checksum.json").read_text())["package"]
    shutil.rmtree(folder)
    (folder / "src").mkdir(parents=True)
    (folder / "src/lib.rs").write_text("// For another system than Linux: left out of this archive.\n")
    (folder / "Cargo.toml").write_text(re.sub(r"^build = .*$", "build = false", kept, flags=re.M))
    (folder / ".cargo-checksum.json").write_text(json.dumps({"files": {}, "package": checksum}))
