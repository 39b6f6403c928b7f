// A choice is a number of instances and of passes. Trials simulates a program with one choice after another
// and keeps every time. SetSegments compares two choices. MoreSegments climbs from the better choice while a
// larger choice is faster. FewerSegments descends while a smaller choice is as fast.
#include "ir/lower/segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>

#include "base/units.h"
#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"
#include "ir/tolerance.h"
#include "topologies/gpu_links.h"

namespace xccl::lowering {
namespace {

// The fewest bytes of a segment, which is one message. A machine model has a price for messages. With a
// model, a segment has at least one element of 4 bytes for each of the 256 threads of an LL threadblock
// (device/kernel.h). Without a model, two limits stand for the price. A segment has at least 8 bytes for each
// of the 512 threads of a Simple threadblock, and each instance sends at least what an NVLink port of 400
// GB/s sends in about 1 µs.
constexpr int64_t kLeastTimedSegmentBytes = 1024;
constexpr int64_t kLeastSegmentBytes = 4096;
constexpr int64_t kLeastSentBytes = 512 << 10;  // by one of several instances, over an average connection
// The most instances. A rank that sends and receives mostly has two threadblocks or more, and kDefaultBlocks
// threadblocks saturate its links.
constexpr int32_t kMostInstances = kDefaultBlocks / 2;
// The most work in instructions × passes: of all simulations in one call of MoreSegments or FewerSegments,
// and of kMiddle's choice in SetSegments. Lowering then takes seconds.
constexpr int64_t kMostWork = 2'000'000;

struct Choice {
  int32_t instances = 1, passes = 1;
  auto operator<=>(const Choice&) const = default;
};
// The choices that are tried first in every form: kPlain, and the first of kMiddle that fits. One pass does
// not overlap the steps of a chunk. With one instance, a threadblock that waits leaves its links idle.
constexpr Choice kPlain = {1, 1};
constexpr Choice kMiddle[] = {{4, 8}, {2, 4}, {1, 8}};

// Says which choices a program may have, and sets them.
class Limits {
 public:
  Limits(const CollectiveSizes& sizes, const std::vector<Move>& moves, const Program& program,
         const BlockLimits& blocks, bool timed_messages)
      : block_limits_(blocks), timed_messages_(timed_messages), largest_(sizes.LargestChunkBytes()) {
    for (const Move& move : moves) sent_ += sizes.ChunkBytes(move.chunk);
    sent_ /= std::max<int64_t>(1, static_cast<int64_t>(program.connections.size()));
    for (const RankProgram& rank : program.ranks)
      blocks_ = std::max(blocks_, static_cast<int64_t>(rank.threadblocks.size()));
  }
  Status Check() const {
    if (blocks_ <= block_limits_.one) return OkStatus();
    return InvalidInput(
        fmt::format("lower: {} threadblocks on a rank; expected at most {}; hint: --max-ctas={}", blocks_,
                    block_limits_.one, blocks_));
  }
  bool Fits(Choice choice) const {
    const int64_t least_segment = timed_messages_ ? kLeastTimedSegmentBytes : kLeastSegmentBytes;
    const int64_t least_sent = timed_messages_ ? 0 : kLeastSentBytes;
    return (choice.passes == 1 || largest_ / choice.passes >= least_segment) &&
           (choice.instances == 1 ||
            (sent_ / choice.instances >= least_sent && choice.instances * blocks_ <= block_limits_.all));
  }
  int32_t PassesOf(const Program& program) const {
    if (program.segment_bytes == 0) return 1;
    return static_cast<int32_t>((largest_ + program.segment_bytes - 1) / program.segment_bytes);
  }
  void Set(Choice choice, Program& program) const {
    program.instances = choice.instances;
    program.segment_bytes = choice.passes == 1 ? 0 : (largest_ + choice.passes - 1) / choice.passes;
  }

 private:
  const BlockLimits block_limits_;
  const bool timed_messages_;
  const int64_t largest_;  // bytes of the largest chunk
  int64_t sent_ = 0;       // bytes over an average connection
  int64_t blocks_ = 1;
};

// Simulates one program with several choices and protocols, each pair of them once.
class Trials {
 public:
  // `most_work`: the most work of all simulations together; absent: no limit.
  Trials(const Collective& collective, const Topology& topology, const SimulateOptions& options,
         const Limits& limits, std::optional<int64_t> most_work, Program& program)
      : collective_(collective),
        topology_(topology),
        options_(options),
        limits_(limits),
        most_work_(most_work),
        program_(program),
        instructions_(NumInstructions(program)) {}

  // Returns the simulated time. Returns at least kForeverPs if the choice is not allowed or needs more work
  // than is left, or if the deadline passes. May also do so if the program takes longer than longest_ps.
  // Requires that no earlier call for the choice and protocol had a smaller longest_ps.
  StatusOr<int64_t> TimeOf(Choice choice, Protocol protocol, int64_t longest_ps) {
    const auto [at, is_new] = times_.try_emplace({protocol, choice}, kForeverPs);
    if (!is_new) return at->second;
    const int64_t cost = instructions_ * choice.passes;
    if (!limits_.Fits(choice) || (most_work_ && work_ + cost > *most_work_)) return kForeverPs;
    work_ += cost;
    Take(choice, protocol);
    options_.longest_ps = longest_ps;
    const StatusOr<Simulation> simulation = SimulateProgram(program_, collective_, topology_, options_);
    if (simulation.ok()) at->second = simulation->time_ps;
    const bool is_late = simulation.status().code() == StatusCode::kLimit && options_.deadline();
    if (!simulation.ok() && !is_late) return simulation.status();
    return at->second;
  }
  void Take(Choice choice, Protocol protocol) const {
    limits_.Set(choice, program_);
    program_.protocol = protocol;
  }

 private:
  const Collective& collective_;
  const Topology& topology_;
  SimulateOptions options_;
  const Limits& limits_;
  const std::optional<int64_t> most_work_;
  Program& program_;
  const int64_t instructions_;
  int64_t work_ = 0;
  std::map<std::pair<Protocol, Choice>, int64_t> times_;
};

// Returns the protocols that a program may have. It keeps its own protocol if no machine model tells
// protocols apart, or if it has groups of switches. NICs do not keep the order of a message's bytes, which LL
// and LL128 need.
std::vector<Protocol> ProtocolsOf(const Program& program, const Topology& topology,
                                  const SimulateOptions& options) {
  if (options.machine == nullptr || std::ranges::any_of(program.groups, HasSwitch)) return {program.protocol};
  const GpuLinks links(topology);
  const bool nvlinks =
      std::ranges::all_of(program.connections, [&](const Connection& c) { return links.Have(c.path); });
  const auto passes_nic = [&](const Connection& c) {
    return std::ranges::any_of(
        c.path, [&](LinkId link) { return topology.node(topology.link(link).to).kind == NodeKind::kNic; });
  };
  if (std::ranges::any_of(program.connections, passes_nic)) return {Protocol::kSimple};
  if (nvlinks) return {Protocol::kSimple, Protocol::kLl, Protocol::kLl128};
  return {Protocol::kSimple, Protocol::kLl};
}

}  // namespace

int64_t NumInstructions(const Program& program) {
  int64_t instructions = 0;
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.threadblocks) instructions += std::ssize(block.instructions);
  return instructions;
}

StatusOr<std::optional<int64_t>> SetSegments(Segments segments, const Collective& collective,
                                             const Topology& topology, const std::vector<Move>& moves,
                                             const SimulateOptions& options, const BlockLimits& blocks,
                                             const Program* like, Program& program) {
  const Limits limits(CollectiveSizes(collective, options.size_bytes), moves, program, blocks,
                      options.machine != nullptr);
  XCCL_RETURN_IF_ERROR(limits.Check());
  if (segments == Segments::kWhole) return std::optional<int64_t>();
  const int64_t instructions = NumInstructions(program);
  const auto* const middle = std::ranges::find_if(kMiddle, [&](Choice choice) {
    return limits.Fits(choice) && (segments != Segments::kTimed || instructions * choice.passes <= kMostWork);
  });
  const Choice largest = middle != std::end(kMiddle) ? *middle : kPlain;
  if (segments == Segments::kMiddle) {
    limits.Set(largest.instances > 1 ? largest : kPlain, program);
    return std::optional<int64_t>();
  }
  std::vector<Choice> choices = {kPlain, largest};
  std::vector<Protocol> protocols = ProtocolsOf(program, topology, options);
  if (like != nullptr) {
    choices = {kPlain, {like->instances, limits.PassesOf(*like)}};
    protocols = {like->protocol};
  }
  Trials trials(collective, topology, options, limits, std::nullopt, program);
  std::optional<int64_t> best;
  std::pair<Choice, Protocol> best_of = {kPlain, program.protocol};
  for (const Protocol protocol : protocols) {
    for (const Choice choice : choices) {
      XCCL_ASSIGN_OR_RETURN(const int64_t time_ps,
                            trials.TimeOf(choice, protocol, best.value_or(kForeverPs)));
      if (best && !IsFaster(time_ps, *best)) continue;
      best = time_ps;
      best_of = {choice, protocol};
    }
  }
  if (best >= kForeverPs) return LimitReached(options.deadline.Passed() + " while the program was simulated");
  trials.Take(best_of.first, best_of.second);
  return best;
}

StatusOr<int64_t> MoreSegments(const Collective& collective, const Topology& topology,
                               const std::vector<Move>& moves, const SimulateOptions& options,
                               const BlockLimits& blocks, int64_t time_ps, bool briefly, Program& program) {
  const CollectiveSizes sizes(collective, options.size_bytes);
  const Limits limits(sizes, moves, program, blocks, options.machine != nullptr);
  Trials trials(collective, topology, options, limits, briefly ? kMostWork / 4 : kMostWork, program);
  struct Taken {
    Choice choice;
    Protocol protocol;
    int64_t time_ps;
  };
  // Tries twice as many instances with as many passes each, and four times as many passes, while that helps.
  const auto climb = [&](Taken taken) -> StatusOr<Taken> {
    for (bool gains = true; gains;) {
      gains = false;
      const Choice from = taken.choice;
      for (const Choice more :
           {Choice{2 * from.instances, 2 * from.passes}, Choice{from.instances, 4 * from.passes}}) {
        if (more.instances > kMostInstances) continue;
        XCCL_ASSIGN_OR_RETURN(const int64_t more_ps, trials.TimeOf(more, taken.protocol, taken.time_ps));
        if (!IsFaster(more_ps, taken.time_ps)) continue;
        gains = true;
        taken.choice = more;
        taken.time_ps = more_ps;
      }
    }
    return taken;
  };
  const Protocol first = program.protocol;
  XCCL_ASSIGN_OR_RETURN(Taken best, climb({{program.instances, limits.PassesOf(program)}, first, time_ps}));
  for (const Protocol protocol : ProtocolsOf(program, topology, options)) {
    if (briefly || protocol == first) continue;
    XCCL_ASSIGN_OR_RETURN(const int64_t plain_ps, trials.TimeOf(kPlain, protocol, kForeverPs));
    XCCL_ASSIGN_OR_RETURN(const Taken other, climb({kPlain, protocol, plain_ps}));
    if (IsFaster(other.time_ps, best.time_ps)) best = other;
  }
  trials.Take(best.choice, best.protocol);
  return best.time_ps;
}

StatusOr<int64_t> FewerSegments(const Collective& collective, const Topology& topology,
                                const std::vector<Move>& moves, const SimulateOptions& options,
                                const BlockLimits& blocks, int64_t time_ps, Program& program) {
  const CollectiveSizes sizes(collective, options.size_bytes);
  const Limits limits(sizes, moves, program, blocks, options.machine != nullptr);
  const Protocol protocol = program.protocol;
  Trials trials(collective, topology, options, limits, kMostWork, program);
  Choice taken = {program.instances, limits.PassesOf(program)};
  int64_t best_ps = time_ps;  // the least time that was tried
  const auto take = [&](Choice fewer) -> StatusOr<bool> {
    XCCL_ASSIGN_OR_RETURN(
        const int64_t fewer_ps,
        trials.TimeOf(fewer, protocol, static_cast<int64_t>(kToleratedRatio * static_cast<double>(best_ps))));
    if (!IsWithinTolerance(fewer_ps, best_ps)) return false;
    best_ps = std::min(best_ps, fewer_ps);
    taken = fewer;
    time_ps = fewer_ps;
    return true;
  };
  for (bool keeps = true; keeps && taken.instances > 1;) {
    XCCL_ASSIGN_OR_RETURN(keeps, take({taken.instances / 2, taken.passes}));
  }
  for (bool keeps = true; keeps && taken.passes > 1;) {
    XCCL_ASSIGN_OR_RETURN(keeps, take({taken.instances, std::max(1, taken.passes / 4)}));
  }
  trials.Take(taken, protocol);
  return time_ps;
}

}  // namespace xccl::lowering
