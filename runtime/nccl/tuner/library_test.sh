#!/usr/bin/env bash
# The library exports what NCCL looks for and nothing else, and loads where only a C library of 2021 is.
set -euo pipefail
library=runtime/nccl/tuner/libnccl-tuner-xccl.so
readelf -d "$library" | grep NODELETE >/dev/null || { echo "is unloaded; expected that it stays, since each load takes memory"; exit 1; }
# Without -q, at which nm would fail to write the rest.
if nm -D "$library" | grep -E '__(a|t)san_init' >/dev/null; then
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
