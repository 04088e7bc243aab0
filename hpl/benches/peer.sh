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
. hpl/benches/lib.sh
n=${1:-8000} our_nb=${2:-256} peer_nb=${3:-192} blocks=${4:-4} runs=${5:-3}
cores=$(nproc)
command -v hpcc >/dev/null || { echo "peer.sh: hpcc is not installed: apt-get install hpcc, or tests/run --install" >&2; exit 2; }
cargo build --release --quiet -p hpl
ours=$PWD/target/release/xhpl
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cd "$work"
for block in $(seq "$blocks"); do
    dat "$runs" N="$n" NB="$our_nb" RFACT=2 >HPL.dat
    "$ours" 2>/dev/null | tee -a all | rates >>ours
    dat "$runs" N="$n" NB="$peer_nb" RFACT=2 >hpccinf.txt
    rm -f hpccoutf.txt
    OPENBLAS_NUM_THREADS=$cores OMP_NUM_THREADS=$cores mpirun --allow-run-as-root --bind-to none -np 1 hpcc >/dev/null 2>&1
    cat hpccoutf.txt >>all
    rates hpccoutf.txt >>peer
    echo "block $block of $blocks done" >&2
done
grep -q FAILED all && { echo "peer.sh: a residual FAILED" >&2; exit 3; }
echo "N=$n, $cores cores; ours: NB $our_nb, $("$ours" --version); peer: hpcc, NB $peer_nb, OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-(not set)}"
ratio ours peer ours peer
