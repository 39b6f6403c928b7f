#!/usr/bin/env bash
# Completion and the manual page: bash completes commands, options and values, and the manual page formats without a
# warning and has every command.
set -euo pipefail
PATH=$PWD/cli:$PATH
# shellcheck disable=SC1090
source <(xccl-synth completion bash)
compopt() { :; } # works in a completion alone

# completes WORDS... EXPECTED: the last word completed, the answers joined by blanks.
completes() {
  local expected=${*: -1}
  COMP_WORDS=(xccl-synth "${@:1:$#-1}")
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  COMPREPLY=()
  _xccl_synth
  [ "${COMPREPLY[*]}" = "$expected" ] || {
    echo "${COMP_WORDS[*]}: completed as '${COMPREPLY[*]}'; expected '$expected'"
    exit 1
  }
}
completes co 'compare completion'
completes plan --collective-f '--collective-file'
completes plan --engine halv 'halving-doubling'
completes compare --engines ring,halv 'ring,halving-doubling'
completes topo gb2 'gb200-nvl72'
completes topo --format d 'dot'
completes run --dtype bf 'bfloat16'
completes completion z 'zsh'
cd "$TEST_TMPDIR"
touch my.plan.json
completes verify my 'my.plan.json'
completes plan dgx1 -o my 'my.plan.json'
cd - >/dev/null

xccl-synth completion man >"$TEST_TMPDIR/xccl-synth.1"
said=$(groff -man -ww -z "$TEST_TMPDIR/xccl-synth.1" 2>&1)
[ -z "$said" ] || {
  echo "$said"
  exit 1
}
for command in $(xccl-synth --help | sed -n '/^Subcommands:/,$s/^  \([a-z]*\) .*/\1/p'); do
  grep -q "^.SS xccl\\\\-synth $command\$" "$TEST_TMPDIR/xccl-synth.1" || {
    echo "the page has no $command"
    exit 1
  }
done
if command -v zsh >/dev/null; then
  xccl-synth completion zsh >"$TEST_TMPDIR/_xccl-synth"
  zsh -n "$TEST_TMPDIR/_xccl-synth"
fi
