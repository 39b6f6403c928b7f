#include "topologies/symmetry.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/random.h"
#include "topologies/load/load.h"
#include "topologies/topology.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

Topology Load(const std::string& name) {
  StatusOr<Topology> topology = LoadTopology(name);
  EXPECT_TRUE(topology.ok()) << topology.status().message();
  return *std::move(topology);
}

// Checks every promise of the header, element by element, from the definition of an automorphism.
void ExpectGroup(const Topology& t, const SymmetryGroup& group, const std::string& name) {
  int64_t product = 1;
  for (const Automorphism& g : group.generators()) product *= g.order;
  ASSERT_EQ(product, group.order()) << name;
  ASSERT_EQ(group.order() * group.num_rank_orbits(), t.num_ranks()) << name;
  std::set<std::vector<NodeId>> elements;
  for (int64_t e = 0; e < group.order(); ++e) {
    std::vector<NodeId> image;
    for (int32_t n = 0; n < t.num_nodes(); ++n) {
      image.push_back(group.Image(e, NodeId(n)));
      const Node &a = t.node(NodeId(n)), &b = t.node(image.back());
      ASSERT_TRUE(a.kind == b.kind && a.multicast == b.multicast && a.reduce == b.reduce) << name;
      ASSERT_EQ(group.OrbitOf(NodeId(n)), group.OrbitOf(image.back())) << name;
    }
    std::vector<bool> taken(static_cast<size_t>(t.num_links()), false);
    for (int32_t l = 0; l < t.num_links(); ++l) {
      const LinkId to = group.Image(e, LinkId(l));
      ASSERT_FALSE(taken[to.index()]) << name;
      taken[to.index()] = true;
      Link expected = t.link(LinkId(l));
      expected.from = image[expected.from.index()];
      expected.to = image[expected.to.index()];
      ASSERT_EQ(t.link(to), expected) << name;
      ASSERT_EQ(group.OrbitOf(LinkId(l)), group.OrbitOf(to)) << name;
    }
    for (int32_t r = 0; r < t.num_ranks(); ++r) {
      const Rank to = group.Image(e, Rank(r));
      ASSERT_EQ(t.NodeOf(to), group.Image(e, t.NodeOf(Rank(r)))) << name;
      ASSERT_TRUE(e == 0 || to != Rank(r)) << name << ": element " << e << " keeps rank " << r;
      ASSERT_EQ(group.Image(group.Inverse(e), to), Rank(r)) << name;
      ASSERT_EQ(group.Image(group.Compose(e, 1 % group.order()), Rank(r)),
                group.Image(1 % group.order(), to));
    }
    elements.insert(std::move(image));
  }
  EXPECT_EQ(static_cast<int64_t>(elements.size()), group.order()) << name << ": elements differ";
  for (int32_t r = 0; r < t.num_ranks(); ++r) {
    const Rank first = group.Representative(group.OrbitOf(Rank(r)));
    EXPECT_LE(first, Rank(r)) << name;
    EXPECT_EQ(group.Image(group.ElementOf(Rank(r)), first), Rank(r)) << name;
  }
  std::map<int32_t, int64_t> links;
  for (int32_t l = 0; l < t.num_links(); ++l) {
    ++links[group.OrbitOf(LinkId(l))];
    EXPECT_LE(group.LinkRepresentative(group.OrbitOf(LinkId(l))), LinkId(l)) << name;
  }
  for (const auto& [orbit, size] : links) EXPECT_EQ(group.LinkOrbitSize(orbit), size) << name;
}

TEST(Symmetry, FindsTranslations) {
  struct Case {
    const char* topology;
    int64_t order;
  };
  const std::vector<Case> cases = {
      {"torus:8x8", 64},
      {"torus:5x6", 30},
      {"torus:4x4x4", 64},
      {"torus:2x3x2", 12},
      {"torus:3x1x4", 12},
      {"ring:16", 16},
      {"hypercube:6", 64},
      {"full-mesh:8", 8},
      {"full-mesh:1", 1},
      {"full-mesh:2", 2},
      {"nvswitch:8", 8},
      {"mesh:4x4", 4},
      {"mesh:5x6", 2},
      {"mesh:3x3", 1},  // every automorphism keeps the middle
      {"fat-tree:k=4", 16},
      {"fat-tree:k=8", 128},
      {"leaf-spine:4x2x8", 32},
      {"dragonfly:4x5x2", 8},   // global links are not spread evenly over routers
      {"dragonfly:9x8x2", 18},  // the groups turn, and the two hosts of a router
      {"rail-2", 16},
      {"rail-16", 128},
      {"dgx-a100", 8},
      {"dgx1", 4},
      {"gb200-nvl72", 72},
      {"mi250x", 4},
      {"mi300x", 8},
      {"ndv2", 2},
      {"p4d", 8},  // two GPUs per PCIe switch
      {"tpu-v4", 64},
  };
  for (const Case& c : cases) {
    const Topology t = Load(c.topology);
    const SymmetryGroup group = FindTranslations(t);
    EXPECT_EQ(group.order(), c.order) << c.topology;
    ExpectGroup(t, group, c.topology);
  }
}

TEST(Symmetry, GroupsOfLeavesUnderSpines) {
  const Topology pods = ReadNativeXml(R"(<topology name="pods">
    <cluster hosts="4">
      <cluster hosts="4">
        <nvswitch gpus="8"/><nic id="nic" count="8"/>
        <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="25GB/s"/>
        <fabric type="rails"/>
      </cluster>
      <fabric id="spine"/>
    </cluster>
  </topology>)",
                                      "pods.xml")
                            .value();
  EXPECT_EQ(FindTranslations(pods).order(), 128);
}

// Small members of the families that large machines are of: one orbit of ranks each.
TEST(Symmetry, OneOrbitOfRanksInClusters) {
  const Topology rails = ReadNativeXml(R"(<topology name="rails">
    <cluster hosts="4" name="pod">
      <cluster hosts="3">
        <nvswitch gpus="4" multicast="true" reduce="true"/><nic id="nic" count="4"/>
        <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s"/>
        <fabric type="rails" spines="2"/>
      </cluster>
      <fabric id="core" type="switch" bandwidth="150GB/s"/>
    </cluster>
  </topology>)",
                                       "rails.xml")
                             .value();
  const Topology racks = ReadNativeXml(R"(<topology name="racks">
    <cluster hosts="2" name="su">
      <cluster hosts="3" name="rack">
        <cluster hosts="3" name="tray">
          <gpu count="4"/><nic id="nic" count="4"/>
          <link from="gpu:*" to="nvswitch" bandwidth="900GB/s"/>
          <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s"/>
        </cluster>
        <switch id="nvswitch" multicast="true"/>
      </cluster>
      <switch id="rail" count="4"/>
      <link from="*/nic0" to="rail0" bandwidth="50GB/s"/><link from="*/nic1" to="rail1" bandwidth="50GB/s"/>
      <link from="*/nic2" to="rail2" bandwidth="50GB/s"/><link from="*/nic3" to="rail3" bandwidth="50GB/s"/>
      <fabric id="core" type="switch" attach="rail*" bandwidth="450GB/s"/>
    </cluster>
  </topology>)",
                                       "racks.xml")
                             .value();
  const Topology thin = ReadNativeXml(R"(<topology name="thin">
    <cluster hosts="3" name="pod">
      <cluster hosts="4" name="rack">
        <cluster hosts="2">
          <nvswitch gpus="4"/><nic id="nic" count="4"/>
          <link from="gpu:*" to="nic:*" pairwise="true" bandwidth="50GB/s"/>
          <fabric id="leaf" type="switch"/>
        </cluster>
        <fabric id="spine" type="switch" bandwidth="400GB/s"/>
      </cluster>
      <fabric id="core" type="switch" bandwidth="200GB/s"/>
    </cluster>
  </topology>)",
                                      "thin.xml")
                            .value();
  for (const Topology& t :
       {rails, racks, thin, Load("fat-tree:k=6"), Load("torus:4x4x3"), Load("leaf-spine:6x3x4")}) {
    const SymmetryGroup group = FindTranslations(t);
    EXPECT_TRUE(group.IsTransitive()) << t.name() << ": " << group.order() << " translations";
    ExpectGroup(t, group, t.name());
  }
  EXPECT_TRUE(FindTranslations(Load("fat-tree:k=16")).IsTransitive());
}

TEST(Symmetry, LongCyclesOfConstantDisplacementFirst) {
  const SymmetryGroup torus = FindTranslations(Load("torus:4x6"));
  ASSERT_EQ(torus.generators().size(), 2U);
  EXPECT_EQ(torus.generators()[0].order, 6);
  EXPECT_EQ(torus.generators()[1].order, 4);
  EXPECT_EQ(torus.Image(1, Rank(0)), Rank(1));
  EXPECT_EQ(torus.Image(6, Rank(0)), Rank(6));
  EXPECT_EQ(torus.num_link_orbits(), 4);
  const SymmetryGroup cluster = FindTranslations(Load("rail-4"));
  EXPECT_EQ(cluster.Image(1, Rank(7)), Rank(0));
  EXPECT_EQ(cluster.Image(8, Rank(7)), Rank(15));
}

// Returns the machine with its nodes and links in another order.
Topology Shuffle(const Topology& t, Random& random) {
  std::vector<int32_t> order(static_cast<size_t>(t.num_nodes())), place(order.size());
  std::iota(order.begin(), order.end(), 0);
  for (size_t i = order.size(); i-- > 1;) std::swap(order[i], order[random.Below(i + 1)]);
  TopologySpec spec = t.spec();
  for (size_t i = 0; i < order.size(); ++i) {
    spec.nodes[i] = t.spec().nodes[static_cast<size_t>(order[i])];
    place[static_cast<size_t>(order[i])] = static_cast<int32_t>(i);
  }
  for (Link& link : spec.links) {
    link.from = NodeId(place[link.from.index()]);
    link.to = NodeId(place[link.to.index()]);
  }
  for (size_t i = spec.links.size(); i-- > 1;) std::swap(spec.links[i], spec.links[random.Below(i + 1)]);
  return *Topology::Create(std::move(spec));
}

TEST(Symmetry, WhateverTheNumbering) {
  Random random(7);
  for (const char* name : {"ring:12", "hypercube:4", "full-mesh:6", "nvswitch:8", "rail-2"}) {
    const Topology t = Load(name);
    for (int32_t round = 0; round < 4; ++round) {
      const Topology shuffled = Shuffle(t, random);
      const SymmetryGroup group = FindTranslations(shuffled);
      EXPECT_GT(group.order(), 1) << name;
      ExpectGroup(shuffled, group, name);
    }
  }
}

TEST(Symmetry, AnyDigraph) {
  Random random(3);
  for (int32_t round = 0; round < 300; ++round) {
    TopologySpec spec;
    spec.name = "random";
    const int32_t nodes = 2 + static_cast<int32_t>(random.Below(5));
    for (int32_t n = 0; n < nodes; ++n) {
      const bool gpu = n == 0 || random.Below(4) != 0;
      spec.nodes.push_back(
          {gpu ? NodeKind::kGpu : NodeKind::kSwitch, std::to_string(n), std::nullopt, false, false});
    }
    for (int32_t l = 0; l < 2 * nodes; ++l) {
      const int64_t from = static_cast<int64_t>(random.Below(static_cast<uint64_t>(nodes)));
      const int64_t to = static_cast<int64_t>(random.Below(static_cast<uint64_t>(nodes)));
      if (from != to)
        spec.links.push_back({NodeId(from), NodeId(to), 1 + static_cast<int64_t>(random.Below(2)), 0, 0});
    }
    const Topology t = *Topology::Create(std::move(spec));
    ExpectGroup(t, FindTranslations(t), fmt::format("round {}", round));
  }
}

TEST(Symmetry, RejectsWhatIsNoGroup) {
  struct Case {
    const char* topology;
    std::vector<Automorphism> generators;
    const char* message;
  };
  const auto nodes = [](std::initializer_list<int32_t> images) {
    std::vector<NodeId> image;
    for (int32_t n : images) image.push_back(NodeId(n));
    return image;
  };
  const std::vector<Case> cases = {
      {"ring:4", {{4, nodes({1, 2, 3})}}, "generator 0: 3 images; ring:4 has 4 nodes"},
      {"ring:4", {{4, nodes({1, 2, 3, 4})}}, "generator 0: takes node 3 to 4; nodes are 0..3"},
      {"ring:4", {{4, nodes({1, 2, 3, 3})}}, "generator 0: takes two nodes to gpu 3"},
      {"nvswitch:2", {{3, nodes({1, 2, 0})}}, "generator 0: takes gpu 1 to switch nvswitch, which differs"},
      {"ring:4",
       {{2, nodes({1, 0, 2, 3})}},
       "generator 0: takes link 1->2 to gpu 0 -> gpu 2, which have no such link"},
      {"ring:4", {{2, nodes({1, 2, 3, 0})}}, "generator 0: order 2; its images have order 4"},
      {"ring:4", {{1, nodes({0, 1, 2, 3})}}, "generator 0: order 1; its images have order 1"},
      {"full-mesh:4",
       {{2, nodes({1, 0, 3, 2})}, {2, nodes({1, 2, 0, 3})}},
       "generator 1: order 2; its images have order 3"},
      {"full-mesh:6",
       {{2, nodes({1, 0, 3, 2, 5, 4})}, {3, nodes({1, 2, 0, 4, 5, 3})}},
       "generator 1: does not commute with generator 0 at gpu 0"},
      {"full-mesh:4",
       {{2, nodes({1, 0, 3, 2})}, {2, nodes({1, 0, 2, 3})}},
       "rank 0 is taken to 2 ranks by 4 elements; expected as many"},
      {"full-mesh:3",
       {{2, nodes({1, 0, 2})}, {2, nodes({1, 0, 2})}},
       "generator 1: makes a group of order 4; 3 ranks can be moved by no more"},
      {"ring:4", {{2, nodes({0, 3, 2, 1})}}, "rank 0 is taken to 1 ranks by 2 elements; expected as many"},
  };
  for (const Case& c : cases) {
    const StatusOr<SymmetryGroup> group = SymmetryGroup::Create(Load(c.topology), c.generators);
    ASSERT_FALSE(group.ok()) << c.message;
    EXPECT_EQ(group.status().message(), c.message);
  }
}

TEST(Symmetry, ParallelLinksInOrder) {
  const Topology t = Load("torus:2x4");
  const SymmetryGroup group = FindTranslations(t);
  TopologySpec spec = t.spec();
  const size_t links = spec.links.size();
  for (size_t l = 0; l < links; ++l) spec.links.push_back(spec.links[l]);
  const Topology doubled = *Topology::Create(std::move(spec));
  const SymmetryGroup same = FindTranslations(doubled);
  ASSERT_EQ(same.order(), 8);
  for (int64_t e = 0; e < 8; ++e)
    for (size_t l = 0; l < links; ++l)
      EXPECT_EQ(same.Image(e, LinkId(static_cast<int64_t>(links + l))).value,
                same.Image(e, LinkId(static_cast<int64_t>(l))).value + static_cast<int32_t>(links));
  EXPECT_EQ(same.num_link_orbits(), 2 * group.num_link_orbits());
}

}  // namespace
}  // namespace xccl
