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

# Without a built module what the build needs is named, with its reason, before Bazel is asked.
fake=$TEST_TMPDIR/fake
mkdir "$fake"
ln -s /bin/bash /bin/grep "$fake"
printf '#!/bin/bash\n[ "$3" = pybind11-dev ] || echo "install ok installed"\n' >"$fake/dpkg-query"
printf '#!/bin/bash\necho 1000\n' >"$fake/id"
printf '#!/bin/bash\necho bazel was called\n' >"$fake/bazel"
chmod +x "$fake/dpkg-query" "$fake/id" "$fake/bazel"
if PATH=$fake /usr/bin/python3 tools/wheel "$TEST_TMPDIR/none" >"$TEST_TMPDIR/out" 2>"$TEST_TMPDIR/err"; then exit 1; fi
[ ! -s "$TEST_TMPDIR/out" ]
cat >"$TEST_TMPDIR/expected" <<'END'
  pybind11-dev             joins the Python package to the library
tools: not root and no sudo; as root run: apt-get install pybind11-dev
tools/wheel: bash ended with 1; its messages are above
END
diff "$TEST_TMPDIR/expected" "$TEST_TMPDIR/err"
[ ! -e "$TEST_TMPDIR/none" ]

export HOME=$TEST_TMPDIR PIP_DISABLE_PIP_VERSION_CHECK=1
wheel=$(tools/wheel "$TEST_TMPDIR/one" .)
again=$(tools/wheel "$TEST_TMPDIR/two" .)
cmp "$wheel" "$again"

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
"$TEST_TMPDIR/venv/bin/pip" uninstall --quiet --yes xccl-synth
[ -z "$(find venv -name '*xccl_synth*')" ]
