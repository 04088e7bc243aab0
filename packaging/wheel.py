"""The wheel: a zip file that pip, uv and pipx unpack; both programs are its scripts."""

import base64
import hashlib
import re
import time
import zipfile

from programs import Entry, PROGRAMS, needed_glibc
from project import AUTHORS, LICENCE, SUMMARY, Failed

CLASSIFIERS = (
    "Development Status :: 4 - Beta",
    "Environment :: Console",
    "Intended Audience :: Science/Research",
    "Intended Audience :: System Administrators",
    "Operating System :: POSIX :: Linux",
    "Programming Language :: Rust",
    "Topic :: Scientific/Engineering :: Mathematics",
    "Topic :: System :: Benchmark",
    "Topic :: System :: Distributed Computing",
)

# The oldest time that a zip file can hold: 1980.
OLDEST = 315532800


def pack(project, contents, scratch, out):
    """Writes the wheel and returns its path."""
    name = f"hpl_tune-{project.version}"
    tags = platforms(project, contents, scratch)
    info = f"{name}.dist-info"
    entries = [Entry(inside(name, entry.path), entry.data, entry.mode) for entry in contents]
    licences = [entry for entry in contents if "/LICENSE-" in entry.path]
    entries += [Entry(f"{info}/licenses/{entry.path.rsplit('/', 1)[1]}", entry.data) for entry in licences]
    entries += [
        Entry(f"{info}/METADATA", metadata(project, [entry.path.rsplit("/", 1)[1] for entry in licences]).encode()),
        Entry(f"{info}/WHEEL", "".join(["Wheel-Version: 1.0\n", "Generator: hpl-tune packaging\n", "Root-Is-Purelib: false\n",
                                        *(f"Tag: py3-none-{tag}\n" for tag in tags)]).encode()),
    ]
    entries.sort(key=lambda entry: entry.path)
    record = "".join(f"{entry.path},{hashed(entry.data)},{len(entry.data)}\n" for entry in entries)
    entries.append(Entry(f"{info}/RECORD", f"{record}{info}/RECORD,,\n".encode()))
    path = out / f"{name}-py3-none-{'.'.join(tags)}.whl"
    with zipfile.ZipFile(path, "w") as file:
        for entry in entries:
            member = zipfile.ZipInfo(entry.path, time.gmtime(max(project.epoch, OLDEST))[:6])
            member.create_system = 3
            member.external_attr = (0o100000 | entry.mode) << 16
            file.writestr(member, entry.data, zipfile.ZIP_DEFLATED, 1 if project.quick else 9)
    return path


def platforms(project, contents, scratch):
    """Tags of the systems that the programs run on, by the C library that they need."""
    newest = (0, 0)
    for name in PROGRAMS:
        program = scratch / f"{name}.elf"
        program.write_bytes(next(entry.data for entry in contents if entry.path == f"bin/{name}"))
        newest = max(newest, needed_glibc(program))
    if newest < (2, 5):
        raise Failed(f"the programs need glibc {newest}, for which there is no tag")
    tags = [f"manylinux_{newest[0]}_{newest[1]}_{project.processor}"]
    # The older name of the same, which old versions of pip know alone.
    return tags + ([f"manylinux2014_{project.processor}"] if newest == (2, 17) else [])


def inside(name, path):
    """Where a file lies in the wheel."""
    return path.replace("bin/", f"{name}.data/scripts/", 1) if path.startswith("bin/") else f"{name}.data/data/{path}"


def hashed(data):
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def metadata(project, licences):
    """The metadata of PyPI, with the README as its description."""
    lines = ["Metadata-Version: 2.4", "Name: hpl-tune", f"Version: {project.version}", f"Summary: {SUMMARY}", f"Author: {AUTHORS}",
             f"License-Expression: {LICENCE}", *(f"License-File: {name}" for name in licences),
             "Keywords: HPL,Linpack,TOP500,benchmark,autotuning,HPC", *(f"Classifier: {name}" for name in CLASSIFIERS),
             "Requires-Python: >=3.7", "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + readable(project.text("README.md").decode())


def readable(markdown):
    """A page without pictures and links of the repository, which lead nowhere from PyPI."""
    without = re.sub(r"!\[[^\]]*\]\((?!https?:)[^)]*\)\n*", "", markdown)
    return re.sub(r"\[([^\]]*)\]\((?!https?:)[^)]*\)", r"\1", without)
