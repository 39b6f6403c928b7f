#include "topologies/load.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "base/strings.h"
#include "topologies/families.h"
#include "topologies/native_xml.h"
#include "topologies/nccl_xml.h"
#include "topologies/short_forms.h"

namespace xccl {

StatusOr<Topology> LoadTopology(std::string_view topology, const LoadOptions& options) {
  if (IsShortForm(topology)) return ReadShortForm(topology);
  const std::string path(topology);
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  if (IsNcclXml(text)) return ReadNcclXml(text, path, options);
  return ReadNativeXml(text, path);
}

std::vector<std::string> LibraryNames() { return {}; }

}  // namespace xccl
