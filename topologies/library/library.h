// The machines that ship with the project: topologies/library/*.xml, built into the binary.
#pragma once

#include <span>
#include <string_view>

namespace xccl {

struct LibraryFile {
  std::string_view name;  // "dgx-a100"
  std::string_view text;  // native XML
};
// Sorted by name.
std::span<const LibraryFile> LibraryFiles();

}  // namespace xccl
