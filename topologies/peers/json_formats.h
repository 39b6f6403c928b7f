// Reads the topology files that other tools write as JSON.
//
// TACCL (a profile: https://github.com/microsoft/taccl, INPUT_GUIDE.md): gpus_per_node, nics_per_node, alpha
// in us and betas in us/MB, or both times a factor. TE-CCL (https://github.com/microsoft/TE-CCL): the name
// of a machine whose matrices are in its program, under TopologyParams. SCCL and MSCCL: msccl_type
// "topology", with links[dst][src] in chunks a step. networkx and d3: node-link form, with `nodes` and
// `links` or `edges`.
#pragma once

#include <string_view>
#include <vector>

#include "base/json/json_value.h"
#include "base/status.h"
#include "topologies/load_options.h"
#include "topologies/topology.h"

namespace xccl {

// True if the text begins as JSON and has the key with a value behind it, at any depth.
bool HasJsonKey(std::string_view text, std::string_view key);
// Numbers of an array, whole or not; at most `most`.
StatusOr<std::vector<double>> NumbersOf(const JsonValue& array, size_t most);
// A square matrix of numbers with so many rows.
StatusOr<std::vector<std::vector<double>>> MatrixOf(const JsonValue& array, size_t rows);

// NVLinks of an NDv2, and of a DGX-1 in the order of TE-CCL and SCCL: 1 is a link of two NVLinks, 2 of one.
inline constexpr int kNdv2Gpus = 8;
inline constexpr int kNdv2[kNdv2Gpus][kNdv2Gpus] = {
    {0, 1, 2, 2, 1, 0, 0, 0}, {1, 0, 2, 1, 0, 2, 0, 0}, {2, 2, 0, 1, 0, 0, 1, 0}, {2, 1, 1, 0, 0, 0, 0, 2},
    {1, 0, 0, 0, 0, 1, 2, 2}, {0, 2, 0, 0, 1, 0, 2, 1}, {0, 0, 1, 0, 2, 2, 0, 1}, {0, 0, 0, 2, 2, 1, 1, 0}};

bool IsTaccl(std::string_view text);
StatusOr<Topology> ReadTaccl(std::string_view text, std::string_view file, const LoadOptions& options);

bool IsTeccl(std::string_view text);
StatusOr<Topology> ReadTeccl(std::string_view text, std::string_view file, const LoadOptions& options);

bool IsSccl(std::string_view text);
StatusOr<Topology> ReadSccl(std::string_view text, std::string_view file, const LoadOptions& options);

bool IsNodeLink(std::string_view text);
StatusOr<Topology> ReadNodeLink(std::string_view text, std::string_view file, const LoadOptions& options);

}  // namespace xccl
