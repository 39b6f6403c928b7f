// The logical, size-free result of a synthesizer: which chunks move over which links in which step. Stored
// in columns with one entry per transfer; paths are interned. Design and JSON: docs/ir.md.
//
// A transfer moves the chunks first..first+count-1 from rank src to rank dst along a path of links. It
// copies them, or reduces them into what dst holds. It reads its source as it was before its step.
// Transfers of the same (src, dst, path, step) form one message. A path whose links form a tree is a
// multicast (one GPU tail, many GPU heads) or an in-switch reduction (many GPU tails, one GPU head).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/collective.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"
#include "topologies/whole.h"

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
  std::vector<int32_t> slots_;  // open addressing, at most half full: path id, or -1
};

enum class TransferOp : uint8_t { kCopy, kReduce };

// One transfer as a value, to write and read single entries.
struct Transfer {
  ChunkId first;
  int32_t count = 1;
  Rank src;  // the root of a multicast, or the first GPU tail of an in-switch reduction
  Rank dst;  // the first GPU head of a multicast
  PathId path;
  TransferOp op = TransferOp::kCopy;
  int32_t step = 0;  // from 0
  bool operator==(const Transfer&) const = default;
};

// Links in a row of a path, and the links that are taken in their place.
struct Detour {
  std::vector<LinkId> links, by;
  bool operator==(const Detour&) const = default;
};

// Invariant (rule S1): steps do not decrease along the columns. Add does not sort; Normalize does.
struct Schedule {
  int64_t num_chunks = 0;  // chunks of the collective
  PathTable paths;
  std::vector<ChunkId> first;
  std::vector<int32_t> count;
  std::vector<Rank> src;
  std::vector<Rank> dst;
  std::vector<PathId> path;
  std::vector<TransferOp> op;
  std::vector<int32_t> step;
  // Generators of a group of translations of the machine (topologies/symmetry.h); empty in a plain
  // schedule. With them the schedule is compressed: it stands for all translates of its columns
  // (ir/translated.h, rule S7).
  std::vector<Automorphism> symmetry;
  // The hosts and links that this machine lacks of the whole machine. If there are any, the generators and
  // the paths of a compressed schedule are those of the whole machine. Translates take detours around damaged
  // links (ir/damaged.h, rule S8). Other ranks take over what ranks of lost hosts would move
  // (ir/taken_over.h, rule S9). They use `ways` between ranks that no translate of a path joins.
  MissingLinks missing;
  std::vector<Detour> detours;
  std::vector<std::vector<LinkId>> ways;

  int64_t size() const { return static_cast<int64_t>(first.size()); }
  Transfer at(int64_t t) const {
    return Transfer{first[t], count[t], src[t], dst[t], path[t], op[t], step[t]};
  }
  void Reserve(int64_t transfers);
  void Add(const Transfer& transfer);
  void Add(ChunkId first, int32_t count, Rank src, Rank dst, std::span<const LinkId> path, TransferOp op,
           int32_t step);
  // One more than the last chunk that is moved; 0 if none is. A compressed schedule may move the first few
  // chunks of very many.
  int64_t moved_chunks() const;
  int32_t num_steps() const;  // last step + 1, 0 when empty
  int64_t num_moves() const;  // chunks of all transfers added up; all branches of a tree count as one
  bool operator==(const Schedule&) const = default;
};

// A plain schedule of more transfers than kMostTransfers takes minutes to plan, prove and lower. Compressed
// schedules are not written out beyond it. Every stage handles kFewTransfers in a fraction of a second.
inline constexpr int64_t kMostTransfers = int64_t{1} << 22;
inline constexpr int64_t kFewTransfers = int64_t{1} << 17;

// Returns the most transfers for which a compressed schedule of the machine is worth writing out:
// kFewTransfers on large machines, otherwise kMostTransfers.
int64_t MostTransfersOn(const Topology& topology);

// Stable-sorts transfers by step and joins adjacent ones of one message whose chunk ranges are consecutive.
// Renumbers steps densely from 0, and paths in order of first use. Linear in the transfers.
void Normalize(Schedule& schedule);

// True if the path is a chain of links (not a tree).
bool IsChain(const Topology& topology, std::span<const LinkId> path);
// The GPU tails and heads of a path, in link order, each once. A chain has one of each.
void PathEnds(const Topology& topology, std::span<const LinkId> path, std::vector<Rank>& sources,
              std::vector<Rank>& destinations);

}  // namespace xccl
