#!/usr/bin/env bash
# clang_tidy.sh CONFIG SOURCE REPORT BIN_DIR: lints one source; the report is empty when it is clean.
output=$(clang-tidy --quiet --config-file="$1" --warnings-as-errors='*' "$2" -- \
  -x c++ -std=c++20 -I. -I"$4" -I/usr/lib/x86_64-linux-gnu/openmpi/include -isystem /usr/include/python3.11 2>&1)
status=$?
if [ $status -ne 0 ]; then
  echo "$output" | grep -v 'warnings generated' >&2
  exit $status
fi
: > "$3"
