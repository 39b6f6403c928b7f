#!/usr/bin/env bash
# Tests the attack itself: that it speaks the protocol, and that each of its checks fires.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 python/tests/run.py tests/attack/attack_test.py
