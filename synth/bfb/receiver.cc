// Level by level: sources that may come over the same ports form a type; Balance says how much of each type
// comes over which port; the type's shards, laid end to end, are cut there. Behind a port that several
// senders share, the one that has sent least sends.
#include "synth/bfb/receiver.h"

#include <algorithm>
#include <bit>

#include "base/graph/grouped.h"
#include "base/status.h"

namespace xccl {
namespace {

constexpr size_t kMaskPorts = 64;  // with more, a shard from afar chooses from a few of them
constexpr size_t kFewPorts = 16;

bool Leads(const ReceiverView& view, size_t hop, int32_t source) {
  const int32_t there = view.via[hop][static_cast<size_t>(source)];
  return there >= 0 && there + view.hops[hop].cost == view.distance[static_cast<size_t>(source)];
}

}  // namespace

ReceiverLoad Receiver::Plan(const ReceiverView& view, std::vector<int64_t>& sent,
                            std::vector<BfbPiece>& pieces) {
  sent_ = &sent;
  pieces_ = &pieces;
  level_by_level_ = 0;
  total_.assign(view.speeds.size(), 0);
  hops_of_port_.resize(std::max(hops_of_port_.size(), view.speeds.size()));
  for (std::vector<int32_t>& hops : hops_of_port_) hops.clear();
  for (size_t h = 0; h < view.hops.size(); ++h)
    hops_of_port_[static_cast<size_t>(view.hops[h].port)].push_back(static_cast<int32_t>(h));

  // Items by level, in the given order within one.
  int32_t levels = 0;
  all_units_ = 0;
  for (const int32_t s : view.order) {
    if (view.distance[static_cast<size_t>(s)] <= 0) continue;
    levels = std::max(levels, view.level[static_cast<size_t>(s)]);
    all_units_ += static_cast<double>(sources_.weight[static_cast<size_t>(s)]) *
                  sources_.block[static_cast<size_t>(s)].count;
  }
  const auto by_level = GroupItems<int32_t>(static_cast<size_t>(levels) + 1, [&](auto add) {
    for (const int32_t s : view.order)
      if (view.distance[static_cast<size_t>(s)] > 0) add(view.level[static_cast<size_t>(s)], s);
  });

  if (levels > 1) FindPorts(view);
  for (int32_t level = 1; level <= levels; ++level) PlanLevel(view, by_level[level]);
  double in_all = 0;
  for (size_t p = 0; p < total_.size(); ++p) in_all = std::max(in_all, total_[p] / view.speeds[p]);
  return {level_by_level_, in_all};
}

// Which ports lead to a neighbour that is nearer to the source.
void Receiver::FindPorts(const ReceiverView& view) {
  if (view.speeds.size() > kMaskPorts) return;
  const size_t n = sources_.rank.size();
  mask_.assign(n, 0);
  for (size_t h = 0; h < view.hops.size(); ++h) {
    const int32_t cost = view.hops[h].cost;
    const int32_t port = view.hops[h].port;
    const int32_t* via = view.via[h].data();
    const int32_t* here = view.distance.data();
    for (size_t s = 0; s < n; ++s)
      mask_[s] |= static_cast<uint64_t>((via[s] >= 0) & (via[s] + cost == here[s])) << port;
  }
}

std::vector<int32_t> Receiver::PortsOf(const ReceiverView& view, int32_t source) const {
  std::vector<int32_t> ports;
  const auto add = [&](int32_t port) {
    if (std::find(ports.begin(), ports.end(), port) == ports.end()) ports.push_back(port);
  };
  if (view.level[static_cast<size_t>(source)] == 1) {
    const Rank from = sources_.rank[static_cast<size_t>(source)];
    auto it = std::lower_bound(view.hops.begin(), view.hops.end(), from,
                               [](const InHop& hop, Rank rank) { return hop.from < rank; });
    for (; it != view.hops.end() && it->from == from; ++it)
      if (it->cost == view.distance[static_cast<size_t>(source)]) add(it->port);
  } else if (view.speeds.size() <= kMaskPorts) {
    for (uint64_t mask = mask_[static_cast<size_t>(source)]; mask != 0; mask &= mask - 1)
      ports.push_back(std::countr_zero(mask));
  } else {
    const size_t hops = view.hops.size();
    for (size_t i = 0; i < hops && ports.size() < kFewPorts; ++i)
      if (const size_t h = (i + static_cast<size_t>(source)) % hops; Leads(view, h, source))
        add(view.hops[h].port);
  }
  return ports;
}

int32_t Receiver::TypeOf(const ReceiverView& view, int32_t source) {
  int32_t type = static_cast<int32_t>(problem_.supply.size());
  const bool by_mask = view.level[static_cast<size_t>(source)] > 1 && view.speeds.size() <= kMaskPorts;
  if (by_mask) {
    const auto [it, added] = types_.try_emplace(mask_[static_cast<size_t>(source)], type);
    type = it->second;
    if (!added) return type;
  }
  problem_.AddType(0, PortsOf(view, source));
  XCCL_CHECK(problem_.first[static_cast<size_t>(type)] < problem_.first[static_cast<size_t>(type) + 1]);
  return type;
}

void Receiver::PlanLevel(const ReceiverView& view, std::span<const int32_t> items) {
  if (items.empty()) return;
  problem_.Clear();
  types_.clear();
  type_of_.resize(items.size());
  // What came before breaks ties: all of it weighs less than one unit.
  for (size_t p = 0; p < view.speeds.size(); ++p)
    problem_.base.push_back(by_level_ ? total_[p] / (2 * all_units_ + 1) : total_[p]);
  problem_.speed.assign(view.speeds.begin(), view.speeds.end());
  for (size_t i = 0; i < items.size(); ++i) {
    type_of_[i] = TypeOf(view, items[i]);
    problem_.supply[static_cast<size_t>(type_of_[i])] +=
        sources_.weight[static_cast<size_t>(items[i])] * sources_.block[static_cast<size_t>(items[i])].count;
  }
  level_load_.assign(view.speeds.size(), 0);
  Deal(view, items, Balance(problem_));
  double fullest = 0;
  for (size_t p = 0; p < level_load_.size(); ++p) {
    total_[p] += level_load_[p];
    fullest = std::max(fullest, level_load_[p] / view.speeds[p]);
  }
  level_by_level_ += fullest;
}

// A chunk goes to the port in whose stretch its middle lies.
void Receiver::Deal(const ReceiverView& view, std::span<const int32_t> items, std::span<const int64_t> flow) {
  struct Cursor {
    int64_t at = 0, end = 0;  // in units, of the type's line; end of the present stretch
    int32_t entry = 0;
  };
  std::vector<Cursor> cursors(problem_.supply.size());
  for (size_t t = 0; t < cursors.size(); ++t) {
    cursors[t].entry = problem_.first[t];
    cursors[t].end = flow[static_cast<size_t>(problem_.first[t])];
  }
  for (size_t i = 0; i < items.size(); ++i) {
    const size_t type = static_cast<size_t>(type_of_[i]), source = static_cast<size_t>(items[i]);
    Cursor& cursor = cursors[type];
    const int64_t unit = sources_.weight[source];
    ChunkRange piece{sources_.block[source].first, 0};
    for (int32_t c = 0; c < sources_.block[source].count; ++c) {
      while (2 * cursor.at + unit > 2 * cursor.end && cursor.entry + 1 < problem_.first[type + 1]) {
        Add(view, items[i], piece, problem_.port[static_cast<size_t>(cursor.entry)]);
        piece = {piece.first + piece.count, 0};
        cursor.end += flow[static_cast<size_t>(++cursor.entry)];
      }
      ++piece.count;
      cursor.at += unit;
    }
    Add(view, items[i], piece, problem_.port[static_cast<size_t>(cursor.entry)]);
  }
}

void Receiver::Add(const ReceiverView& view, int32_t source, ChunkRange chunks, int32_t port) {
  if (chunks.count == 0) return;
  const int64_t units = sources_.weight[static_cast<size_t>(source)] * chunks.count;
  level_load_[static_cast<size_t>(port)] += static_cast<double>(units);
  const int32_t hop = ChooseHop(view, source, port);
  (*sent_)[static_cast<size_t>(view.sender_class[static_cast<size_t>(hop)])] += units;
  pieces_->push_back({source, chunks, hop, view.level[static_cast<size_t>(source)]});
}

int32_t Receiver::ChooseHop(const ReceiverView& view, int32_t source, int32_t port) const {
  const std::vector<int32_t>& hops = hops_of_port_[static_cast<size_t>(port)];
  if (hops.size() == 1) return hops[0];
  if (view.level[static_cast<size_t>(source)] == 1) {
    const Rank from = sources_.rank[static_cast<size_t>(source)];
    auto it = std::lower_bound(hops.begin(), hops.end(), from, [&](int32_t hop, Rank rank) {
      return view.hops[static_cast<size_t>(hop)].from < rank;
    });
    return *it;
  }
  int32_t best = -1;
  for (size_t i = 0; i < hops.size(); ++i) {
    const int32_t hop = hops[(i + static_cast<size_t>(source)) % hops.size()];
    if (!Leads(view, static_cast<size_t>(hop), source)) continue;
    const auto load = [&](int32_t h) { return (*sent_)[static_cast<size_t>(view.sender_class[h])]; };
    if (best < 0 || load(hop) < load(best)) best = hop;
  }
  XCCL_CHECK(best >= 0);
  return best;
}

}  // namespace xccl
