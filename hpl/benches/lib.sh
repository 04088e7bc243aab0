# Common functions of the scripts of this folder; to be sourced. Callers have `set -euo pipefail`.

# Numbers with a point, for awk and sort -g, in any language.
export LC_ALL=C

settings='N NB P Q PFACT NBMIN NDIV RFACT BCAST DEPTH SWAP L1 U EQUIL'

# dat RUNS SETTING=VALUE...: prints an HPL.dat with RUNS runs of one configuration on stdout. An unknown setting is an
# error.
dat() {
    local runs=$1 setting
    local N=8000 NB=128 P=1 Q=1 PFACT=2 NBMIN=8 NDIV=2 RFACT=1 BCAST=1 DEPTH=1 SWAP=2 L1=0 U=0 EQUIL=1
    for setting in "${@:2}"; do
        [[ " $settings " == *" ${setting%%=*} "* && $setting == *=* ]] || { echo "unknown setting $setting; there are $settings" >&2; return 2; }
        local "$setting"
    done
    printf '%s\n' "HPLinpack benchmark input file" "hpl/benches" "HPL.out output file name" "6 device out" \
        "$runs # of problems sizes (N)" "$(yes "$N" | head -n "$runs" | tr '\n' ' ')Ns" "1 # of NBs" "$NB NBs" "0 PMAP process mapping" \
        "1 # of process grids" "$P Ps" "$Q Qs" "16.0 threshold" "1 # of panel fact" "$PFACT PFACTs" \
        "1 # of recursive stopping criterium" "$NBMIN NBMINs" "1 # of panels in recursion" "$NDIV NDIVs" \
        "1 # of recursive panel fact." "$RFACT RFACTs" "1 # of broadcast" "$BCAST BCASTs" \
        "1 # of lookahead depth" "$DEPTH DEPTHs" "$SWAP SWAP" "64 swapping threshold" \
        "$L1 L1 in (0=transposed,1=no-transposed) form" "$U U  in (0=transposed,1=no-transposed) form" \
        "$EQUIL Equilibration" "8 memory alignment in double"
}

# begin: finds or builds the program `xhpl` and changes to a new folder, removed at the end. To be called in the root of the tree.
begin() {
    [ -n "${XHPL:-}" ] || cargo build --release --quiet -p hpl
    xhpl=${XHPL:-$PWD/target/release/xhpl}
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"
}

# configure WORDS...: writes HPL.dat by the settings of a side; its flags of xhpl are then in the array `flags`.
configure() {
    local given=()
    while [[ ${1:-} == *=* && ${1:-} != -* ]]; do given+=("$1"); shift; done
    dat 1 "${given[@]}" >HPL.dat
    flags=("$@")
}

# rates FILE...: prints the GFLOP/s of an HPL output, one per line.
rates() { awk '/^W[RC][0-9]/ { print $7 + 0 }' "$@"; }

# ratio FIRST SECOND FILE FILE: prints all pairs of the two files of rates, named FIRST and SECOND, the median ratio and its
# bootstrap 95 % interval.
ratio() {
    paste "$3" "$4" | awk -v first="$1" -v second="$2" '
        function median(v, n,   i, j, t) {
            for (i = 2; i <= n; i++) { t = v[i]; for (j = i - 1; j > 0 && v[j] > t; j--) v[j + 1] = v[j]; v[j + 1] = t }
            return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
        }
        {
            a[NR] = $1; b[NR] = $2; r[NR] = $1 / $2
            printf "pair %2d   %s %8.2f   %s %8.2f   ratio %.3f\n", NR, first, $1, second, $2, $1 / $2
        }
        END {
            srand(1)
            for (s = 1; s <= 2000; s++) { for (i = 1; i <= NR; i++) x[i] = r[int(rand() * NR) + 1]; m[s] = median(x, NR) }
            median(m, 2000)
            printf "median: %s %.2f, %s %.2f GFLOP/s; ratio %.3f, 95 %%: %.3f ... %.3f, %d pairs\n", \
                first, median(a, NR), second, median(b, NR), median(r, NR), m[50], m[1950], NR
        }'
}
