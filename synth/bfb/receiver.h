// What one rank receives, and over which hops: the shards of every source that lie one hop nearer to it at a
// neighbour, shared out over its ports. In: distances of the sources to the rank and to its neighbours; out:
// pieces of shards. The receivers of a breadth-first broadcast do not depend on each other.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "synth/bfb/balance.h"
#include "synth/bfb/network.h"
#include "synth/common/moves.h"

namespace xccl {

// Who has what: source i has `block[i]`, whose chunks have `weight[i]` units each.
struct BfbSources {
  std::vector<Rank> rank;
  std::vector<ChunkRange> block;
  std::vector<int64_t> weight;  // >= 1
};

struct ReceiverView {
  std::span<const InHop> hops;
  std::span<const double> speeds;                 // by port
  std::span<const int32_t> distance;              // by source: to the receiver; 0: its own, -1: unreachable
  std::span<const int32_t> level;                 // by source: the step in which it arrives, from 1
  std::span<const std::span<const int32_t>> via;  // by hop, by source: distance to where the hop comes from
  std::span<const int32_t> order;                 // all sources in the order in which they are dealt out
  std::span<const int32_t> sender_class;  // by hop: those of one class share a link out of their sender
};

struct BfbPiece {
  int32_t source = 0;
  ChunkRange chunks;
  int32_t hop = 0;  // index into ReceiverView::hops
  int32_t level = 1;
};

// Time in units ÷ bytes per second: of each level's fullest port, added up; of the fullest port in all.
struct ReceiverLoad {
  double level_by_level = 0;
  double in_all = 0;
};

// Keeps its memory from receiver to receiver.
class Receiver {
 public:
  // level_by_level: every level is as short as it can be, for messages that are waited for; else all levels
  // together.
  Receiver(const BfbSources& sources, bool level_by_level) : sources_(sources), by_level_(level_by_level) {}

  // Adds pieces, by level. `sent` counts units by sender class, over all receivers that share it, and grows
  // by what is chosen. Cost: sources × hops where anything is more than one hop away, and what Balance costs.
  ReceiverLoad Plan(const ReceiverView& view, std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces);

 private:
  void FindPorts(const ReceiverView& view);
  std::vector<int32_t> PortsOf(const ReceiverView& view, int32_t source) const;
  int32_t TypeOf(const ReceiverView& view, int32_t source);
  void PlanLevel(const ReceiverView& view, std::span<const int32_t> items);
  void Deal(const ReceiverView& view, std::span<const int32_t> items, std::span<const int64_t> flow);
  void Add(const ReceiverView& view, int32_t source, ChunkRange chunks, int32_t port);
  int32_t ChooseHop(const ReceiverView& view, int32_t source, int32_t port) const;

  const BfbSources& sources_;
  bool by_level_;
  std::vector<int64_t>* sent_ = nullptr;
  std::vector<BfbPiece>* pieces_ = nullptr;
  double level_by_level_ = 0;
  std::vector<double> total_, level_load_;  // by port
  double all_units_ = 0;
  std::vector<std::vector<int32_t>> hops_of_port_;  // indices into view.hops
  std::vector<uint64_t> mask_;                      // by source: ports that could bring it, up to 64 ports
  std::unordered_map<uint64_t, int32_t> types_;     // of a level, by mask
  std::vector<int32_t> type_of_;                    // by item of the level
  BalanceProblem problem_;
};

}  // namespace xccl
