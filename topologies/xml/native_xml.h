// The project's own topology format (docs/topologies.md). Reading expands families and wildcards and
// reports errors as file:line:column. Writing gives the expanded form, which reads back to the same value.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "topologies/families/networks.h"
#include "topologies/topology.h"

namespace xccl {

// `file` is the name shown in errors. A machine above `most` is an error, found before its copies are built.
StatusOr<Topology> ReadNativeXml(std::string_view text, std::string_view file,
                                 const TopologySize& most = {kMaxNodes, kMaxLinks});
std::string WriteNativeXml(const Topology& topology);

}  // namespace xccl
