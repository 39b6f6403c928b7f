#include "synth/textbook.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/verify_schedule.h"
#include "synth/engines.h"
#include "synth/synthesizer.h"
#include "synth/test_machines.h"

namespace xccl {
namespace {

using testing::MakeCluster;
using testing::MakeDgx1;
using testing::MakeFullMesh;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;
using testing::MakeSwitch;

struct Machine {
  std::string name;
  Topology topology;
};

std::vector<Machine> Machines() {
  std::vector<Machine> machines;
  for (int32_t n : {1, 2, 3, 5, 6, 7, 8, 16}) {
    machines.push_back({fmt::format("switch {}", n), MakeSwitch(n)});
    machines.push_back({fmt::format("full mesh {}", n), MakeFullMesh(n)});
    machines.push_back({fmt::format("ring {}", n), MakeRing(n)});
  }
  machines.push_back({"torus 4x4", MakeGrid({4, 4}, true)});
  machines.push_back({"torus 3x5", MakeGrid({3, 5}, true)});
  machines.push_back({"torus 2x2x3", MakeGrid({2, 2, 3}, true)});
  machines.push_back({"mesh 4x4", MakeGrid({4, 4}, false)});
  machines.push_back({"mesh 3x4", MakeGrid({3, 4}, false)});
  machines.push_back({"hypercube 3", MakeHypercube(3)});
  machines.push_back({"hypercube 4", MakeHypercube(4)});
  machines.push_back({"dgx1", MakeDgx1()});
  machines.push_back({"cluster 2x4", MakeCluster(2, 4)});
  machines.push_back({"cluster 3x3", MakeCluster(3, 3)});
  return machines;
}

CollectiveSpec SpecOf(CollectiveKind kind, std::vector<Rank> ranks) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = std::move(ranks);
  const size_t n = spec.ranks.size();
  switch (kind) {
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      spec.root = spec.ranks[n / 2];
      break;
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatterv:
      for (size_t i = 0; i < n; ++i) spec.counts.push_back(static_cast<int64_t>(i % 3));
      if (n == 1) spec.counts[0] = 1;
      break;
    case CollectiveKind::kAlltoallv:
      for (size_t i = 0; i < n * n; ++i) spec.counts.push_back(static_cast<int64_t>(i * 7 % 4));
      break;
    case CollectiveKind::kSendrecv:
      for (size_t i = 0; i < n; ++i)
        if (n > 1) spec.pairs.push_back({spec.ranks[i], spec.ranks[(i + n / 2) % n]});
      break;
    default:
      break;
  }
  return spec;
}

std::vector<std::vector<Rank>> MemberLists(int32_t ranks) {
  std::vector<std::vector<Rank>> lists(1);
  for (int32_t r = 0; r < ranks; ++r) lists[0].push_back(Rank(r));
  if (ranks >= 6) {
    lists.push_back({Rank(5), Rank(0), Rank(3)});
    lists.push_back({Rank(1), Rank(0), Rank(4), Rank(5)});
  }
  return lists;
}

// Every engine on every machine for every collective that it serves either verifies or says why not.
TEST(Textbook, EveryPlanVerifies) {
  int32_t made = 0;
  for (const Machine& machine : Machines()) {
    Grounds grounds(machine.topology);
    for (const TextbookEngine* engine : TextbookEngines()) {
      for (CollectiveKind kind : engine->kinds) {
        for (const std::vector<Rank>& ranks : MemberLists(machine.topology.num_ranks())) {
          const Collective collective = *Collective::Create(SpecOf(kind, ranks));
          SynthesisRequest request;
          request.topology = &machine.topology;
          request.collective = &collective;
          for (std::optional<int32_t> chunks : {std::optional<int32_t>(), std::optional(3)}) {
            request.limits.chunks = chunks;
            const std::string where =
                fmt::format("{}, {}, {} on {} ranks, chunks {}", machine.name, engine->name,
                            collective.name(), ranks.size(), chunks.value_or(0));
            const StatusOr<PlacedEngine> placed = PlacedEngine::Place(*engine, grounds, request);
            if (!placed.ok()) {
              EXPECT_EQ(placed.status().code(), StatusCode::kInvalidInput) << where;
              continue;
            }
            EXPECT_GE(placed->EstimatePs(), 0) << where;
            const StatusOr<Synthesis> synthesis = placed->Make();
            if (!synthesis.ok()) continue;
            ++made;
            const std::vector<Violation> violations =
                VerifySchedule(synthesis->schedule, synthesis->collective, machine.topology);
            if (!violations.empty()) {
              ADD_FAILURE() << where << ": " << ToString(violations[0]);
              continue;
            }
            EXPECT_TRUE(IsBitwiseSame(synthesis->schedule, synthesis->collective, machine.topology)) << where;
          }
        }
      }
    }
  }
  EXPECT_GT(made, 500);
}

}  // namespace
}  // namespace xccl
