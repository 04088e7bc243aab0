#!/usr/bin/env python3
"""What a session gains over the baselines: sessions from scratch, then all bests and the baselines measured in turn.

usage: tuner/benches/baselines.py [BUDGET [SESSIONS [RANDOM [ROUNDS [N [FOLDER]]]]]]      defaults: 10m 3 2 7 windows runs/baselines

SESSIONS sessions of the tuner and RANDOM ones of `--strategy random`, in turn, of BUDGET each; a finished one in FOLDER is kept, so
that a stopped series goes on. Then ROUNDS rounds of: each session's best; "default" (the usual HPL.dat, which sessions run first);
"expert" (the same with one rank, all cores as its threads, NB 384). With N = windows they are windows of the smallest order that the
sessions searched, else whole runs of order N with the residual check; N goes down to a multiple of 384, so that all have the same.
Sides that are the same run are measured once. Prints the median ratio of the pairs of each round with its bootstrap interval at 95 %.
Needs target/release/hpl-tune, or the program that TUNE names, and a quiet machine.
"""

import json
import os
import random
import re
import subprocess
import sys
from statistics import median

HERE = os.path.dirname(os.path.abspath(__file__))
TUNE = os.environ.get("TUNE") or os.path.join(HERE, "..", "..", "target", "release", "hpl-tune")
EXPERT_NB = 384


def session(folder, budget, seed, strategy):
    """The HPL.dat and engine parameters of a session's best, and the N that it searched."""
    if not os.path.exists(os.path.join(folder, "run.sh")):
        flags = ["--budget", budget, "--seed", str(seed), "--strategy", strategy, "--blas", "builtin", "--out", folder]
        subprocess.run([TUNE, *flags, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    said = subprocess.run([TUNE, "report", folder, "--json"], check=True, capture_output=True).stdout
    summary = json.loads(said)
    ratio, best = summary["best_by_baseline"], summary["best"]["candidate"]
    print(f"{os.path.basename(folder)}: {summary['used_s']:.1f} s, {summary['trials']} trials, N {best['hpl']['n']}, "
          f"NB {best['hpl']['nb']} {best['hpl']['p']}x{best['hpl']['q']}x{best['engine']['threads']} DEPTH {best['hpl']['depth']}, "
          f"its own pairs {json.dumps(ratio)}", flush=True)
    with open(os.path.join(folder, "HPL.dat")) as file:
        dat = file.read()
    return dat, os.path.join(folder, "engine-params.toml"), summary["session"]["n"]


def at_order(dat, n):
    """The HPL.dat with this N."""
    lines = dat.split("\n")
    lines[1], lines[5] = "", f"{n} Ns"
    # Values alone: comments differ by who wrote the file.
    return "\n".join(line if at in (0, 1, 2) else line.split()[0] for at, line in enumerate(lines) if line or at < 3)


def rate(home, dat, params, windows):
    """GFLOP/s of one whole run, or what windows of it say."""
    path, result = os.path.join(home, "HPL.dat"), os.path.join(home, "result.json")
    with open(path, "w") as file:
        file.write(dat)
    command = [TUNE, "run", "--dat", path, "--engine-params", params, "--result", result]
    subprocess.run(command + (["--windows", "auto"] if windows else []), check=True, stdout=subprocess.DEVNULL)
    with open(result) as file:
        found = json.load(file)
    assert found["passed"], found
    return found["predicted_rate_gflops" if windows else "rate_gflops"]


def interval(ratios):
    """Median with its bootstrap interval at 95 %."""
    draw = random.Random(0)
    medians = sorted(median(draw.choices(ratios, k=len(ratios))) for _ in range(4000))
    return f"{median(ratios):.3f} ({medians[100]:.3f} ... {medians[3899]:.3f}, {len(ratios)} pairs)"


def main():
    words = sys.argv[1:] + ["10m", "3", "2", "7", "windows", "runs/baselines"][len(sys.argv) - 1:]
    budget, order, home = words[0], words[4], words[5]
    sessions, randoms, rounds = map(int, words[1:4])
    os.makedirs(home, exist_ok=True)
    sides = {}
    for seed in range(max(sessions, randoms)):
        for name, strategy, count in [("tuned", "bayes", sessions), ("random", "random", randoms)]:
            if seed < count:
                sides[f"{name}-{seed}"] = session(os.path.join(home, f"{name}-{seed}"), budget, seed, strategy)
    windows = order == "windows"
    n = (min(side[2] for side in sides.values()) if windows else int(order)) // EXPERT_NB * EXPERT_NB
    # The first trial of every session is the usual HPL.dat.
    usual = os.path.join(home, "tuned-0", "trials", "0")
    with open(os.path.join(usual, "HPL.dat")) as file:
        default = file.read()
    expert = default.split("\n")
    expert[7], expert[10], expert[11] = f"{EXPERT_NB} NBs", "1 Ps", "1 Qs"
    params = os.path.join(home, "expert.toml")
    with open(params, "w") as file:
        file.write(f"threads = {len(os.sched_getaffinity(0))}\n")
    sides["default"] = (default, os.path.join(usual, "engine-params.toml"), n)
    sides["expert"] = ("\n".join(expert), params, n)
    runs, same = {}, {}
    for name, (dat, params, _) in sides.items():
        with open(params) as file:
            threads = [line for line in file.read().split("\n") if re.match("threads|split|kernels", line)]
        dat = at_order(dat, n)
        # No split and built-in kernels are what a file that is silent means.
        key = (dat, tuple(line for line in threads if line not in ("split = 0.0", 'kernels = "builtin"')))
        same[name] = runs.setdefault(key, (name, dat, params))[0]
    rates = {name: [] for name, _, _ in runs.values()}
    print(f"N = {n}, {rounds} rounds, GFLOP/s by {'windows' if windows else 'whole runs'}", flush=True)
    for turn in range(rounds):
        order = list(runs.values())
        for name, dat, params in order[turn % len(order):] + order[:turn % len(order)]:
            rates[name].append(rate(home, dat, params, windows))
        print("  ".join(f"{name} {rates[name][-1]:.1f}" for name in rates), flush=True)
    for name in sides:
        if not name.startswith("tuned"):
            continue
        for other in sides:
            if not other.startswith("tuned"):
                pairs = zip(rates[same[name]], rates[same[other]])
                told = "the same run" if same[name] == same[other] else interval([a / b for a, b in pairs])
                print(f"{name} / {other}: {told}")


if __name__ == "__main__":
    if len(sys.argv) > 1 and not re.fullmatch(r"\d+[smh]", sys.argv[1]):
        sys.exit(__doc__)
    main()
