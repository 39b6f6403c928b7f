#!/usr/bin/env bash
# Tests the hunt itself: that it draws the same everywhere, and that each of its checks fires.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 python/tests/run.py tests/requests/hunt_test.py
