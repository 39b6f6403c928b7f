#!/usr/bin/env bash
# xccl-synth exec: jobs on CPU ranks by mpirun and by Slurm's variables, a job on a stub of NCCL with a driver in host memory, and
# everything that can go wrong: the command's exit code is its own, and the cache is whole.
set -euo pipefail
synth=$PWD/cli/xccl-synth allreduce=$PWD/examples/allreduce nccl_job=$PWD/runtime/nccl/shim/book_program
export XDG_CACHE_HOME=$TEST_TMPDIR/cache OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 HOME=$TEST_TMPDIR
mkdir -p "$TEST_TMPDIR/bin"
ln -sf "$synth" "$TEST_TMPDIR/bin/xccl-synth"
PATH=$TEST_TMPDIR/bin:/usr/bin:/bin
small=(--collectives allreduce --sizes 64KiB)
errors=$TEST_TMPDIR/errors
fail() { echo "$1"; cat "$errors"; exit 1; }
# said COUNT TEXT: so many lines of the last standard error have the text.
said() { [ "$(grep -cF -- "$2" "$errors")" = "$1" ] || fail "expected $1 lines with '$2'"; }
# ends CODE COMMAND...
ends() {
  local expected=$1 code=0
  shift
  "$@" 2>"$errors" || code=$?
  [ "$code" = "$expected" ] || fail "$*: exit code $code; expected $expected"
}
forget() { rm -rf "$XDG_CACHE_HOME"; }
step=0
# slurm RANKS COMMAND...: a process for each rank, with the variables that srun sets; the largest exit code.
slurm() {
  local ranks=$1 code=0 worst=0 pid pids=()
  shift
  step=$((step + 1))
  for ((i = 0; i < ranks; ++i)); do
    SLURM_JOB_ID=$$ SLURM_STEP_ID=$step SLURM_PROCID=$i SLURM_LOCALID=$i SLURM_NTASKS=$ranks SLURM_STEP_NUM_NODES=1 \
      SLURM_STEP_TASKS_PER_NODE=$ranks "$@" &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do
    code=0
    wait "$pid" || code=$?
    [ "$code" -le "$worst" ] || worst=$code
  done
  return "$worst"
}
no_leftovers() { [ -z "$(find "$XDG_CACHE_HOME" -name '*.tmp-*')" ] || fail "$(find "$XDG_CACHE_HOME" -name '*.tmp-*')"; }

# Where there is no machine, the command runs as it was, with one line; its exit code is kept, and its words are.
for code in 0 1 37; do
  ends $code xccl-synth exec -- sh -c "exit $code"
  said 1 'warning: no nvidia-smi on PATH, and no launcher of several ranks; expected a machine to plan for; hint: --topology; the command runs without a plan book'
  [ "$(wc -l <"$errors")" = 1 ] || fail "more than one line"
done
ends 143 bash -c 'xccl-synth exec -- sh -c "kill -TERM \$\$"'
[ "$(xccl-synth exec -- printf '%s|' a '' 'b c' --help -- -n 2>/dev/null)" = 'a||b c|--help|--|-n|' ] || fail "other words"
ends 127 xccl-synth exec -- no-such-command
said 1 'xccl-synth: no-such-command: command not found'
printf '#!/no-such-shell\n' >"$TEST_TMPDIR/bin/no-shell"
chmod +x "$TEST_TMPDIR/bin/no-shell"
ends 127 xccl-synth exec -- no-shell
said 1 'xccl-synth: no-shell: the interpreter that it names is not there'
ends 126 xccl-synth exec -- /dev/null
said 1 'xccl-synth: /dev/null: Permission denied'
ends 2 xccl-synth exec
said 1 'no COMMAND; expected it behind --; hint: xccl-synth exec -- ./my_job'
for option in "--sizes lots" "--collectives allreduc"; do
  # shellcheck disable=SC2086
  ends 2 xccl-synth exec $option -- true
  said 1 "xccl-synth: ${option%% *}: "
done
[ ! -e "$XDG_CACHE_HOME" ] || fail "a cache was made for nothing"
# Signals that were ignored stay so, and no file is left open.
[ "$(bash -c "trap '' PIPE; exec xccl-synth exec -- grep SigIgn /proc/self/status" 2>/dev/null)" = \
  "$(bash -c "trap '' PIPE; exec grep SigIgn /proc/self/status")" ] || fail "other signals are ignored"
files() { slurm 2 xccl-synth exec "$@" "${small[@]}" --time-limit 250s -- sh -c 'ls /proc/self/fd | wc -l' 2>/dev/null; }
[ "$(files)" = "$(slurm 2 sh -c 'ls /proc/self/fd | wc -l')" ] || fail "files are left open"

# A job: one rank makes the book, and every rank runs it; then nothing is made and nothing said.
ends 0 slurm 3 xccl-synth exec "${small[@]}" -- "$allreduce" >"$TEST_TMPDIR/out"
said 1 'making the plan book of cpu-ranks, once, for up to 120 s: '
[ "$(grep -c '^3 ranks, 1 here, 1000000 elements, 0 wrong$' "$TEST_TMPDIR/out")" = 3 ] || fail "$(cat "$TEST_TMPDIR/out")"
ends 0 slurm 3 xccl-synth exec "${small[@]}" -- "$allreduce"
[ ! -s "$errors" ] || fail "a warm cache says something"
no_leftovers
ends 37 slurm 3 xccl-synth exec "${small[@]}" -- sh -c 'exit $((SLURM_PROCID == 1 ? 37 : 0))'
if command -v mpirun >/dev/null; then
  ends 0 mpirun --oversubscribe -n 4 xccl-synth exec -- "$allreduce" >"$TEST_TMPDIR/out"
  said 1 'making the plan book of cpu-ranks'
  [ "$(grep -c '^4 ranks, 1 here, 1000000 elements, 0 wrong$' "$TEST_TMPDIR/out")" = 4 ] || fail "$(cat "$TEST_TMPDIR/out")"
  ends 37 mpirun --oversubscribe -n 2 xccl-synth exec "${small[@]}" -- sh -c 'exit 37'
else
  echo "mpirun: skipped: not installed; hint: apt-get install openmpi-bin"
fi

# The printed lines do the same.
forget
SLURM_JOB_ID=1 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=2 \
  xccl-synth exec --dry-run "${small[@]}" -- "$allreduce" >"$TEST_TMPDIR/lines"
[ ! -e "$XDG_CACHE_HOME" ] || fail "a dry run made something"
sed '$d' "$TEST_TMPDIR/lines" >"$TEST_TMPDIR/all_but_the_job.sh"
(. "$TEST_TMPDIR/all_but_the_job.sh" >/dev/null && cd "$XCCL_BOOK" && rm -rf "$TEST_TMPDIR/by_lines" && cp -r . "$TEST_TMPDIR/by_lines")
forget
ends 0 slurm 2 xccl-synth exec "${small[@]}" -- sh -c 'rm -rf "$TEST_TMPDIR/by_exec"; cp -r "$XCCL_BOOK" "$TEST_TMPDIR/by_exec.$SLURM_PROCID"'
for file in index.json allreduce-64KiB.plan.json; do
  cmp "$TEST_TMPDIR/by_lines/$file" "$TEST_TMPDIR/by_exec.0/$file" || fail "the lines make another $file"
done

# The command may change its folder.
(cd "$TEST_TMPDIR" && XDG_CACHE_HOME=cache slurm 2 xccl-synth exec "${small[@]}" -- sh -c 'cd / && test -f "$XCCL_BOOK/index.json"') 2>"$errors" ||
  fail "a relative folder of books"

# Two jobs at once make one book.
forget
ends 0 bash -c "$(declare -f slurm); small='${small[*]}' step=100
  slurm 2 xccl-synth exec \$small -- '$allreduce' >'$TEST_TMPDIR/out' & first=\$! step=200
  slurm 2 xccl-synth exec \$small -- '$allreduce' >'$TEST_TMPDIR/out2' && wait \$first"
said 1 'making the plan book'
[ "$(cat "$TEST_TMPDIR/out" "$TEST_TMPDIR/out2" | grep -c ' 0 wrong')" = 4 ] || fail "$(cat "$TEST_TMPDIR"/out*)"

# Kills at any moment: the next job finds or makes a whole book, and leaves nothing.
for ((kills = 0; kills < 12; ++kills)); do
  forget
  SLURM_JOB_ID=1 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_TASKS_PER_NODE=2 \
    xccl-synth exec --sizes 64KiB -- true 2>/dev/null &
  killed=$!
  sleep "0.$(printf '%03d' $((kills * 31)))"
  kill -KILL $killed 2>/dev/null || true
  wait $killed 2>/dev/null || true
done
ends 0 slurm 2 xccl-synth exec --sizes 64KiB -- "$allreduce" >/dev/null
no_leftovers

# A planner that is killed is a reason of one line. On a busy machine it may have ended before the kill.
for ((tries = 0; tries < 20; ++tries)); do
  forget
  xccl-synth exec --topology dgx-h100 --without-nccl -- sh -c 'exit ${XCCL_BOOK:-37}' 2>"$errors" &
  killed=$! planner=
  for ((i = 0; i < 2000; ++i)); do
    read -r planner _ 2>/dev/null <"/proc/$killed/task/$killed/children" && break
    sleep 0.005
  done
  kill -KILL "$planner" 2>/dev/null && break
  wait $killed || true
done
ends_as() { local code=0; wait "$1" || code=$?; [ "$code" = "$2" ] || fail "exit code $code; expected $2"; }
ends_as $killed 37
said 1 'warning: book: killed by signal 9 (Killed); the command runs without a plan book'
no_leftovers
forget
ends 0 slurm 2 xccl-synth exec --sizes 64KiB -- "$allreduce" >/dev/null

# A damaged book is made again.
index=$(echo "$XDG_CACHE_HOME"/xccl/*/index.json)
truncate -s 10 "$index"
ends 0 slurm 2 xccl-synth exec --sizes 64KiB -- "$allreduce" >/dev/null
said 1 'making the plan book'

# Whatever stops the planner, the command runs. Both ranks say why, and one has tried.
forget
ends 37 slurm 2 env XDG_CACHE_HOME=/dev/null xccl-synth exec -- sh -c 'exit ${XCCL_BOOK:-37}'
said 2 'warning: /dev/null/xccl: cannot make the directory: Not a directory; the command runs without a plan book'
ends 37 slurm 2 xccl-synth exec --time-limit 1ms -- sh -c 'exit ${XCCL_BOOK:-37}'
said 2 'warning: book: no end in 0.001 s; hint: --time-limit; the command runs without a plan book'
said 1 'making the plan book'
forget
ends 2 slurm 2 xccl-synth exec --sizes none -- sh -c 'exit ${XCCL_BOOK:-37}'
said 2 "xccl-synth: --sizes: 'none': "
ends 37 slurm 2 bash -c 'ulimit -f 1; exec xccl-synth exec -- sh -c "exit \${XCCL_BOOK:-37}"' # a disc that is full
said 2 'File too large; the command runs without a plan book'
no_leftovers
ends 0 env XCCL_RANK=1 XCCL_SIZE=4 XCCL_ADDRESS=h0:4000 xccl-synth exec -- true
said 1 'warning: XCCL_LOCAL_SIZE: not set; expected the number of ranks on each host; hint: --topology; the command runs without a plan book'
ends 37 env XCCL_RANK=1 XCCL_SIZE=4 XCCL_ADDRESS=h0:4000 xccl-synth exec --without-nccl "${small[@]}" --topology full-mesh:4 -- \
  sh -c 'rm -rf "$TEST_TMPDIR/of_4"; cp -r "$XCCL_BOOK" "$TEST_TMPDIR/of_4" && exit 37'
[ ! -s "$errors" ] || said 1 'making the plan book of full-mesh:4'
said 0 warning
ends 37 env XCCL_RANK=1 XCCL_SIZE=4 XCCL_ADDRESS=h0:4000 xccl-synth exec --without-nccl --book "$TEST_TMPDIR/of_4" -- sh -c 'exit 37'
[ ! -s "$errors" ] || fail "a book that is given needs no hosts"
ends 0 xccl-synth exec --topology no-such-machine -- true
said 1 '; the command runs without a plan book'

# Measured by the ranks themselves, or by threads.
forget
for expected in 1 0; do
  ends 0 slurm 2 xccl-synth exec --measure --time-limit 250s "${small[@]}" -- "$allreduce" >"$TEST_TMPDIR/out"
  said $expected "measuring the job's machine, once"
  [ "$(grep -c ' 0 wrong$' "$TEST_TMPDIR/out")" = 2 ] || fail "$(cat "$TEST_TMPDIR/out")"
done
ends 0 xccl-synth exec --measure --time-limit 250s "${small[@]}" --topology full-mesh:2 -- sh -c "'$allreduce' \$XCCL_BOOK 2" >/dev/null
[ "$(files --measure)" = "$(slurm 2 sh -c 'ls /proc/self/fd | wc -l')" ] || fail "files are left open"
ends 0 xccl-synth exec --measure -- true
said 1 'warning: --measure: one process; expected ranks of a launcher, or --topology for threads; the command runs without a plan book'
no_leftovers
# Where the book cannot be written, no rank waits for the one that would.
ends 37 slurm 2 env XDG_CACHE_HOME=/dev/null xccl-synth exec --measure --time-limit 250s -- sh -c 'exit ${XCCL_BOOK:-37}'
said 2 'warning: /dev/null/xccl: cannot make the directory: Not a directory; the command runs without a plan book'

# A book that is given, on threads of one process.
ends 0 xccl-synth exec --without-nccl "${small[@]}" --topology full-mesh:2 -- sh -c 'cp -r "$XCCL_BOOK" "$TEST_TMPDIR/given"'
ends 0 xccl-synth exec --without-nccl --book "$TEST_TMPDIR/given" -- sh -c "echo \$XCCL_BOOK; '$allreduce' \$XCCL_BOOK 2" >"$TEST_TMPDIR/out"
[ "$(cat "$TEST_TMPDIR/out")" = "$TEST_TMPDIR/given
2 ranks, 2 here, 1000000 elements, 0 wrong" ] || fail "$(cat "$TEST_TMPDIR/out")"
ends 0 env XCCL_BOOK="$TEST_TMPDIR/nothing" xccl-synth exec --without-nccl -- true
said 1 "$TEST_TMPDIR/nothing/index.json: cannot read: No such file or directory; the command runs without a plan book"

if nm -D runtime/nccl/shim/libxccl-nccl.so | grep -E '__(a|t)san_init' >/dev/null; then
  echo "before NCCL: skipped: a library with a sanitizer cannot be preloaded"
  exit 0
fi
# Before NCCL, on two GPUs that nvidia-smi tells of.
cat >"$TEST_TMPDIR/bin/nvidia-smi" <<'SCRIPT'
#!/bin/sh
echo "$1" >>"$TEST_TMPDIR/asked"
case "$1" in
-L) echo 'GPU 0: A'; echo 'GPU 1: A' ;;
topo) printf '\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV12\t0-7\nGPU1\tNV12\t X \t0-7\n' ;;
*) echo '0, 8.0, 4, 16'; echo '1, 8.0, 4, 16' ;;
esac
SCRIPT
chmod +x "$TEST_TMPDIR/bin/nvidia-smi"
forget
ends 0 xccl-synth exec "${small[@]}" -- "$nccl_job" >"$TEST_TMPDIR/out"
[ "$(cat "$TEST_TMPDIR/out")" = "0 wrong, 0 calls served by NCCL" ] || fail "$(cat "$TEST_TMPDIR/out")"
said 1 'note: reading this machine, once: '
said 1 'serves allreduce of 2 ranks; NCCL the rest'
ends 0 xccl-synth exec "${small[@]}" -- "$nccl_job"
[ "$(grep -c -- -L "$TEST_TMPDIR/asked")" = 1 ] || fail "a warm cache asks nvidia-smi"
ends 0 xccl-synth exec "${small[@]}" -- env >"$TEST_TMPDIR/out"
grep -E '^LD_PRELOAD=.*/libxccl-nccl\.so$' "$TEST_TMPDIR/out" >/dev/null || fail "$(cat "$TEST_TMPDIR/out")"
[ "$("$nccl_job")" = "0 wrong, 2 calls served by NCCL" ] || fail "the job's calls are not NCCL's without exec"
ends 0 slurm 2 xccl-synth exec "${small[@]}" -- true # a process for each GPU
ends 0 slurm 3 xccl-synth exec "${small[@]}" -- true
said 3 'warning: 2 GPUs on this host, and 3 ranks; expected a GPU for each rank; the command runs without a plan book'
# A host without GPUs has the tool all the same.
printf '#!/bin/sh\necho "No devices found."\n' >"$TEST_TMPDIR/bin/nvidia-smi"
forget
ends 0 slurm 2 xccl-synth exec "${small[@]}" -- "$allreduce" >/dev/null
said 1 'making the plan book of cpu-ranks'
