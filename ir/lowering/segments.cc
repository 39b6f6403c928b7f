#include "ir/lowering/segments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/simulate_program.h"
#include "ir/sizes.h"

namespace xccl::lowering {
namespace {

constexpr int64_t kLeastSegmentBytes = 4096;  // below, what a message costs outweighs what it moves
constexpr int64_t kWork = 2'000'000;          // instructions × passes that all trials may simulate together
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

// What bounds the choices.
class Limits {
 public:
  Limits(const Collective& collective, const CollectiveSizes& sizes, const std::vector<Move>& moves,
         const Program& program) {
    for (int32_t c = 0; c < collective.num_chunks(); ++c)
      largest_ = std::max(largest_, sizes.ChunkBytes(ChunkId(c)));
    for (const Move& move : moves) sent_ += sizes.ChunkBytes(move.chunk);
    sent_ /= std::max<int64_t>(1, static_cast<int64_t>(program.connections.size()));
    for (const RankProgram& rank : program.ranks) blocks_ = std::max(blocks_, rank.threadblocks.size());
  }
  bool Fits(Choice choice) const {
    return (choice.passes == 1 || largest_ / choice.passes >= kLeastSegmentBytes) &&
           (choice.instances == 1 || (sent_ / choice.instances >= kLeastSentBytes &&
                                      static_cast<size_t>(choice.instances) * blocks_ <= kMostBlocks));
  }
  void Set(Choice choice, Program& program) const {
    program.instances = choice.instances;
    program.segment_bytes = choice.passes == 1 ? 0 : (largest_ + choice.passes - 1) / choice.passes;
  }

 private:
  int64_t largest_ = 0, sent_ = 0;  // bytes: of a chunk; over an average connection
  size_t blocks_ = 1;
};

}  // namespace

StatusOr<int64_t> ChooseSegments(const Collective& collective, const Topology& topology,
                                 const std::vector<Move>& moves, const SimulateOptions& options,
                                 Program& program) {
  const CollectiveSizes sizes(collective, options.size_bytes);
  const Limits limits(collective, sizes, moves, program);
  int64_t instructions = 0;
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.threadblocks)
      instructions += static_cast<int64_t>(block.instructions.size());
  const int64_t most_work = std::max(kWork, instructions * (1 + kMiddle.passes));

  std::array<std::optional<int64_t>, kChoices.size()> time;
  std::optional<int64_t> best;
  int64_t work = 0;
  for (size_t trial : kTrials) {
    const Choice choice = kChoices[trial];
    const int64_t cost = instructions * std::min(choice.passes, kSimulatedPasses * choice.instances);
    if (!limits.Fits(choice) || work + cost > most_work) continue;
    work += cost;
    limits.Set(choice, program);
    XCCL_ASSIGN_OR_RETURN(const Simulation simulation,
                          SimulateProgram(program, collective, topology, options));
    time[trial] = simulation.time_ps;
    best = std::min(best.value_or(simulation.time_ps), simulation.time_ps);
  }
  size_t chosen = 0;
  while (!time[chosen] || *time[chosen] > *best + *best / kAllowedLoss) ++chosen;
  limits.Set(kChoices[chosen], program);
  return *time[chosen];
}

void SetMiddleSegments(const Collective& collective, const std::vector<Move>& moves, int64_t size_bytes,
                       Program& program) {
  const Limits limits(collective, CollectiveSizes(collective, size_bytes), moves, program);
  for (Choice choice : {kChoices.front(), kFewest, kMiddle})
    if (limits.Fits(choice)) limits.Set(choice, program);
}

}  // namespace xccl::lowering
