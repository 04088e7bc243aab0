#!/usr/bin/env python3
"""Sessions on Netlib's xhpl, judged afterwards beside what a plain sweep of NB and shape finds.

usage: tuner/benches/sweep.py XHPL [N [BUDGET [SESSIONS [ROUNDS [FOLDER]]]]]      defaults: 8000 8m 3 11 runs/sweep

XHPL is any build of Netlib's xhpl for Open MPI, whose mpirun is in PATH. SESSIONS sessions of `--engine netlib` of BUDGET each; then a sweep of NB on
1x2 with one thread a rank, 1x1 with two threads, and some of 2x1, three times; then ROUNDS rounds, each in another order, of the usual
HPL.dat, the expert's, each session's best and the three best of the sweep. Finished sessions, sweeps and rounds in FOLDER are kept, so
that a stopped series goes on. Prints medians, and the median ratios of the pairs of each round to the usual HPL.dat and to the sweep's
best with the interval of the sign test. Needs two cores, target/release/hpl-tune or the program that TUNE names, and a quiet machine.
"""

import json
import os
import random
import re
import subprocess
import sys
from math import comb
from statistics import median

HERE = os.path.dirname(os.path.abspath(__file__))
TUNE = os.environ.get("TUNE") or os.path.join(HERE, "..", "..", "target", "release", "hpl-tune")
NBS = [64, 96, 128, 160, 192, 224, 256, 320, 384]
# P, Q, threads, DEPTH and the NBs that are run.
SHAPES = [(1, 2, 1, 1, NBS), (1, 1, 2, 0, NBS), (2, 1, 1, 1, [128, 192])]
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
# Lines of HPL.dat.
N, NB, P, Q, DEPTH = 5, 7, 10, 11, 24


def session(folder, xhpl, n, budget, seed):
    """The HPL.dat and threads of a session's best."""
    if not os.path.exists(os.path.join(folder, "run.sh")):
        flags = ["--engine", "netlib", "--program", xhpl, "--n", n, "--budget", budget, "--seed", str(seed), "--out", folder]
        subprocess.run([TUNE, *flags, "--quiet"], check=True, stdout=subprocess.DEVNULL, env={**os.environ, **AS_ROOT})
    said = subprocess.run([TUNE, "report", folder, "--json"], check=True, capture_output=True).stdout
    summary = json.loads(said)
    print(f"{os.path.basename(folder)}: {summary['used_s']:.1f} s, {summary['trials']} trials, its own pairs "
          f"{json.dumps(summary['best_by_baseline'])}", flush=True)
    with open(os.path.join(folder, "HPL.dat")) as file:
        return file.read(), summary["best"]["candidate"]["engine"]["threads"]


def with_values(dat, values):
    """The HPL.dat with these lines changed."""
    lines = dat.split("\n")
    for line, value in values.items():
        lines[line] = f"{value} {' '.join(lines[line].split()[1:])}"
    return "\n".join(lines)


def rate(home, xhpl, dat, threads):
    """GFLOP/s of one run, whose residual must pass."""
    with open(os.path.join(home, "HPL.dat"), "w") as file:
        file.write(dat)
    lines = dat.split("\n")
    ranks = int(lines[P].split()[0]) * int(lines[Q].split()[0])
    by = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
    command = ["mpirun", "-np", str(ranks), "--map-by", f"slot:PE={threads}", "--bind-to", "core", xhpl]
    done = subprocess.run(command, cwd=home, env={**os.environ, **AS_ROOT, **by}, check=True, capture_output=True, text=True)
    assert "PASSED" in done.stdout, done.stdout
    return float(re.search(r"^W[RC]\d.* (\S+)$", done.stdout, re.MULTILINE)[1])


def measured(path, count, sides, run):
    """Rates of all sides in so many rounds, each in another order; those in the file at `path` are kept."""
    rates = {name: [] for name in sides}
    if os.path.exists(path):
        with open(path) as file:
            rates = json.load(file)
    for turn in range(min(map(len, rates.values())), count):
        order = list(sides)
        random.Random(turn).shuffle(order)
        found = {name: run(*sides[name]) for name in order}
        rates = {name: rates[name] + [found[name]] for name in sides}
        with open(path, "w") as file:
            json.dump(rates, file)
        print("  ".join(f"{name} {rates[name][-1]:.2f}" for name in sides), flush=True)
    return rates


def interval(ratios):
    """Median with the interval of the sign test whose level is 95 % or the next above."""
    ratios, count, rank = sorted(ratios), len(ratios), 0
    while 2 * sum(comb(count, i) for i in range(rank + 1)) / 2**count <= 0.05:
        rank += 1
    if rank == 0:
        return f"{median(ratios):.3f} ({count} pairs)"
    level = 1 - 2 * sum(comb(count, i) for i in range(rank)) / 2**count
    return f"{median(ratios):.3f} ({ratios[rank - 1]:.3f}-{ratios[count - rank]:.3f}, {100 * level:.1f} %, {count} pairs)"


def main():
    words = sys.argv[1:] + ["8000", "8m", "3", "11", "runs/sweep"][len(sys.argv) - 2:]
    xhpl, n, budget, home = os.path.abspath(words[0]), words[1], words[2], os.path.abspath(words[5])
    sessions, rounds = int(words[3]), int(words[4])
    os.makedirs(home, exist_ok=True)
    bests = {f"session-{seed}": session(os.path.join(home, f"session-{seed}"), xhpl, n, budget, seed) for seed in range(sessions)}
    # The first two trials of every session.
    trials = os.path.join(home, "session-0", "trials")
    first = []
    for trial in ["0", "1"]:
        with open(os.path.join(trials, trial, "HPL.dat")) as file:
            first.append(file.read())
    ranks = [int(dat.split("\n")[P].split()[0]) * int(dat.split("\n")[Q].split()[0]) for dat in first]
    usual, expert = [(dat, 2 // ranks) for dat, ranks in zip(first, ranks)]
    swept = {}
    for p, q, threads, depth, nbs in SHAPES:
        for nb in nbs:
            swept[f"NB {nb} {p}x{q}x{threads}"] = with_values(usual[0], {N: n, NB: nb, P: p, Q: q, DEPTH: depth}), threads

    def run(dat, threads):
        return rate(home, xhpl, dat, threads)

    rates = measured(os.path.join(home, "sweep.json"), 3, swept, run)
    leaders = sorted(swept, key=lambda name: -median(rates[name]))[:3]
    sides = {"usual": usual, "expert": expert, **bests, **{name: swept[name] for name in leaders}}
    rates = measured(os.path.join(home, "rounds.json"), rounds, sides, run)
    best = max(leaders, key=lambda name: median(rates[name]))
    for name in sides:
        by_usual, by_best = [interval([a / b for a, b in zip(rates[name], rates[other])]) for other in ("usual", best)]
        print(f"{name}: {median(rates[name]):.2f} GFLOP/s, {by_usual} of the usual, {by_best} of {best}")


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 7 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    main()
