#!/usr/bin/env bash
# Windows beside whole runs, shape by shape: log(time predicted by windows / time of the whole run).
#
#   hpl/benches/windows_bias.sh [-n ROUNDS] SIDE...
#
# A SIDE is settings of HPL.dat and flags of xhpl in one argument, as for pairs.sh; XHPL names the program, by default this
# tree's. Each round runs windows and a whole run of every side. Prints per side the median, in %, and the median absolute
# deviation from it. Needs jq.
set -euo pipefail
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
rounds=5
while getopts n: option; do
    case $option in n) rounds=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || usage
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
[ -n "${XHPL:-}" ] || cargo build --release --quiet -p hpl
xhpl=${XHPL:-$PWD/target/release/xhpl}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
for _ in $(seq "$rounds"); do
    for side in "$@"; do
        read -ra words <<<"$side"
        given=()
        while [[ ${words[0]:-} == *=* && ${words[0]} != -* ]]; do given+=("${words[0]}"); words=("${words[@]:1}"); done
        dat 1 "${given[@]}" >HPL.dat
        # What the run before has left to do, such as giving back its memory, is over by then.
        sleep 1
        "$xhpl" "${words[@]}" --json --windows auto >windows 2>>log
        sleep 1
        "$xhpl" "${words[@]}" --json >whole 2>>log
        jq -rn --arg side "$side" --slurpfile a windows --slurpfile b whole \
            '[$side, (($a[0].predicted_time_s / $b[0].time_s) | log * 100)] | @tsv' >>logs
    done
done
awk -F'\t' '
    function median(v, n,   i, j, t) {
        for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
        return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
    }
    { if (!($1 in count)) order[++sides] = $1; value[$1, ++count[$1]] = $2 }
    END {
        for (s = 1; s <= sides; s++) {
            n = count[order[s]]
            for (i = 1; i <= n; i++) x[i] = value[order[s], i]
            m = median(x, n)
            for (i = 1; i <= n; i++) x[i] = x[i] > m ? x[i] - m : m - x[i]
            printf "%-40s %+.2f %%, deviation %.2f %%, %d rounds\n", order[s], m, median(x, n), n
        }
    }' logs
