#!/bin/bash
# A private Slurm over the hosts of hosts.sh, without systemd: a controller on the first and a node daemon on each.
#   slurm.sh up DIR CPUS NS:IP [NS:IP...]       ready in about a second; then SLURM_CONF=DIR/slurm.conf srun ...
#   slurm.sh down DIR                           stops all and removes DIR
# A node is named after its namespace, and no resolver knows that name. Needs root; exits 77 without.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "slurm.sh: must be root" >&2; exit 77; }
cmd=${1:-} dir=${2:-}
[[ $cmd =~ ^(up|down)$ && $dir = /* ]] || { sed -n '2,5p' "$0" >&2; exit 2; }
export SLURM_CONF=$dir/slurm.conf PATH="$PATH:/usr/sbin:/sbin"

down() {
  local pid pids t
  pids=$(cat "$dir"/run/*.pid "$dir"/munge/pid 2>/dev/null || true)
  [ -z "$pids" ] || kill $pids 2>/dev/null || true
  for pid in $pids; do for ((t = 0; t < 100; t++)); do [ -d "/proc/$pid" ] || break; sleep 0.1; done; done
  rm -rf "$dir"
}
if [ "$cmd" = down ]; then down; exit 0; fi

cpus=${3:?cpus of a node}; shift 3
first=${1:?namespace:address}
mkdir -p "$dir"/{state,spool,run,log,munge}
trap 'rc=$?; if [ $rc -ne 0 ]; then cat "$dir"/log/* >&2; down; fi' EXIT
chmod 755 "$dir" "$dir/munge"; chmod 700 "$dir/run"  # munge: others may look for the socket, nobody else may write
head -c 128 /dev/urandom >"$dir/munge/key"; chmod 600 "$dir/munge/key"
munged --key-file="$dir/munge/key" --socket="$dir/munge/sock" --pid-file="$dir/munge/pid" \
  --log-file="$dir/munge/log" --seed-file="$dir/munge/seed" --num-threads=2 --force 2>"$dir/munge/err"
cat >"$SLURM_CONF" <<X
ClusterName=one
SlurmctldHost=${first%%:*}(${first##*:})
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/munge/sock
CredType=cred/munge
SlurmctldPort=16817
SlurmctldPidFile=$dir/run/ctld.pid
SlurmdPidFile=$dir/run/%n.pid
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool/%n
SlurmctldLogFile=$dir/log/ctld.log
SlurmdLogFile=$dir/log/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SlurmdParameters=config_overrides
ReturnToService=2
PlugStackConfig=/dev/null
X
for host in "$@"; do echo "NodeName=${host%%:*} NodeAddr=${host##*:} Port=16820 CPUs=$cpus State=UNKNOWN"; done >>"$SLURM_CONF"
echo "PartitionName=p Nodes=ALL Default=YES MaxTime=10 State=UP" >>"$SLURM_CONF"

# nsenter leaves /sys/fs/cgroup as it is; slurmd does not start without.
inside() { local ns=$1; shift; nsenter --net="/run/netns/$ns" unshare --uts sh -c 'hostname "$0"; exec "$@"' "$ns" "$@"; }
inside "${first%%:*}" slurmctld -c
for host in "$@"; do inside "${host%%:*}" slurmd -N "${host%%:*}"; done
for ((t = 0; t < 100; t++)); do
  [ "$(inside "${first%%:*}" sinfo -h -t idle -o %D 2>/dev/null)" = $# ] && exit 0
  sleep 0.1
done
echo "slurm.sh: the nodes are not idle after 10 s" >&2
exit 1
