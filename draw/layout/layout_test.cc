#include "draw/layout/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/testing/shared_data.h"
#include "draw/layout/grid_shape.h"
#include "topologies/load/load.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

bool Overlap(const DrawnItem& a, const DrawnItem& b) {
  return std::abs(a.x - b.x) < (a.width + b.width) / 2 && std::abs(a.y - b.y) < (a.height + b.height) / 2;
}

bool Within(const DrawnFrame& frame, const DrawnItem& item) {
  return item.x - item.width / 2 >= frame.left && item.x + item.width / 2 <= frame.left + frame.width &&
         item.y - item.height / 2 >= frame.top && item.y + item.height / 2 <= frame.top + frame.height;
}

bool Apart(const DrawnFrame& frame, const DrawnItem& item) {
  return item.x + item.width / 2 <= frame.left || item.x - item.width / 2 >= frame.left + frame.width ||
         item.y + item.height / 2 <= frame.top || item.y - item.height / 2 >= frame.top + frame.height;
}

// Whether a straight cable enters a box: some of its points do, as boxes are wider than the distance between
// the points that are looked at.
bool IsBehind(const DrawnCable& cable, const DrawnItem& item) {
  const DrawnPoint &from = cable.points.front(), &to = cable.points.back();
  const int points = static_cast<int>(std::hypot(to.x - from.x, to.y - from.y));
  for (int p = 0; p <= points; ++p) {
    const double x = from.x + (to.x - from.x) * p / points, y = from.y + (to.y - from.y) * p / points;
    if (std::abs(x - item.x) < item.width / 2 - 1 && std::abs(y - item.y) < item.height / 2 - 1) return true;
  }
  return false;
}

// Straight cables that pass behind the box of a third node.
std::vector<std::string> HiddenCables(const Topology& topology) {
  const MachineLayout layout = LayOut(topology);
  std::vector<std::string> hidden;
  for (const DrawnCable& cable : layout.cables) {
    if (cable.form != DrawnCable::Form::kLine) continue;
    for (size_t i = 0; i < layout.items.size(); ++i)
      if (std::cmp_not_equal(i, cable.a) && std::cmp_not_equal(i, cable.b) &&
          IsBehind(cable, layout.items[i]))
        hidden.push_back(topology.name() + " " + topology.LinkName(cable.links.front()));
  }
  return hidden;
}

// The invariants of layout.h, and that lines go to what they join.
void Check(const Topology& topology) {
  SCOPED_TRACE(topology.name());
  const MachineLayout layout = LayOut(topology);
  EXPECT_EQ(layout, LayOut(topology));
  EXPECT_FALSE(layout.shape.empty());
  std::vector<int32_t> seen(static_cast<size_t>(topology.num_nodes()), 0);
  std::vector<DrawnItem> items = layout.items;
  for (size_t i = 0; i < items.size(); ++i) {
    for (const NodeId node : items[i].nodes) {
      ++seen[node.index()];
      EXPECT_EQ(layout.item_of_node[node.index()], static_cast<int32_t>(i));
    }
    EXPECT_GE(items[i].x - items[i].width / 2, 0);
    EXPECT_LE(items[i].x + items[i].width / 2, layout.width);
    EXPECT_GE(items[i].y - items[i].height / 2, 0);
    EXPECT_LE(items[i].y + items[i].height / 2, layout.height);
    for (const std::string& line : items[i].lines)
      EXPECT_GE(items[i].width, 6 * static_cast<double>(line.size()) * (items[i].folded ? 0.9 : 1)) << line;
  }
  EXPECT_TRUE(std::ranges::all_of(seen, [](int32_t n) { return n == 1; }));
  int32_t overlaps = 0;
  std::ranges::sort(items, {}, [](const DrawnItem& item) { return item.x - item.width / 2; });
  for (size_t a = 0; a < items.size(); ++a)
    for (size_t b = a + 1;
         b < items.size() && items[b].x - items[b].width / 2 < items[a].x + items[a].width / 2; ++b)
      overlaps += Overlap(items[a], items[b]) ? 1 : 0;
  EXPECT_EQ(overlaps, 0);
  for (const DrawnFrame& frame : layout.frames)
    for (const DrawnItem& item : items) EXPECT_TRUE(Within(frame, item) || Apart(frame, item)) << frame.label;
  for (const DrawnCable& cable : layout.cables) {
    EXPECT_LT(cable.a, cable.b);
    EXPECT_FALSE(cable.links.empty());
    for (const auto& [item, point] :
         {std::pair(cable.a, cable.points.front()), std::pair(cable.b, cable.points.back())}) {
      const DrawnItem& end = layout.items[static_cast<size_t>(item)];
      EXPECT_LE(std::abs(point.x - end.x), end.width / 2);
      EXPECT_LE(std::abs(point.y - end.y), end.height / 2);
    }
    for (const LinkId l : cable.links) {
      const Link& link = topology.link(l);
      const auto ends =
          std::minmax(layout.item_of_node[link.from.index()], layout.item_of_node[link.to.index()]);
      EXPECT_EQ(ends, (std::pair<const int32_t&, const int32_t&>(cable.a, cable.b)));
    }
  }
}

constexpr int64_t kMostNodes = 20'000;  // larger machines of the library take seconds each

TEST(LayOut, NoStraightCablePassesBehindAThirdNode) {
  for (const std::string& name : LibraryNamesUpTo(kMostNodes))
    EXPECT_EQ(HiddenCables(LoadTopology(name).value()), std::vector<std::string>()) << name;
  for (const char* name : {"mesh:3x5", "torus:4x4x4", "hypercube:4", "full-mesh:8", "dragonfly:4x4x2"})
    EXPECT_EQ(HiddenCables(LoadTopology(name).value()), std::vector<std::string>()) << name;
}

// Three hosts that cables join to a ring: the cable from the last host to the first one is an arc above
// the ports between them.
TEST(LayOut, TheCableThatClosesARingOfHostsIsAnArc) {
  std::string xml = "<topology name=\"ring-of-hosts\">";
  for (const char* host : {"h0", "h1", "h2"})
    xml += std::string("<host name=\"") + host +
           "\"><gpu count=\"4\"/><nic id=\"left\"/><nic id=\"right\"/>"
           "<link from=\"gpu:*\" to=\"gpu:*,left,right\" bandwidth=\"50GB/s\" latency=\"600ns\"/></host>";
  for (const char* ends : {"from=\"h0/right\" to=\"h1/left\"", "from=\"h1/right\" to=\"h2/left\"",
                           "from=\"h2/right\" to=\"h0/left\""})
    xml += std::string("<link ") + ends + " bandwidth=\"400Gbit/s\" latency=\"5us\"/>";
  const StatusOr<Topology> topology = ReadNativeXml(xml + "</topology>", "ring.xml");
  ASSERT_TRUE(topology.ok()) << topology.status().message();
  Check(*topology);
  EXPECT_EQ(HiddenCables(*topology), std::vector<std::string>());
  const MachineLayout layout = LayOut(*topology);
  int32_t arcs = 0;
  for (const DrawnCable& cable : layout.cables) {
    const DrawnItem &a = layout.items[static_cast<size_t>(cable.a)],
                    &b = layout.items[static_cast<size_t>(cable.b)];
    if (a.kind != NodeKind::kNic || cable.form != DrawnCable::Form::kCurve) continue;
    ++arcs;
    EXPECT_EQ(a.lines, std::vector<std::string>{"left"});
    EXPECT_EQ(b.lines, std::vector<std::string>{"right"});
    EXPECT_LT(cable.points[1].y, a.y - a.height);
  }
  EXPECT_EQ(arcs, 1);
}

TEST(LayOut, NothingOverlapsOnLibraryMachines) {
  for (const std::string& name : LibraryNamesUpTo(kMostNodes)) Check(LoadTopology(name).value());
}

TEST(LayOut, NothingOverlapsInFamilies) {
  for (const char* name :
       {"ring:2",          "ring:3",          "ring:16",          "ring:300",         "mesh:1",
        "mesh:7",          "mesh:40",         "mesh:3x5",         "mesh:64x64",       "mesh:2x3x4",
        "torus:4x4",       "torus:2x8",       "torus:4x4x4",      "torus:3x3x3x3",    "torus:16x16x16",
        "torus:1x5",       "torus:200x200",   "hypercube:1",      "hypercube:3",      "hypercube:4",
        "hypercube:6",     "hypercube:9",     "full-mesh:2",      "full-mesh:8",      "full-mesh:100",
        "nvswitch:2",      "nvswitch:8",      "nvswitch:72",      "nvswitch:500",     "fat-tree:k=2",
        "fat-tree:k=4",    "fat-tree:k=16",   "leaf-spine:1x1x1", "leaf-spine:4x4x4", "leaf-spine:32x32x32",
        "dragonfly:1x1x1", "dragonfly:2x2x2", "dragonfly:4x4x2",  "dragonfly:3x2x1",  "dragonfly:33x16x2"})
    Check(LoadTopology(name).value());
}

TEST(LayOut, NothingOverlapsOnDumpsOfRealMachines) {
  const std::optional<std::string> folder = SharedData("data/nccl-topologies");
  if (!folder) GTEST_SKIP() << SharedDataMissing("data/nccl-topologies");
  int32_t read = 0;
  LoadOptions options;
  options.gpu_arch = "sm80";
  for (const auto& entry : std::filesystem::directory_iterator(*folder)) {
    if (entry.path().extension() != ".xml") continue;
    const StatusOr<Topology> topology = LoadTopology(entry.path().string(), options);
    if (!topology.ok()) continue;  // needs more flags, or is no machine
    Check(*topology);
    ++read;
  }
  EXPECT_GT(read, 5);
}

TEST(LayOut, FindsTheShapeInTheGraph) {
  struct Case {
    const char *name, *shape;
  };
  for (const Case& each :
       {Case{"ring:8", "ring 8"},
        {"full-mesh:8", "full mesh 8"},
        {"torus:4x4", "torus 4x4"},
        {"torus:2x8", "torus 2x8"},
        {"mesh:3x5", "mesh 3x5"},
        {"mesh:7", "line 7"},
        {"torus:4x4x4", "torus 4x4x4"},
        {"hypercube:4", "hypercube 4"},
        {"tpu-v4", "torus 4x4x4"},
        {"dgx1", "8 GPUs joined directly"},
        {"dgx-h100", "one host"},
        {"nvswitch:8", "8 GPUs under 1 tier of switches"},
        {"leaf-spine:4x4x4", "16 hosts under 2 tiers of switches"},
        {"fat-tree:k=4", "16 hosts under 3 tiers of switches"},
        {"dragonfly:4x4x2", "4 groups of 4 routers"},
        {"dragonfly:3x2x1", "3 groups of 2 routers"},
        {"rail-128", "128 hosts under 2 tiers of switches; 16 boxes stand for 2176 nodes"}})
    EXPECT_EQ(LayOut(LoadTopology(each.name).value()).shape, each.shape);
}

// GPUs 0 to 3 in a row of equal distances, 4 to 7 below them.
TEST(LayOut, AGridIsAGrid) {
  const MachineLayout layout = LayOut(LoadTopology("mesh:2x4").value());
  for (size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(layout.items[i].lines, std::vector<std::string>{std::to_string(i)});
    EXPECT_EQ(layout.items[i].x, layout.items[i % 4].x);
    EXPECT_EQ(layout.items[i].y, layout.items[i < 4 ? 0 : 4].y);
  }
  EXPECT_DOUBLE_EQ(layout.items[1].x - layout.items[0].x, layout.items[3].x - layout.items[2].x);
  EXPECT_GT(layout.items[4].y, layout.items[0].y);
}

TEST(LayOut, HostsHaveTheirPortsAtTheUpperEdge) {
  const Topology topology = LoadTopology("rail-2").value();
  const MachineLayout layout = LayOut(topology);
  ASSERT_EQ(layout.frames.size(), 2u);
  EXPECT_EQ(layout.frames[0].label, "h0");
  double nic = 0, gpu = 0, nvswitch = 0, fabric = 0;
  for (const DrawnItem& item : layout.items) {
    const Node& node = topology.node(item.nodes[0]);
    if (node.kind == NodeKind::kNic) nic = item.y;
    if (node.kind == NodeKind::kGpu) gpu = item.y;
    if (node.kind == NodeKind::kSwitch) (node.host ? nvswitch : fabric) = item.y;
  }
  EXPECT_LT(fabric, nic);
  EXPECT_LT(nic, gpu);
  EXPECT_LT(gpu, nvswitch);
}

TEST(FindGrid, RefusesWhatIsNoGrid) {
  EXPECT_FALSE(FindGrid({{1, 2}, {0}, {0}}));
  EXPECT_FALSE(FindGrid({{}}));
  // A ring of six with a chord.
  EXPECT_FALSE(FindGrid({{1, 3, 5}, {0, 2}, {1, 3}, {0, 2, 4}, {3, 5}, {0, 4}}));
}

}  // namespace
}  // namespace xccl
