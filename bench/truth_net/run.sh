#!/usr/bin/env bash
# bazel run //bench:truth_net [-- OPTIONS]: truth_net.py with the tool that Bazel has built.
set -euo pipefail
tree=${BUILD_WORKSPACE_DIRECTORY:?run it by bazel run}
exec python3 "$tree/bench/truth_net/truth_net.py" "$PWD/cli/xccl-synth" "$@"
