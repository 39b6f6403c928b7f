#include "runtime/nccl/shim/say.h"

#include <fmt/core.h>

#include "base/standard_streams.h"
#include "ir/numbers.h"
#include "runtime/nccl/shim/member.h"

namespace xccl::nccl_shim {

void Say(std::string_view line) {
  // In one piece, so that the lines of processes stay whole.
  PrintError(fmt::format("xccl: {}\n", line));
}

void SayFallback(Member& member, const NcclCall& call, const char* why) {
  std::string line =
      fmt::format("{} of {} bytes, {}: NCCL runs it: {}", ToString(call.kind), SizeBytes(call, member.ranks),
                  ToString(static_cast<DataType>(call.type)), why);
  const std::lock_guard lock(member.mutex);
  constexpr size_t kMostTold = 1000;
  if (member.told.size() < kMostTold && member.told.insert(line).second)
    Say(fmt::format("rank {} of {}: {}", member.rank, member.ranks, line));
}

}  // namespace xccl::nccl_shim
