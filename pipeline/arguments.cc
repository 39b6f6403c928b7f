#include "pipeline/arguments.h"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "ir/bounds/bound.h"
#include "ir/known_machines.h"
#include "ir/sizes.h"
#include "topologies/submachine.h"

namespace xccl {

Status CheckSize(int64_t size_bytes) {
  if (size_bytes <= kMaxSizeBytes) return OkStatus();
  return UsageError(FormatSize(size_bytes) + "; at most " + FormatSize(kMaxSizeBytes) + " is supported");
}

Status CheckNotEmpty(int64_t size_bytes, const Collective& collective) {
  const auto rounded = [&](int64_t size) { return CollectiveSizes(collective, size).size_bytes(); };
  if (size_bytes == 0 || collective.kind() == CollectiveKind::kBarrier || rounded(size_bytes) > 0)
    return OkStatus();
  int64_t low = size_bytes, high = size_bytes;  // low is rounded down to 0 bytes
  while (rounded(high) == 0 && high < kMaxSizeBytes) low = high, high *= 2;
  if (rounded(high) == 0) return OkStatus();  // the parts are empty at every size
  while (high - low > 1) (rounded((low + high) / 2) == 0 ? low : high) = (low + high) / 2;
  return UsageError(fmt::format("{} bytes; {} of {} ranks rounds them down to none; expected at least {}",
                                size_bytes, collective.name(), collective.num_members(), high));
}

StatusOr<std::optional<MachineModel>> FindMachine(const std::string& name) {
  if (name == "none") return std::optional<MachineModel>();
  if (std::optional<MachineModel> known = KnownMachine(name)) return known;
  if (!PathExists(name) && name.find_first_of("./") == std::string::npos) {
    std::vector<std::string_view> names(KnownMachineNames().begin(), KnownMachineNames().end());
    names.push_back("none");
    return UsageError(fmt::format("no machine '{}'{}; expected {}, a machine.json or a plan book", name,
                                  DidYouMean(name, names), fmt::join(names, ", ")));
  }
  XCCL_ASSIGN_OR_RETURN(const MachineModel machine,
                        ReadMachineModel(IsDirectory(name) ? name + "/machine.json" : name));
  return std::optional(machine);
}

StatusOr<Topology> WithoutIdleRanks(Topology whole, const Collective& collective) {
  if (collective.num_members() == whole.num_ranks()) return whole;
  Topology left = WithoutRelays(whole, collective.ranks());
  const Status reachable = CheckReachable(left, collective);
  if (!reachable.ok() && CheckReachable(whole, collective).ok())
    return Status(reachable.code(), reachable.message() + "; hint: without --no-relays");
  return left;
}

}  // namespace xccl
