#!/usr/bin/env bash
# Memory of xhpl beyond the matrix, in-process ranks, compared with the bound ((DEPTH + 2) Q + P) NB/N + 1 % of the matrix.
#
#   hpl/benches/memory.sh [N [NBS [DEPTHS [GRIDS]]]]      defaults 8000 "128 256" "0 1 2 3" "1x1 1x2 2x1 2x2"
#
# SWAP in the environment: 0 bin-exch, 1 long, 2 mix (default).
# Peak resident memory of the whole process (VmHWM, read until it ends), program and stacks included, minus the
# N (N + 1) doubles of [A | b]. Exit code 1 when a run exceeds its bound or failed, 3 when a residual FAILED.
set -euo pipefail
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
n=${1:-8000} nbs=${2:-128 256} depths=${3:-0 1 2 3} grids=${4:-1x1 1x2 2x1 2x2}
cargo build --release --quiet -p hpl
xhpl=$PWD/target/release/xhpl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

peak_kib() { # of one run of xhpl; its output in `out`
    "$xhpl" >out 2>err &
    local pid=$! peak=0 now
    while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
        peak=$now
        sleep 0.02
    done
    wait "$pid" || return
    echo "$peak"
}

over=0
printf '%-5s %5s %6s %9s %7s\n' grid NB DEPTH beyond_% bound_%
for grid in $grids; do
    for nb in $nbs; do
        for depth in $depths; do
            p=${grid%x*} q=${grid#*x}
            dat 1 N="$n" NB="$nb" DEPTH="$depth" P="$p" Q="$q" RFACT=2 SWAP="${SWAP:-2}" >HPL.dat
            if ! peak=$(peak_kib); then
                printf '%-5s %5d %6d   not run: %s\n' "$grid" "$nb" "$depth" "$(tail -n 1 err)"
                over=1
                continue
            fi
            grep -q PASSED out || { echo "memory.sh: a residual FAILED" >&2; exit 3; }
            awk -v grid="$grid" -v p="$p" -v q="$q" -v nb="$nb" -v depth="$depth" -v n="$n" -v peak="$peak" 'BEGIN {
                matrix = n * (n + 1) * 8; beyond = 100 * (peak * 1024 - matrix) / matrix
                bound = 100 * ((depth + 2) * q + p) * nb / n + 1
                printf "%-5s %5d %6d %9.2f %7.2f  %s\n", grid, nb, depth, beyond, bound, beyond <= bound ? "ok" : "over"
                exit beyond > bound }' || over=1
        done
    done
done
exit "$over"
