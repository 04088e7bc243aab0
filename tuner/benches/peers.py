"""Other tools search a landscape that `hpl-tune replay --export` wrote; what they ran is appended as traces.

usage: peers.py LANDSCAPE.json TRACES.jsonl EVALS SEEDS TOOL...
tools: optuna-tpe optuna-tpe-penalty optuna-gp smac egobox kernel-tuner-greywolf kernel-tuner-vndx

Every run is the same for every tool: the k-th run of a point follows from a hash of (seed, point, k), as in
tuner/src/replay/world.rs. Tools minimise -ln(rate). A failed run is told as the tool wants it (optuna: state FAIL; the
variant -penalty and the others: the worst value seen so far, less ln 2). Combinations that the landscape does not have are told as
failures too, but cost no evaluation; after 50 in a row the search ends. Kernel Tuner's strategies get its own Searchspace
of the valid points; as in its simulation mode, a point that was run before comes from its cache and costs no evaluation.
"""

import json
import math
import sys
import time
import warnings

MASK = (1 << 64) - 1


def mix(state, value):
    z = ((state ^ value) + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def hashed(seed, a, b, c):
    state = mix(0, seed)
    for value in (a, b, c):
        state = mix(state, value)
    return state


def normal(seed, point, repeat):
    def uniform(c):
        return (hashed(seed, point, repeat, c) >> 11) / (1 << 53)

    return math.sqrt(-2.0 * math.log(1.0 - uniform(0))) * math.cos(math.tau * uniform(1))


class World:
    """One seed of a landscape, as a tool meets it."""

    def __init__(self, landscape, seed, evals):
        self.landscape, self.seed, self.evals = landscape, seed, evals
        self.index = {tuple(levels): at for at, levels in enumerate(landscape["points"])}
        self.points, self.ask_s, self.values, self.repeats, self.invalid = [], [], {}, {}, 0
        self.waiting_s = 0.0

    def done(self):
        return len(self.points) >= self.evals or self.invalid >= 50

    def run(self, levels, ask_s):
        """-ln(rate) of the next run of a point, None when it fails or does not exist."""
        at = self.index.get(tuple(int(level) for level in levels))
        self.waiting_s += ask_s
        if at is None:
            self.invalid += 1
            return None
        self.invalid = 0
        self.points.append(at)
        self.ask_s.append(self.waiting_s)
        self.waiting_s = 0.0
        repeat = self.repeats.get(at, 0)
        self.repeats[at] = repeat + 1
        runs = self.landscape["runs"][at]
        if not runs:
            return None
        order = sorted(range(len(runs)), key=lambda run: hashed(self.seed, at, run, 2))
        value = runs[order[repeat % len(runs)]] * math.exp(self.landscape["cv"][at] * normal(self.seed, at, repeat))
        cost = -math.log(value) if self.landscape["goal"] == "maximize" else math.log(value)
        self.values.setdefault(at, []).append(cost)
        return cost

    def penalty(self):
        """Worse than all that was seen."""
        return max((max(costs) for costs in self.values.values()), default=0.0) + math.log(2.0)

    def trace(self, tool):
        """The declared best is the luckiest run, which is what these tools report."""
        best = min(self.values, key=lambda at: min(self.values[at]), default=None)
        return {
            "tool": tool, "landscape": self.landscape["name"], "seed": self.seed,
            "points": self.points, "ask_s": self.ask_s, "declared": best,
        }


def optuna_search(world, sampler, penalize):
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    while not world.done():
        start = time.perf_counter()
        trial = study.ask()
        levels = []
        for dim in world.landscape["dims"]:
            count = len(dim["levels"])
            if dim["kind"] == "categorical":
                levels.append(trial.suggest_categorical(dim["name"], list(range(count))))
            else:
                levels.append(trial.suggest_int(dim["name"], 0, count - 1))
        cost = world.run(levels, time.perf_counter() - start)
        start = time.perf_counter()
        if cost is not None:
            study.tell(trial, cost)
        elif penalize:
            study.tell(trial, world.penalty())
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        world.waiting_s += time.perf_counter() - start


def smac_search(world):
    from ConfigSpace import Categorical, ConfigurationSpace, Integer
    from smac import HyperparameterOptimizationFacade, Scenario
    from smac.main.exceptions import ConfigurationSpaceExhaustedException
    from smac.runhistory.dataclasses import TrialValue

    def parameter(dim):
        count = len(dim["levels"])
        if dim["kind"] == "categorical":
            return Categorical(dim["name"], list(range(count)))
        return Integer(dim["name"], (0, max(count - 1, 1)))

    space = ConfigurationSpace(seed=world.seed)
    space.add([parameter(dim) for dim in world.landscape["dims"]])
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(space, n_trials=10 * world.evals, seed=world.seed, output_directory=Path(folder), deterministic=True)
        smac = HyperparameterOptimizationFacade(
            scenario, lambda config, seed=0: 0.0, overwrite=True, logging_level=50,
            initial_design=HyperparameterOptimizationFacade.get_initial_design(scenario, n_configs=min(10, world.evals // 3)),
        )
        while not world.done():
            start = time.perf_counter()
            try:
                info = smac.ask()
            except ConfigurationSpaceExhaustedException:
                return
            cost = world.run([info.config[dim["name"]] for dim in world.landscape["dims"]], time.perf_counter() - start)
            start = time.perf_counter()
            smac.tell(info, TrialValue(cost=world.penalty() if cost is None else cost))
            world.waiting_s += time.perf_counter() - start


def egobox_search(world):
    import egobox as egx
    import numpy as np

    def spec(dim):
        count = len(dim["levels"])
        if dim["kind"] == "categorical":
            return egx.XSpec(egx.XType.ENUM, tags=[str(i) for i in range(count)])
        return egx.XSpec(egx.XType.INT, [0.0, float(max(count - 1, 1))])

    specs = [spec(dim) for dim in world.landscape["dims"]]
    first = max(len(specs) + 1, 5)
    design = egx.sampling(specs, first, seed=world.seed)
    xs, ys = [], []
    egor = egx.Egor(specs, seed=world.seed)
    for x in design:
        cost = world.run(np.rint(x), 0.0)
        xs.append(x)
        ys.append([world.penalty() if cost is None else cost])
        if world.done():
            return
    while not world.done():
        start = time.perf_counter()
        x = egor.suggest(np.array(xs), np.array(ys))[0]
        cost = world.run(np.rint(x), time.perf_counter() - start)
        xs.append(x)
        ys.append([world.penalty() if cost is None else cost])


class KernelTunerCost:
    """What Kernel Tuner's strategies call for the cost of a configuration, with its cache and its share of the budget."""

    def __init__(self, world, stop):
        self.world, self.stop, self.cache, self.left_at = world, stop, {}, time.perf_counter()
        self.cached = 0

    @property
    def budget_spent_fraction(self):
        return len(self.world.points) / self.world.evals

    def __call__(self, levels, check_restrictions=True):
        ask_s = time.perf_counter() - self.left_at
        key = tuple(int(level) for level in levels)
        self.cached = self.cached + 1 if key in self.cache else 0
        if self.world.done() or self.cached > 10000:
            raise self.stop("the budget is used")
        if key in self.cache:
            self.world.waiting_s += ask_s
        else:
            cost = self.world.run(key, ask_s)
            # Its own cost is a time; failures are the largest float.
            self.cache[key] = sys.float_info.max if cost is None else math.exp(cost)
        self.left_at = time.perf_counter()
        return self.cache[key]


def kernel_tuner_search(world, strategy):
    import random

    import numpy
    from kernel_tuner.searchspace import Searchspace
    from kernel_tuner.strategies import gen_adaptive_tabu_greywolf, gen_hybrid_vndx
    from kernel_tuner.util import StopCriterionReached

    random.seed(world.seed)
    numpy.random.seed(world.seed)
    module, kind = {
        "greywolf": (gen_adaptive_tabu_greywolf, "AdaptiveTabuGreyWolf"),
        "vndx": (gen_hybrid_vndx, "HybridVNDX"),
    }[strategy]
    names = [dim["name"] for dim in world.landscape["dims"]]
    levels = {dim["name"]: list(range(len(dim["levels"]))) for dim in world.landscape["dims"]}
    valid = {at: dict(zip(names, point)) for point, at in world.index.items()}
    space = Searchspace(None, None, None, from_cache={"tune_params": levels, "cache": valid})
    options = {name: default for name, (_, default) in module._options.items()}
    cost = KernelTunerCost(world, StopCriterionReached)
    try:
        getattr(module, kind)(space, cost, **options, verbose=False).run()
    except StopCriterionReached:
        pass


def search(tool, world):
    if tool.startswith("optuna"):
        import optuna

        sampler = optuna.samplers.GPSampler if tool.startswith("optuna-gp") else optuna.samplers.TPESampler
        optuna_search(world, sampler(seed=world.seed), penalize=tool.endswith("-penalty"))
    elif tool == "smac":
        smac_search(world)
    elif tool == "egobox":
        egobox_search(world)
    elif tool in ("kernel-tuner-greywolf", "kernel-tuner-vndx"):
        kernel_tuner_search(world, tool.removeprefix("kernel-tuner-"))
    else:
        sys.exit(f"peers.py: unknown tool '{tool}'; the head of this file names all")


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    warnings.filterwarnings("ignore")
    path, traces, evals, seeds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    with open(path) as file:
        landscape = json.load(file)
    evals = min(evals, 10 * len(landscape["points"]))
    for tool in sys.argv[5:]:
        start = time.perf_counter()
        try:
            for seed in range(seeds):
                world = World(landscape, seed, evals)
                search(tool, world)
                with open(traces, "a") as out:
                    out.write(json.dumps(world.trace(tool)) + "\n")
        except ImportError as error:
            print(f"peers.py: {tool} skipped: {error}", file=sys.stderr)
            continue
        print(f"peers.py: {tool} on {landscape['name']}: {seeds} seeds in {time.perf_counter() - start:.0f} s", file=sys.stderr)


if __name__ == "__main__":
    assert hashed(1, 2, 3, 4) == 15374388949593934587
    main()
