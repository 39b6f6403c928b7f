#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "base/strings.h"
#include "topologies/peers/peers_for_tests.h"

namespace xccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr int64_t kGb = int64_t{1} << 30;

TEST(AstraSimTest, ATorusIsRead) {
  const Topology torus = ReadPeer(
                             "# a torus\n"
                             "topology: [ Ring, Ring ]  # both\n"
                             "npus_count: [ 2, 3 ]\n"
                             "bandwidth: [ 50, 50.5 ]  # GB/s\n"
                             "latency: [ 500.0, 1.5e3 ]  # ns\n")
                             .value();
  EXPECT_EQ(torus.num_ranks(), 6);
  EXPECT_EQ(torus.num_hosts(), 1);
  // Three rings of two have a cable each, two rings of three have three.
  ASSERT_EQ(torus.num_links(), 2 * (3 + 6));
  EXPECT_EQ(torus.link(LinkId(0)).bandwidth_bytes_per_s, 50 * kGb);
  EXPECT_EQ(torus.link(LinkId(0)).latency_ps, 500'000);
  EXPECT_EQ(torus.link(LinkId(6)).bandwidth_bytes_per_s, 101 * kGb / 2);
  EXPECT_EQ(torus.link(LinkId(6)).latency_ps, 1'500'000);
  EXPECT_THAT(torus.spec().warnings, IsEmpty());
}

TEST(AstraSimTest, ADimensionFasterThanTheRestIsAHost) {
  const Topology machine =
      ReadPeer(
          "topology: [Switch, Switch]\nnpus_count: [4, 2]\nbandwidth: [400, 50]\nlatency: [1, 2]\nnew: 1\n")
          .value();
  EXPECT_EQ(machine.num_ranks(), 8);
  EXPECT_EQ(machine.num_hosts(), 2);
  EXPECT_EQ(machine.num_nodes(), 8 + 2 + 4);
  EXPECT_EQ(machine.num_links(), 2 * (8 + 8));
  EXPECT_EQ(machine.NodeName(NodeId(8)), "switch h0/switch");
  EXPECT_EQ(machine.NodeName(NodeId(10)), "switch switch2-0");
  EXPECT_THAT(machine.spec().warnings,
              ElementsAre("folder/peer.txt:5: new is not read",
                          "folder/peer.txt: the 4 NPUs of dimension 1, the fastest, are taken to be a host"));
}

TEST(AstraSimTest, AFlagGivesWhatIsNoNumber) {
  LoadOptions options;
  options.link = "bandwidth=25GB/s,latency=700ns";
  const Topology ring =
      ReadPeer("topology: [Ring, Ring]\nnpus_count: [2, 2]\nbandwidth: [tbd, 1]\nlatency: [tbd, 1]\n",
               options)
          .value();
  EXPECT_EQ(ring.link(LinkId(0)).bandwidth_bytes_per_s, 25'000'000'000);
  EXPECT_EQ(ring.link(LinkId(0)).latency_ps, 700'000);
  EXPECT_EQ(ring.link(LinkId(4)).bandwidth_bytes_per_s, kGb);
}

TEST(AstraSimTest, WrongTextsAreRefused) {
  const auto text = [](std::string_view topology, std::string_view count, std::string_view bandwidth,
                       std::string_view latency) {
    return fmt::format("topology: {}\nnpus_count: {}\nbandwidth: {}\nlatency: {}\n", topology, count,
                       bandwidth, latency);
  };
  const struct {
    std::string text;
    std::string_view message;
  } cases[] = {
      {text("[Rings]", "[4]", "[1]", "[1]"),
       "1:12: topology 'Rings'; expected Ring, FullyConnected, Switch; did you mean 'Ring'?"},
      {text("Ring", "[4]", "[1]", "[1]"), "1:11: topology that is no list; expected an entry a dimension"},
      {text("[]", "[]", "[]", "[]"), "1:11: topology that is no list; expected an entry a dimension"},
      {text("[Ring]", "[4, 2]", "[1]", "[1]"),
       "2:13: npus_count of 2 dimensions; expected 1, as topology has"},
      {text("[Ring]", "[1]", "[1]", "[1]"),
       "2:14: npus_count: '1': expected a whole number from 2 to 1048576"},
      {text("[Ring]", "[x]", "[1]", "[1]"),
       "2:14: npus_count: 'x': expected a whole number from 2 to 1048576"},
      {text("[Ring]", "[4]", "[tbd]", "[1]"),
       "3:13: 'tbd'; expected a number; hint: --link=bandwidth=50GB/s,latency=500ns"},
      {text("[Ring]", "[4]", "[0]", "[1]"), "3:13: a bandwidth of 0 B/s; expected 1 B/s to 1000000GB/s"},
      {text("[Ring]", "[4]", "[nan]", "[1]"), "3:13: a bandwidth of nan B/s; expected 1 B/s to 1000000GB/s"},
      {text("[Ring]", "[4]", "[1]", "[-1]"), "4:11: a latency of -0.001 us; expected 0 to 1000ms"},
      {text("[Ring]", "[4]", "[1]", "[{a: b}]"),
       "4:11: ''; expected a number; hint: --link=bandwidth=50GB/s,latency=500ns"},
      {text("[Ring, Ring]", "[131072, 131072]", "[1, 1]", "[1, 1]"),
       " 17179869184 nodes; at most 1048576 are supported"},
      {text("[FullyConnected]", "[131072]", "[1]", "[1]"),
       " 17179738112 links; at most 4194304 are supported"},
      {"topology: [Ring]\nnpus_count: [4]\nbandwidth: [1]\n",
       "1:1: no latency; expected topology, npus_count, bandwidth, latency"},
  };
  for (const auto& c : cases) EXPECT_EQ(Refusal(c.text), fmt::format("folder/peer.txt:{}", c.message));
}

TEST(AstraSimTest, OtherTextsAreNotAstraSim) {
  for (const std::string_view text : {"", "topology: [Ring]\n", "npus_count: [4]\n",
                                      "- topology: x\nnpus_count: 1\n", "topology npus_count:\n"})
    EXPECT_EQ(Refusal(text), "the text is of no known format") << text;
}

// From, to, bandwidth and latency of links between NPUs, and links of each switch.
struct Shown {
  std::vector<std::tuple<int64_t, int64_t, int64_t, int64_t>> between;
  std::vector<std::tuple<std::vector<int64_t>, int64_t, int64_t>> switches;
  bool operator==(const Shown&) const = default;
};

Shown ShownOf(const Topology& topology) {
  Shown shown;
  for (int32_t n = 0; n < topology.num_nodes(); ++n) {
    std::vector<int64_t> members;
    for (const LinkId id : topology.Out(NodeId(n))) {
      const Link& link = topology.link(id);
      const auto to = topology.RankOf(link.to);
      if (topology.IsGpu(NodeId(n))) {
        if (to)
          shown.between.emplace_back(topology.RankOf(NodeId(n))->value, to->value, link.bandwidth_bytes_per_s,
                                     link.latency_ps);
      } else {
        members.push_back(to->value);
      }
    }
    if (topology.IsGpu(NodeId(n))) continue;
    const Link& link = topology.link(topology.In(NodeId(n))[0]);
    std::ranges::sort(members);
    shown.switches.emplace_back(members, link.bandwidth_bytes_per_s, link.latency_ps);
  }
  std::ranges::sort(shown.between);
  std::ranges::sort(shown.switches);
  return shown;
}

struct Made {
  std::string text;
  Shown shown;
};

// Random dimensions as a file, and what they mean by looking at all pairs of NPUs.
Made RandomNetwork(Random& random) {
  constexpr std::string_view kShapes[] = {"Ring", "FullyConnected", "Switch"};
  const size_t dimensions = 1 + random.Below(3);
  std::vector<std::string> columns[4];
  std::vector<int64_t> counts, bandwidths, latencies;
  int64_t npus = 1;
  for (size_t d = 0; d < dimensions; ++d) {
    columns[0].emplace_back(kShapes[random.Below(3)]);
    counts.push_back(static_cast<int64_t>(2 + random.Below(4)));
    bandwidths.push_back(static_cast<int64_t>(1 + random.Below(1000)));
    latencies.push_back(static_cast<int64_t>(random.Below(5000)));
    npus *= counts[d];
    columns[1].push_back(fmt::format("{}", counts[d]));
    columns[2].push_back(fmt::format("{}{}", bandwidths[d], random.Below(2) == 0 ? "" : ".0"));
    columns[3].push_back(fmt::format("{}{}", latencies[d], random.Below(2) == 0 ? "" : ".0"));
  }
  Made made;
  size_t order[4] = {0, 1, 2, 3};
  random.Shuffle(std::span<size_t>(order));
  constexpr std::string_view kKeys[] = {"topology", "npus_count", "bandwidth", "latency"};
  for (const size_t k : order) {
    made.text += random.Below(3) == 0
                     ? fmt::format("{}:\n  - {}\n", kKeys[k], Join(columns[k], "\n  - "))
                     : fmt::format("{}: [ {} ]  # a comment: [1]\n", kKeys[k], Join(columns[k], ", "));
    if (random.Below(3) == 0) made.text += "\n# latency: [1]\n";
  }
  const auto coordinate = [&](int64_t npu, size_t d) {
    for (size_t e = 0; e < d; ++e) npu /= counts[e];
    return npu % counts[d];
  };
  for (int64_t a = 0; a < npus; ++a) {
    for (size_t d = 0; d < dimensions; ++d) {
      std::vector<int64_t> group;
      for (int64_t b = 0; b < npus; ++b) {
        bool same = true;
        for (size_t e = 0; e < dimensions; ++e)
          same = same && (e == d || coordinate(a, e) == coordinate(b, e));
        if (!same) continue;
        group.push_back(b);
        const int64_t apart = (coordinate(b, d) - coordinate(a, d) + counts[d]) % counts[d];
        if (apart == 0 || columns[0][d] == "Switch") continue;
        if (columns[0][d] == "Ring" && apart != 1 && apart != counts[d] - 1) continue;
        made.shown.between.emplace_back(a, b, bandwidths[d] * kGb, latencies[d] * 1000);
      }
      if (columns[0][d] == "Switch" && coordinate(a, d) == 0)
        made.shown.switches.emplace_back(group, bandwidths[d] * kGb, latencies[d] * 1000);
    }
  }
  std::ranges::sort(made.shown.between);
  std::ranges::sort(made.shown.switches);
  return made;
}

TEST(AstraSimTest, RandomNetworksComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Made made = RandomNetwork(random);
    const StatusOr<Topology> read = ReadPeer(made.text);
    ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << made.text;
    ASSERT_TRUE(ShownOf(*read) == made.shown) << made.text;
  }
}

TEST(AstraSimTest, ChangedTextsAreReadOrRefused) {
  Random random(2);
  constexpr std::string_view kCharacters = "[],:-# \n{}0919.e";
  for (int i = 0; i < 3'000; ++i) {
    std::string text = RandomNetwork(random).text;
    for (uint64_t n = 1 + random.Below(3); n > 0 && !text.empty(); --n) {
      const size_t at = random.Below(text.size());
      if (random.Below(3) == 0) {
        text.erase(at, 1 + random.Below(6));
      } else {
        text[at] = kCharacters[random.Below(kCharacters.size())];
      }
    }
    const StatusOr<Topology> read = ReadPeer(text);
    ASSERT_TRUE(read.ok() || read.status().code() == StatusCode::kInvalidInput) << text;
  }
}

}  // namespace
}  // namespace xccl
