#!/usr/bin/env bash
# Two configurations of xhpl on in-process ranks, in alternating pairs of processes.
#
#   hpl/benches/pairs.sh [-n PAIRS] SIDE SIDE
#
# A SIDE is settings of HPL.dat and flags of xhpl in one argument: 'P=2 DEPTH=1 --threads 1 --split 0.5'. Settings: N NB P Q
# PFACT NBMIN NDIV RFACT BCAST DEPTH SWAP L1 U EQUIL. XHPL and XHPL2 in the environment name the programs of the two
# sides, by default this tree's. Prints every pair, the median ratio (first side / second) and its bootstrap 95 % interval.
set -euo pipefail
pairs=11
while getopts n: option; do
    case $option in n) pairs=$OPTARG ;; *) sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2 ;; esac
done
shift $((OPTIND - 1))
[ $# = 2 ] || { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
begin
xhpl2=${XHPL2:-$xhpl}

side() { # side NAME PROGRAM WORDS...: one run, its rate appended to the file NAME
    local name=$1 program=$2
    shift 2
    configure "$@"
    "$program" "${flags[@]}" >out 2>log || { cat log >&2; exit 2; }
    grep -q PASSED out || { cat out >&2; echo "pairs.sh: a residual FAILED" >&2; exit 3; }
    rates out >>"$name"
}

read -ra one <<<"$1"
read -ra two <<<"$2"
for pair in $(seq "$pairs"); do
    # The order of the two sides alternates.
    if [ $((pair % 2)) = 1 ]; then side one "$xhpl" "${one[@]}"; side two "$xhpl2" "${two[@]}"; else side two "$xhpl2" "${two[@]}"; side one "$xhpl" "${one[@]}"; fi
done
echo "$(nproc) cores, $("$xhpl" --version); first: $1; second: $2"
ratio first second one two
