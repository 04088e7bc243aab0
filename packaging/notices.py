"""Licences of the packages that the programs link: whoever passes the programs on has to pass these on with them."""

import json
from pathlib import Path

from project import Failed, run

# How files begin that say under which licence a package is, and who holds its rights.
NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")

# Below the project's folder: what is in the programs and is no package of cargo, with its name, version and licence.
OTHERS = {
    "tuner/src/report/html/plotly/LICENSE": "plotly.js 4.1.1 (in the pages of reports): MIT",
    "tuner/src/report/html/plotly/LICENSE-others": "in plotly.js 4.1.1: BSD-3-Clause, ISC, MIT",
}


def text(project):
    """One text: each licence once, below the packages that it is of."""
    owners = {}
    for package in linked(project):
        label = f"{package['name']} {package['version']}: {package['license']}"
        folder = Path(package["manifest_path"]).parent
        files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name.upper().startswith(NAMES)]
        for file in files:
            words = file.read_text(errors="replace").strip()
            owners.setdefault(words, []).append(label)
        if not files:
            owners.setdefault("These packages name their licence and hold no file with its text.", []).append(label)
    for path, label in OTHERS.items():
        owners.setdefault(project.text(path).decode().strip(), []).append(label)
    parts = ["\n".join(sorted(set(labels))) + "\n\n" + words + "\n" for words, labels in owners.items()]
    head = "Packages in the programs hpl-tune and xhpl, their licences, and the texts of these.\n"
    return ("\n" + "-" * 80 + "\n").join([head, *sorted(parts)]).encode()


def linked(project):
    """What cargo says of the packages that are linked into either program, ours left out."""
    platform = f"{project.processor}-unknown-linux-gnu"
    found = json.loads(run(["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", platform],
                           package="cargo", cwd=project.root))
    of = {node["id"]: node for node in found["resolve"]["nodes"]}
    packages = {package["id"]: package for package in found["packages"]}
    ours = [id for id in found["workspace_members"] if packages[id]["name"] in ("hpl", "hpl-tune")]
    if len(ours) != 2:
        raise Failed("the workspace has no packages hpl and hpl-tune")
    open_, seen = list(ours), set()
    while open_:
        id = open_.pop()
        if id in seen:
            continue
        seen.add(id)
        open_ += [dependency["pkg"] for dependency in of[id]["deps"]
                  if any(kind["kind"] is None for kind in dependency["dep_kinds"])]
    return sorted((packages[id] for id in seen if packages[id]["source"]), key=lambda package: (package["name"], package["version"]))
