#include "topologies/fabric/lldp.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "base/random.h"
#include "base/strings.h"

namespace xccl {
namespace {

using testing::IsEmpty;

// One word a cable: "leaf-1:8-gpu001:eth0@100".
std::string Shown(const Fabric& fabric) {
  std::vector<std::string> words;
  const auto end = [&](const FabricEnd& e) {
    const auto index = static_cast<size_t>(e.index);
    return e.is_switch ? fmt::format("{}:{}", fabric.switches[index].name, e.port)
                       : fmt::format("{}:{}", fabric.adapters[index].host, fabric.adapters[index].device);
  };
  for (const FabricCable& cable : fabric.cables)
    words.push_back(
        fmt::format("{}-{}@{}", end(cable.a), end(cable.b), cable.bandwidth_bytes_per_s / 125'000'000));
  return Join(words, " ");
}

constexpr std::string_view kJson = R"({
  "lldp": {
    "interface": {
      "eth0": {"via": "LLDP", "rid": "1", "age": "0 day, 01:02:03",
        "chassis": {"leaf-1": {"id": {"type": "mac", "value": "02:00:00:00:00:0A"}, "mgmt-ip": ["192.0.2.1", "::1"],
          "capability": [{"type": "Bridge", "enabled": true}, {"type": "Router", "enabled": false}]}},
        "port": {"id": {"type": "ifname", "value": "Ethernet8"}, "descr": "etp2", "ttl": "120",
          "auto-negotiation": {"supported": true, "current": "100GbaseSR4 - fiber"}}}}}}
)";

TEST(LldpTest, OneNeighbourIsRead) {
  ASSERT_TRUE(IsLldp(kJson));
  const LldpFile files[] = {{std::string(kJson), "hosts/gpu001.lldp.json"}};
  const Fabric fabric = ReadLldp(files).value();
  EXPECT_EQ(Shown(fabric), "leaf-1:8-gpu001:eth0@100");
  EXPECT_EQ(fabric.switches[0].guid, 0x02000000000AU);
  EXPECT_EQ(fabric.cables[0].line, 4);
  EXPECT_EQ(fabric.format, "LLDP");
  EXPECT_THAT(fabric.warnings, IsEmpty());
}

TEST(LldpTest, FormsAreRead) {
  const struct {
    std::string text, shown;
    std::vector<std::string> warnings;
  } cases[] = {
      {R"({"lldp":[{"interface":[{"name":"eth0","via":"LLDP","chassis":[{"id":[{"type":"mac","value":"0200.0000.0001"}],
           "name":[{"value":"leaf-1"}],"capability":[{"type":"Router","enabled":true}]}],
           "port":[{"id":[{"type":"local","value":"7"}],"descr":[{"value":"HundredGigE0/0/0/1"}]}]}]}]})",
       "leaf-1:7-h:eth0@100",
       {}},
      // A list of objects of one key; several interfaces in one object; a chassis without a name.
      {R"({"lldp":{"interface":[{"eth0":{"chassis":{"leaf-1":{"descr":"x"}}}},
           {"eth1":{"chassis":{"id":{"type":"local","value":"leaf 2"}}},"eth2":{"chassis":{"leaf-3":{}}}}]}})",
       "leaf-1:0-h:eth0@0 leaf 2:0-h:eth1@0 leaf-3:0-h:eth2@0",
       {}},
      // Names that are keys of the format.
      {R"({"lldp":{"interface":{"port":{"via":"LLDP","chassis":{"id":{"id":{"type":"local","value":"s"}}}}}}})",
       "id:0-h:port@0",
       {}},
      // One switch by its address, by its name, and by both.
      {R"({"lldp":{"interface":[{"a":{"chassis":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}}},
           {"b":{"chassis":{"s":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}}}},
           {"c":{"chassis":{"s":{"descr":"x"}}}}]}})",
       "s:0-h:a@0 s:0-h:b@0 s:0-h:c@0",
       {}},
      {R"({"lldp":{"interface":[{"a":{"chassis":{"sonic":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}}}},
           {"b":{"chassis":{"sonic":{"id":{"type":"mac","value":"02:00:00:00:00:02"}}}}}]}})",
       "sonic:0-h:a@0 sonic:0-h:b@0",
       {"h.json:1: a: 2 switches have the name sonic; taken for several"}},
      {R"({"lldp":{"interface":[{"a":{"chassis":{"s":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}}}},
           {"b":{"chassis":{"t":{"id":{"type":"mac","value":"02:00:00:00:00:01"}}}}}]}})",
       "s:0-h:a@0 s:0-h:b@0",
       {"h.json:2: b: switch s has the name t, too; taken for one"}},
      // A telephone, a second neighbour, and the same neighbour by another protocol.
      {R"({"lldp":{"interface":[{"a":{"chassis":{"phone":{"capability":{"type":"Telephone","enabled":true}}}}},
           {"a":{"chassis":{"s":{}}}},{"a":{"via":"CDPv2","chassis":{"s":{}}}},{"a":{"chassis":{"t":{}}}},
           {"b":{"chassis":[{"s":{}},{"u":{}}]}}]}})",
       "s:0-h:a@0 s:0-h:b@0",
       {"h.json:1: a: phone neither bridges nor routes, and is left out",
        "h.json:2: a: of several neighbours s is taken, and t is left out; likewise at 1 more interface"}},
  };
  for (const auto& c : cases) {
    EXPECT_TRUE(IsLldp(c.text));
    const LldpFile files[] = {{c.text, "h.json"}};
    const StatusOr<Fabric> fabric = ReadLldp(files);
    ASSERT_TRUE(fabric.ok()) << fabric.status().message();
    EXPECT_EQ(Shown(*fabric), c.shown);
    EXPECT_EQ(fabric->warnings, c.warnings);
  }
}

TEST(LldpTest, HostsOfSeveralFilesAreJoined) {
  const LldpFile files[] = {
      {R"({"lldp":{"interface":[{"e0":{"chassis":{"s":{}}}},
           {"e1":{"chassis":{"h2.example":{"capability":{"type":"Station","enabled":true}}},
           "port":{"id":{"type":"mac","value":"02:00:00:00:00:09"},"descr":"e5"}}}]}})",
       "h1.json"},
      {R"({"lldp":{"interface":[{"e0":{"chassis":{"s":{}}}},
           {"e5":{"chassis":{"h1":{}},"port":{"id":{"type":"ifname","value":"e1"}}}}]}})",
       "h2.json0"},
      {R"({"lldp":{}})", "h3.json"},
  };
  const Fabric fabric = ReadLldp(files).value();
  EXPECT_EQ(Shown(fabric), "s:0-h1:e0@0 h2:e5-h1:e1@0 s:0-h2:e0@0");
  EXPECT_THAT(fabric.warnings, testing::ElementsAre("h3.json: no neighbours"));
  EXPECT_EQ(fabric.cables[0].line, 0);
}

TEST(LldpTest, RatesAreThoseOfTheMediumOrThePort) {
  const struct {
    std::string_view medium, port;
    int64_t gigabits;
  } cases[] = {
      {"1000BaseTFD - Four-pair Category 5 UTP, full duplex mode", "", 1},
      {"10GigBaseSR - R fiber over 850 nm optics", "Ethernet1", 10},
      {"10GbaseT - Four-pair Category 6A", "TwentyFiveGigE1/0/1", 10},
      {"400GBASE-DR4", "", 400},
      {"unknown", "FourHundredGigE0/0/0/1", 400},
      {"2BaseTL - Voice grade UTP copper", "", 0},
      {"full duplex mode", "two-gigabitEthernet 1/0/19", 0},
      {"", "et-0/0/11", 0},
  };
  for (const auto& c : cases) {
    const LldpFile files[] = {{fmt::format(R"({{"lldp":{{"interface":{{"e":{{"chassis":{{"s":{{}}}},
        "port":{{"id":{{"type":"ifname","value":"{}"}},"auto-negotiation":{{"current":"{}"}}}}}}}}}}}})",
                                           c.port, c.medium),
                               "h"}};
    EXPECT_EQ(ReadLldp(files).value().cables[0].bandwidth_bytes_per_s, c.gigabits * 125'000'000) << c.medium;
  }
}

TEST(LldpTest, WrongTextsAreRefused) {
  const struct {
    std::string_view text, message;
  } cases[] = {
      {R"({"lldp":)",
       "h.json:2:1: not YAML: did not find expected node content while parsing a flow node; expected YAML"},
      {R"({"lldp": 1})",
       "h.json:1: no object \"lldp\"; expected the output of lldpcli -f json show neighbors"},
      {R"({"lldp": {}})",
       "h.json: no neighbour that is a switch or a host of another file; expected one; h.json: no "
       "neighbours"},
      {R"({"lldp": {"interface": {"eth0": "x"}}})",
       "h.json: no neighbour that is a switch or a host of another file; expected one; h.json: no "
       "neighbours"},
      {R"({"lldp": {"interface": {"eth0": {"chassis": {"h": {"capability": {"type": "Station", "enabled": true}}}}}}})",
       "h.json: no neighbour that is a switch or a host of another file; expected one; h.json:1: eth0: h "
       "neither "
       "bridges nor routes, and is left out"},
      {R"({"lldp": {"interface": [{"via": "LLDP", "chassis": {}}]}})",
       "h.json:1: an interface without its name; expected one"},
      {R"({"lldp": {"interface": {"eth0": {"status": "RX and TX", "chassis": {"h": {}}}}}})",
       "h.json:1: interfaces of the host itself; expected the output of lldpcli -f json show neighbors"},
  };
  for (const auto& c : cases) {
    const LldpFile files[] = {{std::string(c.text), "h.json"}};
    const StatusOr<Fabric> fabric = ReadLldp(files);
    ASSERT_FALSE(fabric.ok()) << c.text;
    EXPECT_EQ(fabric.status().message(), c.message);
  }
  const LldpFile twice[] = {{std::string(kJson), "a/h.json"}, {std::string(kJson), "b/h.json"}};
  EXPECT_EQ(ReadLldp(twice).status().message(),
            "b/h.json: host h a second time; expected one file a host; a/h.json has it, too");
  EXPECT_EQ(ReadLldp({}).status().message(),
            "LLDP: no neighbour that is a switch or a host of another file; expected one");
}

TEST(LldpTest, OtherTextsAreNotLldp) {
  for (const std::string_view text :
       {"", "{", "{\"lldp\"", "{\"lldpd\": 1}", "[{\"lldp\": {}}]", "lldp: 1", "{}"})
    EXPECT_FALSE(IsLldp(text)) << text;
}

// An interface of a host, and what it sees.
struct Sight {
  std::string device, name, id_type, id, port, medium;
};

std::string Quoted(std::string_view text) { return fmt::format("\"{}\"", text); }

// The entry of an interface, in one of the two forms.
std::string Entry(const Sight& sight, bool json0, Random& random) {
  const auto value = [&](std::string_view text) {
    return json0 ? fmt::format("[{{\"value\":{}}}]", Quoted(text)) : Quoted(text);
  };
  const auto object = [&](std::string_view members) {
    return json0 ? fmt::format("[{{{}}}]", members) : fmt::format("{{{}}}", members);
  };
  std::vector<std::string> chassis;
  if (!sight.id.empty())
    chassis.push_back("\"id\":" +
                      object(fmt::format("\"type\":\"{}\",\"value\":\"{}\"", sight.id_type, sight.id)));
  if (random.Below(2) == 0) chassis.push_back("\"descr\":" + value("A system: one"));
  if (random.Below(2) == 0)
    chassis.push_back(
        "\"capability\":[{\"type\":\"Bridge\",\"enabled\":true},{\"type\":\"Wlan\",\"enabled\":false}]");
  if (json0 && !sight.name.empty()) chassis.push_back("\"name\":" + value(sight.name));
  std::string all = object(Join(chassis, ", "));
  if (!json0 && !sight.name.empty()) all = fmt::format("{{\"{}\":{}}}", sight.name, all);
  std::string port = "\"id\":" + object(fmt::format("\"type\":\"ifname\",\"value\":\"{}\"", sight.port)) +
                     ", \"ttl\":" + value("120");
  if (!sight.medium.empty())
    port += ",\"auto-negotiation\":" + object("\"supported\":true,\"current\":" + value(sight.medium));
  const std::string members =
      fmt::format("\"via\":\"LLDP\",\"rid\":\"1\",\n \"chassis\":{},\"port\":{}", all, object(port));
  return json0 ? fmt::format("{{\"name\":\"{}\",{}}}", sight.device, members)
               : fmt::format("\"{}\":{{{}}}", sight.device, members);
}

std::string Write(const std::vector<Sight>& sights, bool json0, Random& random) {
  std::vector<std::string> entries;
  for (const Sight& sight : sights) entries.push_back(Entry(sight, json0, random));
  if (json0) return fmt::format("{{\"lldp\":[{{\"interface\":[{}]}}]}}", Join(entries, ",\n"));
  if (entries.size() == 1 || random.Below(3) == 0)
    return fmt::format("{{\n  \"lldp\": {{\"interface\": {{{}}}}}}}\n", Join(entries, ",\n"));
  for (std::string& entry : entries) entry = "{" + entry + "}";
  return fmt::format("{{\"lldp\":{{\"interface\":[\n\t{}]}}}}", Join(entries, ",\n\t"));
}

struct Made {
  std::vector<LldpFile> files;
  Fabric fabric;
};

// Hosts at switches, and pairs of hosts cabled to each other.
Made RandomHosts(Random& random) {
  Made made;
  made.fabric.format = "LLDP";
  const size_t hosts = 1 + random.Below(6), switches = 1 + random.Below(6);
  std::vector<std::vector<Sight>> sights(hosts);
  std::vector<FabricSwitch> known(switches);
  std::vector<bool> nameless(switches), told(switches);
  for (size_t s = 0; s < switches; ++s) {
    const uint64_t mac = 0x020000000000 + s * 7 + 1;
    nameless[s] = random.Below(6) == 0;
    known[s] = {nameless[s] ? fmt::format("02:00:00:00:00:{:02x}", s * 7 + 1) : fmt::format("leaf-{}", s),
                mac};
  }
  constexpr std::pair<std::string_view, int64_t> kMedia[] = {{"", 0},
                                                             {"unknown", 0},
                                                             {"10GbaseT - copper", 10},
                                                             {"100GbaseSR4 - fiber", 100},
                                                             {"1000BaseTFD - x", 1}};
  std::map<size_t, int32_t> index_of;  // of a switch, in the order in which it is seen
  std::map<std::pair<size_t, std::string>, int32_t> adapter_of;
  const auto adapter = [&](size_t host, const std::string& device) {
    const auto [found, added] = adapter_of.emplace(std::pair(host, device), made.fabric.adapters.size());
    if (added) made.fabric.adapters.push_back({fmt::format("gpu{}", host), device, 0, 0});
    return found->second;
  };
  const bool pair = hosts > 1 && random.Below(3) == 0;
  for (size_t h = 0; h < hosts; ++h) {
    const size_t ports = 1 + random.Below(8);
    for (size_t p = 0; p < ports; ++p) {
      const size_t s = random.Below(switches);
      const auto& [medium, gigabits] = kMedia[random.Below(std::size(kMedia))];
      const int32_t number = static_cast<int32_t>(random.Below(65));
      Sight sight{fmt::format("eth{}", p),
                  nameless[s] ? "" : known[s].name,
                  "mac",
                  fmt::format("02:00:00:00:00:{:02x}", s * 7 + 1),
                  number == 0 ? "Ethernet1/1" : fmt::format("swp{}", number),
                  std::string(medium)};
      if (random.Below(4) == 0) std::ranges::replace(sight.id, 'c', 'C');
      // What is known already may be left out.
      if (told[s] && !nameless[s] && random.Below(4) == 0)
        (random.Below(2) == 0 ? sight.name : sight.id) = "";
      told[s] = true;
      const auto [found, added] = index_of.emplace(s, static_cast<int32_t>(made.fabric.switches.size()));
      if (added) made.fabric.switches.push_back(known[s]);
      made.fabric.cables.push_back({{true, found->second, number},
                                    {false, adapter(h, sight.device), 0},
                                    gigabits * 125'000'000,
                                    0,
                                    0});
      sights[h].push_back(std::move(sight));
    }
    if (pair && h < 2) {
      sights[h].push_back(
          {"mlx0", fmt::format("gpu{}", 1 - h), "mac", fmt::format("06:00:00:00:00:0{}", h), "mlx0", ""});
      const int32_t near = adapter(h, "mlx0"), far = adapter(1 - h, "mlx0");
      if (h == 0) made.fabric.cables.push_back({{false, far, 0}, {false, near, 0}, 0, 0, 0});
    }
  }
  for (size_t h = 0; h < hosts; ++h)
    made.files.push_back({Write(sights[h], random.Below(2) == 0, random), fmt::format("lldp/gpu{}.json", h)});
  return made;
}

TEST(LldpTest, RandomHostsComeBack) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const Made made = RandomHosts(random);
    for (const LldpFile& file : made.files) ASSERT_TRUE(IsLldp(file.text)) << file.text;
    StatusOr<Fabric> read = ReadLldp(made.files);
    ASSERT_TRUE(read.ok()) << read.status().message() << "\n" << made.files[0].text;
    ASSERT_THAT(read->warnings, IsEmpty());
    for (FabricCable& cable : read->cables) cable.line = 0;
    ASSERT_TRUE(*read == made.fabric) << Shown(*read) << "\n"
                                      << Shown(made.fabric) << "\n"
                                      << made.files[0].text;
  }
}

TEST(LldpTest, ChangedTextsAreReadOrRefused) {
  Random random(2);
  constexpr std::string_view kCharacters = "{}[]:,\"\\ \nam0";
  for (int i = 0; i < 2'000; ++i) {
    Made made = RandomHosts(random);
    std::string& text = made.files[random.Below(made.files.size())].text;
    for (uint64_t n = 1 + random.Below(4); n > 0 && !text.empty(); --n) {
      const size_t at = random.Below(text.size());
      if (random.Below(3) == 0) {
        text.erase(at, 1 + random.Below(40));
      } else {
        text[at] = kCharacters[random.Below(kCharacters.size())];
      }
    }
    const StatusOr<Fabric> read = ReadLldp(made.files);
    ASSERT_TRUE(read.ok() || read.status().code() == StatusCode::kInvalidInput) << text;
  }
}

}  // namespace
}  // namespace xccl
