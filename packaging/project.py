"""What all packages say of the project, and how other programs are run."""

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

NAME = "hpl-tune"
SUMMARY = "Autotuner for High Performance Linpack"
LICENCE = "MIT OR Apache-2.0"
AUTHORS = "the hpl-tune authors"
DESCRIPTION = (
    "hpl-tune finds the fastest HPL.dat for a machine within a time budget: it measures the machine, searches the parameters of High "
    "Performance Linpack with real runs of its own engine or of another HPL, and leaves a verified score, the command that repeats it, "
    "a record of every trial and a report. Neither MPI nor a BLAS library is needed. xhpl is the engine with the input and output of "
    "Netlib's program."
)
# Names of the processor: of the machine and in Rust, of Debian.
PROCESSORS = {"x86_64": "amd64", "aarch64": "arm64"}


class Failed(Exception):
    """Why no package was made, and the way out."""


@dataclass(frozen=True)
class Project:
    """A tree of sources, and what identifies it."""

    root: Path
    version: str
    # The commit as --version shows it.
    commit: str
    # The time of all files in packages: that of the commit, or SOURCE_DATE_EPOCH.
    epoch: int
    # Name of the processor.
    processor: str
    # Whether packages are made in seconds rather than small, to try them out.
    quick: bool

    @staticmethod
    def here(quick):
        root = Path(__file__).resolve().parent.parent
        version = re.search(r'^version = "(.*)"', (root / "Cargo.toml").read_text(), re.M).group(1)
        processor = platform.machine()
        if processor not in PROCESSORS:
            raise Failed(f"no package is made for {processor}, only for {', '.join(PROCESSORS)}; build with cargo")
        commit, epoch = origin(root)
        return Project(root, version, commit, dated(epoch), processor, quick)

    def text(self, name):
        return (self.root / name).read_bytes()

    def environment(self):
        """Variables of programs that pack."""
        return {**os.environ, "SOURCE_DATE_EPOCH": str(self.epoch), "LC_ALL": "C.UTF-8"}


def origin(root):
    """Commit and time of the tree: of the archive that it comes from, or of the repository."""
    words = (root / "packaging/COMMIT").read_text().split()
    if len(words) == 2 and not words[0].startswith("$"):
        return words[0], int(words[1])
    if not (root / ".git").exists():
        raise Failed("neither packaging/COMMIT nor a repository says which commit this is; use an archive made by packaging/build source")
    git = ["git", "-C", str(root), "--no-optional-locks"]
    commit, epoch = run([*git, "log", "-1", "--format=%H %ct"]).split()
    changed = run([*git, "status", "--porcelain", "--untracked-files=no"])
    return commit + (", with changes" if changed.strip() else ""), int(epoch)


def dated(epoch):
    """The time of files in packages, for a commit of the time `epoch`."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    if given and not given.isdecimal():
        raise Failed(f"SOURCE_DATE_EPOCH={given}: a number of seconds since 1970 is needed, as of date +%s")
    return int(given or epoch)


def run(command, package=None, quiet=True, **options):
    """Runs a command and returns what it prints; `package` of Debian has it."""
    if shutil.which(command[0], path=options.get("env", os.environ).get("PATH")) is None:
        way_out = f" (on Debian: apt-get install {package})" if package else ""
        raise Failed(f"the program {command[0]} is missing{way_out}")
    result = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE if quiet else None, text=True, **options)
    if result.returncode != 0:
        raise Failed(f"{' '.join(str(word) for word in command)} ended with {result.returncode}:\n{result.stdout}{result.stderr or ''}")
    return result.stdout
