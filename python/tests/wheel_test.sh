#!/usr/bin/env bash
# Makes the wheel, installs it in a fresh environment, and uses it there.
set -euo pipefail
if nm -D python/xccl_synth/_xccl.so | grep -E '__(a|t)san_init' >/dev/null; then
  echo "skipped: a program without the sanitizer cannot load a library with it"
  exit 0
fi
if ! /usr/bin/python3 -c 'import numpy, ensurepip' 2>/dev/null; then
  echo "skipped: apt install python3-numpy python3-venv"
  exit 0
fi
if ! command -v patchelf >/dev/null; then
  echo "skipped: apt install patchelf"
  exit 0
fi

# Without a built module what the build needs is named, with its reason, before Bazel is asked.
fake=$TEST_TMPDIR/fake
mkdir "$fake"
ln -s /bin/bash /bin/grep "$fake"
printf '#!/bin/bash\n[ "$3" = python3-dev ] || echo "install ok installed"\n' >"$fake/dpkg-query"
printf '#!/bin/bash\necho 1000\n' >"$fake/id"
printf '#!/bin/bash\necho bazel was called\n' >"$fake/bazel"
chmod +x "$fake/dpkg-query" "$fake/id" "$fake/bazel"
if PATH=$fake /usr/bin/python3 tools/wheel "$TEST_TMPDIR/none" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"; then exit 1; fi
[ ! -s "$TEST_TMPDIR/out" ]
cat >"$TEST_TMPDIR/expected" <<'END'
  python3-dev              headers of the extension module of the Python package
tools: not root and no sudo; as root run: apt-get install python3-dev
tools/wheel: bash ended with 1; its messages are above
END
diff "$TEST_TMPDIR/expected" "$TEST_TMPDIR/err"
[ ! -e "$TEST_TMPDIR/none" ]

# An error is one line.
if tools/wheel "$TEST_TMPDIR/none" "$TEST_TMPDIR/nowhere" 2>"$TEST_TMPDIR/err"; then exit 1; fi
[ "$(cat "$TEST_TMPDIR/err")" = "tools/wheel: $TEST_TMPDIR/nowhere: No such file or directory" ]
ln -s /usr/bin/ldd /usr/bin/strip "$fake"
if PATH=$fake /usr/bin/python3 tools/wheel "$TEST_TMPDIR/none" . 2>"$TEST_TMPDIR/err"; then exit 1; fi
[ "$(cat "$TEST_TMPDIR/err")" = "tools/wheel: no patchelf; hint: apt install patchelf" ]

export HOME=$TEST_TMPDIR PIP_DISABLE_PIP_VERSION_CHECK=1
wheel=$(tools/wheel "$TEST_TMPDIR/one" .)
again=$(tools/wheel "$TEST_TMPDIR/two" .)
cmp "$wheel" "$again"
[[ $wheel == *-cp39-abi3-manylinux_2_31_x86_64.whl ]]
xccl=$PWD/cli/xccl-synth

# numpy is Debian's.
/usr/bin/python3 -m venv --system-site-packages "$TEST_TMPDIR/venv"
"$TEST_TMPDIR/venv/bin/pip" install --quiet --no-index "$wheel"
cd "$TEST_TMPDIR"
venv/bin/python - <<'END'
import pathlib

import xccl_synth as xccl

here = pathlib.Path(xccl.__file__)
assert "venv" in here.parts, here
assert (here.parent / "py.typed").exists() and (here.parent / "_xccl.pyi").exists()
plan = xccl.plan("ring:4", "allgather", size="1MiB")
assert plan.verify() == []
plan.save("a.plan.json")
assert xccl.Plan.load("a.plan.json").time_ps == plan.time_ps
END

venv/bin/python - <<'END'
import base64, hashlib, importlib.metadata

files = importlib.metadata.files("xccl-synth")
hashed = [file for file in files if file.hash is not None]
assert len(hashed) >= 12, hashed
for file in hashed:
    digest = hashlib.new(file.hash.mode, file.read_binary()).digest()
    assert base64.urlsafe_b64encode(digest).rstrip(b"=").decode() == file.hash.value, file
END
# The command line is the same program's. It needs no numpy, and the functions say that they do.
asked=(plan ring:4 -c allgather -s 1MiB --json)
told() { sed 's/"synthesis_s":[^,]*//; s/"total_s":[^,}]*//'; }
diff <("$xccl" "${asked[@]}" | told) <(venv/bin/python -m xccl_synth "${asked[@]}" | told)
diff <("$xccl" topo dgx1) <(venv/bin/xccl-synth topo dgx1)
[ "$(venv/bin/python -m xccl_synth plan 2>&1 || echo $?)" = "$("$xccl" plan 2>&1 || echo $?)" ]
/usr/bin/python3 -m venv bare
bare/bin/pip install --quiet --no-index --no-deps "$wheel"
diff <("$xccl" topo dgx1) <(bare/bin/python -m xccl_synth topo dgx1)
bare/bin/python - <<'END'
import xccl_synth

try:
    xccl_synth.plan
except xccl_synth.XcclError as wrong:
    assert str(wrong) == "xccl_synth: No module named 'numpy'", wrong
else:
    raise AssertionError
END

# All libraries but the C library's are the wheel's own, and none of them needs a glibc above 2.31.
package=$(echo venv/lib/python3*/site-packages/xccl_synth)
for file in "$package"/_xccl.*.so "$package"/bin/xccl-synth "$package"/lib/*; do
  ldd "$file" | awk '$3 ~ /^\// {print $3}' | while read -r library; do
    case $(realpath "$library") in
      *"/site-packages/xccl_synth/lib/"*) ;;
      */libc.so.6 | */libm.so.6 | */libpthread.so.0 | */libdl.so.2 | */librt.so.1) ;;
      *) echo "$file needs $library" && exit 1 ;;
    esac
  done
  if objdump -p "$file" | grep -E 'GLIBC_2\.3[2-9]'; then exit 1; fi
done

"$TEST_TMPDIR/venv/bin/pip" uninstall --quiet --yes xccl-synth
[ -z "$(find venv -name '*xccl_synth*')" ]
