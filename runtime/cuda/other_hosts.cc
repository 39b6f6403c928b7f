#include "runtime/cuda/other_hosts.h"

#include <fmt/core.h>

#include <algorithm>

namespace xccl::cuda {

bool CrossesHosts(const Program& program, const std::vector<int32_t>& host_of) {
  return std::ranges::any_of(program.connections, [&](const Connection& one) {
    return host_of[one.src.index()] != host_of[one.dst.index()];
  });
}

Status CheckBetweenHosts(const Program& program, const std::vector<int32_t>& host_of,
                         const std::string& name) {
  if (!CrossesHosts(program, host_of)) return OkStatus();
  if (program.protocol != Protocol::kSimple)
    return InvalidInput(
        fmt::format("{}: protocol {} between hosts; expected simple", name, ToString(program.protocol)));
  for (const Group& group : program.groups)
    for (const Rank member : group.members)
      if (HasSwitch(group) && host_of[member.index()] != host_of[group.root.index()])
        return InvalidInput(
            fmt::format("{}: a {} group has ranks {} and {} of different hosts; expected one host", name,
                        ToString(group.kind), group.root.value, member.value));
  return OkStatus();
}

void OtherHosts::Tell(const Status& status, Rank own) const {
  fail(Annotate(status, fmt::format("rank {}", own.value)));
}

int32_t LocalRankOf(Rank rank, const std::vector<int32_t>& host_of) {
  return static_cast<int32_t>(
      std::count(host_of.begin(), host_of.begin() + rank.value, host_of[rank.index()]));
}

StatusOr<Exchange> MeetOnHost(const std::string& name, Rank rank, const OtherHosts& hosts,
                              std::chrono::nanoseconds time_limit) {
  const int32_t host = hosts.host_of[rank.index()];
  XCCL_ASSIGN_OR_RETURN(
      Exchange met, SocketExchange(fmt::format("{}-{}", name, host), LocalRankOf(rank, hosts.host_of),
                                   static_cast<int32_t>(std::ranges::count(hosts.host_of, host)), time_limit,
                                   [failure = hosts.failure] { return failure().has_value(); }));
  // The group knows of every rank that fails, and names it.
  met.check = [failure = hosts.failure] { return failure().value_or(OkStatus()); };
  return met;
}

}  // namespace xccl::cuda
