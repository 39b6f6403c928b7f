// References to nodes in XML, flags and messages: `0`, `nvswitch`, `gpu:3`, `h0/gpu:3`, `gpu:*`, `leaf*`,
// `gpu:0..3`, and lists of references with commas. docs/topologies.md has the rules of look-up.
#pragma once

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "topologies/topology.h"

namespace xccl {

// Where a reference stands: in a host, in one copy of a cluster (nodes first..last-1), or at the top.
struct ReferenceScope {
  std::optional<HostId> host;
  int32_t first = 0;
  std::optional<int32_t> last;  // absent: up to the last node
  std::string prefix;           // goes before the names inside the copy: "pod1."
};

// An index of the nodes of a description that may still grow. Keeps a reference to the description.
class NodeIndex {
 public:
  explicit NodeIndex(const TopologySpec& spec) : spec_(spec) {}
  // Adds the nodes and hosts that are new since the last call. Returns the first node whose host, kind and
  // id are already taken.
  std::optional<NodeId> Update();

  // The nodes that a reference names, at least one, in the order of the list and of the document. Errors,
  // without a place: "no node 9; nodes are 0..8". Cost: one look-up per item, or a pass over the scope's
  // nodes of the kind for a wildcard.
  StatusOr<std::vector<NodeId>> Resolve(std::string_view reference, const ReferenceScope& scope = {}) const;
  std::optional<HostId> FindHost(std::string_view name) const;
  // The shortest reference that means only this node when used at the top.
  std::string Reference(NodeId node) const;
  int64_t GpusOf(std::optional<HostId> host) const;

 private:
  struct Item;
  static std::string Key(std::optional<HostId> host, std::string_view id);

  const TopologySpec& spec_;
  size_t hosts_taken_ = 0, nodes_taken_ = 0;
  std::unordered_map<std::string, int32_t> host_named_;
  using ByKind = std::array<std::vector<NodeId>, std::size(kNodeKinds)>;
  // All lists of nodes ascend.
  std::unordered_map<std::string, std::vector<NodeId>> in_host_;  // by Key(host, id); one of a kind
  std::unordered_map<std::string, std::vector<NodeId>> of_id_;
  ByKind of_kind_;
  std::vector<ByKind> of_host_;
  int64_t gpus_without_host_ = 0;
};

}  // namespace xccl
