#include "runtime/nccl/shim/say.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "ir/numbers.h"
#include "runtime/nccl/shim/member.h"

namespace xccl::nccl_shim {
namespace {

bool Debugging() {
  static const bool debugging = [] {
    const char* const value = std::getenv("XCCL_NCCL_DEBUG");
    return value != nullptr && *value != '\0' && std::string_view(value) != "0";
  }();
  return debugging;
}

}  // namespace

void Say(std::string_view line) {
  // In one piece, so that the lines of processes stay whole.
  const std::string text = fmt::format("xccl: {}\n", line);
  fputs(text.c_str(), stderr);
}

void SayFallback(Member& member, const NcclCall& call, const char* why) {
  if (!Debugging()) return;
  std::string line =
      fmt::format("{} of {} bytes, {}: NCCL runs it: {}", ToString(call.kind), SizeBytes(call, member.ranks),
                  ToString(static_cast<DataType>(call.type)), why);
  const std::lock_guard lock(member.mutex);
  constexpr size_t kMostTold = 1000;
  if (member.told.size() < kMostTold && member.told.insert(line).second)
    Say(fmt::format("rank {} of {}: {}", member.rank, member.ranks, line));
}

}  // namespace xccl::nccl_shim
