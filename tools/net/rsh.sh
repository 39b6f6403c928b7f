#!/bin/sh
# rsh.sh [-x] [-l user] [-n] HOST COMMAND...: a remote shell for Open MPI and Hydra into a namespace of hosts.sh.
while [ $# -gt 0 ]; do case $1 in -l) shift 2;; -*) shift;; *) break;; esac; done
host=$1; shift
exec ip netns exec "$host" unshare --uts -- sh -c 'hostname "$1"; shift; exec sh -c "$*"' sh "$host" "$@"
