# Sourced by tools/quickstart, tools/wheel and tools/check: installs what is missing from Debian, and says what and why first.
# Usage: need PACKAGE 'why' ...; install_missing

needed_packages=()
need() {
  while [ $# -gt 0 ]; do
    if ! dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed$'; then
      needed_packages+=("$1")
      printf '  %-24s %s\n' "$1" "$2"
    fi
    shift 2
  done
}

install_missing() {
  [ ${#needed_packages[@]} -eq 0 ] && return 0
  local as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || {
      echo "tools: not root and no sudo; as root run: apt-get install ${needed_packages[*]}" >&2
      return 1
    }
    as_root=(sudo)
  fi
  echo "Installing ${#needed_packages[@]} Debian packages (listed above with their reasons) ..."
  local log
  log=$(mktemp)
  if ! { "${as_root[@]}" apt-get update &&
         "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
           "${needed_packages[@]}"; } >"$log" 2>&1; then
    tail -20 "$log" >&2
    echo "tools: apt-get failed; the whole log is $log" >&2
    return 1
  fi
  rm -f "$log"
}

need_to_build() {
  need bazel-bootstrap 'the build tool' \
       bazel-rules-java 'rules that every Bazel workspace loads' \
       g++ 'the compiler' \
       libpugixml-dev 'reads topology XML' \
       libyaml-dev 'reads YAML of Slurm and ASTRA-sim' \
       nlohmann-json3-dev 'reads and writes plans' \
       libfmt-dev 'formats text' \
       libcli11-dev 'parses the command line' \
       libz3-dev 'the SMT solver' \
       libfabric-dev 'headers for networks between hosts' \
       libssl-dev 'the hash by which ranks that are processes show that they know the token' \
       libibverbs-dev 'headers of InfiniBand and RoCE; the library is opened where it is there' \
       coinor-libclp-dev 'the linear programming solver of the bounds' \
       libprotobuf-dev 'writes execution traces for ASTRA-sim' \
       protobuf-compiler 'makes their code from the schema'
}

need_for_python() {
  need python3-dev 'headers of the extension module of the Python package' \
       python3-numpy 'columns of the Python package'
}

need_for_wheel() {
  need_for_python
  need binutils 'strips what is in a wheel' \
       patchelf 'names the libraries in a wheel'
}

need_to_check() {
  need_for_wheel
  need clang 'the second compiler' \
       clang-format 'formatting' \
       clang-tidy 'lint' \
       dpkg-dev 'makes the Debian package' \
       mkdocs 'makes the pages a site' \
       groff-base 'formats the page of the manual' \
       chromium 'the browser that the pages are tested in' \
       libgtest-dev 'unit tests' \
       libgmock-dev 'unit tests' \
       libbenchmark-dev 'benchmarks' \
       libopenmpi-dev 'builds xccl-sweep-mpi, a sweep as an MPI job' \
       mypy 'checks the annotations of the Python package' \
       openmpi-bin 'mpirun, to test it; the peer in bench/vs_openmpi' \
       python3 'runs the independent plan checker and the Python package' \
       python3-pandas 'tests its DataFrames' \
       python3-venv 'tests that its wheel can be installed'
  command -v npm >/dev/null ||
    need nodejs 'bundles the pages of view/, and tests them' npm 'fetches the libraries that they are bundled from'
}

# tools/check_rxe is skipped without them; CI installs them.
need_for_machines() {
  need qemu-system-x86 'virtual machines with RoCE devices' \
       busybox-static 'their shell' \
       cpio 'packs their files' \
       kmod 'finds their kernel modules' \
       iproute2 'sets up their network' \
       ibverbs-providers 'the driver of their devices'
}
