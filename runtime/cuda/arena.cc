#include "runtime/cuda/arena.h"

#include <fmt/format.h>

#include <algorithm>

namespace xccl::cuda {
namespace {

constexpr int64_t kLargestSlot = 1 << 20, kSmallestSlot = 4 << 10, kMostOfConnection = 16 << 20;

int64_t RoundUp(int64_t bytes) {
  return (bytes + device::kLineBytes - 1) / device::kLineBytes * device::kLineBytes;
}

// Takes `bytes` at a line of its own.
int64_t Take(ArenaLayout& layout, int64_t bytes) {
  const int64_t at = layout.bytes;
  layout.bytes += RoundUp(bytes);
  return at;
}

}  // namespace

StatusOr<ArenaShape> ChooseShape(const Program& program, int32_t blocks_per_rank, int32_t instances,
                                 const ArenaOptions& options, const std::string& name) {
  ArenaShape shape{instances, program.slots, 0, blocks_per_rank};
  const int64_t wanted = options.slot_bytes != 0
                             ? options.slot_bytes
                             : std::clamp(kMostOfConnection / shape.slots, kSmallestSlot, kLargestSlot);
  shape.slot_bytes = device::kLineBytes;
  int64_t fixed = 0, slots = 0;
  Rank widest(0);
  const IdVector<Rank, ArenaLayout> layouts = LayoutArenas(program, shape);
  for (Rank r(0); r.value < layouts.size(); ++r.value) {
    const int64_t receives = std::ranges::count(layouts[r].ends, false, &ArenaLayout::End::sends);
    if (receives * shape.slots > slots) widest = r;
    slots = std::max(slots, receives * shape.slots);
    fixed = std::max(fixed, layouts[r].bytes - receives * shape.slots * shape.slot_bytes);
  }
  const int64_t room = std::max<int64_t>(0, options.memory_limit - fixed);
  shape.slot_bytes = RoundUp(wanted);
  if (slots > 0 && shape.slot_bytes > room / slots)
    shape.slot_bytes = std::max(std::min(kSmallestSlot, RoundUp(wanted)),
                                room / slots / device::kLineBytes * device::kLineBytes);
  if (fixed + slots * shape.slot_bytes > options.memory_limit)
    return InvalidInput(
        fmt::format("{}: rank {}: {} slots of {} bytes and {} bytes of tables need {} bytes of device "
                    "memory; the limit is {} "
                    "bytes; hint: --memory-limit",
                    name, widest.value, slots, shape.slot_bytes, fixed, fixed + slots * shape.slot_bytes,
                    options.memory_limit));
  return shape;
}

IdVector<Rank, ArenaLayout> LayoutArenas(const Program& program, const ArenaShape& shape) {
  IdVector<Rank, ArenaLayout> layouts;
  layouts.resize(static_cast<size_t>(program.ranks.size()));
  for (const Connection& connection : program.connections) {
    ArenaLayout& src = layouts[connection.src];
    ArenaLayout& dst = layouts[connection.dst];
    for (int32_t i = 0; i < shape.instances; ++i) {
      const size_t src_end = src.ends.size(), dst_end = dst.ends.size();
      ArenaLayout::End sender{.peer = connection.dst, .sends = true, .peer_end = dst_end};
      sender.counter = Take(src, sizeof(uint64_t));
      sender.steps = Take(src, sizeof(uint64_t));
      sender.entry = Take(src, sizeof(device::PeerEntry));
      src.ends.push_back(sender);
      ArenaLayout::End receiver{.peer = connection.src, .sends = false, .peer_end = src_end};
      receiver.counter = Take(dst, sizeof(uint64_t));
      receiver.steps = Take(dst, sizeof(uint64_t));
      receiver.entry = Take(dst, sizeof(device::PeerEntry));
      receiver.slots = Take(dst, shape.slots * shape.slot_bytes);
      dst.ends.push_back(receiver);
    }
  }
  for (Rank r(0); r.value < layouts.size(); ++r.value) {
    ArenaLayout& layout = layouts[r];
    const int64_t blocks = static_cast<int64_t>(shape.blocks_per_rank) * shape.instances;
    layout.blocks = Take(layout, blocks * static_cast<int64_t>(sizeof(device::BlockState)));
    layout.stop = Take(layout, sizeof(uint32_t));
    layout.windows = Take(layout, layouts.size() * kWindows * static_cast<int64_t>(sizeof(uint64_t)));
    layout.connections = Take(layout, static_cast<int64_t>(layout.ends.size() * sizeof(device::Connection)));
  }
  return layouts;
}

std::vector<device::Connection> ConnectionsOf(const IdVector<Rank, ArenaLayout>& layouts,
                                              const ArenaShape& shape, Rank rank,
                                              std::span<const DevicePointer> arenas) {
  const ArenaLayout& mine = layouts[rank];
  const auto at = [&](Rank r, int64_t offset) {
    return PointerTo<char>(arenas[r.index()] + static_cast<uint64_t>(offset));
  };
  const auto counter = [&](Rank r, int64_t offset) { return reinterpret_cast<uint64_t*>(at(r, offset)); };
  std::vector<device::Connection> connections;
  for (const ArenaLayout::End& end : mine.ends) {
    const ArenaLayout::End& other = layouts[end.peer].ends[end.peer_end];
    const Rank receiver = end.sends ? end.peer : rank, sender = end.sends ? rank : end.peer;
    const ArenaLayout::End& receives = end.sends ? other : end;
    const ArenaLayout::End& sends = end.sends ? end : other;
    device::Connection c;
    c.slots = at(receiver, receives.slots);
    c.head = counter(receiver, receives.counter);
    c.tail = counter(sender, sends.counter);
    c.steps = counter(rank, end.steps);
    c.entry_here = reinterpret_cast<const device::PeerEntry*>(at(rank, end.entry));
    c.entry_there = reinterpret_cast<device::PeerEntry*>(at(end.peer, other.entry));
    c.window_delta = counter(rank, mine.windows + static_cast<int64_t>(end.peer.value) * kWindows *
                                                      static_cast<int64_t>(sizeof(uint64_t)));
    c.slot_bytes = shape.slot_bytes;
    connections.push_back(c);
  }
  return connections;
}

}  // namespace xccl::cuda
