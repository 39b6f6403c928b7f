#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "ir/bounds/bound.h"
#include "ir/verify/verify_schedule.h"
#include "synth/forest/folded_hosts.h"
#include "synth/forest/forest.h"

namespace xccl::forest {
namespace {

constexpr int64_t kGb = 1'000'000'000;

NodeId AddNode(TopologySpec& spec, NodeKind kind, std::string id, std::optional<HostId> host = {}) {
  spec.nodes.push_back({.kind = kind, .id = std::move(id), .host = host});
  return NodeId(static_cast<int64_t>(spec.nodes.size()) - 1);
}

void AddCable(TopologySpec& spec, NodeId a, NodeId b, int64_t gb_per_s) {
  spec.links.push_back({a, b, gb_per_s * kGb, 500'000, 0});
  spec.links.push_back({b, a, gb_per_s * kGb, 500'000, 0});
}

// Hosts of eight GPUs on a switch of 400 GB/s, each GPU with a NIC of 50 GB/s to the leaf of its rail. Two
// groups of hosts have leaves of their own, and two spines join all leaves. The NICs of the last host have
// 18, 20, ..., 32 GB/s, so that no translation moves rails.
Topology UnevenRails(int32_t first_group, int32_t second_group) {
  constexpr int32_t kRails = 8;
  TopologySpec spec;
  spec.name = "uneven rails";
  std::vector<NodeId> leaves, spines;
  const int32_t hosts = first_group + second_group;
  for (int32_t l = 0; l < 2 * kRails; ++l)
    leaves.push_back(AddNode(spec, NodeKind::kSwitch, fmt::format("leaf{}", l)));
  for (int32_t s = 0; s < 2; ++s)
    spines.push_back(AddNode(spec, NodeKind::kSwitch, fmt::format("spine{}", s)));
  for (const NodeId leaf : leaves)
    for (const NodeId spine : spines) AddCable(spec, leaf, spine, 25 * first_group);
  for (int32_t h = 0; h < hosts; ++h) {
    spec.hosts.push_back({fmt::format("h{}", h)});
    const HostId host(h);
    const NodeId inside = AddNode(spec, NodeKind::kSwitch, "nvswitch", host);
    for (int32_t k = 0; k < kRails; ++k) {
      const NodeId gpu = AddNode(spec, NodeKind::kGpu, fmt::format("{}", k), host);
      const NodeId nic = AddNode(spec, NodeKind::kNic, fmt::format("nic{}", k), host);
      AddCable(spec, gpu, inside, 400);
      AddCable(spec, gpu, nic, h + 1 == hosts ? 18 + 2 * k : 50);
      AddCable(spec, nic, leaves[static_cast<size_t>(h < first_group ? k : kRails + k)], 50);
    }
  }
  return Topology::Create(std::move(spec)).value();
}

SynthesisRequest RequestOf(const Topology& topology, const Collective& collective) {
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &collective;
  request.size_bytes = int64_t{256} << 20;
  return request;
}

Collective Of(CollectiveKind kind, const Topology& topology) {
  CollectiveSpec spec;
  spec.kind = kind;
  spec.ranks = AllRanks(topology.num_ranks());
  return Collective::Create(std::move(spec)).value();
}

TEST(FoldedHosts, LeavesOfAGroupAndSpinesAreOneSwitchEach) {
  const Topology machine = UnevenRails(3, 2);
  const std::optional<FoldedHosts> folded = FoldHosts(machine);
  ASSERT_TRUE(folded.has_value());
  const Topology& hosts = folded->topology;
  EXPECT_EQ(hosts.num_ranks(), 5);
  EXPECT_EQ(hosts.num_nodes(), 5 + 3);
  EXPECT_EQ(folded->host_of_rank[39], Rank(4));
  // A host's link to its leaves carries what all of its NICs carry, though the cables of the last host's NICs
  // are wider.
  const auto rate = [&](Rank host) {
    const std::span<const LinkId> out = hosts.Out(hosts.NodeOf(host));
    return out.size() == 1 ? hosts.link(out[0]).bandwidth_bytes_per_s : 0;
  };
  EXPECT_EQ(rate(Rank(0)), 8 * 50 * kGb);
  EXPECT_EQ(rate(Rank(4)), 8 * 25 * kGb);
  EXPECT_EQ(hosts.num_links(), 2 * (5 + 2));
}

TEST(FoldedHosts, OneHostDoesNotFold) { EXPECT_FALSE(FoldHosts(UnevenRails(1, 0)).has_value()); }

TEST(FoldedHosts, NearestGpusAreThoseOfTheWidestPath) {
  const Topology machine = UnevenRails(2, 1);
  const FoldedHosts folded = FoldHosts(machine).value();
  const NodeId gpu = machine.NodeOf(Rank(3));
  const NodeId nic = machine.link(machine.Out(gpu)[1]).to;
  const NearGpus near = NearestGpus(machine, folded.place, nic, Way::kIn);
  ASSERT_EQ(near.gpus.size(), 1U);
  EXPECT_EQ(near.gpus[0].gpu, gpu);
  EXPECT_EQ(near.bandwidth_bytes_per_s, 50 * kGb);
  EXPECT_EQ(near.gpus[0].path.size(), 1U);
}

// Each row is a collective and the most that its plan may take, in times of the bound.
struct Row {
  CollectiveKind kind;
  double most;
};
constexpr Row kRows[] = {
    {CollectiveKind::kAllgather, 2}, {CollectiveKind::kReduceScatter, 2}, {CollectiveKind::kAllreduce, 2}};

TEST(FoldedPacking, UnevenClusterIsPlannedNearItsBound) {
  const Topology machine = UnevenRails(9, 7);
  for (const auto& [kind, most] : kRows) {
    const Collective collective = Of(kind, machine);
    SynthesisRequest request = RequestOf(machine, collective);
    const StatusOr<Synthesis> plan = ForestEngine().Synthesize(request);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    EXPECT_EQ(ToStatus(VerifySchedule(plan->schedule, plan->collective, machine)).message(), "");
    ASSERT_TRUE(plan->simulation.has_value());
    const Bound bound = LowerBound(machine, collective, request.size_bytes, request.model).value();
    EXPECT_LE(static_cast<double>(plan->simulation->time_ps), most * static_cast<double>(bound.bound_ps))
        << collective.name();

    request.passed_over = {"folded"};
    EXPECT_FALSE(ForestEngine().Synthesize(request).ok()) << collective.name();
  }
}

}  // namespace
}  // namespace xccl::forest
