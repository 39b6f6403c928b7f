#include "ir/lowering/segments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/simulate_program.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

constexpr int64_t kLeastSegmentBytes = 4096;  // below, what a message costs outweighs what it moves
constexpr int64_t kWork = 1'200'000;          // instructions × passes that all trials may simulate together
constexpr int32_t kSimulatedPasses = 64;      // times instances: about what a simulation runs of many passes
constexpr int32_t kMostBlocks = 512;          // threadblocks of one rank, all instances
constexpr int64_t kLeastSentBytes =
    512 << 10;  // by one instance of a connection, on average, where there are several
constexpr int64_t kAllowedLoss =
    50;  // the cheapest choice is slower than the fastest by at most one part in so many

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

}  // namespace

StatusOr<std::optional<int64_t>> ChooseSegments(const Collective& collective, const Topology& topology,
                                                const std::vector<Move>& moves, int64_t size_bytes,
                                                Program& program) {
  const CollectiveSizes sizes(collective, size_bytes);
  int64_t largest = 0, instructions = 0, moved = 0;
  size_t blocks = 1;
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
  for (const Move& move : moves) moved += sizes.ChunkBytes(move.chunk);
  const int64_t sent = moved / std::max<int64_t>(1, static_cast<int64_t>(program.connections.size()));
  for (const RankProgram& rank : program.ranks) {
    blocks = std::max(blocks, rank.threadblocks.size());
    for (const Threadblock& block : rank.threadblocks)
      instructions += static_cast<int64_t>(block.instructions.size());
  }
  const auto set = [&](Choice choice) {
    program.instances = choice.instances;
    program.segment_bytes = choice.passes == 1 ? 0 : (largest + choice.passes - 1) / choice.passes;
  };
  const auto fits = [&](Choice choice) {
    return (choice.passes == 1 || largest / choice.passes >= kLeastSegmentBytes) &&
           (choice.instances == 1 || (sent / choice.instances >= kLeastSentBytes &&
                                      static_cast<size_t>(choice.instances) * blocks <= kMostBlocks));
  };
  set(kChoices.front());
  if (instructions > kWork / (1 + kMiddle.passes)) {  // too large for more than one trial
    for (Choice choice : {kFewest, kMiddle})
      if (fits(choice)) set(choice);
    return std::optional<int64_t>();
  }

  std::array<std::optional<int64_t>, kChoices.size()> time;
  std::optional<int64_t> best;
  int64_t work = 0;
  for (size_t trial : kTrials) {
    const Choice choice = kChoices[trial];
    const int64_t cost = instructions * std::min(choice.passes, kSimulatedPasses * choice.instances);
    if (!fits(choice) || work + cost > kWork) continue;
    work += cost;
    set(choice);
    SimulateOptions options;
    options.size_bytes = size_bytes;
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(program, collective, topology, options));
    time[trial] = simulation.time_ps;
    best = std::min(best.value_or(simulation.time_ps), simulation.time_ps);
  }
  for (size_t i = 0; i < kChoices.size(); ++i) {
    if (!time[i] || *time[i] > *best + *best / kAllowedLoss) continue;
    set(kChoices[i]);
    return time[i];
  }
  return best;
}

}  // namespace xccl::lowering
