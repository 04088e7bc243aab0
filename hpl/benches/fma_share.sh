#!/usr/bin/env bash
# Rate of xhpl as a share of the rate of independent multiply-adds (FMA), by the order N: each side's runs in turn.
#
#   hpl/benches/fma_share.sh [-n RUNS] [-s 'N ...'] SIDE [SIDE ...]
#
# A SIDE is settings of HPL.dat and flags of xhpl in one argument, without N: 'NB=128 Q=2 --threads 1'. Settings: NB P Q PFACT NBMIN NDIV
# RFACT BCAST DEPTH SWAP L1 U EQUIL. Defaults: 5 runs of each side at N = 2000, 4000, 8000, 12000, 26000. XHPL in the environment
# names the program, by default this tree's. Printed are, of each side and N, the median share with the smallest and the largest one, and the median
# rates of the run and of the probe, which runs for 8 ms right after the run.
set -euo pipefail
runs=5 orders='2000 4000 8000 12000 26000'
usage() { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts n:s: option; do
    case $option in n) runs=$OPTARG ;; s) orders=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
begin

side() { # side NAME N WORDS...: one run; rate, rate of the probe and share are appended to the file NAME
    local name=$1
    configure "N=$2" "${@:3}"
    "$xhpl" --json "${flags[@]}" >out 2>log || { cat log >&2; exit 2; }
    python3 -c '
import json, sys
result = json.load(open("out"))
if not result["passed"]:
    sys.exit("fma_share.sh: a residual FAILED")
if result["fma_peak_share"] is None:
    sys.exit("fma_share.sh: several threads share a core, so the peak was not measured")
print(result["rate_gflops"], result["fma_peak_gflops"], result["fma_peak_share"])' >>"$name"
}

median() { # median FILE COLUMN FORMAT
    sort -g -k "$2,$2" "$1" | awk -v column="$2" -v format="$3" '{ v[NR] = $column } END { printf format, (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'
}

echo "$(nproc) cores of $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1); $("$xhpl" --version | head -n 2 | paste -sd ' '); load $(cut -d ' ' -f 1 /proc/loadavg)"
printf '%-7s %-7s %-17s %9s %9s  %s\n' N share 'smallest, largest' GFLOP/s 'FMA peak' side
for n in $orders; do
    for run in $(seq "$runs"); do
        for index in $(seq $#); do
            # Each run begins with another side.
            which=$(((run + index) % $# + 1))
            read -ra words <<<"${!which}"
            side "$n-$which" "$n" "${words[@]}"
        done
    done
    for which in $(seq $#); do
        file=$n-$which
        smallest=$(sort -g -k 3,3 "$file" | awk 'NR == 1 { printf "%.3f", $3 }') largest=$(sort -g -k 3,3 "$file" | awk 'END { printf "%.3f", $3 }')
        printf '%-7s %-7s %-17s %9s %9s  %s\n' "$n" "$(median "$file" 3 %.3f)" "$smallest, $largest" "$(median "$file" 1 %.2f)" "$(median "$file" 2 %.2f)" "${!which}"
    done
done
