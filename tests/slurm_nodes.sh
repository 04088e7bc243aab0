#!/usr/bin/env bash
# slurm_nodes.sh — a REAL Slurm cluster of N nodes (n1..nN) on one machine, for tests. Needs root.
#   start             boot it and wait until every node is idle (does nothing where it already runs)
#   run CMD...        run CMD on the login/controller host "ctl" of the cluster (working folder kept)
#   on NODE CMD...    run CMD on NODE, outside Slurm's control (like ssh NODE CMD)
#   freeze NODE       stop (SIGSTOP) all that runs on NODE, with its connections open
#   crash NODE        kill -9 slurmd and everything else that runs on NODE;  boot NODE starts its slurmd again
#   status | stop
# Needs: slurm-wlm munge iproute2 util-linux procps (Debian 12: Slurm 22.05, built with multiple slurmd).
# One "bubble" of PID+mount+network+UTS+IPC namespaces holds all: bridge, munged, slurmctld and, per node, a
# network+UTS+mount namespace with eth0=10.98.0.<i> and a slurmd. Nothing appears in the machine's own network, /run,
# /etc; killing the bubble's PID 1 makes the kernel kill all that ever started inside. Files: only under $DIR.
# Settings: SLURM_NODES (4), SLURM_NODES_CPUS (1, claimed per node, and what it is bound to), SLURM_NODES_SMT (1, threads that a
# core claims to have), SLURM_NODES_DIR, SLURM_NODES_TTL (3600 s), SLURM_NODES_EXTRA (more lines for slurm.conf; the last value of a key counts).
# The nodes take turns on this machine's CPUs, and each has an equal part of its memory.
set -euo pipefail
N=${SLURM_NODES:-4} CPUS=${SLURM_NODES_CPUS:-1} SMT=${SLURM_NODES_SMT:-1} TTL=${SLURM_NODES_TTL:-3600}
DIR=$(realpath -m "${SLURM_NODES_DIR:-${TMPDIR:-/tmp}/slurm_nodes}")
SELF=$(realpath "$0") CG=/sys/fs/cgroup/freezer/slurm_nodes.$(cksum <<< "$DIR" | cut -d' ' -f1)
die() { echo "slurm_nodes: $*" >&2; exit 1; }

alive() {        # sets P, the bubble's PID 1 as seen here; the namespace's inode guards against a reused PID
  [ -f "$DIR/bubble" ] || return 1
  read -r P NS < "$DIR/bubble" && [ -n "$NS" ] && [ "$(readlink "/proc/$P/ns/pid" 2>/dev/null)" = "$NS" ]
}
inside() {       # pdeathsig: a kill -9 of nsenter takes CMD along
  alive || die "not running"
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_orte_tmpdir_base="$DIR/tmp"
  exec nsenter -t "$P" -a setpriv --pdeathsig KILL bash -c 'cd "$0" && exec "$@"' "$PWD" "$@"
}
stop() {
  if alive; then
    kill -9 "$P"
    for _ in $(seq 100); do [ -e "/proc/$P/ns/pid" ] && readlink "/proc/$P/ns/pid" >/dev/null 2>&1 || break; sleep 0.05; done
  fi
  [ ! -d "$CG" ] || find "$CG" -depth -type d -exec rmdir {} +
  [ ! -f "$DIR/.slurm_nodes" ] || rm -rf "$DIR"
}
config() {       # proctrack/cgroup kills a job's orphans too, as real clusters do; it needs the v1 freezer, else linuxproc
  PT=linuxproc; if [ -w "${CG%/*}/cgroup.procs" ] && mkdir "$CG"; then PT=cgroup; fi
  mkdir -p "$DIR"/{etc,log,state}; touch "$DIR/.slurm_nodes"; chmod 755 "$DIR"
  printf '127.0.0.1 localhost\n10.98.0.254 ctl\n' > "$DIR/hosts"
  for i in $(seq "$N"); do mkdir -p "$DIR/spool/n$i" "$DIR/tmp/n$i"; echo "10.98.0.$i n$i" >> "$DIR/hosts"; done
  chmod 1777 "$DIR"/tmp "$DIR"/tmp/*
  cat > "$DIR/etc/slurm.conf" <<CONF
ClusterName=nodes
SlurmctldHost=ctl(10.98.0.254)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
StateSaveLocation=$DIR/state
SlurmdSpoolDir=$DIR/spool/%n
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.%n.pid
SlurmctldLogFile=$DIR/log/slurmctld.log
SlurmdLogFile=$DIR/log/%n.log
TmpFS=$DIR/tmp/%n
ProctrackType=proctrack/$PT
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
SlurmdParameters=config_overrides
MpiDefault=none
MailProg=/bin/true
ReturnToService=2
SlurmdTimeout=15
KillWait=5
UnkillableStepTimeout=120
SchedulerParameters=batch_sched_delay=0
NodeName=n[1-$N] NodeAddr=10.98.0.[1-$N] CPUs=$((CPUS * SMT)) Sockets=1 CoresPerSocket=$CPUS ThreadsPerCore=$SMT RealMemory=$(($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) / 1024 / N)) State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
${SLURM_NODES_EXTRA:-}
CONF
  # always named: "autodetect" stops slurmd where /sys/fs/cgroup is empty, and it is after "ip netns exec"
  printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/run/cgroup\n' > "$DIR/etc/cgroup.conf"
}
boot_node() {    # in the bubble; the slurmd's PID comes to stand in /run/slurmd.<node>.pid
  local cpus; cpus=$(seq -s, "$(((${1#n} - 1) * CPUS))" "$((${1#n} * CPUS - 1))" | tr , '\n' | awk -v all="$(nproc --all)" '{ print $1 % all }' | sort -nu | paste -sd,)
  taskset -c "$cpus" ip netns exec "$1" unshare -u sh -c 'hostname "$1" && exec slurmd -D -N "$1"' - "$1" < /dev/null >> "$DIR/log/$1.out" 2>&1 &
}
bubble() {       # PID 1 of the bubble
  hostname ctl
  mount -t tmpfs -o mode=755 tmpfs /run && mkdir -p /run/munge /run/lock /run/cgroup/freezer
  if [ -d "$CG" ]; then echo $$ > "$CG/cgroup.procs"; mount --bind "$CG" /run/cgroup/freezer; fi
  mount --bind "$DIR/hosts" /etc/hosts && mount --bind "$DIR/etc" /etc/slurm
  head -c 128 /dev/urandom > /run/munge/munge.key && chmod 400 /run/munge/munge.key
  munged --key-file=/run/munge/munge.key --seed-file=/run/munge/seed --log-file=/run/munge/log --num-threads=2
  ip link set lo up
  ip link add br0 type bridge && ip addr add 10.98.0.254/24 dev br0 && ip link set br0 up
  for i in $(seq "$N"); do
    ip netns add "n$i" && ip link add "v$i" type veth peer name eth0 netns "n$i" && ip link set "v$i" master br0 up
    ip -n "n$i" link set lo up; ip -n "n$i" addr add "10.98.0.$i/24" dev eth0; ip -n "n$i" link set eth0 up
  done
  slurmctld -D < /dev/null > "$DIR/log/slurmctld.out" 2>&1 &
  for i in $(seq "$N"); do boot_node "n$i"; done
  sleep "$TTL"   # bash reaps the orphans meanwhile; the end of PID 1 is the end of the cluster
}
case "${1:-}" in
  start)
    if alive; then echo "already running in $DIR"; exit 0; fi
    [ "$(id -u)" = 0 ] || die "must be root"
    for c in slurmctld slurmd sinfo munged ip nsenter unshare setpriv pgrep; do command -v $c > /dev/null || die "$c is missing"; done
    [ ! -e "$DIR" ] || [ -f "$DIR/.slurm_nodes" ] || die "$DIR exists and is not mine"
    stop; config
    setsid unshare -p -m -n -u -i -f --mount-proc --kill-child "$SELF" _bubble < /dev/null > "$DIR/log/bubble.out" 2>&1 & u=$!
    for _ in $(seq 100); do P=$(pgrep -P $u) && break; sleep 0.02; done
    echo "$P $(readlink "/proc/$P/ns/pid")" > "$DIR/bubble"
    for _ in $(seq 150); do
      [ "$("$SELF" run sinfo -h -t idle -o %D 2>/dev/null)" = "$N" ] && { echo "$N nodes idle, proctrack/$PT, files in $DIR"; exit 0; }
      sleep 0.1
    done
    cat "$DIR"/log/*.out >&2; stop; die "the nodes did not come up in 15 s" ;;
  _bubble) bubble ;;
  _boot) boot_node "$2" ;;
  run) shift; inside "$@" ;;
  on) shift; inside sh -c 'P=$(cat "/run/slurmd.$1.pid") && shift && exec nsenter -t "$P" -n -u "$@"' - "$@" ;;
  crash) inside sh -c 'ip netns pids "$1" | xargs -r kill -9; rm "/run/slurmd.$1.pid"' - "$2" ;;
  freeze) inside sh -c 'ip netns pids "$1" | xargs -r kill -STOP' - "$2" ;;
  boot) inside "$SELF" _boot "$2" ;;
  status) alive && "$SELF" run sinfo -N -o '%N %T %C' ;;
  stop) stop ;;
  *) sed -n '2,15p' "$SELF"; exit 2 ;;
esac
