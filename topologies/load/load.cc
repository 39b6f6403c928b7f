#include "topologies/load/load.h"

#include <fmt/format.h>

#include "base/files.h"
#include "base/strings.h"
#include "topologies/families/families.h"
#include "topologies/families/modify.h"
#include "topologies/families/short_forms.h"
#include "topologies/host_facts.h"
#include "topologies/library/library.h"
#include "topologies/nccl/nccl_xml.h"
#include "topologies/nccl/nvidia_smi.h"
#include "topologies/xml/native_xml.h"
#include "topologies/xml/parse_xml.h"

namespace xccl {
namespace {

Status UnknownTopology(std::string_view text) {
  const size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view family = text.substr(0, colon);
    const std::string nearest = NearestName(family, FamilyNames());
    if (!nearest.empty())
      return InvalidInput(fmt::format("'{}': no short form '{}'; did you mean '{}{}'?", text, family, nearest,
                                      text.substr(colon)));
    return InvalidInput(fmt::format("'{}': no such file, and no short form '{}'; short forms are {}", text,
                                    family, fmt::join(FamilyNames(), ", ")));
  }
  const std::vector<std::string> library = LibraryNames();
  const std::vector<std::string_view> names(library.begin(), library.end());
  const std::string hint = DidYouMean(text, names);
  return InvalidInput(
      fmt::format("'{}': no such file, library machine or short form{}", text,
                  hint.empty() ? fmt::format("; library machines are {}", fmt::join(names, ", ")) : hint));
}

StatusOr<Topology> LoadUnmodified(std::string_view topology, const LoadOptions& options, HostFacts& facts) {
  if (IsShortForm(topology)) return ReadShortForm(topology);
  for (const LibraryFile& file : LibraryFiles())
    if (file.name == topology) return ReadNativeXml(file.text, fmt::format("{}.xml", file.name));
  const std::string path(topology);
  const bool is_path = path.find('/') != std::string::npos || path.ends_with(".xml");
  if (!is_path && !PathExists(path)) return UnknownTopology(topology);
  XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path));
  if (IsNcclXml(text)) return ReadNcclXml(text, path, options, &facts);
  if (RootName(text) != "topology" && IsNvidiaSmiMatrix(text))
    return ReadNvidiaSmiMatrix(text, path, options);
  return ReadNativeXml(text, path);
}

}  // namespace

StatusOr<Topology> LoadTopology(std::string_view topology, const LoadOptions& options) {
  HostFacts facts;
  XCCL_ASSIGN_OR_RETURN(Topology loaded, LoadUnmodified(topology, options, facts));
  return Modify(std::move(loaded), options, facts);
}

std::vector<std::string> LibraryNames() {
  std::vector<std::string> names;
  for (const LibraryFile& file : LibraryFiles()) names.emplace_back(file.name);
  return names;
}

}  // namespace xccl
