#include "ir/lowering/segments.h"

#include <algorithm>
#include <array>
#include <optional>

#include "ir/simulate_program.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

constexpr int64_t kLeastSegmentBytes = 4096;  // below, what a message costs outweighs what it moves
constexpr int64_t kWork = 1'200'000;          // instructions × passes that all trials may simulate together

struct Choice {
  int32_t instances, passes;
};
// Cheapest first. Without passes nothing overlaps within a chunk; with one instance a threadblock that waits
// leaves its links idle.
constexpr std::array<Choice, 12> kChoices = {{{1, 1},
                                              {1, 8},
                                              {1, 32},
                                              {1, 128},
                                              {2, 4},
                                              {2, 16},
                                              {4, 8},
                                              {4, 32},
                                              {4, 128},
                                              {8, 16},
                                              {8, 64},
                                              {8, 256}}};
constexpr Choice kMiddle = {4, 8};
// In which order they are tried while the work lasts.
constexpr std::array<size_t, 12> kTrials = {0, 7, 6, 5, 9, 10, 8, 4, 2, 1, 3, 11};

}  // namespace

Status ChooseSegments(const Collective& collective, const Topology& topology, int64_t size_bytes,
                      Program& program) {
  const CollectiveSizes sizes(collective, size_bytes);
  int64_t largest = 0, instructions = 0;
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    largest = std::max(largest, sizes.ChunkBytes(ChunkId(c)));
  for (const RankProgram& rank : program.ranks)
    for (const Threadblock& block : rank.threadblocks)
      instructions += static_cast<int64_t>(block.instructions.size());
  const auto set = [&](Choice choice) {
    program.instances = choice.instances;
    program.segment_bytes = choice.passes == 1 ? 0 : (largest + choice.passes - 1) / choice.passes;
  };
  const auto fits = [&](Choice choice) {
    return choice.passes == 1 || largest / choice.passes >= kLeastSegmentBytes;
  };
  set(kChoices.front());
  if (program.connections.empty() || !fits(kChoices[4])) return OkStatus();
  if (instructions > kWork / (1 + kMiddle.passes)) {  // too large for more than one trial
    set(fits(kMiddle) ? kMiddle : kChoices[4]);
    return OkStatus();
  }

  std::array<std::optional<int64_t>, kChoices.size()> time;
  std::optional<int64_t> best;
  int64_t work = 0;
  for (size_t trial : kTrials) {
    const Choice choice = kChoices[trial];
    const int64_t cost = instructions * choice.passes;
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
    if (!time[i] || *time[i] > *best + *best / 100) continue;
    set(kChoices[i]);
    return OkStatus();
  }
  return OkStatus();
}

}  // namespace xccl
