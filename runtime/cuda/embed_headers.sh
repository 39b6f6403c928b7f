#!/usr/bin/env bash
# embed_headers.sh HEADER FUNCTION FOLDER FILE...: C++ source that includes HEADER and defines xccl::cuda::FUNCTION as
# the texts of the files and their names, FOLDER/FILE, in pieces that any compiler takes as string literals.
set -euo pipefail
export LC_ALL=C
header=$1 function=$2 folder=$3
shift 3
printf '#include "%s"\n\nnamespace xccl::cuda {\n\n' "$header"
printf 'const std::vector<SourceFile>& %s() {\n  static const std::vector<SourceFile> all = {\n' "$function"
for file in $(printf '%s\n' "$@" | sort); do
  printf '{"%s/%s",\n' "$folder" "$(basename "$file")"
  split -b 12000 --filter='printf "R\"~embedded~("; cat; printf ")~embedded~\"\n"' "$file"
  printf '},\n'
done
printf '};\n  return all;\n}\n\n}  // namespace xccl::cuda\n'
