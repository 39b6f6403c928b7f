// Checks the stages and what each may depend on, as Bazel itself reports it (the genquery `layers`).
// Visibility refuses a wrong dependency between two folders. This test refuses what visibility cannot
// express: a path over several targets, a cycle of packages, a header with two owners.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <pugixml.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace xccl {
namespace {

using Edges = std::map<std::string, std::set<std::string>>;

struct Target {
  std::set<std::string> deps, headers;
  bool testonly = false;
};

std::string PackageOf(std::string_view label) { return std::string(label.substr(2, label.find(':') - 2)); }

// The production targets of this repository, by label.
std::map<std::string, Target> ReadTargets() {
  pugi::xml_document document;
  EXPECT_TRUE(document.load_file("tests/layers.xml"));
  std::map<std::string, Target> targets;
  for (const pugi::xml_node rule : document.child("query").children("rule")) {
    const std::string_view kind = rule.attribute("class").value();
    const std::string_view name = rule.attribute("name").value();
    if (!kind.starts_with("cc_") || kind == "cc_test" || !name.starts_with("//")) continue;
    Target target;
    for (const pugi::xml_node flag : rule.children("boolean"))
      if (std::string_view(flag.attribute("name").value()) == "testonly")
        target.testonly = flag.attribute("value").as_bool();
    for (const pugi::xml_node list : rule.children("list")) {
      const std::string_view attribute = list.attribute("name").value();
      for (const pugi::xml_node label : list.children("label")) {
        const std::string value = label.attribute("value").value();
        if (attribute == "deps" && value.starts_with("//")) target.deps.insert(value);
        if ((attribute == "hdrs" || attribute == "srcs") && value.ends_with(".h"))
          target.headers.insert(value);
      }
    }
    targets.emplace(name, std::move(target));
  }
  return targets;
}

// Everything that the first targets reach, each with the target that led there.
std::map<std::string, std::string> Reach(const Edges& edges, const std::vector<std::string>& from) {
  std::map<std::string, std::string> reached;
  std::vector<std::string> queue = from;
  for (const std::string& start : from) reached.emplace(start, "");
  for (size_t i = 0; i < queue.size(); ++i) {
    const auto found = edges.find(queue[i]);
    if (found == edges.end()) continue;
    for (const std::string& next : found->second)
      if (reached.emplace(next, queue[i]).second) queue.push_back(next);
  }
  return reached;
}

class LayersTest : public testing::Test {
 protected:
  LayersTest() : targets_(ReadTargets()) {
    for (const auto& [label, target] : targets_)
      if (!target.testonly) edges_[label] = target.deps;
  }

  std::vector<std::string> In(std::string_view package) const {
    std::vector<std::string> labels;
    for (const auto& [label, deps] : edges_)
      if (PackageOf(label) == package || PackageOf(label).starts_with(std::string(package) + "/"))
        labels.push_back(label);
    return labels;
  }

  // "//a:b <- //c:d" for every target of `to` that targets of `from` depend on, directly or not.
  std::vector<std::string> Paths(std::string_view from, std::string_view to) const {
    std::vector<std::string> paths;
    const std::map<std::string, std::string> reached = Reach(edges_, In(from));
    for (const std::string& label : In(to))
      if (const auto found = reached.find(label); found != reached.end())
        paths.push_back(fmt::format("{} <- {}", label, found->second));
    return paths;
  }

  std::map<std::string, Target> targets_;
  Edges edges_;
};

// The folders under synth/ that are not engines.
const std::set<std::string> kNoEngines = {"synth/common", "synth/portfolio", "synth/groups"};

TEST_F(LayersTest, NoEngineSeesAnotherNorAVerifier) {
  std::set<std::string> engines;
  for (const auto& [label, deps] : edges_)
    if (const std::string package = PackageOf(label);
        package.starts_with("synth/") && !kNoEngines.contains(package))
      engines.insert(package);
  EXPECT_GE(engines.size(), 8U);
  for (const std::string& engine : engines) {
    EXPECT_THAT(Paths(engine, "ir/verify"), testing::IsEmpty());
    for (const std::string& other : engines) {
      if (other == engine) continue;
      EXPECT_THAT(Paths(engine, other), testing::IsEmpty()) << engine;
    }
  }
}

TEST_F(LayersTest, StagesSeeOnlyWhatIsDrawn) {
  const std::pair<const char*, const char*> refused[] = {
      {"ir/verify", "synth"},       {"ir/bounds", "synth"},     {"ir/bounds", "ir/simulate"},
      {"ir/verify", "ir/lower"},    {"ir/verify", "ir/bounds"}, {"ir/verify", "ir/simulate"},
      {"interchange", "synth"},     {"interchange", "codegen"}, {"ir/simulate", "ir/bounds"},
      {"runtime", "synth"},         {"runtime", "pipeline"},    {"runtime", "codegen"},
      {"codegen", "synth"},         {"synth", "runtime"},       {"synth", "pipeline"},
      {"pipeline", "cli"},          {"base", "topologies"},     {"sweep", "pipeline"},
      {"pipeline", "sweep"},        {"topologies", "ir"},       {"device", "base"},
      {"base/graph", "topologies"}, {"dispatch", "synth"},      {"dispatch", "runtime"}};
  for (const auto& [from, to] : refused) {
    EXPECT_THAT(In(from), testing::Not(testing::IsEmpty())) << from;
    EXPECT_THAT(Paths(from, to), testing::IsEmpty()) << from << " sees " << to;
  }
}

TEST_F(LayersTest, EveryHeaderHasOneOwner) {
  std::map<std::string, std::vector<std::string>> owners;
  for (const auto& [label, target] : targets_)
    for (const std::string& header : target.headers) owners[header].push_back(label);
  EXPECT_GT(owners.size(), 150U);
  for (const auto& [header, labels] : owners) EXPECT_THAT(labels, testing::SizeIs(1)) << header;
}

// Every folder has a row in the table of CONTRIBUTING.md, or is part of a folder that has one. Each engine
// has a row of its own.
TEST_F(LayersTest, TheMapForContributorsHasEveryStage) {
  std::ifstream file("CONTRIBUTING.md");
  const std::string map{std::istreambuf_iterator<char>(file), {}};
  const auto has_row = [&](const std::string& folder) {
    for (size_t at = map.find("\n| `"); at != std::string::npos; at = map.find("\n| `", at + 1))
      if (map.substr(at, map.find('|', at + 3) - at).find("`" + folder + "/`") != std::string::npos)
        return true;
    return false;
  };
  std::set<std::string> missing;
  for (const auto& [label, target] : targets_) {
    std::string folder = PackageOf(label);
    if (folder.empty() || target.testonly) continue;
    while (!has_row(folder) && folder.rfind('/') != std::string::npos && !folder.starts_with("synth/"))
      folder.resize(folder.rfind('/'));
    if (!has_row(folder)) missing.insert(folder);
  }
  EXPECT_THAT(missing, testing::IsEmpty());
}

TEST_F(LayersTest, PackagesHaveNoCycle) {
  Edges packages;
  for (const auto& [label, deps] : edges_)
    for (const std::string& dep : deps)
      if (PackageOf(dep) != PackageOf(label)) packages[PackageOf(label)].insert(PackageOf(dep));
  for (const auto& [package, next] : packages)
    for (const std::string& dep : next)
      EXPECT_FALSE(Reach(packages, {dep}).contains(package))
          << package << " and " << dep << " see each other";
}

}  // namespace
}  // namespace xccl
