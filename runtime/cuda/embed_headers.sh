#!/usr/bin/env bash
# embed_headers.sh FILE...: C++ source that defines xccl::cuda::kDeviceHeaders as the names and texts of the files, in
# pieces that any compiler takes as string literals.
set -euo pipefail
export LC_ALL=C
printf '#include "runtime/cuda/device_headers.h"\n\nnamespace xccl::cuda {\nnamespace {\n\nconst EmbeddedHeader kAll[] = {\n'
for file in $(printf '%s\n' "$@" | sort); do
  printf '{"device/%s",\n' "$(basename "$file")"
  split -b 12000 --filter='printf "R\"~embedded~("; cat; printf ")~embedded~\"\n"' "$file"
  printf '},\n'
done
printf '};\n\n}  // namespace\n\nconst std::span<const EmbeddedHeader> kDeviceHeaders = kAll;\n\n}  // namespace xccl::cuda\n'
