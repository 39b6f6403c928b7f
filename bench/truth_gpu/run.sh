#!/usr/bin/env bash
# bazel run //bench:truth_gpu: truth_gpu.py with the tool that Bazel has built.
set -euo pipefail
tree=${BUILD_WORKSPACE_DIRECTORY:?run it by bazel run}
exec python3 "$tree/bench/truth_gpu/truth_gpu.py" "$PWD/cli/xccl-synth" "$@"
