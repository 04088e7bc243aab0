#!/usr/bin/env python3
"""Sessions where a landscape was recorded, judged afterwards beside the best that was ever measured there.

usage: tuner/benches/landscape.py TABLE.csv N [BUDGET [SESSIONS [ROUNDS [FOLDER [LAUNCHER PROGRAM NODES]]]]]
defaults: 3m 3 11 runs/landscape

TABLE.csv is a table of `bench own -- record` of our engine at order N, in the place that it was recorded in: what disturbed the machine
then has to run now. With LAUNCHER, a launch command with {np} that reaches NODES nodes, PROGRAM is our xhpl of mpi-setup on its processes.
SESSIONS sessions of BUDGET each and one of `--strategy random`; then ROUNDS rounds, each in another order, of the usual HPL.dat, the expert's, each session's
best and the five of the table with the best medians of at least three runs. Finished sessions and rounds in FOLDER are kept, so that a
stopped series goes on. Prints medians, and the median ratios of the pairs of each round to the usual HPL.dat and to the table's best
with the interval of the sign test. Needs target/release/hpl-tune or the program that TUNE names, with xhpl beside it.
"""

import csv
import json
import os
import re
import subprocess
import sys
from statistics import median

from sweep import TUNE, interval, measured, with_values

# Lines of HPL.dat, and their codes.
N, NB, P, Q, PFACT, NBMIN, NDIV, RFACT, BCAST, DEPTH, SWAP = 5, 7, 10, 11, 14, 16, 18, 20, 22, 24, 25
CODES = {
    "fact": ["left", "crout", "right"],
    "bcast": ["1ring", "1ringM", "2ring", "2ringM", "long", "longM"],
    "swap": ["bin-exch", "long", "mix"],
}
LEADERS = 5


def leaders(path):
    """Rows of a table with the best medians of at least three passed runs, and those medians."""
    runs = {}
    with open(path) as file:
        for row in csv.DictReader(file):
            cells = tuple((name, cell) for name, cell in row.items() if name not in ("time_s", "rate_gflops", "passed", "wall_s"))
            runs.setdefault(cells, []).append(float(row["rate_gflops"]) if row["passed"] == "1" else 0.0)
    often = {cells: median(rates) for cells, rates in runs.items() if len(rates) >= 3}
    return [dict(cells) for cells in sorted(often, key=lambda cells: -often[cells])[:LEADERS]]


def of_row(dat, row):
    """HPL.dat and engine parameters of a row of a table."""
    code = {kind: lambda name, kind=kind: CODES[kind].index(name) for kind in CODES}
    values = {NB: row["nb"], P: row["p"], Q: row["q"], NBMIN: row["nbmin"], NDIV: row["ndiv"], DEPTH: row["depth"]}
    values |= {PFACT: code["fact"](row["pfact"]), RFACT: code["fact"](row["rfact"])}
    values |= {BCAST: code["bcast"](row["bcast"]), SWAP: code["swap"](row["swap"])}
    return with_values(dat, values), f"threads = {row['threads']}\nsplit = {float(row['split'])}\n"


def contents(folder, dat="HPL.dat", params="engine-params.toml"):
    found = []
    for name in (dat, params):
        with open(os.path.join(folder, name)) as file:
            found.append(file.read())
    return tuple(found)


def session(folder, flags):
    """HPL.dat and engine parameters of a session's best."""
    if not os.path.exists(os.path.join(folder, "run.sh")):
        subprocess.run([TUNE, *flags, "--out", folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([TUNE, "report", folder, "--json"], check=True, capture_output=True).stdout
    summary = json.loads(said)
    print(f"{os.path.basename(folder)}: {summary['used_s']:.1f} s, {summary['trials']} trials, its own pairs "
          f"{json.dumps(summary['best_by_baseline'])}", flush=True)
    return contents(folder)


def rate(home, command, dat, params):
    """GFLOP/s of one run, whose residual must pass."""
    for name, text in (("HPL.dat", dat), ("engine-params.toml", params)):
        with open(os.path.join(home, name), "w") as file:
            file.write(text)
    lines = dat.split("\n")
    ranks = int(lines[P].split()[0]) * int(lines[Q].split()[0])
    words = [word.replace("{np}", str(ranks)) for word in command] + ["--engine-params", "engine-params.toml"]
    done = subprocess.run(words, cwd=home, check=True, capture_output=True, text=True)
    assert "PASSED" in done.stdout, done.stdout
    return float(re.search(r"^W[RC]\d.* (\S+)$", done.stdout, re.MULTILINE)[1])


def main():
    words = sys.argv[1:] + ["3m", "3", "11", "runs/landscape"][len(sys.argv) - 3:]
    table, n, budget, home = os.path.abspath(words[0]), words[1], words[2], os.path.abspath(words[5])
    sessions, rounds = int(words[3]), int(words[4])
    # Absolute paths: runs are in a folder of their own.
    flags, command = ["--n", n, "--budget", budget, "--blas", "builtin"], [os.path.join(os.path.dirname(os.path.abspath(TUNE)), "xhpl")]
    if len(words) > 6:
        program = os.path.abspath(words[7])
        flags += ["--launcher", words[6], "--program", program, "--nodes", words[8]]
        command = [*words[6].split(), program]
    os.makedirs(home, exist_ok=True)
    bests = {f"session-{seed}": session(os.path.join(home, f"session-{seed}"), [*flags, "--seed", str(seed)]) for seed in range(sessions)}
    bests["random"] = session(os.path.join(home, "random"), [*flags, "--strategy", "random"])
    # The first two trials of every session.
    usual, expert = [contents(os.path.join(home, "session-0", "trials", trial)) for trial in ("0", "1")]
    best_rows = {f"table-{place}": of_row(usual[0], row) for place, row in enumerate(leaders(table))}
    # Printed to where the output of the program goes.
    sides = {name: (with_values(dat, {N: n}), params) for name, (dat, params) in
             {"usual": usual, "expert": expert, **bests, **best_rows}.items()}
    rates = measured(os.path.join(home, "rounds.json"), rounds, sides, lambda dat, params: rate(home, command, dat, params))
    best = max(best_rows, key=lambda name: median(rates[name]))
    for name in sides:
        by_usual, by_best = [interval([a / b for a, b in zip(rates[name], rates[other])]) for other in ("usual", best)]
        print(f"{name}: {median(rates[name]):.2f} GFLOP/s, {by_usual} of the usual, {by_best} of {best}")


if __name__ == "__main__":
    if not 3 <= len(sys.argv) <= 7 and len(sys.argv) != 10 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main()
