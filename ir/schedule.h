// The logical, size-free answer of a synthesizer: which chunks move over which links in which step. Columns,
// one entry a transfer, no per-transfer allocation; paths are interned. Design and JSON: docs/ir.md.
//
// A transfer moves the chunks first..first+count-1 from rank src to rank dst along a path of links, as a copy
// or as a reduction into what dst holds. It reads its source as it was before its step. Transfers of the same
// (src, dst, path, step) form one message. A path whose links form a tree is a multicast (one GPU tail, many
// GPU heads) or an in-switch reduction (many GPU tails, one GPU head).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"

namespace xccl {

// Interned link lists. Equal lists have equal ids; ids are dense in order of first use.
class PathTable {
 public:
  PathId Intern(std::span<const LinkId> links);
  std::span<const LinkId> operator[](PathId p) const {
    return std::span(links_).subspan(first_[p.index()], first_[p.index() + 1] - first_[p.index()]);
  }
  int32_t size() const { return static_cast<int32_t>(first_.size()) - 1; }
  bool operator==(const PathTable& other) const { return first_ == other.first_ && links_ == other.links_; }

 private:
  size_t SlotOf(std::span<const LinkId> links) const;
  void Grow();

  std::vector<LinkId> links_;
  std::vector<int32_t> first_ = {0};
  std::vector<int32_t> slots_;  // open addressing, at most half full: path, or -1
};

enum class TransferOp : uint8_t { kCopy, kReduce };

// One transfer as a value, for writing and for reading one at a time.
struct Transfer {
  ChunkId first;
  int32_t count = 1;
  Rank src;  // the tree's root, or the first GPU tail of an in-switch reduction
  Rank dst;  // the first GPU head of a multicast
  PathId path;
  TransferOp op = TransferOp::kCopy;
  int32_t step = 0;  // from 0
  bool operator==(const Transfer&) const = default;
};

// Invariant (rule S1): steps do not decrease along the columns. Add keeps no order; Normalize sorts.
struct Schedule {
  int32_t num_chunks = 0;  // of the collective
  PathTable paths;
  std::vector<ChunkId> first;
  std::vector<int32_t> count;
  std::vector<Rank> src;
  std::vector<Rank> dst;
  std::vector<PathId> path;
  std::vector<TransferOp> op;
  std::vector<int32_t> step;
  // Generators of a group of translations of the machine (topologies/symmetry.h); empty in a plain schedule.
  // With them the schedule is compressed: it means all translates of its columns (ir/translated.h, rule S7).
  std::vector<Automorphism> symmetry;

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  Transfer at(int64_t t) const {
    return Transfer{first[t], count[t], src[t], dst[t], path[t], op[t], step[t]};
  }
  void Reserve(int64_t transfers);
  void Add(const Transfer& transfer);
  void Add(ChunkId first, int32_t count, Rank src, Rank dst, std::span<const LinkId> path, TransferOp op,
           int32_t step);
  int32_t num_steps() const;  // last step + 1, 0 when empty
  bool operator==(const Schedule&) const = default;
};

// Stable-sorts transfers by step, joins neighbours of one message whose chunk ranges continue each other, and
// renumbers steps densely from 0 and paths in order of first use. Linear in the transfers.
void Normalize(Schedule& schedule);

// The message of every transfer: transfers of equal (src, dst, path, step) share one id. Ids are dense,
// ordered by (step, first appearance). Requires: a normalized schedule. Linear.
struct MessageTable {
  std::vector<int32_t> of_transfer;
  int32_t num_messages = 0;
};
MessageTable GroupMessages(const Schedule& schedule);

// Is the path a plain chain of links (not a tree)?
bool IsChain(const Topology& topology, std::span<const LinkId> path);
// GPU tails and heads of a path, in link order, each once. A chain has one of each.
void PathEnds(const Topology& topology, std::span<const LinkId> path, std::vector<Rank>& sources,
              std::vector<Rank>& destinations);

}  // namespace xccl
