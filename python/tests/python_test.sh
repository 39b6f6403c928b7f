#!/usr/bin/env bash
# Runs files of unit tests with Debian's Python: python_test.sh FILE...
set -euo pipefail
if nm -D python/xccl_synth/_xccl.so | grep -E '__(a|t)san_init' >/dev/null; then
  echo "skipped: a program without the sanitizer cannot load a library with it"
  exit 0
fi
for module in numpy pandas; do
  if ! /usr/bin/python3 -c "import $module" 2>/dev/null; then
    echo "skipped: no $module; apt install python3-$module"
    exit 0
  fi
done
export PYTHONPATH=$PWD/python PYTHONDONTWRITEBYTECODE=1 HOME=$TEST_TMPDIR
exec /usr/bin/python3 python/tests/run.py "$@"
