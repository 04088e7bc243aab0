#!/usr/bin/env bash
# Our strategies beside other tuners on the same recorded landscapes, the same runs for all: prints one table for each.
#
#   tuner/benches/peers.sh [--tools "optuna-tpe smac …"] [--seeds N] [--evals K] LANDSCAPE.toml[=TABLE.csv]…
#
# Defaults: optuna-tpe optuna-tpe-penalty, 25 seeds, 100 evaluations (all points where there are fewer). The tools come
# from PyPI into target/peers (needs network the first time); one that cannot be installed is skipped and named. optuna-gp
# needs torch as well. Traces stay in target/peers/traces, so that measures can be computed again with `hpl-tune replay --traces`.
set -euo pipefail
tools="optuna-tpe optuna-tpe-penalty" seeds=25 evals=100
while [ $# -gt 0 ]; do
    case "$1" in
        --tools) tools=$2; shift 2 ;;
        --seeds) seeds=$2; shift 2 ;;
        --evals) evals=$2; shift 2 ;;
        -*) echo "peers.sh: unknown flag '$1'; see the head of this file" >&2; exit 2 ;;
        *) break ;;
    esac
done
[ $# -gt 0 ] || { echo "peers.sh: name at least one landscape, such as datasets/landscapes/xhpl-zen4-n2000.toml" >&2; exit 2; }
here=$(cd "$(dirname "$0")/../.." && pwd)
venv=$here/target/peers
traces=$venv/traces
mkdir -p "$traces"
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
for tool in $tools; do
    case "$tool" in
        optuna-gp) packages="optuna==5.0.0 scipy torch" ;;
        optuna*) packages="optuna==5.0.0" ;;
        smac) packages="smac==2.4.0 scikit-learn<1.7" ;; # it reads names that later ones moved
        egobox) packages="egobox numpy" ;;
        kernel-tuner-greywolf | kernel-tuner-vndx) packages="kernel_tuner==1.5.0" ;;
        *) echo "peers.sh: unknown tool '$tool'; the head of peers.py names all" >&2; exit 2 ;;
    esac
    # shellcheck disable=SC2086 # several words
    "$venv/bin/pip" install --quiet $packages || echo "peers.sh: $packages could not be installed: $tool is skipped" >&2
done
[ -x "$here/target/release/hpl-tune" ] || cargo build --release --manifest-path "$here/Cargo.toml" -p hpl-tune
tune=$here/target/release/hpl-tune
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

for landscape in "$@"; do
    description=${landscape%%=*} table=()
    [ "$landscape" = "$description" ] || table=(--table "${landscape#*=}")
    name=$(basename "$description" .toml)
    "$tune" replay "$description" "${table[@]}" --seeds 0 --export "$traces/$name.json" --quiet >/dev/null
    rm -f "$traces/$name.peers.jsonl"
    points=$("$venv/bin/python" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))["points"]))' "$traces/$name.json")
    runs=$((points < evals ? points : evals))
    # shellcheck disable=SC2086 # several words
    "$venv/bin/python" "$here/tuner/benches/peers.py" "$traces/$name.json" "$traces/$name.peers.jsonl" "$runs" "$seeds" $tools
    "$tune" replay "$description" "${table[@]}" --strategy bayes,nelder-mead,local,random --seeds "$seeds" --evals "$runs" --quiet \
        --store "$traces/$name.ours.jsonl" --traces "$traces/$name.peers.jsonl"
done
