// Whether a list of links is a path: rule S2 of schedules, and P1 of connections and groups of programs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "topologies/topology.h"

namespace xccl {

struct PathShape {
  bool ok = false;
  std::string error;                        // where !ok: "passes gpu 2; ...", to follow "path" or "its path"
  std::vector<Rank> sources, destinations;  // in order of the links; a chain has one of each
};

// A path is a chain from one GPU to another, or a tree with one GPU on one side and several on the other. It
// passes no GPU and visits no node twice. A tree branches only at switches that multicast and joins only at
// switches that reduce, and every branch has a GPU at its end. The links of a multicast stand parents first,
// those of an in-switch reduction children first.
class PathChecker {
 public:
  explicit PathChecker(const Topology& topology);

  // Linear in the links, times the ends.
  PathShape Check(std::span<const LinkId> links);

  // The chains from each source to each destination, in their order. Requires: Check found `shape`, which is
  // ok.
  std::vector<std::vector<LinkId>> Branches(std::span<const LinkId> links, const PathShape& shape);

 private:
  std::string Ends(std::span<const LinkId> links, PathShape& shape) const;
  template <bool kInTree>
  std::string Tree(std::span<const LinkId> links);
  std::string NoGpuAt(bool start, NodeId n) const;

  // By node; cleared after each path.
  const Topology& topology_;
  std::vector<int32_t> degree_;
  std::vector<bool> reached_;
  std::vector<LinkId> toward_root_;
};

}  // namespace xccl
