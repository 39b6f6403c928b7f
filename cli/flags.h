// The flags that several commands share, and the values made from them. Every function reports a wrong flag
// as kUsage with the flag's name in front.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/command_line.h"
#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "topologies/load/load.h"
#include "topologies/topology.h"

namespace xccl {

// TOPOLOGY and the flags that change it.
struct TopologyFlags {
  std::string topology;
  LoadOptions load;
};
void AddTopologyFlags(Command& command, TopologyFlags& flags, bool required = true);

// The collective to plan.
struct CollectiveFlags {
  std::string collective;
  std::optional<int32_t> root;
  std::string ranks;            // "0,2,4-7"; empty: all
  std::string collective_file;  // user-defined
  std::string counts;           // CSV file
  std::string pairs;            // "0>1,2>3"
  bool no_relays = false;
};
void AddCollectiveFlags(Command& command, CollectiveFlags& flags);
StatusOr<Collective> MakeCollective(const CollectiveFlags& flags, const Topology& topology);
// The machine as the collective may use it. With --no-relays it lacks the links of ranks that take no part.
// Errors: kInvalidInput where only such ranks join the members.
StatusOr<Topology> UsableBy(const Collective& collective, const CollectiveFlags& flags, Topology topology);

// The same status as a command line error, with `--flag: ` in front.
Status FlagError(const Status& status, const std::string& flag);
StatusOr<int64_t> ParseSizeFlag(const std::string& flag, const std::string& text);
StatusOr<std::vector<int64_t>> ParseSizesFlag(const std::string& flag, const std::string& text);
StatusOr<TimeModel> ParseModelFlag(const std::string& text);

}  // namespace xccl
