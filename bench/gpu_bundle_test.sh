#!/usr/bin/env bash
# tools/gpu_bundle without compiled kernels: what it makes runs with nothing around it, up to the missing driver.
set -euo pipefail
work=${TEST_TMPDIR:?}
mkdir "$work/programs"
for program in cli/xccl-synth bench/cuda_ceilings bench/cuda_kernels bench/cuda_api; do
  ln -s "$PWD/$program" "$work/programs/"
done
XZ_OPT=-0 tools/gpu_bundle "$work/archive.tar.xz" --no-cubins --binaries "$work/programs"
mkdir "$work/there"
tar -C "$work/there" -xf "$work/archive.tar.xz"
rm -r "$work/programs"
cd "$work/there/xccl-gpu"

# All libraries but glibc's come from the archive.
for program in bin/*; do
  others=$(env -i LD_LIBRARY_PATH="$PWD/lib" ldd "$program" |
    grep -vE "$PWD/lib/|/(libc|libm|libdl|libpthread|librt)\.so|ld-linux|linux-vdso" || true)
  [ -z "$others" ] || { echo "$program: from the machine, or missing: $others"; exit 1; }
done
# The books are right: the plans run on the CPU.
env -i LD_LIBRARY_PATH="$PWD/lib" bin/xccl-synth run books/groups-allreduce --sizes 1000 --iters 1 >/dev/null

if [ -e /dev/nvidiactl ]; then
  echo "skipped: a GPU is here, and checking on it takes long"
  exit 0
fi
cd /
said=$(env -i "$work/there/xccl-gpu/gpu_check" 2>&1) || { echo "exit code $?: $said; expected 0"; exit 1; }
case "$said" in
  "skipped: xccl-synth: cuda: no driver: "*) ;;
  *) echo "saw '$said'; expected 'skipped: xccl-synth: cuda: no driver: ...'"; exit 1 ;;
esac
[ "$(env -i "$work/there/xccl-gpu/gpu_check" --list | grep -c '|API, ')" -ge 7 ] || { echo "no checks of the API"; exit 1; }
