"""The .deb, made by dpkg-deb."""

import hashlib
from dataclasses import replace

from programs import PROGRAMS, installed, needed_glibc, needed_libraries
from project import AUTHORS, DESCRIPTION, LICENCE, PROCESSORS, SUMMARY, Failed, run

# Debian's packages of the shared libraries that the programs name; those without a version come with libc6.
LIBC = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1", "ld-linux")

# Folders of the completions for zsh: elsewhere, and where Debian's zsh looks for those of packages.
ZSH = ("share/zsh/site-functions/", "share/zsh/vendor-completions/")


def pack(project, contents, scratch, out):
    """Writes the package and returns its path."""
    root = scratch / "deb"
    installed(project, [replace(entry, path=entry.path.replace(*ZSH)) for entry in contents], root)
    copyright_ = root / "usr/share/doc/hpl-tune/copyright"
    copyright_.write_text(f"hpl-tune by {AUTHORS}\nLicence: {LICENCE}; see LICENSE-MIT and LICENSE-APACHE in this folder.\n"
                          "Packages in the programs: see third-party.txt.\n")
    copyright_.chmod(0o644)
    files = sorted(path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
    control = root / "DEBIAN"
    control.mkdir()
    sums = [f"{hashlib.md5(path.read_bytes()).hexdigest()}  {path.relative_to(root)}\n" for path in files]
    (control / "md5sums").write_text("".join(sums))
    processor = PROCESSORS[project.processor]
    (control / "control").write_text("\n".join([
        "Package: hpl-tune", f"Version: {project.version}", f"Architecture: {processor}", f"Maintainer: {AUTHORS}",
        f"Installed-Size: {sum(path.stat().st_size for path in files) // 1024}", f"Depends: {', '.join(dependencies(root))}",
        "Section: science", "Priority: optional", f"Description: {SUMMARY}", f" {DESCRIPTION}", ""]))
    # Whatever the umask: dpkg-deb refuses a folder that others cannot read.
    control.chmod(0o755)
    for path in control.iterdir():
        path.chmod(0o644)
    path = out / f"hpl-tune_{project.version}_{processor}.deb"
    compression = ["-Zgzip", "-z1"] if project.quick else ["-Zxz"]
    run(["dpkg-deb", "--root-owner-group", *compression, "--build", root, path], package="dpkg", env=project.environment())
    return path


def dependencies(root):
    """Debian's packages of the libraries that the programs name."""
    programs = [root / "usr/lib/hpl-tune" / name for name in PROGRAMS]
    major, minor = max(needed_glibc(program) for program in programs)
    packages = {f"libc6 (>= {major}.{minor})"}
    for library in {library for program in programs for library in needed_libraries(program)}:
        if library == "libgcc_s.so.1":
            packages.add("libgcc-s1 | libgcc1")
        elif not library.startswith(LIBC):
            raise Failed(f"the programs need {library}: which package of Debian has it? See packaging/debian.py")
    return sorted(packages)
