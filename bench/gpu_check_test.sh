#!/usr/bin/env bash
# tools/gpu_check with stand-ins for its programs, whose "GPU" fails one check and misses one bar.
set -uo pipefail
gpu_check=$PWD/tools/gpu_check
work=${TEST_TMPDIR:?}
failures=0
expect() { # WHAT SEEN EXPECTED
  [ "$2" = "$3" ] && return
  echo "$1: saw '$2'; expected '$3'"
  failures=1
}

programs=$work/programs
mkdir "$programs" "$work/real"
cat >"$work/real/xccl-synth" <<'END'
#!/usr/bin/env bash
while [ $# -gt 0 ]; do
  case "$1" in
    plan) command=plan ;;
    run) command=run book=$2 ;;
    -o) file=$2 ;;
    --jitter) [ "$2" = 1 ] && [[ "$book" == */broadcast-tree-ll ]] && echo "3 wrong" >&2 && exit 1 ;;
    --register) [[ "$book" == */allreduce-ring-ll128 ]] && echo "note: plan.json: runs on the interpreter kernel: no" ;;
    --graph) [ -z "${SLOW:-}" ] || exec sleep 60 ;;
  esac
  shift
done
[ "${command:-}" = plan ] && echo '{"protocol":"simple"}' >"$file"
[ "${command:-}" = run ] && [ -n "${NO_DEVICE:-}" ] && echo "xccl-synth: cuda: the driver sees no device" >&2 && exit 1
exit 0
END
printf '#!/bin/sh\nexit 0\n' >"$work/real/cuda_ceilings"
printf '#!/bin/sh\necho "PASS  0 elements wrong; expected 0"\necho "MISS  too slow"\nexit 3\n' >"$work/real/cuda_kernels"
printf '#!/bin/sh\n[ "$1" = --list ] && echo streams && echo abort\nexit 0\n' >"$work/real/cuda_api"
chmod +x "$work"/real/*
for program in "$work"/real/*; do ln -s "$program" "$programs/"; done

check() { env -i ${SLOW:+SLOW=1} ${NO_DEVICE:+NO_DEVICE=1} PATH=/usr/bin:/bin CUDA_HOME="$work/cuda" "$gpu_check" --binaries "$programs" "$@" 2>&1; }
mkdir -p "$work/cuda/lib64"
touch "$work/cuda/lib64/libnvrtc.so.13"

said=$(NO_DEVICE=1 check) status=$?
expect "without a device" "$said $status" "skipped: xccl-synth: cuda: the driver sees no device 0"

# Every check is in one part.
all=$(check --quick --list | cut -d'|' -f3- | sort)
in_parts=$(for part in 1 2 3; do check --quick --list --part $part/3; done | cut -d'|' -f3- | sort)
expect "three parts" "$in_parts" "$all"
expect "the same parts again" "$(check --quick --list --part 2/3)" "$(check --quick --list --part 2/3)"
# Parts have about the same work, but not the same number of checks: 16 checks that may run at once count as one that
# must run alone.
costs=$(for part in 1 2 3; do check --quick --list --part $part/3 | wc -l; done | sort -n | sed -n '1p;$p' | paste -sd' ')
[ "${costs% *}" -gt 10 ] || expect "checks in the least part" "$costs" "more than 10"

# compute-sanitizer may not be there, and a GPU is not.
said=$(check --quick --jobs 8) status=$?
total=$(check --quick --list | grep -vc memcheck)
[[ "$said" == *"skipped: 1 checks: no compute-sanitizer"* ]] || total=$((total + 1))
expect "failures" "$(grep '^FAILED' <<<"$said")" "FAILED  broadcast-tree-ll staged, delays: 3 wrong
FAILED  registered ll128: note: plan.json: runs on the interpreter kernel: no"
expect "the totals" "$(tail -1 <<<"$said")" "$((total - 2)) passed, 2 failed, 1 bars missed, 0 not run"
expect "the exit code" "$status" 1
[ -x "$programs/xccl-synth" ] || expect "the caller's folder" "gone" "as it was"

# Cut, it still counts.
SLOW=1 check --quick --jobs 2 >"$work/cut" &
cut=$!
for _ in $(seq 300); do
  [ -s "$work/cut" ] && grep -q '^# ' "$work/cut" && break
  sleep 0.1
done
pkill -TERM -P "$cut" 2>/dev/null || kill -TERM "$cut"
wait "$cut"
[[ "$(tail -1 "$work/cut")" =~ ^[0-9]+\ passed,\ [01]\ failed,\ 0\ bars\ missed,\ [0-9]+\ not\ run$ ]] ||
  expect "the totals of what is cut" "$(tail -1 "$work/cut")" "N passed, 0 failed, 0 bars missed, N not run"
[ "$failures" -eq 0 ] && echo "ok"
exit $failures
