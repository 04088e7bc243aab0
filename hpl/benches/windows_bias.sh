#!/usr/bin/env bash
# Windows beside whole runs, side by side: ln(time that windows predict / time of the whole run).
#
#   hpl/benches/windows_bias.sh [-n ROUNDS] SIDE...
#
# A SIDE is settings of HPL.dat and flags of xhpl in one argument, as for pairs.sh; XHPL in the environment names the program, by
# default this tree's. Each round runs windows and a whole run of every side. Printed are, of each side, the median in % and the
# median absolute deviation from it.
set -euo pipefail
rounds=5
usage() { sed -n '2,8s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while getopts n: option; do
    case $option in n) rounds=$OPTARG ;; *) usage ;; esac
done
shift $((OPTIND - 1))
[ $# -ge 1 ] || usage
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
begin
for _ in $(seq "$rounds"); do
    for side in "$@"; do
        read -ra words <<<"$side"
        configure "${words[@]}"
        # What the run before has left to do, such as giving back its memory, is over by then.
        sleep 1
        "$xhpl" "${flags[@]}" --json --windows auto 2>log >>windows || { cat log >&2; exit 2; }
        sleep 1
        "$xhpl" "${flags[@]}" --json 2>log >>whole || { cat log >&2; exit 2; }
    done
done
# No program runs beside the measurements.
python3 - "$@" <<'END'
import json, math, statistics, sys
sides = sys.argv[1:]
windows, whole = ([json.loads(line) for line in open(name)] for name in ("windows", "whole"))
if not all(result["passed"] for result in windows + whole):
    sys.exit("windows_bias.sh: a residual FAILED")
logs = [100 * math.log(a["predicted_time_s"] / b["time_s"]) for a, b in zip(windows, whole)]
for index, side in enumerate(sides):
    own = logs[index::len(sides)]
    median = statistics.median(own)
    deviation = statistics.median(abs(log - median) for log in own)
    print(f"{side:40} {median:+.2f} %, deviation {deviation:.2f} %, {len(own)} rounds")
END
