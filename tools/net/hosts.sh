#!/bin/bash
# Hosts on one machine: network namespaces in a named shape. All links are veth pairs, shaped by tbf at every egress.
#   hosts.sh up   NAME star N RATE              hosts NAME-h0.., switch NAME-sw0, 10.P.0.(i+1)/24
#   hosts.sh up   NAME ring N RATE              direct links i -> i+1, 10.P.0.(i+1)/32 on lo and routes
#   hosts.sh up   NAME torus R C RATE           R x C direct links, dimension-ordered routes
#   hosts.sh up   NAME leafspine L H RATE UP    L leaves of H hosts, one spine, uplinks of UP
#   hosts.sh up   NAME rails N RATE [RATE2]     two links per host: 10.P.0.x rail 0, 10.P.1.x rail 1
#   hosts.sh list NAME                          "namespace address [address]" per host
#   hosts.sh down NAME                          kills what runs inside, removes all
# RATE: as tc writes it (400mbit), or 0 for unshaped; in a star a list, host by host. Environment: NET=77 (second octet
# P), CC=cubic, BURST=, LIMIT=, OFFLOAD=on|off. Needs root; exits 77 without.
set -euo pipefail
[ "$(id -u)" = 0 ] || { echo "hosts.sh: must be root" >&2; exit 77; }
NET=${NET:-77} CC=${CC:-cubic} OFFLOAD=${OFFLOAD:-on} BURST=${BURST:-} LIMIT=${LIMIT:-}
die() { echo "hosts.sh: $*" >&2; exit 2; }
cmd=${1:-}; name=${2:-}; shape=${3:-}
[[ $cmd =~ ^(up|down|list)$ && $name =~ ^[a-z][a-z0-9]{0,5}$ ]] || die "usage: hosts.sh up|list|down NAME [SHAPE ...]; NAME: 1..6 of a-z0-9"

spaces() { ip netns list | awk -v p="^$name-(h[0-9]+|sw[0-9]*)$" '$1 ~ p {print $1}'; }
down() {
  local n p
  for n in $(spaces); do for p in $(ip netns pids "$n" 2>/dev/null || true); do [ "$p" != $$ ] && kill -9 "$p" 2>/dev/null || true; done; done
  for n in $(spaces); do ip netns del "$n" || true; done
}
bits() { local r=${1,,}; case $r in *gbit) echo $((${r%gbit} * 1000000000));; *mbit) echo $((${r%mbit} * 1000000));; *kbit) echo $((${r%kbit} * 1000));; 0) echo 0;; *) die "bad rate $1";; esac; }
space() { # make a namespace with loopback up; congestion control is set per route (a namespace may not choose a restricted one by sysctl)
  ip netns add "$1"; ip -n "$1" link set lo up
  ip netns exec "$1" sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
    net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 net.ipv4.tcp_no_metrics_save=1 net.ipv4.tcp_slow_start_after_idle=0
}
shape_dev() { # namespace device rate
  local b; b=$(bits "$3"); [ "$b" = 0 ] && return
  # burst: 128 KiB (two 64 KiB super-packets), at least 4 ms of rate (HZ=250); limit: 16 MiB, so that TCP's window and not a drop is the bound
  local burst=${BURST:-$((b / 2000 > 131072 ? b / 2000 : 131072))} limit=${LIMIT:-16777216}
  tc -n "$1" qdisc replace dev "$2" root tbf rate "${b}bit" burst "$burst" limit "$limit"
}
offload() { [ "$OFFLOAD" = on ] || ip netns exec "$1" ethtool -K "$2" tso off gso off gro off >/dev/null; }
veth() { # nsA devA nsB devB rate
  ip -n "$1" link add "$2" type veth peer name "$4" netns "$3"
  local x; for x in "$1 $2" "$3 $4"; do offload $x; shape_dev $x "$5"; ip -n ${x% *} link set ${x#* } up; done
}
bridge() { space "$1"; ip -n "$1" link add br0 type bridge stp_state 0 forward_delay 0; ip -n "$1" link set br0 up; }
port() { ip -n "$1" link set "$2" master br0; } # switch device
direct() { # host devA addrA host devB addrB rate: one point-to-point link between host addresses on lo
  veth "$name-h$1" "$2" "$name-h$4" "$5" "$7"
  ip -n "$name-h$1" route add "$6/32" dev "$2" src "$3" congctl "$CC"; ip -n "$name-h$4" route add "$3/32" dev "$5" src "$6" congctl "$CC"
}
subnet() { # host device rail: address and connected route
  ip -n "$name-h$1" addr add "$(addr $1 $3)/24" dev "$2" noprefixroute; ip -n "$name-h$1" route add "10.$NET.$3.0/24" dev "$2" src "$(addr $1 $3)" congctl "$CC"
}
addr() { echo "10.$NET.${2:-0}.$(($1 + 1))"; }
int() { [[ ${1:-} =~ ^[0-9]+$ && $1 -ge $2 && $1 -le $3 ]] || die "expected a number from $2 to $3, got '${1:-}'"; }

case $cmd in
down) down; exit 0;;
list) for n in $(spaces | grep -- '-h' | sort -t h -k 2 -V); do echo "$n $(ip -n "$n" -4 -o addr | awk '$4 !~ /^127/ {sub("/.*", "", $4); printf "%s ", $4}')"; done; exit 0;;
esac
[ -z "$(spaces)" ] || die "'$name' exists; run: hosts.sh down $name"
shift 3
trap 'rc=$?; if [ $rc -ne 0 ]; then echo "hosts.sh: failed, cleaning up" >&2; down; fi' EXIT
trap 'exit 130' INT TERM
case $shape in
star|rails)
  int "${1:-}" 2 64; n=$1; r0=${2:?rate}; r1=${3:-$r0}; rails=1; [ "$shape" = rails ] && rails=2
  IFS=, read -ra each <<<"$r0"
  for ((k = 0; k < rails; k++)); do bridge "$name-sw$k"; done
  for ((i = 0; i < n; i++)); do
    space "$name-h$i"
    for ((k = 0; k < rails; k++)); do
      r=${each[$((i % ${#each[@]}))]}; [ $k = 1 ] && r=$r1
      veth "$name-h$i" "eth$k" "$name-sw$k" "p$i" "$r"; port "$name-sw$k" "p$i"
      subnet $i "eth$k" $k
    done
  done;;
ring)
  int "${1:-}" 2 64; n=$1; r=${2:?rate}
  for ((i = 0; i < n; i++)); do space "$name-h$i"; ip -n "$name-h$i" addr add "$(addr $i)/32" dev lo; done
  for ((i = 0; i < n; i++)); do j=$(((i + 1) % n)); [ $n = 2 ] && [ $i = 1 ] && break; direct $i right "$(addr $i)" $j left "$(addr $j)" "$r"; done
  for ((i = 0; i < n; i++)); do for ((d = 2; d <= n - 2; d++)); do # shorter way round, clockwise on ties
    j=$(((i + d) % n)); if ((2 * d <= n)); then dev=right v=$(((i + 1) % n)); else dev=left v=$(((i + n - 1) % n)); fi
    ip -n "$name-h$i" route add "$(addr $j)/32" via "$(addr $v)" dev $dev src "$(addr $i)" congctl "$CC"; done; done;;
torus)
  int "${1:-}" 2 8; int "${2:-}" 2 8; R=$1 C=$2 r=${3:?rate}
  for ((i = 0; i < R * C; i++)); do space "$name-h$i"; ip -n "$name-h$i" addr add "$(addr $i)/32" dev lo; done
  for ((y = 0; y < R; y++)); do for ((x = 0; x < C; x++)); do
    i=$((y * C + x)); e=$((y * C + (x + 1) % C)); s=$(((y + 1) % R * C + x))
    ((C == 2 && x == 1)) || direct $i east "$(addr $i)" $e west "$(addr $e)" "$r"
    ((R == 2 && y == 1)) || direct $i south "$(addr $i)" $s north "$(addr $s)" "$r"
  done; done
  for ((i = 0; i < R * C; i++)); do for ((j = 0; j < R * C; j++)); do # x first, then y, the shorter way
    dx=$(((j % C - i % C + C) % C)); dy=$(((j / C - i / C + R) % R)); [ $((dx + dy)) = 0 ] && continue
    if ((dx)); then if ((2 * dx <= C || C == 2)); then dev=east; else dev=west; fi; else if ((2 * dy <= R || R == 2)); then dev=south; else dev=north; fi; fi
    ((C == 2 && dx && i % C == 1)) && dev=west; ((R == 2 && !dx && i / C == 1)) && dev=north
    y=$((i / C)) x=$((i % C))
    case $dev in east) v=$((y * C + (x + 1) % C));; west) v=$((y * C + (x + C - 1) % C));; south) v=$(((y + 1) % R * C + x));; north) v=$(((y + R - 1) % R * C + x));; esac
    [ $v = $j ] || ip -n "$name-h$i" route replace "$(addr $j)/32" via "$(addr $v)" dev $dev src "$(addr $i)" congctl "$CC"
  done; done;;
leafspine)
  int "${1:-}" 2 8; int "${2:-}" 1 16; L=$1 M=$2 r=${3:?rate} up=${4:?uplink rate}
  bridge "$name-sw"
  for ((l = 0; l < L; l++)); do
    bridge "$name-sw$l"; veth "$name-sw$l" spine "$name-sw" "leaf$l" "$up"; port "$name-sw$l" spine; port "$name-sw" "leaf$l"
    for ((k = 0; k < M; k++)); do
      i=$((l * M + k)); space "$name-h$i"; veth "$name-h$i" eth0 "$name-sw$l" "p$k" "$r"; port "$name-sw$l" "p$k"
      subnet $i eth0 0
    done
  done;;
*) die "unknown shape '$shape'";;
esac
