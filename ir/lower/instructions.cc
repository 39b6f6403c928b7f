// Goes through the events in order. A send becomes an instruction of its sender's threadblock at the first
// move of its run, and a receive at the last move of its run; a send that is fused with a receive becomes
// part of the receive's instruction.
#include "ir/lower/instructions.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <tuple>

namespace xccl::lowering {
namespace {

class Writer {
 public:
  Writer(const Moves& moves, const Fusion& fusion, const Buffers& buffers, bool reduces)
      : moves_(moves), fusion_(fusion), buffers_(buffers), reduces_(reduces) {}

  Instruction Send(int32_t m, int32_t count) const {
    const Move& move = At(m);
    Instruction send;
    send.op = Opcode::kSend;
    send.count = count;
    send.src =
        move.feed == kNoIndex ? buffers_.Input(move.src, move.chunk) : buffers_.Held(move.src, move.chunk);
    send.first = reduces_ && move.feed == kNoIndex;
    return send;
  }

  Instruction Receive(int32_t m, int32_t count) const {
    const Move& move = At(m);
    const bool stored = IsStored(moves_, fusion_, m), fused = fusion_.send_of[m] != kNoIndex;
    Instruction recv;
    recv.count = count;
    if (move.reduces) {
      recv.op = !stored ? Opcode::kRecvReduceSend
                : fused ? Opcode::kRecvReduceCopySend
                        : Opcode::kRecvReduceCopy;
      recv.src =
          move.local_input ? buffers_.Input(move.dst, move.chunk) : buffers_.Held(move.dst, move.chunk);
      recv.first = reduces_ && move.local_input;
      recv.final = move.complete;
    } else {
      recv.op = fused ? Opcode::kRecvCopySend : Opcode::kRecv;
      recv.final = move.complete;
    }
    if (stored) recv.dst = buffers_.Held(move.dst, move.chunk);
    return recv;
  }

  Instruction Copy(const LocalCopy& copy, int32_t count) const {
    Instruction local;
    local.op = Opcode::kCopy;
    local.count = count;
    local.src = buffers_.Input(copy.rank, copy.chunk);
    local.dst = buffers_.Held(copy.rank, copy.chunk);
    local.first = reduces_;
    return local;
  }

 private:
  const Move& At(int32_t m) const { return moves_.moves[m]; }

  const Moves& moves_;
  const Fusion& fusion_;
  const Buffers& buffers_;
  const bool reduces_;
};

std::vector<Connection> ListConnections(const Paths& paths, const Assignment& assignment) {
  std::vector<Connection> connections;
  for (size_t c = 0; c < paths.paths.size(); ++c)
    connections.push_back(
        {paths.paths[c].src, paths.paths[c].dst, assignment.channel[c], paths.paths[c].links});
  std::sort(connections.begin(), connections.end(), [](const Connection& a, const Connection& b) {
    return std::tuple(a.src, a.dst, a.channel) < std::tuple(b.src, b.dst, b.channel);
  });
  return connections;
}

// Lists the groups in the order of a program. Threadblocks name a group by its index in Paths; this function
// replaces the index by that in the program.
void ListGroups(const Paths& paths, const Assignment& assignment, Program& program) {
  std::vector<int32_t> order(paths.groups.size()), place(order.size());
  std::iota(order.begin(), order.end(), 0);
  const auto channel = [&](const PathGroup& group) { return assignment.channel[group.first]; };
  std::ranges::sort(order, {}, [&](int32_t g) {
    const PathGroup& group = paths.groups[g];
    return std::tuple(group.kind, group.root, channel(group));
  });
  for (size_t i = 0; i < order.size(); ++i) {
    const PathGroup& group = paths.groups[order[i]];
    place[order[i]] = static_cast<int32_t>(i);
    Group& listed = program.groups.emplace_back(
        Group{group.kind, group.root, {}, channel(group), group.links, group.own});
    for (int32_t p = group.first; p < group.first + group.count; ++p) {
      const Path& path = paths.paths[p];
      listed.members.push_back(group.kind == Group::Kind::kMulticast ? path.dst : path.src);
    }
  }
  for (RankProgram& rank : program.ranks)
    for (Threadblock& block : rank.threadblocks)
      for (std::optional<int32_t>* group : {&block.send_group, &block.recv_group})
        if (*group) *group = place[**group];
}

// Appends threadblocks of copies to every rank that copies chunks from its input to its output. One
// threadblock copies more slowly than links carry, so the root of a broadcast needs several. All ranks run as
// many threadblocks as the rank with the most; copies get the threadblocks that their rank has left.
void AppendCopies(const Moves& moves, const Writer& writer, Program& program, Places& places) {
  const auto blocks_of = [&](Rank r) { return program.ranks[r].threadblocks.size(); };
  size_t most = 0;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) most = std::max(most, blocks_of(r));
  for (const LocalCopy& copy : moves.copies) most = std::max(most, blocks_of(copy.rank) + 1);
  for (size_t i = 0; i < moves.copies.size();) {
    const Rank rank = moves.copies[i].rank;
    size_t last = i;
    while (last < moves.copies.size() && moves.copies[last].rank == rank) ++last;
    const size_t of_rank = last - i, blocks = std::min(most - blocks_of(rank), of_rank);
    for (size_t b = 0; b < blocks; ++b) {
      const size_t stop = last - of_rank + of_rank * (b + 1) / blocks;
      std::vector<Instruction>& copies = program.ranks[rank].threadblocks.emplace_back().instructions;
      for (size_t end = i; i < stop; i = end) {
        while (++end < stop && moves.copies[end].chunk.value == moves.copies[end - 1].chunk.value + 1) {
        }
        copies.push_back(writer.Copy(moves.copies[i], static_cast<int32_t>(end - i)));
      }
      // Copies come after all events.
      places[rank].emplace_back(copies.size(), static_cast<int32_t>(2 * moves.moves.size()));
    }
  }
}

}  // namespace

Places WriteInstructions(const Moves& moves, const Order& order, const Assignment& assignment,
                         const Fusion& fusion, const Runs& runs, const Buffers& buffers, const Paths& paths,
                         bool reduces, Program& program) {
  program.connections = ListConnections(paths, assignment);
  program.ranks = IdVector<Rank, RankProgram>(static_cast<size_t>(assignment.blocks.size()));
  Places places(static_cast<size_t>(assignment.blocks.size()));
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    program.ranks[r].threadblocks = assignment.blocks[r];
    program.ranks[r].scratch = buffers.Scratch(r);
    places[r].resize(assignment.blocks[r].size());
  }
  ListGroups(paths, assignment, program);
  const Writer writer(moves, fusion, buffers, reduces);
  const auto append = [&](Rank r, int32_t block, const Instruction& instruction, int32_t place) {
    program.ranks[r].threadblocks[block].instructions.push_back(instruction);
    places[r][block].push_back(place);
  };
  // By connection: the first move of the run that arrives. A connection's runs arrive one after the other.
  std::vector<int32_t> head(assignment.channel.size(), kNoIndex);
  for (size_t place = 0; place < order.events.size(); ++place) {
    const int32_t m = order.events[place] / 2;
    const Move& move = moves.moves[m];
    const int32_t c = move.path;
    if (order.events[place] % 2 == 0) {
      if (fusion.recv_of[m] == kNoIndex && runs.length[m] > 0)
        append(move.src, assignment.send_block[c], writer.Send(m, runs.length[m]),
               static_cast<int32_t>(place));
      continue;
    }
    if (runs.length[m] > 0) head[c] = m;
    if (runs.last[m])
      append(move.dst, assignment.recv_block[c], writer.Receive(head[c], runs.length[head[c]]),
             static_cast<int32_t>(place));
  }
  AppendCopies(moves, writer, program, places);
  return places;
}

}  // namespace xccl::lowering
