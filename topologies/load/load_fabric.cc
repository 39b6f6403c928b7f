#include "topologies/load/load_fabric.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "topologies/fabric/fabric_topology.h"
#include "topologies/fabric/host_list.h"

namespace xccl {
namespace {

class OptionsReader {
 public:
  OptionsReader(const LoadOptions& options, const LoadHostKind& load_kind)
      : options_(options), load_kind_(load_kind) {}

  StatusOr<FabricOptions> Read() {
    made_.job = options_.job;
    made_.nvlink_domain = options_.nvlink_domain;
    if (options_.nic_rate) {
      const StatusOr<int64_t> rate = ParseBandwidth(*options_.nic_rate);
      if (!rate.ok()) return UsageError(fmt::format("--nic-rate: {}", rate.status().message()));
      made_.nic_bytes_per_s = *rate;
    }
    if (options_.hosts_file) XCCL_RETURN_IF_ERROR(ReadHostsFile(*options_.hosts_file));
    for (const std::string& text : options_.host_kinds) XCCL_RETURN_IF_ERROR(AddRule(text));
    // A rule for all hosts is what is left when no pattern names a host.
    std::stable_partition(made_.rules.begin(), made_.rules.end(),
                          [](const HostRule& rule) { return !rule.hosts.empty(); });
    return std::move(made_);
  }

 private:
  // "DUMP" or "PATTERN=DUMP"; a file's own name may have a '='.
  Status AddRule(const std::string& text) {
    const size_t equals = PathExists(text) ? std::string::npos : text.find('=');
    if (equals == 0 || equals + 1 == text.size())
      return UsageError(
          fmt::format("--host '{}': expected DUMP or HOSTS=DUMP, such as gpu[001-016]=h100.xml", text));
    const bool all = equals == std::string::npos;
    XCCL_ASSIGN_OR_RETURN(const size_t kind, KindOf(all ? text : text.substr(equals + 1), "--host"));
    made_.rules.push_back({all ? "" : text.substr(0, equals), kind});
    return OkStatus();
  }

  // `place` is that of the name, in errors.
  StatusOr<size_t> KindOf(const std::string& name, std::string_view place) {
    if (const auto known = kinds_.find(name); known != kinds_.end()) return known->second;
    StatusOr<HostKind> kind = load_kind_(name);
    if (!kind.ok()) return Annotate(kind.status(), place);
    made_.kinds.push_back(*std::move(kind));
    return kinds_[name] = made_.kinds.size() - 1;
  }

  // One host or host list a line, and perhaps its dump.
  Status ReadHostsFile(const std::string& file) {
    XCCL_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(file));
    made_.listed.emplace();
    int64_t number = 0;
    for (const std::string& line : Split(text, '\n')) {
      ++number;
      const std::vector<std::string_view> words = WordsOf(std::string_view(line).substr(0, line.find('#')));
      const std::string place = fmt::format("{}:{}", file, number);
      if (words.empty()) continue;
      if (words.size() > 2)
        return InvalidInput(
            fmt::format("{}: {} words; expected a host, or a host and its dump", place, words.size()));
      StatusOr<std::vector<std::string>> hosts = ExpandHostList(words[0]);
      if (!hosts.ok()) return Annotate(hosts.status(), place);
      made_.listed->insert(made_.listed->end(), hosts->begin(), hosts->end());
      if (words.size() < 2) continue;
      XCCL_ASSIGN_OR_RETURN(const size_t kind, KindOf(std::string(words[1]), place));
      made_.rules.push_back({std::string(words[0]), kind});
    }
    if (made_.listed->empty()) return InvalidInput(fmt::format("{}: no host; expected one a line", file));
    return OkStatus();
  }

  const LoadOptions& options_;
  const LoadHostKind& load_kind_;
  std::map<std::string, size_t> kinds_;
  FabricOptions made_;
};

}  // namespace

StatusOr<Topology> LoadFabric(std::span<const FabricFile> files, std::string_view name,
                              const LoadOptions& options, const LoadHostKind& load_kind) {
  XCCL_ASSIGN_OR_RETURN(Fabric fabric, ReadFabric(files));
  XCCL_ASSIGN_OR_RETURN(const FabricOptions made, OptionsReader(options, load_kind).Read());
  const bool asks = std::ranges::any_of(fabric.cables, [](const FabricCable& cable) {
    return cable.bandwidth_bytes_per_s == 0 && !(cable.a.is_switch && cable.b.is_switch);
  });
  if (options.nic_rate && !asks && made.rules.empty())
    fabric.warnings.push_back(fmt::format("{}: the file states the rates; --nic-rate has no effect", name));
  if (options.nvlink_domain && made.rules.empty())
    fabric.warnings.push_back(
        fmt::format("{}: --nvlink-domain has no effect; it is for hosts that --host gives", name));
  return FabricTopology(fabric, name, made);
}

}  // namespace xccl
