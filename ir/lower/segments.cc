#include "ir/lower/segments.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "ir/simulate/simulate_program.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

constexpr int64_t kLeastSegmentBytes = 4096;  // smaller messages cost more than moving their bytes
constexpr int64_t kWork = 2'000'000;          // instructions × passes that all trials may simulate together
constexpr int32_t kSimulatedPasses = 64;      // times instances: about what a simulation runs of many passes
// By one instance of a connection, on average, where there are several.
constexpr int64_t kLeastSentBytes = 512 << 10;
// The cheapest choice is slower than the fastest by at most one part in so many.
constexpr int64_t kAllowedLoss = 50;

struct Choice {
  int32_t instances, passes;
};
// Cheapest first. Without passes nothing overlaps within a chunk; with one instance a threadblock that waits
// leaves its links idle.
constexpr std::array<Choice, 17> kChoices = {{{1, 1},
                                              {1, 8},
                                              {1, 32},
                                              {1, 128},
                                              {1, 1024},
                                              {2, 4},
                                              {2, 16},
                                              {4, 8},
                                              {4, 32},
                                              {4, 128},
                                              {4, 1024},
                                              {8, 16},
                                              {8, 64},
                                              {8, 256},
                                              {8, 2048},
                                              {16, 32},
                                              {16, 128}}};
constexpr Choice kFewest = {2, 4};
constexpr Choice kMiddle = {4, 8};
// In which order they are tried while the work lasts.
constexpr std::array<size_t, 17> kTrials = {0, 8, 7, 6, 11, 12, 9, 5, 2, 1, 3, 16, 13, 15, 10, 14, 4};

// The bounds of the choices.
class Limits {
 public:
  Limits(const CollectiveSizes& sizes, const std::vector<Move>& moves, const Program& program,
         int32_t most_blocks)
      : most_blocks_(most_blocks), largest_(sizes.LargestChunkBytes()) {
    for (const Move& move : moves) sent_ += sizes.ChunkBytes(move.chunk);
    sent_ /= std::max<int64_t>(1, static_cast<int64_t>(program.connections.size()));
    for (const RankProgram& rank : program.ranks)
      blocks_ = std::max(blocks_, static_cast<int64_t>(rank.threadblocks.size()));
  }
  Status Check() const {
    if (blocks_ <= most_blocks_) return OkStatus();
    return InvalidInput(
        fmt::format("lower: {} threadblocks on a rank; expected at most {}; hint: --max-ctas={}", blocks_,
                    most_blocks_, blocks_));
  }
  bool Fits(Choice choice) const {
    return (choice.passes == 1 || largest_ / choice.passes >= kLeastSegmentBytes) &&
           (choice.instances == 1 ||
            (sent_ / choice.instances >= kLeastSentBytes && choice.instances * blocks_ <= most_blocks_));
  }
  void Set(Choice choice, Program& program) const {
    program.instances = choice.instances;
    program.segment_bytes = choice.passes == 1 ? 0 : (largest_ + choice.passes - 1) / choice.passes;
  }

 private:
  const int32_t most_blocks_;
  const int64_t largest_;  // bytes of a chunk
  int64_t sent_ = 0;       // bytes over an average connection
  int64_t blocks_ = 1;
};

using Times = std::array<std::optional<int64_t>, kChoices.size()>;

// Of the choices that fit, as many as the work allows; at least one is timed.
StatusOr<Times> TimeChoices(const Collective& collective, const Topology& topology,
                            const SimulateOptions& options, const Limits& limits, Program& program) {
  int64_t instructions = 0;
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.threadblocks)
      instructions += static_cast<int64_t>(block.instructions.size());
  const int64_t most_work = std::max(kWork, instructions * (1 + kMiddle.passes));
  Times times;
  int64_t work = 0;
  for (size_t trial : kTrials) {
    const Choice choice = kChoices[trial];
    const int64_t cost = instructions * std::min(choice.passes, kSimulatedPasses * choice.instances);
    if (!limits.Fits(choice) || work + cost > most_work) continue;
    work += cost;
    limits.Set(choice, program);
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(program, collective, topology, options));
    times[trial] = simulation.time_ps;
  }
  return times;
}

// Takes the cheapest choice that is about as fast as the fastest; returns its time.
StatusOr<int64_t> ChooseByTime(const Collective& collective, const Topology& topology,
                               const SimulateOptions& options, const Limits& limits, Program& program) {
  std::vector<Protocol> protocols = {program.protocol};
  if (options.machine != nullptr && program.groups.empty())
    protocols = {Protocol::kSimple, Protocol::kLl, Protocol::kLl128};
  std::vector<Times> times;
  int64_t best = std::numeric_limits<int64_t>::max();
  for (const Protocol protocol : protocols) {
    program.protocol = protocol;
    XCCL_ASSIGN_OR_RETURN(const Times own, TimeChoices(collective, topology, options, limits, program));
    for (const std::optional<int64_t>& time : own) best = std::min(best, time.value_or(best));
    times.push_back(own);
  }
  for (size_t p = 0; p < protocols.size(); ++p) {
    for (size_t choice = 0; choice < kChoices.size(); ++choice) {
      if (!times[p][choice] || *times[p][choice] > best + best / kAllowedLoss) continue;
      program.protocol = protocols[p];
      limits.Set(kChoices[choice], program);
      return *times[p][choice];
    }
  }
  return BugError("lower: no choice of passes was timed");
}

}  // namespace

StatusOr<std::optional<int64_t>> SetSegments(Segments segments, const Collective& collective,
                                             const Topology& topology, const std::vector<Move>& moves,
                                             const SimulateOptions& options, int32_t most_blocks,
                                             Program& program) {
  std::optional<int64_t> time_ps;
  if (segments == Segments::kWhole) return time_ps;
  const Limits limits(CollectiveSizes(collective, options.size_bytes), moves, program, most_blocks);
  XCCL_RETURN_IF_ERROR(limits.Check());
  if (segments == Segments::kTimed) {
    XCCL_ASSIGN_OR_RETURN(time_ps, ChooseByTime(collective, topology, options, limits, program));
    return time_ps;
  }
  for (Choice choice : {kChoices.front(), kFewest, kMiddle})
    if (limits.Fits(choice)) limits.Set(choice, program);
  return time_ps;
}

}  // namespace xccl::lowering
