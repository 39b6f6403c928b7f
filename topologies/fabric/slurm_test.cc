#include "topologies/fabric/slurm.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "base/random.h"
#include "base/strings.h"
#include "topologies/fabric/host_list.h"

namespace xccl {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// One line a cable and a domain: "spine-leaf1 leaf1-gpu01 rack1:gpu01,gpu02".
std::string Shown(const Fabric& fabric) {
  std::vector<std::string> parts;
  const auto name = [&](const FabricEnd& end) {
    const auto index = static_cast<size_t>(end.index);
    return end.is_switch ? fabric.switches[index].name : fabric.adapters[index].host;
  };
  for (const FabricCable& cable : fabric.cables)
    parts.push_back(fmt::format("{}-{}", name(cable.a), name(cable.b)));
  for (const FabricDomain& domain : fabric.domains)
    parts.push_back(fmt::format("{}:{}", domain.name, Join(domain.hosts, ",")));
  return Join(parts, " ");
}

constexpr std::string_view kTree =
    "# a tree\n"
    "SwitchName=spine Switches=leaf[1-2]\n"
    "\n"
    "switchname = leaf1  nodes = gpu[01-02] LinkSpeed=100  # first\n"
    "SWITCHNAME=leaf2 \\\n"
    "  Nodes=\"gpu[03]\"\n";

TEST(SlurmTest, ATreeIsRead) {
  ASSERT_TRUE(IsSlurmTopology(kTree));
  const Fabric fabric = ReadSlurmTopology(kTree, "topology.conf").value();
  EXPECT_EQ(Shown(fabric), "spine-leaf1 spine-leaf2 leaf1-gpu01 leaf1-gpu02 leaf2-gpu03");
  EXPECT_THAT(fabric.warnings, IsEmpty());
  EXPECT_EQ(fabric.cables[0].line, 2);
  EXPECT_EQ(fabric.cables[2].line, 4);
  EXPECT_EQ(fabric.cables[4].line, 5);
  EXPECT_EQ(fabric.cables[0].bandwidth_bytes_per_s, 0);
  EXPECT_EQ(fabric.format, "Slurm");
}

TEST(SlurmTest, FormsAreRead) {
  const struct {
    std::string_view text, shown;
    std::vector<std::string> warnings;
  } cases[] = {
      {"- topology: net\n  cluster_default: true\n  tree:\n    switches:\n"
       "      - {switch: spine, children: \"leaf[1-2]\"}\n"
       "      - switch: leaf1\n        nodes: gpu[01-02]\n"
       "      - switch: leaf2\n        nodes: [gpu03, \"gpu[04-05]\"]\n"
       "      - switch: leaf3\n",
       "spine-leaf1 spine-leaf2 leaf1-gpu01 leaf1-gpu02 leaf2-gpu03 leaf2-gpu04 leaf2-gpu05",
       {}},
      // YAML may be JSON; a list of one entry may be the entry alone.
      {"%YAML 1.1\n---\n[{\"topology\": \"net\", \"tree\": {\"switches\": {\"switch\": \"s\", \"nodes\": "
       "\"n\"}}}]\n",
       "s-n",
       {}},
      // scontrol show topology repeats all hosts below a switch, and adds up blocks.
      {"SwitchName=s0 Level=0 LinkSpeed=1 Nodes=n[0-1]\n"
       "SwitchName=s1 Level=1 LinkSpeed=1 Nodes=n[0-1] Switches=s0\n",
       "s0-n0 s0-n1 s1-s0",
       {}},
      {"BlockName=b1 BlockIndex=0 Nodes=n1 BlockSize=1\nBlockName=b2 BlockIndex=1 Nodes=(null) BlockSize=1\n"
       "AggregatedBlock=b[1-2] BlockIndex=2 Nodes=n1 BlockSize=2\n",
       "network-n1 b1:n1",
       {"f:1: blocks, which tell no network; one switch between all hosts is assumed"}},
      {"BlockName=b1 Nodes=n[1-2]\nBlockName=b2 Nodes=n3\nBlockSizes=2,4\n",
       "network-n1 network-n2 network-n3 b1:n1,n2 b2:n3",
       {"f:1: blocks, which tell no network; one switch between all hosts is assumed"}},
      {"SwitchName=s Nodes=n[1-2]\nBlockName=b Nodes=n[1-4]\n",
       "s-n1 s-n2 b:n1,n2,n3,n4",
       {"f:2: 2 hosts are in a block and at no switch, such as n3; expected each at a switch"}},
      {"BlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[2-3]\nSwitchName=s Nodes=n[1-3]\n",
       "s-n1 s-n2 s-n3 a:n1,n2 b:n3",
       {"f:2: host n2 is in block b and on line 1 in block a; it stays there, and so does any other host of "
        "two "
        "blocks"}},
      // Rails: a host is at a leaf a rail.
      {"SwitchName=r0 Nodes=n[1-2]\nSwitchName=r1 Nodes=n[1-2]\n",
       "r0-n1 r0-n2 r1-n1 r1-n2",
       {"f:2: 2 hosts are at several switches, as n1 is at r0, r1; an adapter at each is assumed"}},
      {"SwitchName=a Switches=l\nSwitchName=b Switches=l\nSwitchName=l Nodes=n\n",
       "a-l b-l l-n",
       {"f:2: 1 switch is below several others, as l is below a, b; a cable to "
        "each is assumed"}},
      {"SwitchName=l Nodes=n,n\n", "l-n", {"f:1: switch l lists a name twice; it is taken once"}},
      {"- topology: a\n  flat: true\n- topology: b\n  tree:\n    switches: [{switch: s, nodes: n}]\n"
       "- topology: c\n  block:\n    block_sizes: [1]\n    blocks: [{block: k, nodes: n}]\n",
       "s-n k:n",
       {"f:3: 3 topologies, none of which is the cluster_default; taken: switches of 'b', blocks of 'c'"}},
      {"- topology: a\n  tree: {switches: [{switch: s, nodes: n}]}\n"
       "- topology: b\n  cluster_default: yes\n  tree: {switches: [{switch: t, nodes: n}]}\n",
       "t-n",
       {"f:3: 2 topologies; taken: switches of 'b'"}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(IsSlurmTopology(c.text)) << c.text;
    const StatusOr<Fabric> fabric = ReadSlurmTopology(c.text, "f");
    ASSERT_TRUE(fabric.ok()) << fabric.status().message();
    EXPECT_EQ(Shown(*fabric), c.shown);
    EXPECT_EQ(fabric->warnings, c.warnings);
  }
}

TEST(SlurmTest, WrongTextsAreRefused) {
  const struct {
    std::string text;
    std::string_view message;
  } cases[] = {
      {"", "f: no switches and no blocks; expected some"},
      {"SwitchName=s\n", "f: no hosts; expected some in the switches or blocks"},
      {"SwitchName=s Nodes=n1, n2\n", "f:1: 'n2'; expected KEY=VALUE, and no blanks within a list"},
      {"SwitchName=s Nodes=\"n1\n", "f:1: no '\"' ends the value of 'Nodes'; expected one"},
      {"SwitchName=s Nodes=n[1\n",
       "f:1: Nodes: host list 'n[1': column 2: no ']' closes '['; expected one such as [001-016]"},
      {"SwitchName=s Node=n1\n",
       "f:1: no key 'node' of switchname; expected one of nodes, switches, linkspeed, level; did you mean "
       "'nodes'?"},
      {"SwitchName=s Nodes=n1 nodes=n2\n", "f:1: 'nodes' a second time; expected it once"},
      {"SwitchNam=s Nodes=n1\n",
       "f:1: a line of 'switchnam'; expected SwitchName=, BlockName= or BlockSizes=; did "
       "you mean 'switchname'?"},
      {"SwitchName=s[1-2] Nodes=n1\n",
       "f:1: SwitchName 's[1-2]'; expected one name, without brackets, commas and blanks"},
      {"SwitchName=s Nodes=n\xff\n", "f:1: bytes that are not UTF-8; expected text"},
      {"RingName=r Nodes=n[1-4]\n", "f:1: a ring of Slurm; expected a tree or blocks"},
      {"SwitchName=s Nodes=n1\nSwitchName=s Nodes=n2\n",
       "f:2: switch s a second time; expected it once; line 1 has it, too"},
      {"BlockName=s Nodes=n1\n\nBlockName=s Nodes=n2\n",
       "f:3: block s a second time; expected it once; line 1 has it, too"},
      {"SwitchName=s Switches=leaf3\nSwitchName=leaf1 Nodes=n\n",
       "f:1: switch s has leaf3 below it; expected the name of a switch; did you mean 'leaf1'?"},
      {"SwitchName=s Switches=t Nodes=n\nSwitchName=t Nodes=m\n",
       "f:1: switch s with nodes and switches below it; expected one of the two"},
      {"SwitchName=s Switches=s\n", "f:1: switch s is below itself: s > s; expected a tree"},
      {"SwitchName=top Switches=a\nSwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c "
       "Switches=a\n",
       "f:2: switch a is below itself: a > b > c > a; expected a tree"},
      {"SwitchName=s Nodes=n[1-600000]\nSwitchName=t Nodes=n[1-600000]\n",
       "f:2: more than 1,000,000 names in the file; expected those of one cluster"},
      {"- topology: a\n  tree: [1]\n", "f:2: a tree that is no map; expected 'switches:'"},
      {"- topology: a\n  tree: {}\n", "f:2: a tree without switches; expected 'switches:'"},
      {"- topology: a\n  tree: {switches: leaf1}\n", "f:2: switches: 'leaf1'; expected a list of switches"},
      {"- topology: a\n  tree: {switches: [leaf1]}\n",
       "f:2: switches: an entry that is no map; expected a list of switches"},
      {"- topology: a\n  tree: {switches: [{nodes: n}]}\n",
       "f:2: a switch without its name; expected 'switch: NAME'"},
      {"- topology: a\n  tree: {switches: [{switch: s, nodes: {a: b}}]}\n",
       "f:2: nodes that are no text; expected a list of names"},
      {"- topology: a\n  tree: {switches: [{switch: s, node: n}]}\n",
       "f:2: no key 'node' of a switch; expected one of switch, children, nodes; did you mean 'nodes'?"},
      {"- topology: a\n  block: [1]\n", "f:2: a block that is no map; expected 'blocks:'"},
      {"- topology: a\n  block: {}\n", "f:2: a block topology without blocks; expected 'blocks:'"},
      {"- topology: a\n  flat: true\n", "f:1: topology 'a' has neither tree nor block; expected one of them"},
      {"- topology: a\n  flat: {alpha_step_rank: true}\n  tree: {switches: []}\n",
       "f:2: topology 'a' with tree and flat; expected one of them"},
      {"- topology: a\n  tree: &t {switches: [{switch: s, nodes: n}]}\n- topology: b\n  tree: *t\n",
       "f:4:9: an alias; expected the value itself"},
      {"- topology: a\n  tree: " + std::string(1000, '['),
       "f:2:71: nested deeper than 64; expected fewer levels"},
      {"- topology: x\n  flat: true\n- cluster_default: true\n",
       "f:3: a topology without its name; expected 'topology: NAME'"},
  };
  for (const auto& c : cases) {
    const StatusOr<Fabric> fabric = ReadSlurmTopology(c.text, "f");
    ASSERT_FALSE(fabric.ok()) << c.text;
    EXPECT_EQ(fabric.status().message(), c.message);
  }
}

TEST(SlurmTest, OtherTextsAreNotSlurm) {
  for (const std::string_view text :
       {"", "# SwitchName=s\n", "topology: [ Ring ]\nnpus_count: [ 4 ]\n", "- name: x\n", "{\"lldp\": {}}",
        "[1, 2]", "Switch 65 \"S-0\"", "SwitchNames=a", "topology", "- topologyX: 1", "---\n", "<topology/>"})
    EXPECT_FALSE(IsSlurmTopology(text)) << text;
}

// A random tree, or several, with its cables in the order of the switches, and perhaps blocks.
Fabric RandomFabric(Random& random) {
  Fabric fabric;
  fabric.format = "Slurm";
  const auto leaves = static_cast<int32_t>(1 + random.Below(6));
  const auto below = [&](std::string_view name) {
    fabric.switches.push_back({std::string(name), 0});
    return static_cast<int32_t>(fabric.switches.size() - 1);
  };
  // Leaves come first or last in the file.
  const bool leaves_first = random.Below(2) == 0;
  std::vector<int32_t> level;
  const auto add_leaves = [&] {
    for (int32_t leaf = 0; leaf < leaves; ++leaf) {
      const int32_t s = below(fmt::format("leaf{}", leaf));
      level.push_back(s);
      const auto hosts = random.Below(12);
      for (uint64_t h = 0; h < hosts + (leaf == 0 ? 1 : 0); ++h) {
        fabric.adapters.push_back(
            {fmt::format("gpu{:03}", random.Below(3) == 0 ? 100 * leaf + 2 * h : h), "", 0, 0});
        const auto same = [&](const FabricCable& c) {
          return c.a.index == s && !c.b.is_switch &&
                 fabric.adapters[static_cast<size_t>(c.b.index)].host == fabric.adapters.back().host;
        };
        if (std::ranges::any_of(fabric.cables, same)) {
          fabric.adapters.pop_back();
          continue;
        }
        fabric.cables.push_back(
            {{true, s, 0}, {false, static_cast<int32_t>(fabric.adapters.size() - 1), 0}, 0, 0, 0});
      }
    }
  };
  const auto add_spines = [&](int32_t first_leaf) {
    std::vector<std::vector<int32_t>> groups(1 + random.Below(3));
    for (int32_t leaf = 0; leaf < leaves; ++leaf)
      groups[random.Below(groups.size())].push_back(first_leaf + leaf);
    for (size_t g = 0; g < groups.size(); ++g) {
      const int32_t s = below(fmt::format("spine{}", g));
      for (const int32_t leaf : groups[g]) fabric.cables.push_back({{true, s, 0}, {true, leaf, 0}, 0, 0, 0});
    }
  };
  if (leaves_first) {
    add_leaves();
    add_spines(0);
  } else {
    add_spines(0);  // moved behind their number below
    const auto spines = static_cast<int32_t>(fabric.switches.size());
    for (FabricCable& cable : fabric.cables) cable.b.index += spines;
    add_leaves();
  }
  if (random.Below(2) == 0) {
    std::vector<std::string> hosts;
    for (const FabricAdapter& adapter : fabric.adapters)
      if (std::ranges::find(hosts, adapter.host) == hosts.end()) hosts.push_back(adapter.host);
    for (size_t at = 0; at < hosts.size();) {
      const size_t size = std::min<size_t>(hosts.size() - at, 1 + random.Below(5));
      const auto begin = hosts.begin() + static_cast<std::ptrdiff_t>(at);
      fabric.domains.push_back(
          {fmt::format("rack{}", at), {begin, begin + static_cast<std::ptrdiff_t>(size)}});
      at += size;
    }
  }
  return fabric;
}

std::string List(const std::vector<std::string>& names, Random& random) {
  return random.Below(2) == 0 ? CompressHostList(names) : Join(names, ",");
}

// The names below a switch, and sets the lines of their cables.
std::vector<std::string> Below(Fabric& fabric, size_t s, int32_t line, bool& hosts) {
  std::vector<std::string> names;
  for (FabricCable& cable : fabric.cables) {
    if (static_cast<size_t>(cable.a.index) != s) continue;
    const auto index = static_cast<size_t>(cable.b.index);
    hosts = !cable.b.is_switch;
    names.push_back(hosts ? fabric.adapters[index].host : fabric.switches[index].name);
    cable.line = line;
  }
  return names;
}

std::string WriteConf(Fabric& fabric, Random& random) {
  std::string text;
  const auto key = [&](std::string name) {
    if (random.Below(4) == 0)
      std::ranges::transform(name, name.begin(), [](char c) { return static_cast<char>(c | 0x20); });
    return name + (random.Below(8) == 0 ? " = " : "=");
  };
  const auto line = [&] { return static_cast<int32_t>(1 + std::ranges::count(text, '\n')); };
  for (size_t s = 0; s < fabric.switches.size(); ++s) {
    if (random.Below(4) == 0) text += "# SwitchName=none \\\n\n";
    bool hosts = false;
    const std::vector<std::string> names = Below(fabric, s, line(), hosts);
    text += key("SwitchName") + fabric.switches[s].name;
    if (!names.empty())
      text += (random.Below(4) == 0 ? " \\\n\t" : " ") + key(hosts ? "Nodes" : "Switches") +
              (random.Below(4) == 0 ? "\"" + List(names, random) + "\"" : List(names, random));
    text += random.Below(4) == 0 ? " LinkSpeed=100 # fast\r\n" : "\n";
  }
  for (const FabricDomain& domain : fabric.domains)
    text += fmt::format("{}{} Nodes={}\n", key("BlockName"), domain.name, List(domain.hosts, random));
  if (!fabric.domains.empty()) text += "BlockSizes=1,2";
  return text;
}

std::string WriteYaml(Fabric& fabric, Random& random) {
  std::string text = random.Below(2) == 0 ? "# topologies\n---\n" : "";
  text += "- topology: net\n  cluster_default: true\n  tree:\n    switches:\n";
  for (size_t s = 0; s < fabric.switches.size(); ++s) {
    bool hosts = false;
    const std::vector<std::string> names =
        Below(fabric, s, static_cast<int32_t>(1 + std::ranges::count(text, '\n')), hosts);
    const std::string list = List(names, random);
    const std::string_view what = hosts ? "nodes" : "children";
    if (random.Below(2) == 0) {
      text += fmt::format("      - switch: {}\n", fabric.switches[s].name);
      if (!names.empty()) text += fmt::format("        {}: {}\n", what, list);
    } else {
      text +=
          fmt::format("      - {{switch: {}, {}: \"{}\"}}  # switch\n", fabric.switches[s].name, what, list);
    }
  }
  if (fabric.domains.empty()) return text;
  text += "- topology: nvl\n  block:\n    block_sizes: [1, 2]\n    blocks:\n";
  for (const FabricDomain& domain : fabric.domains)
    text += fmt::format("      - block: {}\n        nodes: {}\n", domain.name, List(domain.hosts, random));
  return text;
}

TEST(SlurmTest, RandomFabricsComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    for (const bool yaml : {false, true}) {
      Fabric fabric = RandomFabric(random);
      const std::string text = yaml ? WriteYaml(fabric, random) : WriteConf(fabric, random);
      ASSERT_TRUE(IsSlurmTopology(text)) << text;
      StatusOr<Fabric> read = ReadSlurmTopology(text, "f");
      ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << text;
      read->warnings.clear();
      ASSERT_TRUE(*read == fabric) << text;
    }
  }
}

TEST(SlurmTest, ChangedTextsAreReadOrRefused) {
  Random random(2);
  constexpr std::string_view kCharacters = "=#\\\"[]-,{}:& \nsn10";
  for (int i = 0; i < 3'000; ++i) {
    Fabric fabric = RandomFabric(random);
    std::string text = random.Below(2) == 0 ? WriteConf(fabric, random) : WriteYaml(fabric, random);
    for (uint64_t n = 1 + random.Below(4); n > 0 && !text.empty(); --n) {
      const size_t at = random.Below(text.size());
      if (random.Below(3) == 0) {
        text.erase(at, 1 + random.Below(20));
      } else {
        text[at] = kCharacters[random.Below(kCharacters.size())];
      }
    }
    const StatusOr<Fabric> read = ReadSlurmTopology(text, "f");
    ASSERT_TRUE(read.ok() || read.status().code() == StatusCode::kInvalidInput) << text;
  }
}

}  // namespace
}  // namespace xccl
