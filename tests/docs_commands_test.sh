#!/usr/bin/env bash
# Runs the commands of the pages: docs_commands_test.py, each page as a case.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
exec /usr/bin/python3 python/tests/run.py tests/docs_commands_test.py
