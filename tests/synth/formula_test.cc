// Compares the engines' plans with the formulas of the papers, in the papers' model: a message takes alpha
// + bytes × beta and is stored and forwarded whole.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/rank_graph.h"
#include "synth/common/reverse.h"
#include "synth/common/synthesizer.h"
#include "synth/common/test_machines.h"
#include "synth/engines.h"

namespace xccl {
namespace {

using testing::MakeCluster;
using testing::MakeDgx1;
using testing::MakeDigraph;
using testing::MakeFullMesh;
using testing::MakeGrid;
using testing::MakeHypercube;
using testing::MakeRing;
using testing::MakeSwitch;
using testing::SpecOf;

constexpr double kAlphaPs = 1e6, kPsPerByte = 100;  // test machines: 1 us, 10 GB/s

StatusOr<Synthesis> Make(const Topology& topology, const Collective& collective, std::string_view engine,
                         SynthesisLimits limits = {}, int64_t size_bytes = 64 << 20) {
  SynthesisRequest request;
  request.size_bytes = size_bytes;
  request.topology = &topology;
  request.collective = &collective;
  request.limits = limits;
  const StatusOr<const Engine*> found = FindEngine(engine);
  if (!found.ok()) return found.status();
  XCCL_RETURN_IF_ERROR((*found)->Serves(request));
  return (*found)->Synthesize(request);
}

Topology OneWayRing(int32_t n) {
  std::vector<std::pair<int32_t, int32_t>> links;
  for (int32_t r = 0; r < n; ++r) links.push_back({r, (r + 1) % n});
  return MakeDigraph(n, links);
}

SynthesisLimits Limits(std::optional<int32_t> chunks, std::optional<int32_t> steps) {
  SynthesisLimits limits;
  limits.chunks = chunks;
  limits.steps = steps;
  return limits;
}

Collective Rooted(CollectiveKind kind, std::vector<Rank> ranks, Rank root) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = std::move(ranks);
  spec.root = root;
  return *Collective::Create(spec);
}

struct FormulaCase {
  std::string engine;
  CollectiveKind kind;
  Topology topology;
  int32_t alphas;  // also the number of steps
  // Multiples of size / ranks that one link carries in sequence. Absent if separate links let steps overlap.
  std::optional<double> shares;
};

TEST(Formula, StepsAndTime) {
  using enum CollectiveKind;
  std::vector<FormulaCase> cases;
  for (int32_t n : {2, 3, 5, 6, 7, 8, 16}) {
    const int32_t logs = static_cast<int32_t>(std::ceil(std::log2(n)));
    cases.push_back({"ring", kAllgather, OneWayRing(n), n - 1, n - 1.0});
    cases.push_back({"ring", kReduceScatter, OneWayRing(n), n - 1, n - 1.0});
    cases.push_back({"ring", kAllreduce, OneWayRing(n), 2 * (n - 1), 2 * (n - 1.0)});
    cases.push_back({"ring", kBroadcast, OneWayRing(n), n - 1, n * (n - 1.0)});
    std::optional<double> gathered, broadcast;
    if (n == 1 << logs) gathered = n - 1.0, broadcast = n * logs;
    cases.push_back({"bruck", kAllgather, MakeFullMesh(n), logs, gathered});
    cases.push_back({"bruck", kReduceScatter, MakeFullMesh(n), logs, gathered});
    cases.push_back({"direct", kAllgather, MakeFullMesh(n), 1, 1});
    if (n > 2) cases.push_back({"direct", kAllreduce, MakeFullMesh(n), 2, 2});  // two exchange at once
    cases.push_back({"direct", kAlltoall, MakeFullMesh(n), 1, 1});
    cases.push_back({"binomial", kBroadcast, MakeFullMesh(n), logs, broadcast});
    cases.push_back({"binomial", kReduce, MakeFullMesh(n), logs, broadcast});
    cases.push_back({"nhr", kAllgather, MakeFullMesh(n), logs, gathered});
    cases.push_back({"nhr", kReduceScatter, MakeFullMesh(n), logs, gathered});
    cases.push_back({"nhr", kBroadcast, MakeFullMesh(n), 2 * logs, std::nullopt});
    cases.push_back({"nhr", kGather, MakeFullMesh(n), logs, gathered});
    // With an odd number of ranks, the last one is served in addition.
    const int32_t pairs = n % 2 == 0 ? logs : static_cast<int32_t>(std::ceil(std::log2(n - 1)));
    for (const char* engine : {"swing", "bine"}) {
      cases.push_back({engine, kAllgather, MakeFullMesh(n), pairs, gathered});
      cases.push_back({engine, kReduceScatter, MakeFullMesh(n), pairs, gathered});
    }
    cases.push_back({"bine", kGather, MakeFullMesh(n), pairs, gathered});
    cases.push_back({"bine", kScatter, MakeFullMesh(n), pairs, gathered});
    cases.push_back(
        {"bine", kAlltoall, MakeFullMesh(n), pairs, gathered ? std::optional(n / 2.0 * logs) : std::nullopt});
    if (n > 2) cases.push_back({"bine", kBroadcast, MakeFullMesh(n), 2 * pairs, std::nullopt});
  }
  for (int32_t dim : {1, 2, 3, 4}) {
    const int32_t n = 1 << dim;
    cases.push_back({"recursive-doubling", kAllgather, MakeHypercube(dim), dim, n - 1.0});
    // A stripe starts with each dimension, so that all links are used.
    cases.push_back({"recursive-doubling", kAllreduce, MakeHypercube(dim), dim, static_cast<double>(n)});
    cases.push_back({"halving-doubling", kAllgather, MakeHypercube(dim), dim, n - 1.0});
    cases.push_back({"halving-doubling", kReduceScatter, MakeHypercube(dim), dim, n - 1.0});
    cases.push_back({"halving-doubling", kAllreduce, MakeHypercube(dim), 2 * dim, 2 * (n - 1.0)});
    cases.push_back({"halving-doubling", kBroadcast, MakeHypercube(dim), 2 * dim, std::nullopt});
    // One lane per dimension, so that all links are used.
    cases.push_back({"swing", kAllgather, MakeHypercube(dim), dim, (n - 1.0) / dim});
    if (dim > 1) cases.push_back({"swing", kAllreduce, MakeHypercube(dim), 2 * dim, 2 * (n - 1.0) / dim});
    cases.push_back({"binomial", kScatter, MakeHypercube(dim), dim, n - 1.0});
    cases.push_back({"binomial", kGather, MakeHypercube(dim), dim, n - 1.0});
  }
  cases.push_back({"swing", kAllgather, MakeGrid({4, 4}, true), 4, 15 / 4.0});
  cases.push_back({"recursive-doubling", kAllreduce, MakeGrid({4, 4}, true), 4, 16.0});
  cases.push_back({"recursive-doubling", kAllreduce, MakeFullMesh(8), 3, 8.0});
  // Groups of 4 over links of their own: first one block each, then four.
  cases.push_back({"recursive-multiplying", kAllgather, MakeFullMesh(16), 2, 1 + 4});
  cases.push_back({"recursive-multiplying", kReduceScatter, MakeFullMesh(9), 2, 1 + 3});
  cases.push_back({"recursive-multiplying", kAlltoall, MakeFullMesh(9), 2, 3 + 3});
  cases.push_back({"2d-mesh", kAllgather, MakeFullMesh(16), 2, (1 + 4) / 2.0});
  cases.push_back({"2d-mesh", kAlltoall, MakeFullMesh(16), 2, 4 + 4});
  cases.push_back({"swing", kReduceScatter, MakeRing(4), 2, 3 / 2.0});
  for (const FormulaCase& c : cases) {
    const int32_t n = c.topology.num_ranks();
    const std::string where = fmt::format("{} {} on {}", c.engine, ToString(c.kind), n);
    CollectiveSpec spec = SpecOf(c.kind, AllRanks(c.topology.num_ranks()));
    if (spec.root) spec.root = Rank(0);
    const Collective collective = *Collective::Create(spec);
    const StatusOr<Synthesis> made = Make(c.topology, collective, c.engine);
    ASSERT_TRUE(made.ok()) << where << ": " << made.status().message();
    EXPECT_EQ(made->schedule.num_steps(), c.alphas) << where;
    if (!c.shares) continue;
    const int64_t share = 1 << 20;
    SimulateOptions options;
    options.size_bytes = share * n;
    options.model = TimeModel::kBlocking;
    const Simulation simulation = Simulate(made->schedule, made->collective, c.topology, options);
    const double expected = c.alphas * kAlphaPs + *c.shares * static_cast<double>(share) * kPsPerByte;
    // Chunks that do not divide the size exceed their share by a few elements.
    EXPECT_NEAR(static_cast<double>(simulation.time_ps), expected, 1 + expected * 1e-5) << where;
  }
}

// n blocks reach p ranks in n - 1 + ceil(log2 p) rounds, in each of which a rank sends and receives one at
// most.
TEST(Formula, CirculantTakesTheFewestRounds) {
  using enum CollectiveKind;
  for (const CollectiveKind kind : {kBroadcast, kReduce}) {
    for (const int32_t p : {2, 3, 5, 8, 9, 13, 16, 17, 31, 33, 47}) {
      const Topology topology = MakeFullMesh(p);
      const Collective collective = Rooted(kind, AllRanks(p), Rank(p / 3));
      const auto log = static_cast<int32_t>(std::ceil(std::log2(p)));
      for (const int32_t n : {1, 2, 3, 7, 10, 16}) {
        const std::string where = fmt::format("{} of {} blocks on {}", ToString(kind), n, p);
        const StatusOr<Synthesis> made = Make(topology, collective, "circulant", Limits(n, {}));
        ASSERT_TRUE(made.ok()) << where << ": " << made.status().message();
        EXPECT_EQ(made->schedule.num_steps(), n - 1 + log) << where;
        std::set<std::tuple<int32_t, bool, Rank>> busy;
        for (int64_t i = 0; i < made->schedule.size(); ++i) {
          const Transfer t = made->schedule.at(i);
          EXPECT_TRUE(busy.insert({t.step, true, t.src}).second) << where << ", step " << t.step;
          EXPECT_TRUE(busy.insert({t.step, false, t.dst}).second) << where << ", step " << t.step;
        }
      }
    }
  }
}

// On links without latency ever shorter blocks would take ever less time, were there no end to it.
TEST(Formula, CirculantCutsNoBlockShorterThanAnAccess) {
  TopologySpec spec = MakeFullMesh(6).spec();
  for (Link& link : spec.links) link.latency_ps = 0;
  const Topology topology = Topology::Create(std::move(spec)).value();
  const Collective collective = Rooted(CollectiveKind::kReduce, AllRanks(6), Rank(3));
  for (const int64_t bytes : {1, 100, 1020}) {
    SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = bytes};
    const StatusOr<Synthesis> made = FindEngine("circulant").value()->Synthesize(request);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_LE(made->collective.num_chunks(), std::max<int64_t>(1, bytes / 16));
  }
}

// All chunks follow one timetable, in which no two of them meet at a port.
TEST(Formula, SpreadChunksDoNotMeetAtAPort) {
  for (const int32_t n : {5, 8, 13, 16, 31}) {
    const Topology topology = MakeSwitch(n);
    for (const CollectiveKind kind : {CollectiveKind::kBroadcast, CollectiveKind::kReduce}) {
      const Collective collective = Rooted(kind, AllRanks(n), Rank(n / 3));
      const StatusOr<Synthesis> made = Make(topology, collective, "spread");
      ASSERT_TRUE(made.ok()) << made.status().message();
      std::set<std::tuple<int32_t, bool, Rank>> busy;
      for (int64_t i = 0; i < made->schedule.size(); ++i) {
        const Transfer t = made->schedule.at(i);
        const std::string where = fmt::format("{} on {}, step {}", ToString(kind), n, t.step);
        EXPECT_TRUE(busy.insert({t.step, true, t.src}).second) << where;
        EXPECT_TRUE(busy.insert({t.step, false, t.dst}).second) << where;
      }
    }
  }
}

TEST(Formula, StepsWhereTimeHasNoOneFormula) {
  using enum CollectiveKind;
  struct Case {
    std::string engine;
    CollectiveKind kind;
    Topology topology;
    int32_t steps;
  };
  const Case cases[] = {
      {"pairwise", kAlltoall, MakeSwitch(7), 6},
      {"bruck", kAlltoall, MakeSwitch(7), 2},                   // digits to radix 6
      {"2d-ring", kAllgather, MakeGrid({4, 6}, true), 5},       // 2 + 3: the diameter
      {"2d-torus", kAllgather, MakeGrid({5, 7}, true), 5},      // 2 + 3
      {"2d-torus", kAllreduce, MakeGrid({4, 4}, false), 12},    // 2 x (3 + 3)
      {"hierarchical-ring", kAllgather, MakeCluster(3, 4), 5},  // 2 across, 3 inside
      {"hierarchical-ring", kAllreduce, MakeCluster(3, 4), 10},
      {"hierarchical-exchange", kAllreduce, MakeCluster(2, 4), 3},
      {"hierarchical-exchange", kAllreduce, MakeCluster(3, 2), 3},  // inside, once across, inside
      {"hierarchical-exchange", kAllreduce, MakeCluster(8, 3), 5},  // 64 MiB: inside, 3 across, inside
      {"halving-doubling", kAllgather, MakeSwitch(6), 4},           // fold, 2, unfold
      {"recursive-doubling", kAllreduce, MakeSwitch(6), 4},
      {"double-binary-tree", kBroadcast, MakeSwitch(16), 4},
      {"spread", kBroadcast, MakeSwitch(4), 52},  // 3 lanes x 16 turns, and the timetable
  };
  for (const Case& c : cases) {
    const Collective collective = *Collective::Create(SpecOf(c.kind, AllRanks(c.topology.num_ranks())));
    const StatusOr<Synthesis> made = Make(c.topology, collective, c.engine);
    ASSERT_TRUE(made.ok()) << c.engine << ": " << made.status().message();
    EXPECT_EQ(made->schedule.num_steps(), c.steps) << c.engine << " " << ToString(c.kind);
  }
}

// The size decides how many trees pat aggregates, and the radices.
TEST(Formula, StepsBySize) {
  using enum CollectiveKind;
  struct Case {
    std::string engine;
    CollectiveKind kind;
    Topology topology;
    int64_t size_bytes;
    int32_t steps;
  };
  const int64_t kib = 1 << 10, mib = 1 << 20;
  const Case cases[] = {
      {"pat", kAllgather, MakeSwitch(16), 1 * kib, 4},  // log2 n
      {"pat", kAllgather, MakeSwitch(12), 1 * kib, 4},
      {"pat", kAllgather, MakeSwitch(16), 16 * mib, 2 + 3},  // 4 trees of 1 MiB: log2 A + n'/A - 1
      {"pat", kReduceScatter, MakeSwitch(12), 12 * mib, 2 + 3},
      {"pat", kAllgather, MakeSwitch(16), 1024 * mib, 15},  // one tree: n - 1
      {"pat", kAllgather, MakeSwitch(12), 1024 * mib, 11},
      {"pat", kAllreduce, MakeSwitch(5), 1024 * mib, 8},
      {"k-nomial", kBroadcast, MakeSwitch(16), 1 * kib, 2},  // radix 4 and more
      {"k-nomial", kReduce, MakeSwitch(16), 64 * mib, 4},    // radix 2
      {"k-nomial", kScatter, MakeSwitch(27), 1 * kib, 2},
      {"recursive-multiplying", kAllreduce, MakeSwitch(7), 1 * kib, 3},  // six exchange, the seventh joins
      {"recursive-multiplying", kAllreduce, MakeSwitch(16), 1 * kib, 2},
      {"swing", kAllreduce, MakeSwitch(16), 1 * kib, 4},
      {"bine", kAllreduce, MakeSwitch(16), 1 * kib, 4},
      {"direct", kAllreduce, MakeSwitch(16), 1 * kib, 1},
      {"direct", kAllreduce, MakeSwitch(16), 1024 * mib, 2},
      {"hierarchical-exchange", kAllreduce, MakeCluster(8, 3), 1 * kib, 3},
      {"recursive-multiplying", kAllgather, MakeSwitch(7), 1 * kib, 3},
  };
  for (const Case& c : cases) {
    const Collective collective = *Collective::Create(SpecOf(c.kind, AllRanks(c.topology.num_ranks())));
    const StatusOr<Synthesis> made = Make(c.topology, collective, c.engine, {}, c.size_bytes);
    ASSERT_TRUE(made.ok()) << c.engine << ": " << made.status().message();
    EXPECT_EQ(made->schedule.num_steps(), c.steps)
        << c.engine << " " << ToString(c.kind) << " on " << c.topology.num_ranks();
  }
}

// The number of blocks, each 1/n of the size, that the busiest rank sends in each step, from the papers.
// They add up to n - 1 if every rank forwards as much as it keeps.
TEST(Formula, BlocksSentInEachStep) {
  using enum CollectiveKind;
  struct Case {
    std::string engine;
    CollectiveKind kind;
    Topology topology;
    std::vector<int64_t> blocks;
  };
  const Case cases[] = {
      {"halving-doubling", kAllgather, MakeHypercube(3), {1, 2, 4}},
      {"halving-doubling", kReduceScatter, MakeHypercube(3), {4, 2, 1}},
      {"bruck", kAllgather, MakeFullMesh(7), {1, 2, 3}},
      {"nhr", kAllgather, MakeFullMesh(8), {1, 2, 4}},
      {"nhr", kAllgather, MakeFullMesh(6), {1, 1, 3}},  // (n - 1 + d) / 2d over d = 4, 2, 1
      {"nhr", kAllgather, MakeFullMesh(11), {1, 1, 3, 5}},
      {"nhr", kReduceScatter, MakeFullMesh(6), {3, 1, 1}},
      {"nhr", kScatter, MakeFullMesh(8), {4, 2, 1}},
      {"swing", kAllgather, MakeFullMesh(16), {1, 2, 4, 8}},
      {"swing", kReduceScatter, MakeFullMesh(16), {8, 4, 2, 1}},
      {"bine", kAllgather, MakeFullMesh(16), {1, 2, 4, 8}},
      {"bine", kScatter, MakeFullMesh(16), {8, 4, 2, 1}},
      {"bine", kGather, MakeFullMesh(16), {1, 2, 4, 8}},
      {"bine", kAlltoall, MakeFullMesh(16), {8, 8, 8, 8}},     // half of the buffer
      {"pat", kAllgather, MakeFullMesh(16), {1, 2, 4, 4, 4}},  // blocks of 1 MiB, 4 MiB at once
      {"pat", kReduceScatter, MakeFullMesh(16), {4, 4, 4, 2, 1}},
      {"recursive-multiplying", kAllgather, MakeFullMesh(16), {3, 3 * 4}},
      {"recursive-multiplying", kAlltoall, MakeFullMesh(9), {6, 6}},  // (k - 1) / k of the buffer
      {"2d-mesh", kAlltoall, MakeFullMesh(16), {12, 12}},
  };
  for (const Case& c : cases) {
    const int32_t n = c.topology.num_ranks();
    const int64_t share = 1 << 20;
    CollectiveSpec spec = SpecOf(c.kind, AllRanks(c.topology.num_ranks()));
    if (spec.root) spec.root = Rank(0);
    const Collective collective = *Collective::Create(spec);
    const StatusOr<Synthesis> made = Make(c.topology, collective, c.engine, {}, share * n);
    ASSERT_TRUE(made.ok()) << c.engine << ": " << made.status().message();
    const CollectiveSizes sizes(made->collective, share * n);
    std::vector<std::vector<int64_t>> sent(static_cast<size_t>(made->schedule.num_steps()),
                                           std::vector<int64_t>(static_cast<size_t>(n), 0));
    for (int64_t t = 0; t < made->schedule.size(); ++t) {
      const Transfer transfer = made->schedule.at(t);
      for (int32_t i = 0; i < transfer.count; ++i)
        sent[static_cast<size_t>(transfer.step)][transfer.src.index()] +=
            sizes.ChunkBytes(ChunkId(transfer.first.value + i));
    }
    std::vector<int64_t> blocks;
    for (const std::vector<int64_t>& by_rank : sent) blocks.push_back(std::ranges::max(by_rank) / share);
    EXPECT_EQ(blocks, c.blocks) << c.engine << " " << ToString(c.kind) << " on " << n;
  }
}

// Each of two trees carries half of the data; a corner's two links allow no less.
TEST(Formula, BroadcastOnAMeshTakesHalfTheSize) {
  const Topology mesh = MakeGrid({4, 5}, false);
  for (Rank root : {Rank(0), Rank(7), Rank(19)}) {
    const Collective collective = Rooted(CollectiveKind::kBroadcast, AllRanks(mesh.num_ranks()), root);
    const StatusOr<Synthesis> made = Make(mesh, collective, "2d-mesh");
    ASSERT_TRUE(made.ok()) << made.status().message();
    SimulateOptions options;
    options.size_bytes = 1 << 30;
    const Simulation simulation = Simulate(made->schedule, made->collective, mesh, options);
    const double half_ps = static_cast<double>(options.size_bytes) / 2 * kPsPerByte;
    EXPECT_GE(static_cast<double>(simulation.time_ps), half_ps);
    EXPECT_LE(static_cast<double>(simulation.time_ps), half_ps * 1.01);
  }
  for (const auto& [rows, columns, steps] : {std::tuple(4, 5, 7), {3, 3, 4}, {2, 5, 6}, {2, 2, 3}}) {
    const Topology from_corner = MakeGrid({rows, columns}, false);
    const Collective collective =
        Rooted(CollectiveKind::kBroadcast, AllRanks(from_corner.num_ranks()), Rank(0));
    EXPECT_EQ(Make(from_corner, collective, "2d-mesh")->schedule.num_steps(), steps)
        << rows << "x" << columns;
  }
}

// Whole vectors are exchanged, yet all ranks get the same bits, on any number of ranks.
TEST(Formula, ExchangesGiveTheSameBits) {
  int32_t exchanges = 0;
  for (int32_t n = 2; n <= 33; ++n) {
    const Topology machine = MakeSwitch(n);
    const Collective allreduce = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, AllRanks(n)));
    for (const char* engine : {"direct", "swing", "bine", "recursive-doubling", "recursive-multiplying"}) {
      const StatusOr<Synthesis> made = Make(machine, allreduce, engine, {}, 1 << 10);
      if (!made.ok()) continue;  // swing serves even numbers
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, machine)), OkStatus());
      EXPECT_TRUE(IsBitwiseSame(made->schedule, made->collective, machine)) << engine << " on " << n;
      exchanges += made->collective.num_chunks() == 1 ? 1 : 0;
    }
  }
  EXPECT_GT(exchanges, 80);
}

TEST(Rejections, SayWhyAndWhatToUse) {
  using enum CollectiveKind;
  struct Case {
    Topology topology;
    CollectiveKind kind;
    std::string engine;
    SynthesisLimits limits;
    std::string message;
  };
  const Case cases[] = {
      {MakeRing(8),
       kAllreduce,
       "recursive-doubling",
       {},
       "recursive-doubling: ranks 0 and 2 exchange partial sums and are not next to each other; expected a "
       "path "
       "through no other gpu; hint: --engine=halving-doubling"},
      {MakeSwitch(7),
       kAllgather,
       "2d-ring",
       {},
       "2d-ring: 7 ranks do not split into rows and columns; hint: --engine=ring"},
      {MakeSwitch(7),
       kAlltoall,
       "2d-mesh",
       {},
       "2d-mesh: 7 ranks do not split into rows and columns; hint: --engine=ring"},
      {MakeDgx1(),
       kAllgather,
       "2d-torus",
       {},
       "2d-torus: the 8 ranks form no grid, and ranks 0 and 5 are not next to each other; expected a grid or "
       "torus "
       "of two or more dimensions, or all next to each other; hint: --engine=ring"},
      {MakeSwitch(8),
       kAllreduce,
       "hierarchical-ring",
       {},
       "hierarchical-ring: all 8 ranks are on one host; expected several; hint: --engine=ring"},
      {MakeSwitch(4),
       kAlltoall,
       "ring",
       {},
       "ring: does not serve alltoall; it serves allreduce, allgather, allgatherv, reduce_scatter, "
       "reduce_scatterv, "
       "broadcast, reduce, barrier; hint: --engine=auto"},
      {MakeSwitch(4), kAllgather, "ring", Limits(0, std::nullopt), "ring: 0 chunks; expected at least 1"},
      {MakeSwitch(4), kAllgather, "ring", Limits(std::nullopt, 2),
       "ring: takes 3 steps; expected at most 2; hint: --steps=3"},
      {MakeSwitch(4), kAllgather, "ring", Limits(1 << 30, std::nullopt),
       "ring: 4294967296 chunks in all; at most 2^29 are supported"},
  };
  for (const Case& c : cases) {
    const Collective collective = *Collective::Create(SpecOf(c.kind, AllRanks(c.topology.num_ranks())));
    const Status status = Make(c.topology, collective, c.engine, c.limits).status();
    EXPECT_EQ(status.code(), c.limits.steps ? StatusCode::kLimit : StatusCode::kInvalidInput) << c.engine;
    EXPECT_EQ(status.message(), c.message);
  }
  const Topology cluster = MakeCluster(2, 2);
  const Collective uneven = *Collective::Create(SpecOf(kAllgather, {Rank(0), Rank(1), Rank(2)}));
  EXPECT_EQ(
      Make(cluster, uneven, "hierarchical-ring").status().message(),
      "hierarchical-ring: 2 ranks on one host and 1 on another; expected equal numbers; hint: --engine=ring");
}

// On a line 0-1-2 with members 0 and 2, rank 1 relays, including what is to be summed.
TEST(Reverse, SumsPassRelaysThatHoldNothing) {
  const Topology line = MakeGrid({3}, false);
  const Collective reduce = Rooted(CollectiveKind::kReduce, {Rank(0), Rank(2)}, Rank(0));
  const StatusOr<Synthesis> made = Make(line, reduce, "direct");
  ASSERT_TRUE(made.ok());
  ASSERT_EQ(made->schedule.size(), 2);
  EXPECT_EQ(made->schedule.src[0], Rank(2));
  EXPECT_EQ(made->schedule.op[0], TransferOp::kCopy);
  EXPECT_EQ(made->schedule.op[1], TransferOp::kReduce);
  EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, line)), OkStatus());
}

// Links of one direction give the two halves of an allreduce other places of ranks: the sums must end where
// the copies start.
TEST(Formula, HalvesOfAnAllreduceMeetAtTheSameRanks) {
  Random random(3);
  int32_t made = 0;
  for (int32_t trial = 0; trial < 40; ++trial) {
    const auto n = static_cast<int32_t>(3 + random.Below(7));
    std::vector<std::pair<int32_t, int32_t>> links;
    const auto join = [&](int32_t a, int32_t b) {
      if (a == b) return;
      links.emplace_back(a, b);
      if (random.Below(2) == 0) links.emplace_back(b, a);
    };
    for (int32_t r = 0; r < n; ++r) join(r, (r + 1) % n);
    for (uint64_t i = random.Below(2 * static_cast<uint64_t>(n)); i > 0; --i)
      join(static_cast<int32_t>(random.Below(static_cast<uint64_t>(n))),
           static_cast<int32_t>(random.Below(static_cast<uint64_t>(n))));
    const Topology digraph = MakeDigraph(n, links);
    const Collective allreduce = *Collective::Create(SpecOf(CollectiveKind::kAllreduce, AllRanks(n)));
    for (const Engine& engine : AllEngines()) {
      if (engine.searches_long || engine.asks_others) continue;
      const StatusOr<Synthesis> answer = Make(digraph, allreduce, engine.name, {}, 4);
      if (!answer.ok()) continue;
      ++made;
      EXPECT_EQ(ToStatus(VerifySchedule(answer->schedule, answer->collective, digraph)).message(), "")
          << engine.name << " " << trial;
    }
  }
  EXPECT_GE(made, 400);
}

// Rounds on a tree of GPUs send blocks over relays that have had them.
TEST(Formula, NoRankGetsABlockOfAnAlltoallTwice) {
  TopologySpec spec;
  spec.name = "tree";
  for (int32_t g = 0; g < 8; ++g) spec.nodes.emplace_back().id = fmt::format("{}", g);
  for (const auto& [a, b] : {std::pair{0, 1}, {0, 2}, {1, 3}, {2, 4}, {0, 5}, {3, 6}, {5, 7}})
    for (const bool back : {false, true})
      spec.links.push_back({NodeId(back ? b : a), NodeId(back ? a : b), 25'000'000'000, 0});
  const Topology tree = Topology::Create(std::move(spec)).value();
  const Collective alltoall = *Collective::Create(SpecOf(CollectiveKind::kAlltoall, AllRanks(8)));
  int32_t made = 0;
  for (const Engine& engine : AllEngines()) {
    SynthesisRequest request;
    request.topology = &tree;
    request.collective = &alltoall;
    if (engine.searches_long || engine.asks_others || !engine.Serves(request).ok()) continue;
    const StatusOr<Synthesis> answer = engine.Synthesize(request);
    if (!answer.ok()) continue;
    ++made;
    const Schedule& schedule = answer->schedule;
    std::set<std::pair<Rank, ChunkId>> got;
    for (int64_t t = 0; t < schedule.size(); ++t)
      for (int32_t i = 0; i < schedule.count[t]; ++i)
        EXPECT_TRUE(got.emplace(schedule.dst[t], ChunkId(schedule.first[t].value + i)).second) << engine.name;
  }
  EXPECT_GE(made, 6);
}

TEST(KeepTrees, DropsWhatComesTwiceAndWhatNobodyNeeds) {
  const Topology ring = MakeRing(4);
  const RankGraph graph(ring);
  Schedule schedule;
  schedule.num_chunks = 1;
  const auto add = [&](int32_t from, int32_t to, int32_t step) {
    schedule.Add(ChunkId(0), 1, Rank(from), Rank(to), graph.Links(*graph.Find(Rank(from), Rank(to))),
                 TransferOp::kCopy, step);
  };
  add(0, 1, 0);
  add(0, 3, 0);  // useless, since 2 has it from 1 earlier
  add(1, 2, 1);
  add(3, 2, 2);
  Normalize(schedule);
  const Schedule kept = KeepTrees(schedule, CopyGoal{{Rank(0), Rank(1), Rank(2)}, {Rank(0)}, {}}, 4);
  ASSERT_EQ(kept.size(), 2);
  EXPECT_EQ(kept.dst[0], Rank(1));
  EXPECT_EQ(kept.dst[1], Rank(2));
  EXPECT_EQ(kept.step[1], 1);
}

}  // namespace
}  // namespace xccl
