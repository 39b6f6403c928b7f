#include "runtime/cuda/arena.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include "runtime/transport/shared_region.h"

namespace xccl::cuda {
namespace {

constexpr int64_t kLargestSlot = 1 << 20, kSmallestSlot = 4 << 10, kMostOfConnection = 16 << 20;

int64_t RoundUp(int64_t bytes, int64_t to = device::kLineBytes) { return (bytes + to - 1) / to * to; }

// Where the `row`-th row of deltas begins.
int64_t RowOfWindows(int64_t row) { return row * kWindows * static_cast<int64_t>(sizeof(uint64_t)); }

// Takes `bytes`, aligned to a line.
int64_t Take(ArenaLayout& layout, int64_t bytes) {
  const int64_t at = layout.bytes;
  layout.bytes += RoundUp(bytes);
  return at;
}

// Places what an end needs beside its slots.
void TakeCounters(ArenaLayout& layout, bool remote, ArenaLayout::End& end) {
  end.steps = Take(layout, sizeof(uint64_t));
  if (remote) {
    end.cell = layout.cells++;
    return;
  }
  end.counter = Take(layout, sizeof(uint64_t));
  end.entry = Take(layout, sizeof(device::PeerEntry));
}

// A group's connection: the place of its slots, and of the root's end.
struct GroupSlots {
  std::optional<size_t> team = {};  // absent in a fan-in, whose connections have slots like any others
  int64_t at = 0;                   // in the region, of instance 0
  size_t group = 0;                 // in the root's ArenaLayout::groups, of instance 0
  size_t member = 0;                // in Group::members
  bool to_root = false;
};

// Makes the roots' GroupEnds, without their ends and counters. Returns the slots by connection.
std::vector<std::optional<GroupSlots>> PlaceGroups(const Program& program, const std::vector<Team>& teams,
                                                   const ArenaShape& shape,
                                                   IdVector<Rank, ArenaLayout>& layouts) {
  std::vector<std::optional<GroupSlots>> of(program.connections.size());
  for (size_t g = 0; g < program.groups.size(); ++g) {
    const Group& group = program.groups[g];
    GroupSlots slots{.to_root = group.kind != Group::Kind::kMulticast};
    if (HasSwitch(group)) {
      const auto has_group = [&](const Team& team) {
        return std::ranges::binary_search(team.groups, static_cast<int32_t>(g));
      };
      slots.team = static_cast<size_t>(std::ranges::find_if(teams, has_group) - teams.begin());
      const std::vector<int32_t>& of_team = teams[*slots.team].groups;
      const int64_t place = std::ranges::lower_bound(of_team, static_cast<int32_t>(g)) - of_team.begin();
      slots.at = place * shape.instances * GroupSlotsBytes(shape);
    }
    std::vector<ArenaLayout::GroupEnd>& ends = layouts[group.root].groups;
    slots.group = ends.size();
    for (int32_t i = 0; i < shape.instances; ++i)
      ends.push_back({.group = g,
                      .team = slots.team,
                      .slots = slots.at + i * GroupSlotsBytes(shape),
                      .ends = std::vector<size_t>(group.members.size())});
    for (slots.member = 0; slots.member < group.members.size(); ++slots.member) {
      of[FindBranch(program, group, group.members[slots.member])] = slots;
    }
  }
  return of;
}

}  // namespace

int64_t GroupSlotsBytes(const ArenaShape& shape) { return RoundUp(shape.slots * shape.slot_bytes); }

std::vector<Team> TeamsOf(const Program& program, const ArenaShape& shape) {
  std::vector<Team> teams;
  for (size_t g = 0; g < program.groups.size(); ++g) {
    if (!HasSwitch(program.groups[g])) continue;
    std::vector<Rank> ranks = program.groups[g].members;
    ranks.insert(std::ranges::lower_bound(ranks, program.groups[g].root), program.groups[g].root);
    auto team = std::ranges::find(teams, ranks, &Team::ranks);
    if (team == teams.end()) team = teams.insert(team, {std::move(ranks), {}, 0});
    team->groups.push_back(static_cast<int32_t>(g));
  }
  for (Team& team : teams)
    team.bytes = RoundUp(static_cast<int64_t>(team.groups.size()) * shape.instances * GroupSlotsBytes(shape),
                         kRegionAlignment);
  return teams;
}

StatusOr<ArenaShape> ChooseShape(const Program& program, int32_t blocks_per_rank, int32_t instances,
                                 const ArenaOptions& options, const std::string& name) {
  ArenaShape shape{instances, program.slots, 0, blocks_per_rank, options.host_of};
  int64_t wanted = options.slot_bytes;
  if (wanted == 0) {
    wanted = std::clamp(kMostOfConnection / shape.slots, kSmallestSlot, kLargestSlot);
    if (options.largest_message > 0)
      wanted = std::clamp(options.largest_message, std::min(wanted, kSmallestSlot), wanted);
  }
  shape.slot_bytes = device::kLineBytes;
  int64_t fixed = 0, slots = 0;
  Rank widest(0);
  const IdVector<Rank, ArenaLayout> layouts = LayoutArenas(program, shape);
  for (Rank r(0); r.value < layouts.size(); ++r.value) {
    const int64_t arrays = layouts[r].slot_arrays, all = arrays + layouts[r].cells;
    if (all * shape.slots > slots) widest = r;
    slots = std::max(slots, all * shape.slots);
    // Whatever the size of slots, alignment adds less than twice kRegionAlignment to a region.
    const int64_t regions =
        std::ranges::count_if(layouts[r].regions, [](const auto& at) { return at.has_value(); });
    fixed = std::max(
        fixed, layouts[r].bytes - arrays * shape.slots * shape.slot_bytes + regions * 2 * kRegionAlignment);
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
                    "bytes; hint: {}",
                    name, widest.value, slots, shape.slot_bytes, fixed, fixed + slots * shape.slot_bytes,
                    options.memory_limit, options.memory_hint));
  return shape;
}

IdVector<Rank, ArenaLayout> LayoutArenas(const Program& program, const ArenaShape& shape) {
  IdVector<Rank, ArenaLayout> layouts;
  layouts.resize(static_cast<size_t>(program.ranks.size()));
  const std::vector<Team> teams = TeamsOf(program, shape);
  for (ArenaLayout& layout : layouts) layout.regions.resize(teams.size());
  for (size_t t = 0; t < teams.size(); ++t) {
    for (Rank r : teams[t].ranks) {
      ArenaLayout& layout = layouts[r];
      layout.bytes = RoundUp(layout.bytes, kRegionAlignment);
      layout.regions[t] = Take(layout, teams[t].bytes);
      layout.slot_arrays += std::ssize(teams[t].groups) * shape.instances;
    }
  }
  const std::vector<std::optional<GroupSlots>> group_slots = PlaceGroups(program, teams, shape, layouts);
  for (size_t c = 0; c < program.connections.size(); ++c) {
    const Connection& connection = program.connections[c];
    ArenaLayout& src = layouts[connection.src];
    ArenaLayout& dst = layouts[connection.dst];
    const bool remote = !shape.host_of.empty() &&
                        shape.host_of[connection.src.index()] != shape.host_of[connection.dst.index()];
    for (int32_t i = 0; i < shape.instances; ++i) {
      const size_t src_end = src.ends.size(), dst_end = dst.ends.size();
      ArenaLayout::End sender{.peer = connection.dst, .sends = true, .peer_end = dst_end};
      ArenaLayout::End receiver{.peer = connection.src, .sends = false, .peer_end = src_end};
      TakeCounters(src, remote, sender);
      TakeCounters(dst, remote, receiver);
      const auto& in_group = group_slots[c];
      if (in_group)
        (in_group->to_root ? dst : src)
            .groups[in_group->group + static_cast<size_t>(i)]
            .ends[in_group->member] = in_group->to_root ? dst_end : src_end;
      if (in_group && in_group->team) {
        sender.of_switch = receiver.of_switch = true;
        const ArenaLayout& holder = in_group->to_root ? src : dst;
        (in_group->to_root ? sender : receiver).slots =
            *holder.regions[*in_group->team] + in_group->at + i * GroupSlotsBytes(shape);
      } else if (!remote) {
        receiver.slots = Take(dst, shape.slots * shape.slot_bytes);
        ++dst.slot_arrays;
      }
      src.ends.push_back(sender);
      dst.ends.push_back(receiver);
    }
  }
  const int64_t blocks = static_cast<int64_t>(shape.blocks_per_rank) * shape.instances;
  for (ArenaLayout& layout : layouts) {
    for (ArenaLayout::GroupEnd& end : layout.groups) {
      end.steps = Take(layout, sizeof(uint64_t));
      end.holds = Take(layout, sizeof(uint64_t));
      end.members = Take(layout, static_cast<int64_t>(end.ends.size() * sizeof(device::GroupMember)));
    }
    layout.group_connections =
        Take(layout, static_cast<int64_t>(layout.groups.size() * sizeof(device::GroupConnection)));
    layout.blocks = Take(layout, blocks * static_cast<int64_t>(sizeof(device::BlockState)));
    layout.stop = Take(layout, sizeof(uint32_t));
    if (layout.cells > 0) layout.fifo = Take(layout, sizeof(device::Fifo));
    layout.windows = Take(layout, RowOfWindows(layouts.size() + (teams.empty() ? 0 : 2)));
    layout.connections = Take(layout, static_cast<int64_t>(layout.ends.size() * sizeof(device::Connection)));
  }
  return layouts;
}

std::vector<device::Connection> ConnectionsOf(const IdVector<Rank, ArenaLayout>& layouts,
                                              const ArenaShape& shape, Rank rank,
                                              std::span<const DevicePointer> arenas,
                                              const RemoteMemory& remote) {
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
    c.steps = counter(rank, end.steps);
    c.slot_bytes = shape.slot_bytes;
    if (end.cell) {
      const uint64_t cell = remote.cells + static_cast<uint64_t>(*end.cell) * sizeof(ConnectionCell);
      c.slots =
          PointerTo<char>(remote.slots + static_cast<uint64_t>(*end.cell * shape.slots * shape.slot_bytes));
      c.head = PointerTo<uint64_t>(cell + offsetof(ConnectionCell, head));
      c.tail = PointerTo<uint64_t>(cell + offsetof(ConnectionCell, tail));
      connections.push_back(c);
      continue;
    }
    c.slots = receives.slots ? at(receiver, *receives.slots) : at(sender, *sends.slots);
    c.head = counter(receiver, receives.counter);
    c.tail = counter(sender, sends.counter);
    c.entry_here = reinterpret_cast<const device::PeerEntry*>(at(rank, end.entry));
    c.entry_there = reinterpret_cast<device::PeerEntry*>(at(end.peer, other.entry));
    c.window_delta =
        counter(rank, mine.windows + RowOfWindows(end.of_switch ? layouts.size() : end.peer.value));
    connections.push_back(c);
  }
  return connections;
}

GroupTables GroupTablesOf(const Program& program, const IdVector<Rank, ArenaLayout>& layouts,
                          const ArenaShape& shape, Rank rank, std::span<const DevicePointer> arenas,
                          std::span<const TeamSwitch> switches, const RemoteMemory& remote) {
  GroupTables tables;
  const ArenaLayout& mine = layouts[rank];
  const DevicePointer arena = arenas[rank.index()];
  const auto here = [&](int64_t offset) {
    return PointerTo<uint64_t>(arena + static_cast<uint64_t>(offset));
  };
  const std::vector<device::Connection> connections = ConnectionsOf(layouts, shape, rank, arenas, remote);
  for (const ArenaLayout::GroupEnd& end : mine.groups) {
    std::vector<device::GroupMember>& members = tables.members.emplace_back();
    for (size_t e : end.ends) {
      const device::Connection& c = connections[e];
      const bool other_host = mine.ends[e].cell.has_value();
      members.push_back({c.slots, c.head, c.tail, mine.ends[e].peer.value,
                         other_host ? static_cast<int32_t>(e) : -1, c.entry_here, c.entry_there});
    }
    const Group& of = program.groups[end.group];
    device::GroupConnection& group = tables.connections.emplace_back();
    group.members = PointerTo<const device::GroupMember>(arena + static_cast<uint64_t>(end.members));
    group.count = static_cast<int32_t>(members.size());
    group.steps = here(end.steps);
    group.slot_bytes = shape.slot_bytes;
    if (!HasSwitch(of)) group.own_place = of.own;
    if (!end.team || switches[*end.team].multicast == 0) continue;
    const TeamSwitch& by = switches[*end.team];
    group.multicast = PointerTo<char>(by.multicast + static_cast<uint64_t>(end.slots));
    if (by.reaches_buffers) group.switch_delta = here(mine.windows + RowOfWindows(layouts.size()));
    if (of.kind != Group::Kind::kReduce) continue;
    group.own = PointerTo<char>(arena + static_cast<uint64_t>(*mine.regions[*end.team] + end.slots));
    group.holds = here(end.holds);
  }
  return tables;
}

}  // namespace xccl::cuda
