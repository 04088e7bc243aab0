#!/usr/bin/env bash
# GFLOP/s of our xhpl compared with Netlib HPL, same N, in alternating pairs or blocks.
#
#   hpl/benches/peer.sh [-p XHPL] [-n PAIRS] OURS PEER
#
# OURS is settings of HPL.dat and flags of our xhpl in one argument, PEER the same for Netlib's with '--threads T' for
# its BLAS: 'N=8000 NB=128 Q=2 --threads 1'. Settings: N NB P Q PFACT NBMIN NDIV RFACT BCAST DEPTH SWAP L1 U EQUIL.
# With -p, any build of Netlib's xhpl, run by mpirun on P x Q ranks; each pair is one run of each side, 11 by default.
# Without it, Debian's hpcc, which contains HPL and runs its other tests too, about a minute a time: so a block of 3
# runs of each side gives 3 pairs, and PAIRS is rounded up to whole blocks.
# Both get huge pages (GLIBC_TUNABLES). OPENBLAS_CORETYPE is passed on: OpenBLAS 0.3.21 takes AVX2 kernels on processors
# newer than itself. Prints every pair, the median ratio and its bootstrap 95 % interval.
set -euo pipefail
usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
peer='' pairs=11
while getopts p:n: option; do
    case $option in p) peer=$(realpath "$OPTARG") ;; n) pairs=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# = 2 ] || usage
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
if [ -z "$peer" ]; then
    command -v hpcc >/dev/null || { echo "peer.sh: hpcc is not installed: apt-get install hpcc, or tests/run --install; or -p XHPL" >&2; exit 2; }
    runs=3
else
    [ -x "$peer" ] || { echo "peer.sh: $peer is no program" >&2; exit 2; }
    runs=1
fi
[ -n "${XHPL:-}" ] || cargo build --release --quiet -p hpl
ours=${XHPL:-$PWD/target/release/xhpl}
export GLIBC_TUNABLES=${GLIBC_TUNABLES:-glibc.malloc.hugetlb=1}
# By variables, as MPICH's mpirun knows no flag for root.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

given() { # given WORDS...: splits them into settings, ranks and flags
    settings_given=() flags=() ranks=1
    local word
    for word; do
        if [[ $word == *=* && $word != -* ]]; then
            settings_given+=("$word")
            case $word in P=* | Q=*) ranks=$((ranks * ${word#*=})) ;; esac
        else
            flags+=("$word")
        fi
    done
}

checked() { # checked NAME: the output in `out`, its rates appended to the file NAME
    if ! grep -q PASSED out || grep -q FAILED out; then
        cat out >&2
        echo "peer.sh: no residual that PASSED" >&2
        exit 3
    fi
    rates out >>"$1"
}

our_side() {
    given $1
    dat "$runs" "${settings_given[@]}" >HPL.dat
    "$ours" "${flags[@]}" >out 2>log || { cat log >&2; exit 2; }
    checked ours
}

peer_side() {
    given $1
    [ "${flags[0]:-}" = --threads ] && [ ${#flags[@]} = 2 ] || { echo "peer.sh: PEER needs '--threads T' and no other flag" >&2; exit 2; }
    dat "$runs" "${settings_given[@]}" >HPL.dat
    cp HPL.dat hpccinf.txt
    rm -f hpccoutf.txt
    OPENBLAS_NUM_THREADS=${flags[1]} OMP_NUM_THREADS=${flags[1]} mpirun --bind-to none -np "$ranks" "${peer:-hpcc}" >out 2>log || { cat log >&2; exit 2; }
    [ -n "$peer" ] || mv hpccoutf.txt out
    checked peer
}

for block in $(seq $(((pairs + runs - 1) / runs))); do
    # The order of the two sides alternates.
    if [ $((block % 2)) = 1 ]; then our_side "$1"; peer_side "$2"; else peer_side "$2"; our_side "$1"; fi
done
echo "$(nproc) cores; ours: $1, $("$ours" --version); peer: ${peer:-hpcc}, $2; OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-(not set)}"
ratio ours peer ours peer
