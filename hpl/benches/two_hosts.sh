#!/usr/bin/env bash
# Two hosts on this machine: network namespaces joined by a link of 1 Gbit/s, one MPI rank on each. Needs root, Open MPI,
# iproute2 and at least two cores. It removes everything it has created, also when it is interrupted.
#
#   hpl/benches/two_hosts.sh run COMMAND...                       COMMAND under mpirun, one rank on each host
#   hpl/benches/two_hosts.sh pairs [OPTION...] SIDE SIDE          two sides in alternating pairs
#
# A SIDE is 'xhpl FLAGS...' (our program, built with MPI), 'hpcc' (Netlib HPL in Debian's package), 'peer' (the build of
# Netlib's xhpl for Open MPI that PEER in the environment names), or one of them after settings of HPL.dat:
# 'P=1 Q=2 DEPTH=1 xhpl --split 0.3'. Settings: N NB P Q PFACT NBMIN NDIV RFACT BCAST DEPTH SWAP L1 U EQUIL.
# OPTIONS: -n BLOCKS (5), -k RUNS in each block, paired in order (1), -t THREADS of each rank (1), -r RATE of the link
# (1gbit). hpcc runs its other tests too, for minutes on such a link: use several runs in a block with it.
# Each rank has its own cores. Prints every pair, the median ratio (first side / second) and its bootstrap 95 % interval.
# OPENBLAS_CORETYPE is passed on: OpenBLAS 0.3.21 takes AVX2 kernels on processors newer than itself.
set -euo pipefail
. "$(dirname "$0")/lib.sh"
usage() { sed -n '2,/^set/{/^set/!s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
fail() { echo "two_hosts.sh: $*" >&2; exit 2; }

mode=${1:-}
shift || usage
blocks=5 runs=1 threads=1 rate=1gbit
if [ "$mode" = pairs ]; then
    while getopts n:k:t:r: option; do
        case $option in n) blocks=$OPTARG ;; k) runs=$OPTARG ;; t) threads=$OPTARG ;; r) rate=$OPTARG ;; *) usage ;; esac
    done
    shift $((OPTIND - 1))
    [ $# = 2 ] || usage
elif [ "$mode" != run ] || [ $# = 0 ]; then
    usage
fi
[ "$(id -u)" = 0 ] || fail "needs root: it makes network namespaces"
for tool in ip tc mpirun.openmpi taskset; do command -v $tool >/dev/null || fail "$tool is missing: apt-get install iproute2 openmpi-bin util-linux"; done
[ "$(nproc)" -ge $((2 * threads)) ] || fail "two ranks with $threads threads each need $((2 * threads)) cores, there are $(nproc)"
mpi_xhpl=${XHPL:-$(cd "$(dirname "$0")/../.." && pwd)/target/openmpi/release/xhpl}

# Names with the id of this process, so that two runs do not disturb each other.
a=hA$$ b=hB$$ net=10.99.$(($$ % 256))
work=$(mktemp -d)
cleanup() {
    trap - EXIT INT TERM HUP
    cd /
    # mpirun and its ranks are found by the namespace they run in.
    for host in $a $b; do
        ip netns pids $host 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns del $host 2>/dev/null || true
    done
    rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

ip netns add $a
ip netns add $b
ip link add v$a netns $a type veth peer name v$b netns $b
number=1
for host in $a $b; do
    ip -n $host addr add $net.$number/24 dev v$host
    ip -n $host link set lo up
    ip -n $host link set v$host up
    ip netns exec $host tc qdisc add dev v$host root tbf rate $rate burst 128kb latency 50ms
    number=$((number + 1))
done

# A link needs some time until it is up.
for host in $a $b; do
    for _ in $(seq 100); do
        if [[ $(ip -n $host link show v$host) == *"state UP"* ]]; then break; fi
        sleep 0.05
    done
done

# The replacement of ssh for mpirun, and the script that assigns each host its own cores.
cat >"$work/agent" <<'END'
#!/bin/sh
while [ "${1#-}" != "$1" ]; do shift; done
host=$1
shift
exec ip netns exec "$host" /bin/sh -c "$*"
END
cat >"$work/on_its_cores" <<END
#!/bin/sh
first=\$((OMPI_COMM_WORLD_RANK * $threads))
exec taskset -c \$first-\$((first + $threads - 1)) "\$@"
END
chmod +x "$work/agent" "$work/on_its_cores"

# both COMMAND...: one rank on each host. In the background, so that a signal ends it at once. Without rtc hwloc: two
# daemons of Open MPI 4.1 on one machine now and then end in it with a segmentation fault.
exports=(-x OPENBLAS_NUM_THREADS=$threads -x OMP_NUM_THREADS=$threads)
[ -z "${OPENBLAS_CORETYPE:-}" ] || exports+=(-x OPENBLAS_CORETYPE)
both() {
    ip netns exec $a mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none -np 2 --host $a:1,$b:1 --map-by node \
        --mca plm_rsh_agent "$work/agent" --mca rtc ^hwloc --mca btl tcp,self --mca btl_tcp_if_include $net.0/24 \
        --mca oob_tcp_if_include $net.0/24 --mca mpi_yield_when_idle 1 \
        "${exports[@]}" "$work/on_its_cores" "$@" &
    wait $!
}

if [ "$mode" = run ]; then
    both "$@"
    exit
fi

side() { # side NAME WORDS...: one run, its rate appended to the file NAME
    local name=$1 status=0
    shift
    local given=(N=4000 Q=2 NBMIN=4)
    while [[ ${1:-} == *=* && ${1:-} != -* ]]; do given+=("$1"); shift; done
    rm -rf "$work/run"
    mkdir "$work/run"
    cd "$work/run"
    dat "$runs" "${given[@]}" >HPL.dat
    cp HPL.dat hpccinf.txt
    case ${1:-} in
        xhpl) both "$mpi_xhpl" --threads "$threads" "${@:2}" >out 2>log || status=$? ;;
        hpcc) both hpcc >log 2>&1 || status=$?; mv hpccoutf.txt out || status=1 ;;
        peer) both "${PEER:?names no program}" >out 2>log || status=$? ;;
        *) fail "a side is 'xhpl FLAGS...', 'hpcc' or 'peer', found '${1:-}'" ;;
    esac
    if [ $status != 0 ] || ! grep -q PASSED out || grep -q FAILED out; then
        tail -n 30 log out >&2
        echo "two_hosts.sh: no residual that PASSED (exit code $status): $*" >&2
        exit 3
    fi
    rates out >>"$work/$name"
}

read -ra one <<<"$1"
read -ra two <<<"$2"
for block in $(seq "$blocks"); do
    # The order of the two sides alternates.
    if [ $((block % 2)) = 1 ]; then side one "${one[@]}"; side two "${two[@]}"; else side two "${two[@]}"; side one "${one[@]}"; fi
    echo "block $block of $blocks done" >&2
done
echo "two hosts, link $rate, 1 rank × $threads threads each; first: $1; second: $2; OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-(not set)}"
ratio first second "$work/one" "$work/two"
