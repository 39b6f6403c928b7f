#!/usr/bin/env bash
# embed_headers.sh FILE...: C++ source that defines xccl::cuda::DeviceHeaders as the names and texts of the files, in
# pieces that any compiler takes as string literals.
set -euo pipefail
export LC_ALL=C
printf '#include "runtime/cuda/kernel_source.h"\n\nnamespace xccl::cuda {\n\n'
printf 'const std::vector<SourceFile>& DeviceHeaders() {\n  static const std::vector<SourceFile> all = {\n'
for file in $(printf '%s\n' "$@" | sort); do
  printf '{"device/%s",\n' "$(basename "$file")"
  split -b 12000 --filter='printf "R\"~embedded~("; cat; printf ")~embedded~\"\n"' "$file"
  printf '},\n'
done
printf '};\n  return all;\n}\n\n}  // namespace xccl::cuda\n'
