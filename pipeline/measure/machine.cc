// 1. Find a ring of up to four ranks, over the GPUs' own links if possible.
// 2. For each protocol, send a small message round the ring once and twice. The message must return to its
//    sender, because a rank that only sends may begin the next operation before other ranks end this one.
// 3. Send many small messages in a row. Steps 2 and 3 give the times of a launch, a hop and a message.
// 4. Measure the rates of the links, of one threadblock, and of a fan-in.
// 5. Measure hand-offs between threadblocks, paths through NICs, and a multicast.
// 6. Simulate all programs on the model. Their times show whether it can be trusted.
//
// A rate comes from the difference of the times for kLargeBytes and for half of kLargeBytes, in pieces of
// equal size. Launch, latency and the first and last pieces cancel out. Let n be the number of pieces, b the
// time of one threadblock for kLargeBytes, l the time of the links, m the time of one message, and h the time
// of a hop and of the latency. Then the pieces take:
// - max(l, b + n m) with several slots, because one piece is received while the next is sent;
// - n (m + h) + b more than that with one slot, because sender and receiver take turns;
// - max(l, b / kDefaultBlocks + the messages) if kDefaultBlocks threadblocks send in parallel.
#include "pipeline/measure/machine.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/spread.h"
#include "base/units.h"
#include "ir/protocol_lines.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/measure/programs.h"
#include "topologies/gpu_links.h"
#include "topologies/paths.h"

namespace xccl {
namespace {

// Size of a large message. Its latency is negligible: a link of 400 GB/s carries the message in 40 us.
constexpr int64_t kLargeBytes = 16 << 20;
// The most ranks of one measurement. The operands of a sum over these ranks have kLargeBytes in total.
constexpr size_t kMostRanks = 4;
constexpr int64_t kAddedBytes = kLargeBytes / kMostRanks;
// Size of a piece of a large message. In LL a piece takes twice its bytes and still fits a slot of 1 MiB.
constexpr int64_t kPieceBytes = 512 << 10;
// A threadblock counts as slower than its link, or a link as slower than its threadblocks, only if the times
// differ by more than this ratio. Two measurements of one program on an idle GPU differ by less.
constexpr double kSameRatio = 1.05;
// A link that reaches this share of its bandwidth counts as reaching all of it.
constexpr double kAllOfBandwidth = 0.995;
// The time of a receiver is the difference of two times. A difference below this share of them is noise.
constexpr double kLeastDifference = 0.1;
// A model is in doubt if the median of its measurements' spreads is above kMostSpread: the difference of two
// such times may be noise alone. It is also in doubt if the median of its errors is above kMostError, which
// is the error that docs/benchmarks.md finds on GPUs.
constexpr double kMostSpread = 0.2, kMostError = 0.5;

int64_t Ps(double us) { return std::llround(std::max(0.0, us) * static_cast<double>(kPsPerUs)); }

// Returns bytes per second; 0, which means no limit, if the time is too short to be a limit.
int64_t RateOf(int64_t bytes, double us) {
  return us < 1e-3 ? 0 : std::llround(static_cast<double>(bytes) / us * 1e6);
}

double UsAt(int64_t bytes, int64_t bytes_per_s) {
  return bytes_per_s == 0 ? 0 : static_cast<double>(bytes) / static_cast<double>(bytes_per_s) * 1e6;
}

int32_t PerMille(double share) {
  return static_cast<int32_t>(std::clamp<int64_t>(std::llround(share * 1000), 1, 1000));
}

double LatencyUs(const Topology& topology, std::span<const LinkId> path) {
  int64_t ps = 0;
  for (const LinkId l : path) ps += topology.link(l).latency_ps;
  return PsToUs(ps);
}

// Returns the number of pieces of a large message.
double Pieces() { return static_cast<double>(kLargeBytes) / static_cast<double>(kPieceBytes); }

// Returns the rate in bytes per second that the slowest link of the path reaches by the model.
double Reached(const Topology& topology, std::span<const LinkId> path, const MachineModel& model) {
  const std::vector<int64_t> reached = ReachedBandwidths(topology, model);
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const LinkId l : path) least = std::min(least, reached[l.index()]);
  return static_cast<double>(least);
}

bool PassesNic(const Topology& topology, std::span<const LinkId> path) {
  return std::ranges::any_of(
      path, [&](LinkId l) { return topology.node(topology.link(l).to).kind == NodeKind::kNic; });
}

// Extends `ring` from rank `at` to a closed ring of `ranks` ranks, all of whose paths satisfy `wanted`. Tries
// low ranks first. Returns false and leaves `ring` unchanged if there is no such ring.
template <typename Wanted>
bool CloseRing(const Topology& topology, size_t ranks, Wanted wanted, std::vector<Lane>& ring, Rank at) {
  const NeighbourTable row = GpuNeighboursOf(topology, at);
  for (const Neighbour& next : row[0]) {
    const bool closes = ring.size() + 1 == ranks;
    const bool is_new = next.rank != at && std::ranges::count(ring, next.rank, &Lane::from) == 0;
    if (closes ? next.rank != ring.front().from : !is_new) continue;
    if (!wanted(next.path)) continue;
    ring.push_back({at, next.rank, {next.path.begin(), next.path.end()}});
    if (closes || CloseRing(topology, ranks, wanted, ring, next.rank)) return true;
    ring.pop_back();
  }
  return false;
}

// Returns the longest ring of 2 to `most` ranks through the first rank that is on any such ring; empty if
// there is no ring. All paths satisfy `wanted`.
template <typename Wanted>
std::vector<Lane> FindRing(const Topology& topology, size_t most, Wanted wanted) {
  std::vector<Lane> ring;
  for (const Rank from : AllRanks(topology.num_ranks()))
    for (size_t ranks = most; ranks >= 2; --ranks)
      if (CloseRing(topology, ranks, wanted, ring, from)) return ring;
  return ring;
}

// Returns up to kMostRanks - 1 lanes to the rank `to`, from the lowest ranks whose path satisfies `wanted`.
template <typename Wanted>
std::vector<Lane> LanesTo(const Topology& topology, Rank to, Wanted wanted) {
  std::vector<Lane> lanes;
  for (const Rank from : AllRanks(topology.num_ranks())) {
    if (lanes.size() == kMostRanks - 1) break;
    const NeighbourTable row = GpuNeighboursOf(topology, from);
    const Neighbour* const found = from == to ? nullptr : row.Find(0, to);
    if (found != nullptr && wanted(found->path))
      lanes.push_back({from, to, {found->path.begin(), found->path.end()}});
  }
  return lanes;
}

// Returns the first switch that multicasts from one GPU to at least two other GPUs, with its links.
std::optional<SwitchTree> FindSwitch(const Topology& topology) {
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    if (!topology.node(NodeId(n)).multicast) continue;
    const auto up = std::ranges::find_if(topology.In(NodeId(n)),
                                         [&](LinkId l) { return topology.IsGpu(topology.link(l).from); });
    if (up == topology.In(NodeId(n)).end()) continue;
    SwitchTree tree{*up, {}, {}};
    for (const LinkId down : topology.Out(NodeId(n))) {
      const NodeId to = topology.link(down).to;
      if (tree.members.size() == kMostRanks - 1 || !topology.IsGpu(to) || to == topology.link(*up).from ||
          std::ranges::count(tree.members, *topology.RankOf(to)) > 0)
        continue;
      tree.down.push_back(down);
      tree.members.push_back(*topology.RankOf(to));
    }
    if (tree.members.size() >= 2) return tree;
  }
  return std::nullopt;
}

// Times of small messages, in microseconds.
struct Messages {
  double hop_us = 0;   // time that a rank takes to pass a message on, without the latency of the links
  double rest_us = 0;  // time of an operation without its hops: the launch and one message
  double next_us = 0;  // time from one message of a row to the next
};

// A program, and its time at a size as it was measured.
struct Taken {
  LoweredProgram lowered;
  int64_t size_bytes = 0;
  Measured measured;
};

class Measuring {
 public:
  Measuring(const Topology& topology, bool flags_travel, const Measure& measure, MachineModel& model)
      : topology_(topology),
        links_(topology),
        flags_travel_(flags_travel),
        measure_(measure),
        ranks_(topology.num_ranks()),
        model_(model) {}

  Status Run() {
    ring_ = FindRing(topology_, kMostRanks, [&](const auto& path) { return links_.Have(path); });
    on_gpu_links_ = !ring_.empty();
    if (ring_.empty())
      ring_ = FindRing(topology_, kMostRanks, [&](const auto& path) { return !PassesNic(topology_, path); });
    if (ring_.empty()) ring_ = FindRing(topology_, kMostRanks, [](const auto&) { return true; });
    if (ring_.empty()) return OkStatus();
    double launch_us = std::numeric_limits<double>::infinity();
    for (const Protocol protocol : {Protocol::kSimple, Protocol::kLl, Protocol::kLl128}) {
      if (protocol == Protocol::kLl128 && flags_travel_ && !on_gpu_links_) {
        CostOf(protocol) = CostOf(Protocol::kSimple);
        continue;
      }
      XCCL_ASSIGN_OR_RETURN(const Messages messages, MeasureMessages(protocol));
      launch_us = std::min(launch_us, std::max(0.0, messages.rest_us - messages.next_us));
      if (protocol == Protocol::kSimple) {
        XCCL_ASSIGN_OR_RETURN(const double at_most_us, BlockUs(protocol, messages, 0));
        XCCL_RETURN_IF_ERROR(MeasureLinks(ring_[0], at_most_us));
      }
      XCCL_RETURN_IF_ERROR(MeasureBlock(protocol, messages));
      XCCL_RETURN_IF_ERROR(MeasureReads(protocol));
    }
    model_.launch_ps = Ps(launch_us);
    XCCL_RETURN_IF_ERROR(MeasureHandOff());
    XCCL_RETURN_IF_ERROR(MeasureNic());
    return MeasureSwitch();
  }

  const std::vector<Taken>& taken() const { return taken_; }

 private:
  // Measures the time of one operation in microseconds.
  StatusOr<double> Us(const LoweredProgram& lowered, int64_t size_bytes) {
    XCCL_ASSIGN_OR_RETURN(const Measured measured, measure_(lowered, size_bytes));
    taken_.push_back({lowered, size_bytes, measured});
    return measured.us;
  }

  ProtocolCost& CostOf(Protocol protocol) { return model_.protocols[static_cast<size_t>(protocol)]; }

  // Returns the time for kLargeBytes in pieces: twice (the time for all bytes - the time for half of them).
  StatusOr<double> LargeUs(LoweredProgram lowered, int32_t slots, int64_t piece_bytes) {
    lowered.program.slots = slots;
    lowered.program.segment_bytes = piece_bytes;
    XCCL_ASSIGN_OR_RETURN(const double half_us, Us(lowered, kLargeBytes / 2));
    XCCL_ASSIGN_OR_RETURN(const double whole_us, Us(lowered, kLargeBytes));
    return std::max(0.0, 2 * (whole_us - half_us));
  }

  // Returns the time that one threadblock takes to move kLargeBytes. `link_us`: the links' time for them.
  StatusOr<double> BlockUs(Protocol protocol, const Messages& messages, double link_us) {
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram one, Flows(ranks_, {ring_.data(), 1}, 1, protocol));
    XCCL_ASSIGN_OR_RETURN(const double flow_us, LargeUs(one, kInFlight, kPieceBytes));
    const double as_sender_us = std::max(0.0, flow_us - Pieces() * messages.next_us);
    if (as_sender_us > kSameRatio * link_us) return as_sender_us;
    // The links may be slower and hide the threadblock's time. Measure the time to receive instead.
    XCCL_ASSIGN_OR_RETURN(const double turns_us, LargeUs(one, 1, kPieceBytes));
    const double arrivals_us = Pieces() * (messages.hop_us + LatencyUs(topology_, ring_[0].path));
    const double as_receiver_us = turns_us - flow_us - arrivals_us;
    return as_receiver_us < kLeastDifference * turns_us ? as_sender_us : std::min(as_receiver_us, flow_us);
  }

  // Returns the time of the links for kLargeBytes, which kDefaultBlocks threadblocks move. Returns nullopt
  // unless the links are slower than the threadblocks by kSameRatio. `block_us`: the time of one threadblock.
  StatusOr<std::optional<double>> LinkUs(const LoweredProgram& flows, double block_us) {
    XCCL_ASSIGN_OR_RETURN(const double us, LargeUs(flows, 2, kLargeBytes / 2 / kDefaultBlocks));
    const double of_blocks_us = block_us / kDefaultBlocks + 2 * PsToUs(CostOf(Protocol::kSimple).message_ps);
    return us > kSameRatio * of_blocks_us ? std::optional(us) : std::nullopt;
  }

  // Measures the rate that the links of a lane reach. Changes nothing unless threadblocks are clearly faster.
  Status MeasureLinks(const Lane& lane, double block_us) {
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram flows,
                          Flows(ranks_, {&lane, 1}, kDefaultBlocks, Protocol::kSimple));
    XCCL_ASSIGN_OR_RETURN(const std::optional<double> us, LinkUs(flows, block_us));
    if (us) SetReached(lane, *us);
    return OkStatus();
  }

  // Sets the model's rate of NVLinks or NICs, whichever limits the lane, by its time for kLargeBytes. Changes
  // nothing if the lane reaches all of its bandwidth, or if other links limit it.
  void SetReached(const Lane& lane, double link_us) {
    const double rate = static_cast<double>(kLargeBytes) / link_us * 1e6;
    const double claimed = Reached(topology_, lane.path, model_);
    if (rate >= kAllOfBandwidth * claimed) return;
    MachineModel slow = model_;  // one kind of link is so slow that it alone limits the lane
    slow.nvlink_bytes_per_s = std::max<int64_t>(1, std::llround(claimed / 1000));
    const double of_nvlinks = Reached(topology_, lane.path, slow);
    if (of_nvlinks < claimed / 2) {
      const double whole = rate / of_nvlinks * static_cast<double>(slow.nvlink_bytes_per_s);
      model_.nvlink_bytes_per_s = std::max<int64_t>(1, std::llround(whole));
      return;
    }
    slow = model_;
    slow.nic_per_mille = 1;
    const double of_nics = Reached(topology_, lane.path, slow);
    if (of_nics < claimed / 2) model_.nic_per_mille = PerMille(rate / of_nics / 1000);
  }

  Status MeasureBlock(Protocol protocol, const Messages& messages) {
    ProtocolCost& cost = CostOf(protocol);
    const double link_us =
        static_cast<double>(cost.WireBytes(kLargeBytes)) / Reached(topology_, ring_[0].path, model_) * 1e6;
    XCCL_ASSIGN_OR_RETURN(const double us, BlockUs(protocol, messages, link_us));
    cost.block_bytes_per_s = RateOf(kLargeBytes, us);
    cost.message_ps = std::max<int64_t>(0, cost.message_ps - cost.BlockPs(kSmallBytes));
    return OkStatus();
  }

  StatusOr<Messages> RoundsUs(std::span<const Lane> ring, Protocol protocol) {
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram one, Rounds(ranks_, ring, 1, protocol));
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram two, Rounds(ranks_, ring, 2, protocol));
    XCCL_ASSIGN_OR_RETURN(const double one_us, Us(one, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const double two_us, Us(two, kSmallBytes));
    const double round_us = std::max(0.0, two_us - one_us);
    const double hops = static_cast<double>(ring.size());
    double links_us = 0;
    for (const Lane& lane : ring) links_us += LatencyUs(topology_, lane.path);
    Messages found;
    found.hop_us = std::max(0.0, round_us - links_us) / hops;
    found.rest_us = std::max(0.0, one_us - round_us);
    return found;
  }

  // Measures the times of small messages. `message_ps` includes the time of the messages' bytes until
  // MeasureBlock subtracts it.
  StatusOr<Messages> MeasureMessages(Protocol protocol) {
    ProtocolCost& cost = CostOf(protocol);
    if (flags_travel_ && protocol != Protocol::kSimple) {
      cost.data_bytes = LineOf(protocol).data_bytes;
      cost.wire_bytes = LineOf(protocol).wire_bytes;
    }
    XCCL_ASSIGN_OR_RETURN(Messages found, RoundsUs(ring_, protocol));
    XCCL_ASSIGN_OR_RETURN(LoweredProgram row, Flows(ranks_, {ring_.data(), 1}, 1, protocol));
    row.program.segment_bytes = kSmallBytes;
    row.program.slots = kInARow;  // no message waits for a free slot
    XCCL_ASSIGN_OR_RETURN(const double one_us, Us(row, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const double row_us, Us(row, kInARow * kSmallBytes));
    found.next_us = std::clamp((row_us - one_us) / (kInARow - 1), 0.0, found.hop_us);
    cost.message_ps = Ps(found.next_us);
    cost.hop_ps = Ps(found.hop_us - found.next_us);
    return found;
  }

  // Measures the rate at which a threadblock reads the operands of a fan-in. Compares one threadblock that
  // adds up the messages of all members with one receiving threadblock for each member.
  Status MeasureReads(Protocol protocol) {
    std::vector<Lane> lanes =
        LanesTo(topology_, ring_[0].from, [&](const auto& path) { return links_.Have(path); });
    if (lanes.size() < 2) {
      if (protocol == Protocol::kLl128 && flags_travel_) return OkStatus();
      lanes = LanesTo(topology_, ring_[0].from, [](const auto&) { return true; });
    }
    if (lanes.size() < 2) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram apart, Flows(ranks_, lanes, 1, protocol));
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram sum, AddUp(ranks_, lanes, protocol));
    XCCL_ASSIGN_OR_RETURN(const double apart_us, Us(apart, kAddedBytes));
    XCCL_ASSIGN_OR_RETURN(const double sum_us, Us(sum, kAddedBytes));
    ProtocolCost& cost = CostOf(protocol);
    const double read_us = sum_us - apart_us + UsAt(kAddedBytes, cost.block_bytes_per_s);
    cost.read_bytes_per_s = RateOf(kAddedBytes * (std::ssize(lanes) + 1), read_us);
    return OkStatus();
  }

  Status MeasureHandOff() {
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram alone, Copies(ranks_, ring_[0], kInARow, false));
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram turns, Copies(ranks_, ring_[0], kInARow, true));
    XCCL_ASSIGN_OR_RETURN(const double alone_us, Us(alone, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const double turns_us, Us(turns, kSmallBytes));
    model_.hand_off_ps = Ps((turns_us - alone_us) / kInARow);
    return OkStatus();
  }

  Status MeasureNic() {
    const auto passes = [&](std::span<const LinkId> path) { return PassesNic(topology_, path); };
    if (passes(ring_[0].path)) return OkStatus();
    const std::vector<Lane> pair = FindRing(topology_, 2, passes);
    if (pair.empty()) return OkStatus();
    const ProtocolCost& cost = CostOf(Protocol::kSimple);
    XCCL_RETURN_IF_ERROR(MeasureLinks(pair[0], UsAt(kLargeBytes, cost.block_bytes_per_s)));
    XCCL_ASSIGN_OR_RETURN(const Messages found, RoundsUs(pair, Protocol::kSimple));
    const int64_t own_ps = cost.hop_ps + cost.message_ps + cost.BlockPs(kSmallBytes);
    model_.nic_hop_ps = std::max<int64_t>(0, Ps(found.hop_us) - own_ps);
    return OkStatus();
  }

  Status MeasureSwitch() {
    const std::optional<SwitchTree> tree = FindSwitch(topology_);
    if (!tree) return OkStatus();
    XCCL_ASSIGN_OR_RETURN(const LoweredProgram lowered, Multicasts(topology_, *tree, kDefaultBlocks));
    XCCL_ASSIGN_OR_RETURN(const std::optional<double> link_us,
                          LinkUs(lowered, UsAt(kLargeBytes, CostOf(Protocol::kSimple).block_bytes_per_s)));
    if (!link_us) return OkStatus();
    std::vector<LinkId> links = tree->down;
    links.push_back(tree->up);
    const double rate = static_cast<double>(kLargeBytes) / *link_us * 1e6;
    const double claimed = Reached(topology_, links, model_);
    if (rate < kAllOfBandwidth * claimed) model_.switch_per_mille = PerMille(rate / claimed);
    return OkStatus();
  }

  const Topology& topology_;
  const GpuLinks links_;
  const bool flags_travel_;
  const Measure& measure_;
  const int32_t ranks_;
  MachineModel& model_;
  // Small messages go round this ring; large messages go over its first lane.
  std::vector<Lane> ring_;
  bool on_gpu_links_ = false;  // all lanes of ring_ use only the GPUs' own links (GpuLinks)
  std::vector<Taken> taken_;
};

// Returns the model's errors: for each program the difference of the simulated and the measured time, as a
// share of the measured time. Programs that cannot be simulated are left out.
std::vector<double> ErrorsOf(const MachineModel& model, const Topology& topology,
                             const std::vector<Taken>& taken) {
  std::vector<double> errors;
  for (const Taken& one : taken) {
    const StatusOr<Simulation> simulation =
        SimulateProgram(one.lowered.program, one.lowered.collective, topology,
                        {.size_bytes = one.size_bytes, .machine = &model});
    if (!simulation.ok() || one.measured.us <= 0) continue;
    errors.push_back(std::abs(PsToUs(simulation->time_ps) / one.measured.us - 1));
  }
  return errors;
}

// Returns MeasuredMachine::doubt.
std::string DoubtOf(const MachineModel& model, const Topology& topology, const std::vector<Taken>& taken) {
  if (taken.empty()) return "nothing was measured, because no message comes back to its sender";
  std::vector<double> spreads;
  for (const Taken& one : taken) spreads.push_back(one.measured.spread);
  const double spread = MedianOf(spreads);
  std::vector<std::string> reasons;
  if (spread > kMostSpread) reasons.push_back(fmt::format("a spread above {:.0f} %", 100 * kMostSpread));
  if (model.launch_ps == 0) reasons.emplace_back("launch 0us");
  if (model.CostOf(Protocol::kSimple).hop_ps == 0) reasons.emplace_back("hop 0us");
  const std::vector<double> errors = ErrorsOf(model, topology, taken);
  if (const double error = errors.empty() ? 0 : MedianOf(errors); error > kMostError)
    reasons.push_back(
        fmt::format("half of its times differ from the measured ones by over {:.0f} %; expected "
                    "at most {:.0f} %",
                    100 * error, 100 * kMostError));
  if (reasons.empty()) return "";
  return fmt::format("measurements vary by {:.0f} %; the model is not reliable: {}", 100 * spread,
                     fmt::join(reasons, "; "));
}

}  // namespace

StatusOr<MeasuredMachine> MeasureMachine(const Topology& topology, const std::string& source,
                                         bool flags_travel, const Measure& measure) {
  MeasuredMachine found;
  found.model.source = source;
  Measuring measuring(topology, flags_travel, measure, found.model);
  XCCL_RETURN_IF_ERROR(measuring.Run());
  found.doubt = DoubtOf(found.model, topology, measuring.taken());
  return found;
}

}  // namespace xccl
