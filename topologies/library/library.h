// The machines that ship with the project: topologies/library/*.xml, built into the binary.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {

struct LibraryFile {
  std::string_view name;  // "dgx-a100"
  std::string_view text;  // native XML
};
// Sorted by name.
std::vector<LibraryFile> LibraryFiles();

namespace internal {
// Generated, in the order of the build.
std::span<const LibraryFile> EmbeddedLibrary();
}  // namespace internal

}  // namespace xccl
