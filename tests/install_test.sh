#!/usr/bin/env bash
# Installs the library, builds the example against what was installed, and runs it.
set -euo pipefail
prefix=$TEST_TMPDIR/prefix
library=runtime/c_api/libxccl.so.0
if nm -D "$library" | grep -E '__(a|t)san_init' >/dev/null; then
  echo "skipped: a program without the sanitizer cannot load a library with it"
  exit 0
fi
tools/install "$prefix" . | tee "$TEST_TMPDIR/said"
grep -qF "export LD_LIBRARY_PATH=$prefix/lib" "$TEST_TMPDIR/said"

others=$(nm -D --defined-only "$library" | awk '{print $NF}' | grep -vE '^(xccl[A-Z][A-Za-z]*(@@XCCL_0)?|XCCL_0(@@XCCL_0)?)$' || true)
if [ -n "$others" ]; then
  echo "exported beside the API: $others"
  exit 1
fi

# The interface is what the header declares, name by name: a name that goes would break programs.
library=$prefix/lib/libxccl.so.0
declared=$(sed -nE 's/^(xcclResult_t|const char\*) (xccl[A-Za-z]+)\(.*/\2/p' "$prefix/include/xccl.h" | sort)
listed=$(sed -nE 's/^    (xccl[A-Za-z]+);$/\1/p' runtime/c_api/xccl.map | sort)
exported=$(nm -D --defined-only "$library" | sed -nE 's/.* (xccl[A-Za-z]+)@@XCCL_0$/\1/p' | sort)
for other in "$listed" "$exported"; do
  diff <(echo "$declared") <(echo "$other") || {
    echo "xccl.h, xccl.map and the library differ, as above"
    exit 1
  }
done

export PKG_CONFIG_PATH=$prefix/lib/pkgconfig
[ "$(pkg-config --modversion xccl)" = 0.1.0 ]
# shellcheck disable=SC2046
cc -Wall -Werror examples/allreduce.c -o "$TEST_TMPDIR/allreduce" $(pkg-config --cflags --libs xccl)

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

grep -qx dgx1 <<<"$("$prefix/bin/xccl-synth" topo --list)"
cmp topologies/library/dgx1.xml "$prefix/share/xccl/topologies/dgx1.xml"
nm -D --defined-only "$prefix/lib/libnccl-tuner-xccl.so" | grep -q ncclTunerPlugin_v5
nm -D --defined-only "$prefix/lib/libxccl-nccl.so" | grep -q ncclAllReduce
# The audit library finds the drop-in where it was installed, and no NCCL.
LD_AUDIT=$prefix/lib/libxccl-nccl-audit.so "$prefix/bin/xccl-synth" --version >/dev/null 2>"$TEST_TMPDIR/audit"
[ ! -s "$TEST_TMPDIR/audit" ]

# The package has the same, and names the libraries that its programs need.
deb=$(tools/package "$TEST_TMPDIR" .)
dpkg-deb --contents "$deb" >"$TEST_TMPDIR/contents"
for file in bin/xccl-synth include/xccl.h 'lib/[a-z0-9_-]*/libxccl.so.0' 'lib/[a-z0-9_-]*/libnccl-tuner-xccl.so' \
            'lib/[a-z0-9_-]*/libxccl-nccl.so' 'lib/[a-z0-9_-]*/xccl/libnccl.so.2' \
            share/man/man1/xccl-synth.1.gz share/bash-completion/completions/xccl-synth share/xccl/topologies/dgx1.xml; do
  grep -q " ./usr/$file\$" "$TEST_TMPDIR/contents" || {
    echo "$deb lacks $file"
    exit 1
  }
done
dpkg-deb --field "$deb" Depends | grep -q 'libstdc++6 (>='
dpkg-deb -x "$deb" "$TEST_TMPDIR/root"
"$TEST_TMPDIR/root/usr/bin/xccl-synth" topo dgx1 >/dev/null

book=$TEST_TMPDIR/book
mkdir -p "$book"
cp tests/golden/allreduce-nvswitch-ring.plan.json "$book/a.plan.json"
echo '{"format":1,"plans":[{"file":"a.plan.json","collective":"allreduce","ranks":4}]}' >"$book/index.json"
said=$("$TEST_TMPDIR/allreduce" "$book" 4)
echo "$said"
[ "$said" = "4 ranks, 4 here, 1000000 elements, 0 wrong" ]

# shellcheck disable=SC2046
c++ -std=c++17 -Wall -Werror examples/allreduce.cc -o "$TEST_TMPDIR/allreduce_cpp" $(pkg-config --cflags --libs xccl) -Wl,-rpath,"$prefix/lib"
said=$("$TEST_TMPDIR/allreduce_cpp" "$book" 4)
echo "$said"
[ "$said" = "4 ranks, 1000000 elements, 0 wrong" ]
