#!/usr/bin/env bash
# The library exports what NCCL looks for and nothing else, and loads where only a C library of 2021 is.
set -euo pipefail
library=runtime/nccl/tuner/libnccl-tuner-xccl.so

# A program that knows the plugin by its file alone asks it, with a table of 1000 rows.
{
  echo 'xccl-tuner 1'
  for i in $(seq 200); do
    for collective in allreduce allgather reduce_scatter broadcast reduce; do
      echo "$collective min_bytes=$((i * 1000)) max_bytes=$((i * 1000 + 1500)) algorithm=ring protocol=ll"
    done
  done
} >"$TEST_TMPDIR/table"
XCCL_TUNER_TABLE=$TEST_TMPDIR/table runtime/nccl/tuner/tuner_driver "$library" 20000 | tee "$TEST_TMPDIR/said"
[ "$(grep -c ' 0 wrong' "$TEST_TMPDIR/said")" = 6 ]
[ "$(grep -c ' 0 steered' "$TEST_TMPDIR/said")" = 0 ]
if nm -D "$library" | grep -qE '__(a|t)san_init'; then
  echo "skipped: a library with a sanitizer needs that"
  exit 0
fi
[ "$(nm -D --defined-only "$library" | awk '{print $NF}' | sort | paste -sd' ')" = \
  "ncclTunerPlugin_v1 ncclTunerPlugin_v2 ncclTunerPlugin_v3 ncclTunerPlugin_v4 ncclTunerPlugin_v5 ncclTunerPlugin_v6" ]

others=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux.*)$' || true)
[ -z "$others" ] || { echo "needs $others; expected libc, libm and libgcc alone"; exit 1; }

newest=$(nm -D --undefined-only "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
[ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -1)" = GLIBC_2.34 ] ||
  { echo "needs $newest; expected GLIBC_2.34 or older"; exit 1; }
