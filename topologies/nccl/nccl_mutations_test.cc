// Dumps whose elements are cut off, repeated, renamed, moved and dropped at random: each is read, or refused
// with its place.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/testing/shared_data.h"
#include "topologies/families/modify.h"
#include "topologies/host_facts.h"
#include "topologies/nccl/nccl_dumps_for_tests.h"

namespace xccl {
namespace {

constexpr int kTrials = 300;  // mutations of each text

// First byte and length of each element that is well-formed; an element contains those inside it.
std::vector<std::pair<size_t, size_t>> Elements(std::string_view text) {
  std::vector<std::pair<size_t, size_t>> elements;
  std::vector<size_t> open;
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at + 1)) {
    const size_t end = text.find('>', at);
    if (end == std::string_view::npos) break;
    if (text[at + 1] == '/') {
      if (open.empty()) break;
      elements.emplace_back(open.back(), end + 1 - open.back());
      open.pop_back();
    } else if (text[end - 1] == '/') {
      elements.emplace_back(at, end + 1 - at);
    } else if (text[at + 1] != '!') {
      open.push_back(at);
    }
  }
  return elements;
}

std::string Mutated(std::string text, Random& random) {
  constexpr std::string_view kNames[] = {"cpu", "pci", "gpu", "nic", "net", "nvlink", "xgmi", "c2c", "odd"};
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) {
    const std::vector<std::pair<size_t, size_t>> elements = Elements(text);
    if (elements.empty()) return text;
    const auto [first, length] = elements[random.Below(elements.size())];
    const std::string element = text.substr(first, length);
    const size_t other = elements[random.Below(elements.size())].first;
    switch (random.Below(6)) {
      case 0:
        text.erase(first, length);
        break;
      case 1:
        text.insert(other, element);
        break;
      case 2: {
        const std::string_view name = kNames[random.Below(std::size(kNames))];
        const size_t old = element.find_first_of(" />", 1) - 1;
        text.replace(first + 1, old, name);
        const size_t close = text.find("</" + element.substr(1, old) + ">", first);
        if (element.ends_with("/>") || close == std::string::npos) break;
        text.replace(close + 2, old, name);
        break;
      }
      case 3: {  // an attribute goes
        const size_t value = element.find("=\"");
        if (value == std::string::npos || value > element.find('>')) break;
        const size_t name = element.rfind(' ', value), end = element.find('"', value + 2);
        if (name != std::string::npos && end != std::string::npos) text.erase(first + name, end + 1 - name);
        break;
      }
      case 4:
        text.resize(random.Below(10) == 0 ? random.Below(text.size()) : text.size());
        break;
      case 5: {  // a digit changes
        const size_t digit = text.find_first_of("0123456789", first);
        if (digit != std::string::npos) text[digit] = static_cast<char>('0' + random.Below(10));
        break;
      }
    }
  }
  return text;
}

std::vector<std::string> Texts() {
  std::vector<std::string> texts = {
      System(Gpu(0, R"(<nvlink target="0000:01:00.0" count="4" tclass="0x030200"/>)") +
             Gpu(1, R"(<nvlink target="0000:00:00.0" count="4" tclass="0x030200"/>)") +
             R"(<nic><net name="m" dev="0" speed="180000" port="1" guid="0x1" gdr="1"/></nic>)"),
      System(
          R"(<pci busid="0000:00:00.0" class="0x030200" link_speed="64.0 GT/s PCIe" link_width="2">)"
          R"(<gpu dev="0" sm="107" mlopart="0" rank="0"><nvlink target="0000:02:00.0" count="36" tclass="0x030200"/>)"
          R"(<c2c bw="56376" count="7"/></gpu><gpu dev="0" sm="107" mlopart="1" rank="1"><c2c bw="1" count="7"/></gpu>)"
          R"(</pci></cpu><cpu numaid="1" host_hash="0x1" arch="arm64">)" +
          Gpu(2, R"(<nvlink target="fffffff:ff:ff.0" count="12" tclass="0x068000"/>)")),
      System(Gpu(0, R"(<xgmi target="0000:01:00.0" count="1" tclass="0x038000"/>)") + Gpu(1))};
  if (const std::optional<std::string> folder = SharedData("data/nccl-topologies"))
    for (const auto& file : std::filesystem::directory_iterator(*folder))
      if (file.path().extension() == ".xml")
        if (StatusOr<std::string> text = ReadFile(file.path()); text.ok()) texts.push_back(*std::move(text));
  return texts;
}

TEST(NcclXml, MutatedElements) {
  const std::regex place("m\\.xml:[0-9]+:[0-9]+: .*");
  Random random(7);
  int read = 0, refused = 0;
  for (const std::string& text : Texts())
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::string mutated = Mutated(text, random);
      LoadOptions options;
      if (trial % 3 == 0) options.gpus_per_switch = 1;
      if (trial % 3 == 1) options.gpu_arch = "sm80";
      HostFacts facts;
      const StatusOr<Topology> t = ReadNcclXml(mutated, "m.xml", options, &facts);
      ++(t.ok() ? read : refused);
      if (t.ok()) {  // copies of it are joined, or refused with a reason
        options.hosts = 2;
        const StatusOr<Topology> hosts = Modify(*t, options, facts);
        ASSERT_TRUE(hosts.ok() || hosts.status().message().starts_with("--hosts: 2; "))
            << hosts.status().message();
        continue;
      }
      ASSERT_EQ(t.status().code(), StatusCode::kInvalidInput) << t.status().message() << "\n" << mutated;
      ASSERT_TRUE(std::regex_match(t.status().message(), place)) << t.status().message() << "\n" << mutated;
    }
  EXPECT_GT(read, kTrials);
  EXPECT_GT(refused, kTrials / 10);
}

}  // namespace
}  // namespace xccl
