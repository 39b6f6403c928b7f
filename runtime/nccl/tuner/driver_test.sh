#!/usr/bin/env bash
# A million calls find no fault in our plugin, and the driver notices the faults of another.
set -euo pipefail
driver=runtime/nccl/tuner/tuner_driver ours=runtime/nccl/tuner/libnccl-tuner-xccl.so faulty=runtime/nccl/tuner/libfaulty-plugin.so

fail() {
  echo "$1"
  exit 1
}

# Many rows with and without each condition, and a last one for all that is left.
table=$TEST_TMPDIR/t
{
  echo 'xccl-tuner 1'
  choices=(tree:ll tree:simple ring:ll ring:ll128 nvls:simple collnet_direct:simple nvls_tree:simple)
  conditions=('' nodes=2 'ranks=16 registered=yes' pipe_ops=2 registered=no nodes=3)
  for i in {1..1000}; do
    choice=${choices[i % 7]}
    echo "allreduce min_bytes=$((1 << i % 40)) max_bytes=$(((1 << i % 40) * 3)) ${conditions[i % 6]}" \
         "algorithm=${choice%:*} protocol=${choice#*:} channels=$((i % 64 + 1))"
  done
  echo 'allgather algorithm=pat protocol=simple chunk_bytes=65536'
  echo 'reduce algorithm=ring protocol=ll'
  echo 'allreduce algorithm=ring protocol=simple channels=2 chunk_bytes=8192'
} >"$table"
said=$(XCCL_TUNER_TABLE=$table "$driver" "$ours" 2 16 1000000 2>"$TEST_TMPDIR/log") || fail "$(cat "$TEST_TMPDIR/log")"
echo "$said"
[ "$(echo "$said" | awk 'NR > 1 && $3 == 142858 && $4 > 10000 { print $1 }' | paste -sd' ')" = \
  "2.19 2.21 2.22 2.23 2.24 2.28 2.30" ] || fail "expected a line for each release"
log=$(cat "$TEST_TMPDIR/log")
[ "$log" = "TUNER/XCCL: 1003 rows from $table, 503 for any number of nodes and ranks
TUNER/XCCL: 1003 rows from $table, 837 for 2 nodes and 16 ranks" ] || fail "told: $log"

# expect FAULT MESSAGE: what the driver says of the plugin with that fault.
expect() {
  local said rc=0
  said=$(XCCL_TUNER_TABLE=$1 "$driver" "$faulty" 2 16 700 2>&1 >/dev/null) || rc=$?
  [[ $rc = 1 && $said =~ ^tuner_driver:\ $2$ ]] || fail "$1: exit $rc, $said; expected 1; tuner_driver: $2"
}
call='call 0, collective -?[0-9]+, [0-9]+ bytes:'
expect none "$faulty: no ncclTunerPlugin_v6; expected what NCCL 2.30 looks for"
expect init "NCCL 2.19: init returned 3"
expect return "NCCL 2.19: $call the plugin returned 2"
expect channels "NCCL 2.19: $call 65 channels; expected at most 64"
expect name "NCCL 2.19: $call algorithm 6, protocol -1; expected a choice that exists"
expect end "NCCL 2.19: the end returned 4"
expect offer "NCCL 2.22: $call algorithm [0-5], protocol [0-2] costs 0.000000, but is not offered"
expect overrun "NCCL 2.22: $call algorithm 6, protocol 0 costs 0.000000, but is not offered"
expect withdraw "NCCL 2.22: $call algorithm [0-5], protocol [0-2] costs -1.000000; expected at least 0, as it is offered"
expect ranks "NCCL 2.22: $call the ranks have other answers"
expect constants "NCCL 2.28: the ranks have other constants"

rc=0
said=$("$driver" "$ours" 1 2>&1) || rc=$?
[ "$rc: $said" = "2: tuner_driver: 2 arguments; expected LIBRARY NODES RANKS CALLS" ] || fail "$rc: $said"
rc=0
said=$("$driver" "$ours" 1 8 0 2>&1) || rc=$?
[ "$rc: $said" = "2: tuner_driver: CALLS '0'; expected a whole number from 1 to 1000000000" ] || fail "$rc: $said"
