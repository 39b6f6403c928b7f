#include "topologies/library/library.h"

#include <algorithm>

namespace xccl {

std::vector<LibraryFile> LibraryFiles() {
  const std::span<const LibraryFile> embedded = internal::EmbeddedLibrary();
  std::vector<LibraryFile> files(embedded.begin(), embedded.end());
  std::sort(files.begin(), files.end(),
            [](const LibraryFile& a, const LibraryFile& b) { return a.name < b.name; });
  return files;
}

}  // namespace xccl
