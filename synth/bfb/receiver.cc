// Plan goes through the levels, nearest sources first. In each level:
// 1. TypeOf sorts the sources into types. The blocks of one type may arrive over the same ports.
// 2. Balance says how many units of each type come over each port.
// 3. Deal lays the blocks of a type end to end and cuts this row into one stretch for each port.
// 4. ChooseHop chooses a sender if several hops share a port: the sender that has sent the fewest units.
// Sets of ports are bit masks of 64 bits. If a rank has more than 64 ports, each source is a type of its own
// and may use at most kFewPorts ports.
#include "synth/bfb/receiver.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <unordered_map>

#include "base/graph/grouped.h"
#include "base/status.h"
#include "synth/bfb/balance.h"

namespace xccl {
namespace {

// The most ports that one block may use at a rank with more than 64 ports.
constexpr size_t kFewPorts = 16;

class Receiver {
 public:
  Receiver(std::span<const BfbSource> sources, const ReceiverView& view, bool by_level,
           std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces)
      : sources_(sources),
        view_(view),
        by_level_(by_level),
        sent_(sent),
        pieces_(pieces),
        total_(view.speeds.size(), 0),
        hops_of_port_(GroupItems<int32_t>(view.speeds.size(), [&](auto add) {
          for (size_t h = 0; h < view.hops.size(); ++h) add(view.hops[h].port, static_cast<int32_t>(h));
        })) {
    if (view.speeds.size() <= std::numeric_limits<uint64_t>::digits) FindPorts();
  }

  double Plan() {
    int32_t levels = 0;
    for (const int32_t s : view_.order) {
      if (Distance(s) <= 0) continue;
      levels = std::max(levels, Distance(s));
      all_units_ += static_cast<double>(Units(s, Source(s).block.count));
    }
    const auto by_level = GroupItems<int32_t>(static_cast<size_t>(levels) + 1, [&](auto add) {
      for (const int32_t s : view_.order)
        if (Distance(s) > 0) add(Distance(s), s);
    });
    double added = 0, in_all = 0;
    for (int32_t level = 1; level <= levels; ++level) added += PlanLevel(by_level[level]);
    for (size_t p = 0; p < total_.size(); ++p) in_all = std::max(in_all, total_[p] / view_.speeds[p]);
    return by_level_ ? added : in_all;
  }

 private:
  int32_t Distance(int32_t source) const { return view_.distance[static_cast<size_t>(source)]; }
  const BfbSource& Source(int32_t source) const { return sources_[static_cast<size_t>(source)]; }
  int64_t Units(int32_t source, int32_t chunks) const { return Source(source).weight * chunks; }
  // Returns whether the hop comes from a rank that is one hop nearer to the source.
  bool Leads(size_t hop, int32_t source) const {
    const int32_t there = view_.via[hop][static_cast<size_t>(source)];
    return there >= 0 && there + 1 == Distance(source);
  }

  // Fills mask_ with the ports over which each source's block may arrive.
  void FindPorts() {
    const size_t n = sources_.size();
    mask_.assign(n, 0);
    for (size_t h = 0; h < view_.hops.size(); ++h) {
      const int32_t port = view_.hops[h].port;
      const int32_t* via = view_.via[h].data();
      const int32_t* here = view_.distance.data();
      for (size_t s = 0; s < n; ++s)
        mask_[s] |= static_cast<uint64_t>((via[s] >= 0) & (via[s] + 1 == here[s])) << port;
    }
  }

  std::vector<int32_t> PortsOf(int32_t source) const {
    std::vector<int32_t> ports;
    if (!mask_.empty()) {
      for (uint64_t mask = mask_[static_cast<size_t>(source)]; mask != 0; mask &= mask - 1)
        ports.push_back(std::countr_zero(mask));
      return ports;
    }
    const size_t hops = view_.hops.size();
    for (size_t i = 0; i < hops && ports.size() < kFewPorts; ++i) {
      const size_t h = (i + static_cast<size_t>(source)) % hops;
      const int32_t port = view_.hops[h].port;
      if (Leads(h, source) && std::ranges::find(ports, port) == ports.end()) ports.push_back(port);
    }
    return ports;
  }

  int32_t TypeOf(int32_t source) {
    const int32_t type = static_cast<int32_t>(problem_.supply.size());
    if (!mask_.empty()) {
      const auto [it, added] = types_.try_emplace(mask_[static_cast<size_t>(source)], type);
      if (!added) return it->second;
    }
    const std::vector<int32_t> ports = PortsOf(source);
    XCCL_CHECK(!ports.empty());
    problem_.AddType(0, ports);
    return type;
  }

  // Plans one level. Returns the time of the level's fullest port.
  double PlanLevel(std::span<const int32_t> items) {
    if (items.empty()) return 0;
    problem_ = {};
    types_.clear();
    type_of_.clear();
    // With by_level_ loads of earlier levels only break ties: scaled, they add up to less than one unit.
    for (const double total : total_)
      problem_.base.push_back(by_level_ ? total / (2 * all_units_ + 1) : total);
    problem_.speed.assign(view_.speeds.begin(), view_.speeds.end());
    for (const int32_t source : items) {
      type_of_.push_back(TypeOf(source));
      problem_.supply[static_cast<size_t>(type_of_.back())] += Units(source, Source(source).block.count);
    }
    level_load_.assign(view_.speeds.size(), 0);
    Deal(items, Balance(problem_));
    double fullest = 0;
    for (size_t p = 0; p < level_load_.size(); ++p) {
      total_[p] += level_load_[p];
      fullest = std::max(fullest, level_load_[p] / view_.speeds[p]);
    }
    return fullest;
  }

  // Cuts the row of each type's blocks into stretches of `flow` units, one for each port. Each chunk comes
  // over the port whose stretch contains the chunk's middle.
  void Deal(std::span<const int32_t> items, std::span<const int64_t> flow) {
    struct Cursor {
      int64_t at = 0, end = 0;  // units of the type dealt so far; units at the end of the stretch
      int32_t entry = 0;
    };
    std::vector<Cursor> cursors;
    for (size_t t = 0; t < problem_.supply.size(); ++t)
      cursors.push_back({0, flow[static_cast<size_t>(problem_.first[t])], problem_.first[t]});
    for (size_t i = 0; i < items.size(); ++i) {
      const size_t type = static_cast<size_t>(type_of_[i]);
      const BfbSource& source = Source(items[i]);
      Cursor& cursor = cursors[type];
      ChunkRange piece{source.block.first, 0};
      for (int32_t c = 0; c < source.block.count; ++c) {
        while (2 * cursor.at + source.weight > 2 * cursor.end &&
               cursor.entry + 1 < problem_.first[type + 1]) {
          Add(items[i], piece, problem_.port[static_cast<size_t>(cursor.entry)]);
          piece = {piece.first + piece.count, 0};
          cursor.end += flow[static_cast<size_t>(++cursor.entry)];
        }
        ++piece.count;
        cursor.at += source.weight;
      }
      Add(items[i], piece, problem_.port[static_cast<size_t>(cursor.entry)]);
    }
  }

  void Add(int32_t source, ChunkRange chunks, int32_t port) {
    if (chunks.count == 0) return;
    const int64_t units = Units(source, chunks.count);
    level_load_[static_cast<size_t>(port)] += static_cast<double>(units);
    const int32_t hop = ChooseHop(source, port);
    Sent(hop) += units;
    pieces_.push_back({source, chunks, hop});
  }

  int64_t& Sent(int32_t hop) {
    return sent_[static_cast<size_t>(view_.sender_class[static_cast<size_t>(hop)])];
  }

  int32_t ChooseHop(int32_t source, int32_t port) {
    const std::span<const int32_t> hops = hops_of_port_[port];
    int32_t best = -1;
    for (size_t i = 0; i < hops.size(); ++i) {
      const int32_t hop = hops[(i + static_cast<size_t>(source)) % hops.size()];
      if (Leads(static_cast<size_t>(hop), source) && (best < 0 || Sent(hop) < Sent(best))) best = hop;
    }
    XCCL_CHECK(best >= 0);
    return best;
  }

  std::span<const BfbSource> sources_;
  const ReceiverView& view_;
  const bool by_level_;
  std::vector<int64_t>& sent_;
  std::vector<BfbPiece>& pieces_;
  std::vector<double> total_, level_load_;  // by port
  double all_units_ = 0;
  Grouped<int32_t> hops_of_port_;  // indices into view.hops
  std::vector<uint64_t> mask_;     // by source: ports that its block may use; empty: too many ports
  std::unordered_map<uint64_t, int32_t> types_;  // by mask: the level's type with these ports
  std::vector<int32_t> type_of_;                 // by source of the level
  BalanceProblem problem_;
};

}  // namespace

double PlanReceiver(std::span<const BfbSource> sources, const ReceiverView& view, bool level_by_level,
                    std::vector<int64_t>& sent, std::vector<BfbPiece>& pieces) {
  return Receiver(sources, view, level_by_level, sent, pieces).Plan();
}

}  // namespace xccl
