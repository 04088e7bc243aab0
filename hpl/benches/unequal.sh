#!/usr/bin/env bash
# Unequal ranks: HPL with equal, proportional, slem, model and measured weights, compared with the ranks alone.
#
#   hpl/benches/unequal.sh [-r ROUNDS] [-s SLOW] [-d FOLDER] [SETTING=VALUE...]
#
# Two in-process ranks on one core each, the second limited to slower kernels: SLOW, builtin-avx2 by default. Settings of
# HPL.dat as in pairs.sh. Speeds are measured by `hpl-tune survey`, weights computed by `hpl-tune weights`; the measured
# weights are from windows of the same run. All weights and the ranks alone run alternately, ROUNDS times. XHPL and HPL_TUNE in the environment
# name the programs. Prints the median ratio of each to the sum of the ranks alone, and of measured to equal weights.
# With -d, weights and rounds are kept in FOLDER, and a later call with the same FOLDER adds rounds to the same weights; with
# 0 rounds only the weights are computed.
set -euo pipefail
rounds=7 slow=builtin-avx2 work=
while getopts r:s:d: option; do
    case $option in
        r) rounds=$OPTARG ;; s) slow=$OPTARG ;; d) mkdir -p "$OPTARG"; work=$(cd "$OPTARG"; pwd) ;;
        *) sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
    esac
done
shift $((OPTIND - 1))
cd "$(dirname "$0")/../.."
. hpl/benches/lib.sh
xhpl=${XHPL:-$PWD/target/release/xhpl}
tune=${HPL_TUNE:-$PWD/target/release/hpl-tune}
[ -n "$work" ] || { work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; }
cd "$work"

dat 1 P=1 Q=2 "$@" >two.dat
dat 1 P=1 Q=1 "$@" >one.dat
n=$(awk 'NR == 6 { print $1 }' two.dat)
nb=$(awk 'NR == 8 { print $1 }' two.dat)
find_weights() {
    echo "threads = 1
rank_kernels = [\"builtin\", \"$slow\"]" >engine.toml
    "$tune" survey --engine-params engine.toml --ranks 2 --nb "$nb" --n 2000 --out machine.toml | sed '/^written/d'
    for method in equal proportional slem model; do
        "$tune" weights --machine machine.toml --n "$n" --nb "$nb" --method $method --out $method.toml >table
        order=$(awk -F'"' '/^name/ { print $2 }' $method.toml | tr '\n' ' ')
        # The fast rank is rank 0; a file that has it second is turned round.
        case $order in *-0\ *-1\ ) ;; *) awk '/^columns/ { gsub(/[][,]/, " "); print "columns = [" $4 ", " $3 "]" }' $method.toml >t && mv t $method.toml ;; esac
    done
    cat table
    "$tune" weights --measure two.dat --engine-params engine.toml --out measured.toml
}
[ -e measured.toml ] || find_weights

solve() { # solve NAME DAT FLAGS...: one run, its rate appended to the file NAME
    cp "$2" HPL.dat
    "$xhpl" "${@:3}" >out 2>log || { cat log >&2; exit 2; }
    grep -q PASSED out || { cat out >&2; echo "unequal.sh: a residual FAILED" >&2; exit 3; }
    rates out >>"$1"
}

[ "$rounds" -gt 0 ] || exit 0
for _ in $(seq "$rounds"); do
    solve fast one.dat --threads 1 --blas builtin
    solve slow one.dat --threads 1 --blas "$slow"
    for method in equal proportional slem model measured; do
        solve $method.rates two.dat --engine-params engine.toml --weights $method.toml
    done
done
echo "$(nproc) cores, $("$xhpl" --version); N=$n NB=$nb, rank 1 held to $slow"
paste fast slow | awk '{ print $1 + $2 }' >sum
for method in equal proportional slem model measured; do
    echo "$method: $(ratio "$method" sum $method.rates sum | tail -1)"
done
ratio measured equal measured.rates equal.rates | tail -1
