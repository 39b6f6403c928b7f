#!/usr/bin/env bash
# The shim's three libraries, in front of a stub of NCCL's: what they export and need, and that every call reaches NCCL,
# those that NCCL makes to itself included, in each of the ways to load them. With XCCL_REAL_NCCL=/path/libnccl.so.2 the
# same program runs in front of that one, too.
set -euo pipefail
here=$PWD/runtime/nccl/shim
shim=$here/libxccl-nccl.so dropin=$here/dropin/libnccl.so.2 audit=$here/dropin/libxccl-nccl-audit.so
stub=$here/testing/libnccl.so.2 program=$here/program
fail() { echo "$1" && exit 1; }

for library in "$shim" "$dropin"; do
  readelf -d "$library" | grep NODELETE >/dev/null || fail "$library is unloaded; expected that it stays"
done
# Without -q, at which nm would fail to write the rest.
if nm -D "$shim" | grep -E '__(a|t)san_init' >/dev/null; then
  echo "skipped: a library with a sanitizer cannot be preloaded"
  exit 0
fi

exports() { nm -D --defined-only "$1" | awk '{print $NF}' | LC_ALL=C sort; }
mapped() { sed -n 's/^ *\([a-z]*nccl[A-Za-z0-9]*\);$/\1/p' "$1" | LC_ALL=C sort; }
diff <(exports "$shim") <(mapped "$here/shim.map") || fail "the shim exports other names than its version script"
diff <(exports "$dropin") <(mapped "$here/dropin/dropin.map") || fail "the drop-in exports other names than its script"
[ "$(exports "$audit" | paste -sd' ')" = "la_objsearch la_version" ]
# Those of nccl.h that have no plan's call behind them are never the shim's: NCCL calls some of them itself.
for name in CommRegister CommDeregister CommWindowDeregister MemAlloc MemFree GetUniqueId GetVersion GetErrorString DevCommDestroy; do
  ! exports "$shim" | grep -x "nccl$name" >/dev/null || fail "the shim exports nccl$name"
done
for library in "$shim" "$dropin"; do
  others=$(readelf -d "$library" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so\.6|libm\.so\.6|libgcc_s\.so\.1|ld-linux.*)$' || true)
  [ -z "$others" ] || fail "$library needs $others; expected libc, libm and libgcc alone"
  newest=$(nm -D --undefined-only "$library" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
  [ "$(printf '%s\nGLIBC_2.34\n' "$newest" | sort -V | tail -1)" = GLIBC_2.34 ] || fail "$library needs $newest"
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/nccl" "$scratch/xccl"
cp "$stub" "$scratch/nccl/libnccl.so.2"
cp "$dropin" "$scratch/xccl/libnccl.so.2"
cp "$audit" "$scratch/"
cat >"$scratch/expected" <<END
pncclGetVersion
version 22809: 0
pncclGetUniqueId
id: 0
text: the stub's text
pncclAllReduce
allreduce: 0
BCAST
bcast: 0
pncclGroupStart
pncclGroupEnd
group: 0 0
pncclCommDestroy
destroy: 0
pncclCommInitAll
pncclGroupStart
pncclGroupEnd
pncclBroadcast
pncclCommRegister
pncclCommDeregister
pncclCommWindowDeregister
pncclCommGetAsyncError
pncclMemAlloc
pncclMemFree
pncclGetUniqueId
pncclGetVersion
pncclDevCommDestroy
init: 0
END
# A broadcast in place is one broadcast to the shim, and NCCL's own calls its broadcast.
shimmed() { sed 's/^BCAST$/pncclBroadcast/' "$scratch/expected"; }
nccls() { sed 's/^BCAST$/pncclBcast\npncclBroadcast/' "$scratch/expected"; }
check() { # what, expected, command…
  local what=$1 expected=$2
  shift 2
  "$expected" >"$scratch/want"
  env "$@" >"$scratch/got" 2>"$scratch/errors" || { cat "$scratch/got" "$scratch/errors"; fail "$what: the program failed"; }
  diff "$scratch/want" "$scratch/got" || { cat "$scratch/errors"; fail "$what: other calls reached NCCL"; }
}
path="LD_LIBRARY_PATH=$scratch/nccl"
check "NCCL alone" nccls "$path" "$program"
check "NCCL alone, opened" nccls "$path" "$program" libnccl.so.2
check "preloaded" shimmed "$path" LD_PRELOAD="$shim" "$program"
check "preloaded, no book" shimmed "$path" LD_PRELOAD="$shim" XCCL_BOOK= "$program"
check "preloaded, turned off" shimmed "$path" LD_PRELOAD="$shim" XCCL_BOOK=/nonexistent XCCL_NCCL=0 "$program"
check "preloaded, opened: not seen" nccls "$path" LD_PRELOAD="$shim" "$program" "$scratch/nccl/libnccl.so.2"
check "drop-in" shimmed LD_LIBRARY_PATH="$scratch/xccl" XCCL_NCCL_LIBRARY="$scratch/nccl/libnccl.so.2" "$program"
check "drop-in, opened" shimmed LD_LIBRARY_PATH="$scratch/xccl" XCCL_NCCL_LIBRARY="$scratch/nccl/libnccl.so.2" "$program" libnccl.so.2
check "audit" shimmed "$path" LD_AUDIT="$scratch/libxccl-nccl-audit.so" "$program"
check "audit, opened" shimmed "$path" LD_AUDIT="$scratch/libxccl-nccl-audit.so" "$program" libnccl.so.2
check "audit, opened by path" shimmed LD_AUDIT="$scratch/libxccl-nccl-audit.so" LD_LIBRARY_PATH="$scratch/nccl" "$program" "$scratch/nccl/libnccl.so.2"

# Without NCCL a call says so.
LD_LIBRARY_PATH="$scratch/xccl" "$program" >"$scratch/got" 2>"$scratch/errors" || true
grep -x 'allreduce: 2' "$scratch/got" >/dev/null
grep "^xccl: NCCL's pncclAllReduce was not found; expected libnccl.so.2 in the program; hint: XCCL_NCCL_LIBRARY=" "$scratch/errors" >/dev/null
LD_LIBRARY_PATH="$scratch/xccl" XCCL_NCCL_LIBRARY="$scratch/xccl/libnccl.so.2" "$program" >/dev/null 2>"$scratch/errors" || true
grep "libnccl.so.2: it is not NCCL's library" "$scratch/errors" >/dev/null
! grep 'older than the program' "$scratch/errors" >/dev/null || fail "a library that is not there is called old"

[ -n "${XCCL_REAL_NCCL:-}" ] || exit 0
missing=$(LC_ALL=C comm -23 <(exports "$XCCL_REAL_NCCL" | grep -E '^p?nccl') <(exports "$dropin"))
[ -z "$missing" ] || fail "the drop-in lacks names of $XCCL_REAL_NCCL: $missing"
real() { env LD_LIBRARY_PATH="$(dirname "$XCCL_REAL_NCCL")" "$program" 2>/dev/null; }
check "real NCCL, preloaded" real LD_LIBRARY_PATH="$(dirname "$XCCL_REAL_NCCL")" LD_PRELOAD="$shim" "$program"
check "real NCCL, audit" real LD_LIBRARY_PATH="$(dirname "$XCCL_REAL_NCCL")" LD_AUDIT="$scratch/libxccl-nccl-audit.so" "$program"
check "real NCCL, drop-in" real LD_LIBRARY_PATH="$scratch/xccl" XCCL_NCCL_LIBRARY="$XCCL_REAL_NCCL" "$program"
