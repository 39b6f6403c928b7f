#!/bin/sh
# on_host.sh NAMESPACE COMMAND [ARGUMENT...]: runs the command in a namespace of hosts.sh, which is also its host name.
ns=${1:?namespace}; shift
exec ip netns exec "$ns" unshare --uts -- sh -c 'hostname "$0" && exec "$@"' "$ns" "$@"
