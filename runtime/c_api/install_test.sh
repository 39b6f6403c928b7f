#!/usr/bin/env bash
# Installs the library, builds the example against what was installed, and runs it.
set -euo pipefail
prefix=$TEST_TMPDIR/prefix
library=runtime/c_api/libxccl.so.0
if nm -D "$library" | grep -qE '__(a|t)san_init'; then
  echo "skipped: a program without the sanitizer cannot load a library with it"
  exit 0
fi
tools/install "$prefix" "$library"

others=$(nm -D --defined-only "$library" | awk '{print $NF}' | grep -vE '^(xccl[A-Z][A-Za-z]*(@@XCCL_0)?|XCCL_0(@@XCCL_0)?)$' || true)
if [ -n "$others" ]; then
  echo "exported beside the API: $others"
  exit 1
fi

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion xccl)" = 0.1.0 ]
# shellcheck disable=SC2046
cc -Wall -Werror examples/allreduce.c -o "$TEST_TMPDIR/allreduce" $(pkg-config --cflags --libs xccl) -Wl,-rpath,"$prefix/lib"

if command -v cmake >/dev/null; then
  mkdir -p "$TEST_TMPDIR/cmake"
  cp examples/allreduce.c "$TEST_TMPDIR/cmake/"
  cat >"$TEST_TMPDIR/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.10)
project(example C)
find_package(xccl 0.1 REQUIRED)
add_executable(allreduce allreduce.c)
target_link_libraries(allreduce xccl::xccl)
END
  cmake -S "$TEST_TMPDIR/cmake" -B "$TEST_TMPDIR/cmake/build" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
  cmake --build "$TEST_TMPDIR/cmake/build" >/dev/null
fi

book=$TEST_TMPDIR/book
mkdir -p "$book"
cp tests/golden/allreduce-nvswitch-ring.plan.json "$book/a.plan.json"
echo '{"format":1,"plans":[{"file":"a.plan.json","collective":"allreduce","ranks":4}]}' >"$book/index.json"
said=$("$TEST_TMPDIR/allreduce" "$book" 4)
echo "$said"
[ "$said" = "4 ranks, 4 here, 1000000 elements, 0 wrong" ]
