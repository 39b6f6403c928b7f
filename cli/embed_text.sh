#!/usr/bin/env bash
# embed_text.sh FILE HEADER NAME: C++ source that defines xccl::NAME as the text of FILE, in pieces that any compiler
# takes as string literals.
set -euo pipefail
[ -r "$1" ] || { echo "embed_text.sh: $1: cannot read; hint: tools/quickstart installs what is missing" >&2; exit 1; }
printf '#include "%s"\n\nnamespace xccl {\n\nconst std::string_view %s =\n' "$2" "$3"
split -b 12000 --filter='printf "R\"~embedded~("; cat; printf ")~embedded~\"\n"' "$1"
printf ';\n\n}  // namespace xccl\n'
