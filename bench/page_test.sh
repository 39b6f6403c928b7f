#!/usr/bin/env bash
# page_test.py, each of its tests as a case.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 python/tests/run.py bench/page_test.py
