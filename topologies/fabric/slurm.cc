// A reader of one of the two forms gives named switches with the names of what is below them, and named
// blocks. Names become indexes; switches that have no parent are taken away again and again, and what cannot
// be taken is below itself. Cost: linear in the names, times the logarithm of their number.
#include "topologies/fabric/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/strings.h"
#include "topologies/fabric/host_list.h"
#include "topologies/fabric/slurm_file.h"

namespace xccl {
namespace {

constexpr int64_t kMostNames = 1'000'000;

using Index = std::map<std::string_view, int32_t>;

class Builder {
 public:
  Builder(SlurmFile slurm, std::string_view file) : slurm_(std::move(slurm)), lists_(file) {}

  StatusOr<Fabric> Build() {
    fabric_.format = "Slurm";
    fabric_.warnings = std::move(slurm_.warnings);
    if (slurm_.switches.empty() && slurm_.blocks.empty())
      return InvalidInput(fmt::format("{}: no switches and no blocks; expected some", lists_.file()));
    XCCL_ASSIGN_OR_RETURN(switches_, IndexOf(slurm_.switches, "switch"));
    XCCL_ASSIGN_OR_RETURN(const Index blocks, IndexOf(slurm_.blocks, "block"));
    for (const SlurmSwitch& s : slurm_.switches) fabric_.switches.push_back({s.name, 0});
    parents_.resize(slurm_.switches.size());
    children_.resize(slurm_.switches.size());
    for (size_t s = 0; s < slurm_.switches.size(); ++s)
      XCCL_RETURN_IF_ERROR(AddSwitch(static_cast<int32_t>(s)));
    XCCL_RETURN_IF_ERROR(CheckNotBelowItself());
    WarnOfParents();
    WarnOfRails();
    AddDomains();
    if (slurm_.switches.empty()) AssumeSwitch();
    if (fabric_.adapters.empty())
      return InvalidInput(
          fmt::format("{}: no hosts; expected some in the switches or blocks", lists_.file()));
    return std::move(fabric_);
  }

 private:
  template <typename Named>
  StatusOr<Index> IndexOf(const std::vector<Named>& all, std::string_view what) const {
    Index index;
    for (size_t i = 0; i < all.size(); ++i) {
      const auto [found, added] = index.emplace(all[i].name, static_cast<int32_t>(i));
      if (!added)
        return lists_.Error(all[i].line,
                            fmt::format("{} {} a second time; expected it once; line {} has it, too", what,
                                        all[i].name, all[static_cast<size_t>(found->second)].line));
    }
    return index;
  }

  void Warn(int32_t line, std::string_view text) {
    fabric_.warnings.push_back(fmt::format("{}:{}: {}", lists_.file(), line, text));
  }

  Status AddSwitch(int32_t index) {
    const SlurmSwitch& s = slurm_.switches[static_cast<size_t>(index)];
    if (!s.children.empty() && !s.hosts.empty())
      return lists_.Error(
          s.line, fmt::format("switch {} with nodes and switches below it; expected one of the two", s.name));
    std::set<std::string_view> seen;
    for (const std::string& name : s.children) {
      const auto child = switches_.find(name);
      if (child == switches_.end()) {
        std::vector<std::string_view> names;
        for (const auto& [known, unused] : switches_) names.push_back(known);
        return lists_.Error(s.line, fmt::format("switch {} has {} below it; expected the name of a switch{}",
                                                s.name, Cleaned(name, 80), DidYouMean(name, names)));
      }
      if (!seen.insert(name).second) continue;
      children_[static_cast<size_t>(index)].push_back(child->second);
      parents_[static_cast<size_t>(child->second)].push_back(index);
      fabric_.cables.push_back({{true, index, 0}, {true, child->second, 0}, 0, 0, s.line});
    }
    for (const std::string& name : s.hosts) {
      if (!seen.insert(name).second) continue;
      leaves_[name].push_back(index);
      AddHost(name, index, s.line);
    }
    if (seen.size() < s.children.size() + s.hosts.size())
      Warn(s.line, fmt::format("switch {} lists a name twice; it is taken once", s.name));
    return OkStatus();
  }

  void AddHost(const std::string& name, int32_t leaf, int32_t line) {
    const auto adapter = static_cast<int32_t>(fabric_.adapters.size());
    fabric_.adapters.push_back({name, "", 0, 0});
    fabric_.cables.push_back({{true, leaf, 0}, {false, adapter, 0}, 0, 0, line});
  }

  Status CheckNotBelowItself() const {
    std::vector<size_t> above(parents_.size());  // parents that are not taken away
    std::vector<int32_t> ready;
    for (size_t s = 0; s < parents_.size(); ++s) {
      above[s] = parents_[s].size();
      if (above[s] == 0) ready.push_back(static_cast<int32_t>(s));
    }
    for (size_t next = 0; next < ready.size(); ++next)
      for (const int32_t child : children_[static_cast<size_t>(ready[next])])
        if (--above[static_cast<size_t>(child)] == 0) ready.push_back(child);
    const auto left = std::ranges::find_if(above, [](size_t parents) { return parents > 0; });
    if (left == above.end()) return OkStatus();
    // A switch that is left has a parent that is left: on the way up one is met again.
    std::vector<int32_t> way;
    std::set<int32_t> met;
    for (auto at = static_cast<int32_t>(left - above.begin());;) {
      way.push_back(at);
      if (!met.insert(at).second) break;
      at = *std::ranges::find_if(parents_[static_cast<size_t>(at)],
                                 [&](int32_t p) { return above[static_cast<size_t>(p)] > 0; });
    }
    way.erase(way.begin(), std::ranges::find(way, way.back()));
    std::ranges::reverse(way);
    return lists_.Error(
        slurm_.switches[static_cast<size_t>(way[0])].line,
        fmt::format("switch {} is below itself: {}; expected a tree", NameOf(way[0]), NamesOf(way, " > ")));
  }

  const std::string& NameOf(int32_t index) const { return slurm_.switches[static_cast<size_t>(index)].name; }
  std::string NamesOf(const std::vector<int32_t>& switches, std::string_view separator) const {
    std::vector<std::string> names;
    for (size_t i = 0; i < switches.size() && i < 4; ++i) names.push_back(NameOf(switches[i]));
    if (switches.size() > 4) names.emplace_back("...");
    return Join(names, separator);
  }

  void WarnOfParents() {
    int64_t count = 0;
    int32_t first = -1;
    for (size_t s = 0; s < parents_.size(); ++s) {
      if (parents_[s].size() < 2) continue;
      if (count++ == 0) first = static_cast<int32_t>(s);
    }
    if (count == 0) return;
    const std::vector<int32_t>& parents = parents_[static_cast<size_t>(first)];
    Warn(slurm_.switches[static_cast<size_t>(parents[1])].line,
         fmt::format("{} below several others, as {} is below {}; a cable to each is assumed",
                     count == 1 ? "1 switch is" : fmt::format("{} switches are", count), NameOf(first),
                     NamesOf(parents, ", ")));
  }

  void WarnOfRails() {
    int64_t count = 0;
    const std::pair<const std::string_view, std::vector<int32_t>>* first = nullptr;
    for (const auto& host : leaves_) {
      if (host.second.size() < 2) continue;
      if (count++ == 0) first = &host;
    }
    if (count == 0) return;
    Warn(slurm_.switches[static_cast<size_t>(first->second[1])].line,
         fmt::format("{} at several switches, as {} is at {}; an adapter at each is assumed",
                     count == 1 ? "1 host is" : fmt::format("{} hosts are", count), first->first,
                     NamesOf(first->second, ", ")));
  }

  void AddDomains() {
    std::map<std::string_view, size_t> block_of;
    int64_t nowhere = 0, twice = 0;
    std::string_view first;
    for (size_t b = 0; b < slurm_.blocks.size(); ++b) {
      const SlurmBlock& block = slurm_.blocks[b];
      FabricDomain domain{block.name, {}};
      for (const std::string& name : block.hosts) {
        if (const auto [found, added] = block_of.emplace(name, b); !added) {
          if (twice++ == 0)
            Warn(block.line,
                 fmt::format("host {} is in block {} and on line {} in block {}; it stays there, and so "
                             "does any other host of two blocks",
                             name, block.name, slurm_.blocks[found->second].line,
                             slurm_.blocks[found->second].name));
          continue;
        }
        domain.hosts.push_back(name);
        if (!slurm_.switches.empty() && !leaves_.contains(name) && nowhere++ == 0) first = name;
      }
      if (!domain.hosts.empty())
        fabric_.domains.push_back(std::move(domain));  // a block may be a placeholder
    }
    if (nowhere > 0)
      Warn(slurm_.blocks[block_of.at(first)].line,
           fmt::format("{} in a block and at no switch, such as {}; expected each at a switch",
                       nowhere == 1 ? "1 host is" : fmt::format("{} hosts are", nowhere), first));
  }

  void AssumeSwitch() {
    fabric_.switches.push_back({"network", 0});
    for (const FabricDomain& domain : fabric_.domains)
      for (const std::string& host : domain.hosts) AddHost(host, 0, 0);
    Warn(slurm_.blocks[0].line, "blocks, which tell no network; one switch between all hosts is assumed");
  }

  SlurmFile slurm_;
  SlurmLists lists_;
  Fabric fabric_;
  Index switches_;
  std::vector<std::vector<int32_t>> parents_, children_;     // by switch, without repetitions
  std::map<std::string_view, std::vector<int32_t>> leaves_;  // by host: the switches that list it
};

}  // namespace

Status SlurmLists::Error(int32_t line, std::string_view text) const {
  return InvalidInput(fmt::format("{}:{}: {}", file_, line, text));
}

StatusOr<std::vector<std::string>> SlurmLists::Expand(std::string_view list, std::string_view what,
                                                      int32_t line) {
  StatusOr<std::vector<std::string>> names = ExpandHostList(list);
  if (!names.ok()) return Annotate(names.status(), fmt::format("{}:{}: {}", file_, line, what));
  names_ += static_cast<int64_t>(names->size());
  if (names_ > kMostNames)
    return Error(line, "more than 1,000,000 names in the file; expected those of one cluster");
  return names;
}

Status SlurmLists::CheckName(std::string_view name, std::string_view what, int32_t line) const {
  const auto wrong = [](char c) {
    return static_cast<unsigned char>(c) <= ' ' || c == 127 || c == ',' || c == '[' || c == ']';
  };
  if (!name.empty() && std::ranges::none_of(name, wrong)) return OkStatus();
  return Error(line, fmt::format("{} '{}'; expected one name, without brackets, commas and blanks", what,
                                 Cleaned(name, 80)));
}

bool IsSlurmTopology(std::string_view text) { return IsSlurmConf(text) || IsSlurmYaml(text); }

StatusOr<Fabric> ReadSlurmTopology(std::string_view text, std::string_view file) {
  XCCL_ASSIGN_OR_RETURN(SlurmFile slurm,
                        IsSlurmYaml(text) ? ReadSlurmYaml(text, file) : ReadSlurmConf(text, file));
  return Builder(std::move(slurm), file).Build();
}

}  // namespace xccl
