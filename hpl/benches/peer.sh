#!/usr/bin/env bash
# GFLOP/s of our xhpl beside Netlib HPL as in Debian's hpcc (on the system's BLAS), same N, in alternating blocks.
#
#   hpl/benches/peer.sh [N [OUR_NB [PEER_NB [BLOCKS [RUNS]]]]]      defaults 8000 256 192 4 3
#
# Each side gets all cores as threads of one rank (1x1). hpcc runs its other tests too, about a minute a block, so a
# block holds RUNS runs. Prints every pair, the median ratio and its bootstrap 95 % interval.
# OPENBLAS_CORETYPE is passed on: OpenBLAS 0.3.21 takes AVX2 kernels on processors newer than itself.
set -euo pipefail
cd "$(dirname "$0")/../.."
n=${1:-8000} our_nb=${2:-256} peer_nb=${3:-192} blocks=${4:-4} runs=${5:-3}
cores=$(nproc)
command -v hpcc >/dev/null || { echo "peer.sh: hpcc is not installed: apt-get install hpcc, or tests/run --install" >&2; exit 2; }
cargo build --release --quiet -p hpl
ours=$PWD/target/release/xhpl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

dat() { # dat NB: RUNS runs of order N on 1x1
    printf '%s\n' "HPLinpack benchmark input file" "hpl/benches/peer.sh" "HPL.out output file name" "6 device out" \
        "$runs # of problems sizes (N)" "$(yes "$n" | head -n "$runs" | tr '\n' ' ')Ns" "1 # of NBs" "$1 NBs" \
        "0 PMAP process mapping" "1 # of process grids" "1 Ps" "1 Qs" "16.0 threshold" "1 # of panel fact" "2 PFACTs" \
        "1 # of recursive stopping criterium" "8 NBMINs" "1 # of panels in recursion" "2 NDIVs" \
        "1 # of recursive panel fact." "2 RFACTs" "1 # of broadcast" "1 BCASTs" "1 # of lookahead depth" "1 DEPTHs" \
        "2 SWAP" "64 swapping threshold" "0 L1 in (0=transposed,1=no-transposed) form" \
        "0 U  in (0=transposed,1=no-transposed) form" "1 Equilibration" "8 memory alignment in double"
}
rates() { awk '/^W[RC][0-9]/ { print $7 + 0 }' "$@"; }

cd "$work"
for block in $(seq "$blocks"); do
    dat "$our_nb" >HPL.dat
    "$ours" 2>/dev/null | tee -a all | rates >>ours
    dat "$peer_nb" >hpccinf.txt
    rm -f hpccoutf.txt
    OPENBLAS_NUM_THREADS=$cores OMP_NUM_THREADS=$cores mpirun --allow-run-as-root --bind-to none -np 1 hpcc >/dev/null 2>&1
    cat hpccoutf.txt >>all
    rates hpccoutf.txt >>peer
    echo "block $block of $blocks done" >&2
done
grep -q FAILED all && { echo "peer.sh: a residual FAILED" >&2; exit 3; }
echo "N=$n, $cores cores; ours: NB $our_nb, $("$ours" --version); peer: hpcc, NB $peer_nb, OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-(not set)}"
paste ours peer | awk '
    function median(v, n,   i, j, t) {
        for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    { a[NR] = $1; b[NR] = $2; r[NR] = $1 / $2; printf "pair %2d   ours %8.2f   peer %8.2f   ratio %.3f\n", NR, $1, $2, $1 / $2 }
    END {
        srand(1)
        for (s = 1; s <= 2000; s++) { for (i = 1; i <= NR; i++) x[i] = r[int(rand() * NR) + 1]; m[s] = median(x, NR) }
        median(m, 2000)
        printf "median: ours %.2f, peer %.2f GFLOP/s; ratio %.3f, 95 %%: %.3f ... %.3f, %d pairs\n", median(a, NR), median(b, NR), median(r, NR), m[50], m[1950], NR
    }'
