#!/usr/bin/env bash
# The collectives of a training step of Llama 3 70B on eight hosts of eight H100s joined by rails: tensor and
# sequence parallel inside a host, four pipeline stages, ZeRO-1 over the rest. Prints them with their times
# and shares, and writes a plan book to the folder BOOK. docs/training.md explains the columns. It runs from
# any folder, with the tool of this clone or else the one in PATH.
#   bazel build --config=release //cli:xccl-synth && examples/llama70b.sh [BOOK]
set -euo pipefail
synth=$(dirname "${BASH_SOURCE[0]}")/../bazel-bin/cli/xccl-synth
[ -x "$synth" ] || synth=$(command -v xccl-synth) || {
  echo "llama70b.sh: no xccl-synth in bazel-bin or PATH; hint: bazel build --config=release //cli:xccl-synth" >&2
  exit 1
}
exec "$synth" plan rail-8 --for sp,pp,zero1 --llm llama-3-70b \
  --tp 8 --pp 4 --micro-batches 16 --grad-bytes 4 -o "${1:-llama70b-book}"
