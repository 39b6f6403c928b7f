#!/usr/bin/env bash
# Compares the binary interface of libxccl.so.0 with golden/xccl-abi.txt: exported names with their versions,
# declarations, sizes, offsets and numbers. Lines may be added; a line that changes or goes breaks programs that
# are compiled already, so it needs another soname. This command rewrites the file:
#   XCCL_GOLDEN_DIR=$PWD/tests/golden bazel run //tests:abi_test
set -euo pipefail
header=runtime/xccl.h
# Comments, preprocessor lines and line ends of the header do not count.
code=$(sed -e :join -e '/\\$/{N; s/\\\n//; b join' -e '}' "$header" |
  sed -E 's,/\*.*\*/,,; /\/\*/,/\*\//d; /^#/d' | tr '\n' ' ' | sed -E 's/ +/ /g')
seen=$TEST_TMPDIR/xccl-abi.txt
{
  nm -D --defined-only runtime/c_api/libxccl.so.0 | awk '{print $NF}' | grep '^xccl' | LC_ALL=C sort
  # A declaration ends with the first semicolon.
  tr ';' '\n' <<<"$code" | sed -nE 's/^ *((xcclResult_t|const char\*) xccl[A-Za-z]+\(.*\))$/\1;/p' | LC_ALL=C sort
  tests/abi_layout
} >"$seen"

# Whatever number the header names is in the list.
grep -oE '\bxccl[A-Z][A-Za-z0-9]* = ' <<<"$code" | while read -r name _; do
  grep -q "^$name = " "$seen" || {
    echo "tests/abi_layout.c lacks $name"
    exit 1
  }
done

if [ -n "${XCCL_GOLDEN_DIR:-}" ]; then
  cp "$seen" "$XCCL_GOLDEN_DIR/xccl-abi.txt"
  exit 0
fi
diff tests/golden/xccl-abi.txt "$seen" || {
  echo "the interface changed as above; see the head of abi_test.sh"
  exit 1
}
