// Every function writes its program instruction by instruction:
// 1. Make the collective: the lanes become pairs of a sendrecv, or the members of a reduce or a multicast.
// 2. Add a threadblock for each sender and receiver, with its instructions.
// 3. Add a connection for each lane and channel, and a group for each fan-in and multicast.
// 4. Sort the connections.
// Connections have one slot: a sender waits until its message is received. Callers may raise the slots.
#include "pipeline/measure/programs.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "ir/collective.h"

namespace xccl {
namespace {

constexpr Operand kIn = {BufferKind::kInput, 0}, kOut = {BufferKind::kOutput, 0};
constexpr Operand Scratch(int32_t slot) { return {BufferKind::kScratch, slot}; }

std::vector<Rank> Sorted(std::vector<Rank> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

StatusOr<Collective> PartsOf(std::span<const Lane> lanes) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  for (const Lane& lane : lanes) {
    spec.ranks.push_back(lane.from);
    spec.ranks.push_back(lane.to);
    spec.pairs.emplace_back(lane.from, lane.to);
  }
  spec.ranks = Sorted(std::move(spec.ranks));
  return Collective::Create(std::move(spec));
}

// Returns a program without threadblocks, whose connections have one slot.
Program Empty(int32_t ranks, Protocol protocol) {
  Program program;
  program.ranks.resize(static_cast<size_t>(ranks));
  program.protocol = protocol;
  program.slots = 1;
  return program;
}

LoweredProgram Finished(Collective collective, Program program) {
  std::ranges::sort(program.connections, {},
                    [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); });
  return {std::move(collective), std::move(program)};
}

int32_t PlaceOf(const std::vector<PartId>& parts, int32_t part) {
  return static_cast<int32_t>(std::ranges::find(parts, PartId(part)) - parts.begin());
}

}  // namespace

StatusOr<LoweredProgram> Rounds(int32_t ranks, std::span<const Lane> ring, int32_t rounds,
                                Protocol protocol) {
  // The collective is the first hop alone. All other hops pass the same message on.
  XCCL_ASSIGN_OR_RETURN(const Collective hop, PartsOf(ring.first(1)));
  CollectiveSpec spec = hop.spec();
  for (const Lane& lane : ring) spec.ranks.push_back(lane.from);
  spec.ranks = Sorted(std::move(spec.ranks));
  XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
  Program program = Empty(ranks, protocol);
  const int32_t hops = rounds * static_cast<int32_t>(ring.size());
  for (size_t r = 0; r < ring.size(); ++r) {
    Threadblock block;
    block.send_peer = ring[r].to;
    block.recv_peer = ring[r > 0 ? r - 1 : ring.size() - 1].from;
    for (int32_t i = static_cast<int32_t>(r); i <= hops; i += static_cast<int32_t>(ring.size())) {
      const Opcode op = i == 0 ? Opcode::kSend : i < hops ? Opcode::kRecvCopySend : Opcode::kRecv;
      const Operand dst = i == 0 ? Operand() : i == 1 ? kOut : Scratch(0);
      block.instructions.push_back({.op = op, .count = 1, .src = kIn, .dst = dst});
    }
    program.ranks[ring[r].from].threadblocks = {std::move(block)};
    program.ranks[ring[r].from].scratch = {ChunkId(0)};
    program.connections.push_back({ring[r].from, ring[r].to, 0, ring[r].path});
  }
  return Finished(std::move(collective), std::move(program));
}

StatusOr<LoweredProgram> Flows(int32_t ranks, std::span<const Lane> lanes, int32_t blocks,
                               Protocol protocol) {
  XCCL_ASSIGN_OR_RETURN(const Collective whole, PartsOf(lanes));
  Collective collective = whole.WithChunks(blocks);
  Program program = Empty(ranks, protocol);
  for (int32_t l = 0; l < static_cast<int32_t>(lanes.size()); ++l) {
    const Lane& lane = lanes[static_cast<size_t>(l)];
    const int32_t from = PlaceOf(collective.InputParts(lane.from), l) * blocks,
                  to = PlaceOf(collective.OutputParts(lane.to), l) * blocks;
    for (int32_t b = 0; b < blocks; ++b) {
      Threadblock sends, receives;
      sends.send_peer = lane.to;
      receives.recv_peer = lane.from;
      sends.channel = receives.channel = b;
      sends.instructions.push_back(
          {.op = Opcode::kSend, .count = 1, .src = {BufferKind::kInput, from + b}, .dst = {}});
      receives.instructions.push_back(
          {.op = Opcode::kRecv, .count = 1, .src = {}, .dst = {BufferKind::kOutput, to + b}});
      program.ranks[lane.from].threadblocks.push_back(std::move(sends));
      program.ranks[lane.to].threadblocks.push_back(std::move(receives));
      program.connections.push_back({lane.from, lane.to, b, lane.path});
    }
  }
  return Finished(std::move(collective), std::move(program));
}

StatusOr<LoweredProgram> AddUp(int32_t ranks, std::span<const Lane> lanes, Protocol protocol) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kReduce;
  spec.root = lanes[0].to;
  spec.ranks = {lanes[0].to};
  Program program = Empty(ranks, protocol);
  Group group{.kind = Group::Kind::kFanIn, .root = lanes[0].to, .members = {}, .path = {}};
  for (const Lane& lane : lanes) {
    Threadblock sends;
    sends.send_peer = lane.to;
    sends.instructions.push_back({.op = Opcode::kSend, .count = 1, .src = kIn, .dst = {}, .first = true});
    program.ranks[lane.from].threadblocks = {std::move(sends)};
    program.connections.push_back({lane.from, lane.to, 0, lane.path});
    group.members.push_back(lane.from);
    spec.ranks.push_back(lane.from);
  }
  Threadblock adds;
  adds.recv_group = 0;
  adds.instructions.push_back(
      {.op = Opcode::kRecvReduceCopy, .count = 1, .src = kIn, .dst = kOut, .first = true, .final = true});
  program.ranks[group.root].threadblocks = {std::move(adds)};
  program.groups.push_back(std::move(group));
  spec.ranks = Sorted(std::move(spec.ranks));
  XCCL_ASSIGN_OR_RETURN(Collective collective, Collective::Create(std::move(spec)));
  return Finished(std::move(collective), std::move(program));
}

StatusOr<LoweredProgram> Copies(int32_t ranks, const Lane& lane, int32_t hand_offs, bool several) {
  XCCL_ASSIGN_OR_RETURN(LoweredProgram made, Flows(ranks, {&lane, 1}, 1, Protocol::kSimple));
  RankProgram& rank = made.program.ranks[lane.from];
  std::vector<Threadblock> blocks(several ? 2 : 1);
  for (int32_t i = 0; i <= hand_offs; ++i) {
    const size_t at = static_cast<size_t>(i) % blocks.size();
    Instruction copy{
        .op = Opcode::kCopy, .count = 1, .src = i == 0 ? kIn : Scratch(i - 1), .dst = Scratch(i)};
    if (several && i > 0) {
      copy.dep_first = static_cast<int32_t>(made.program.dependencies.size());
      copy.dep_count = 1;
      made.program.dependencies.push_back({(i - 1) % 2, (i - 1) / 2});
    }
    blocks[at].instructions.push_back(copy);
    rank.scratch.push_back(ChunkId(0));
  }
  blocks[0].send_peer = lane.to;
  blocks[0].instructions.push_back({.op = Opcode::kSend, .count = 1, .src = Scratch(hand_offs), .dst = {}});
  rank.threadblocks = std::move(blocks);
  return made;
}

StatusOr<LoweredProgram> Multicasts(const Topology& topology, const SwitchTree& tree, int32_t blocks) {
  const Rank root = *topology.RankOf(topology.link(tree.up).from);
  // In this broadcast the root gets no result, because the root's own copy would take longer than the links.
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "one to many";
  spec.custom_weights = {1};
  spec.ranks = tree.members;
  spec.ranks.push_back(root);
  spec.ranks = Sorted(std::move(spec.ranks));
  spec.pre = {{root, PartId(0), {root}}};
  for (const Rank member : Sorted(tree.members)) spec.post.push_back({member, PartId(0), {root}});
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(std::move(spec)));
  Program program = Empty(topology.num_ranks(), Protocol::kSimple);
  std::vector<LinkId> links = {tree.up};
  links.insert(links.end(), tree.down.begin(), tree.down.end());
  for (int32_t b = 0; b < blocks; ++b) {
    const Operand in = {BufferKind::kInput, b}, out = {BufferKind::kOutput, b};
    Threadblock sends;
    sends.channel = b;
    sends.send_group = b;
    sends.instructions.push_back({.op = Opcode::kSend, .count = 1, .src = in, .dst = {}});
    program.ranks[root].threadblocks.push_back(std::move(sends));
    Group group{.kind = Group::Kind::kMulticast, .root = root, .members = {}, .channel = b, .path = links};
    group.members = Sorted(tree.members);
    program.groups.push_back(std::move(group));
    for (size_t m = 0; m < tree.members.size(); ++m) {
      Threadblock receives;
      receives.channel = b;
      receives.recv_peer = root;
      receives.instructions.push_back({.op = Opcode::kRecv, .count = 1, .src = {}, .dst = out});
      program.ranks[tree.members[m]].threadblocks.push_back(std::move(receives));
      program.connections.push_back({root, tree.members[m], b, {tree.up, tree.down[m]}});
    }
  }
  return Finished(whole.WithChunks(blocks), std::move(program));
}

}  // namespace xccl
