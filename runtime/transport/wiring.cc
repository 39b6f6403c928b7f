#include "runtime/transport/wiring.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/units.h"
#include "runtime/transport/call_signature.h"

namespace xccl {
namespace {

constexpr int64_t kCacheLine = 64;
constexpr int64_t kSmallestSlot = 4096;

int64_t RoundUp(int64_t bytes) { return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine; }

}  // namespace

std::optional<int32_t> Wiring::Find(const ConnectionKey& key) const {
  const auto at = std::lower_bound(connections.begin(), connections.end(), key);
  if (at == connections.end() || *at != key) return std::nullopt;
  return static_cast<int32_t>(at - connections.begin());
}

int64_t Wiring::SlotMemory() const { return static_cast<int64_t>(connections.size()) * slots * slot_bytes; }

StatusOr<Wiring> WiringOf(std::span<const Program* const> programs, const WiringOptions& options) {
  Wiring wiring;
  int64_t widest = 1;
  for (const Program* program : programs) {
    if (wiring.ranks != 0 && wiring.ranks != program->ranks.size())
      return InvalidInput(fmt::format("programs for {} and for {} ranks; expected one number of ranks",
                                      wiring.ranks, program->ranks.size()));
    wiring.ranks = program->ranks.size();
    wiring.slots = std::max(wiring.slots, program->slots);
    for (int32_t r = 0; r < program->ranks.size(); ++r) {
      for (const Threadblock& block : program->ranks[Rank(r)].threadblocks) {
        for (Rank peer : SendPeers(*program, block))
          wiring.connections.push_back({Rank(r), peer, block.channel});
        for (const Instruction& instruction : block.instructions)
          if (Sends(instruction.op)) widest = std::max<int64_t>(widest, instruction.count);
      }
    }
  }
  std::sort(wiring.connections.begin(), wiring.connections.end());
  wiring.connections.erase(std::unique(wiring.connections.begin(), wiring.connections.end()),
                           wiring.connections.end());
  // Rounding to 16 bytes costs a slice at most 32; the other half of this is for data.
  const int64_t smallest = kMessageHead + RoundUp(std::max(kSmallestSlot, kCacheLine * widest));
  wiring.slot_bytes = std::max(smallest, kMessageHead + RoundUp(options.slot_bytes));
  const int64_t total_slots =
      std::max<int64_t>(1, static_cast<int64_t>(wiring.connections.size()) * wiring.slots);
  if (wiring.SlotMemory() > options.memory_limit)
    wiring.slot_bytes = std::max(smallest, options.memory_limit / total_slots / kCacheLine * kCacheLine);
  if (wiring.SlotMemory() > options.memory_limit)
    return InvalidInput(
        fmt::format("{} connections of {} slots of {} bytes need {} bytes; the limit is {} bytes",
                    wiring.connections.size(), wiring.slots, wiring.slot_bytes, wiring.SlotMemory(),
                    options.memory_limit));
  return wiring;
}

}  // namespace xccl
