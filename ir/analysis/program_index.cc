#include "ir/analysis/program_index.h"

#include <fmt/core.h>

#include "base/graph/grouped.h"

namespace xccl {

std::string ToString(const ProgramSite& site) {
  return fmt::format("rank {} threadblock {} instruction {}", site.rank.value, site.threadblock, site.index);
}

ProgramIndex::ProgramIndex(const Program& program) : program_(program) {
  sends_.resize(program.connections.size());
  receives_.resize(program.connections.size());
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    rank_first_block_.push_back(static_cast<int32_t>(block_first_.size()));
    for (const Threadblock& tb : program.ranks[r].threadblocks) {
      const int32_t block = static_cast<int32_t>(block_first_.size());
      for (const bool sends : {true, false}) {
        for (Rank peer : sends ? SendPeers(program, tb) : RecvPeers(program, tb))
          if (const auto found = FindConnection(program, sends ? r : peer, sends ? peer : r, tb.channel))
            connections_.push_back(*found);
        connections_first_.push_back(static_cast<int32_t>(connections_.size()));
      }
      const std::span<const int32_t> send_on = SendConnections(block), receive_from = RecvConnections(block);
      block_first_.push_back(static_cast<int32_t>(instruction_.size()));
      block_rank_.push_back(r);
      for (const Instruction& instruction : tb.instructions) {
        const int32_t node = static_cast<int32_t>(instruction_.size());
        instruction_.push_back(&instruction);
        block_.push_back(block);
        const auto enlist = [&](bool takes_part, std::span<const int32_t> on, auto& lists, auto& ordinals) {
          ordinals.push_back(-1);
          if (!takes_part || on.empty()) return;
          ordinals.back() = static_cast<int32_t>(lists[static_cast<size_t>(on.front())].size());
          for (int32_t connection : on) lists[static_cast<size_t>(connection)].push_back(node);
        };
        enlist(Sends(instruction.op), send_on, sends_, send_ordinal_);
        enlist(Receives(instruction.op), receive_from, receives_, recv_ordinal_);
      }
    }
  }
  rank_first_block_.push_back(static_cast<int32_t>(block_first_.size()));
  block_first_.push_back(static_cast<int32_t>(instruction_.size()));
}

ProgramSite ProgramIndex::Site(int32_t node) const {
  const int32_t block = BlockOf(node);
  const Rank rank = BlockRank(block);
  return {rank, block - RankFirstBlock(rank), node - BlockFirst(block)};
}

void Predecessors(const ProgramIndex& index, int32_t node, ProgramEdges edges, int32_t slots,
                  std::vector<int32_t>& out) {
  out.clear();
  const int32_t block = index.BlockOf(node);
  if (node > index.BlockFirst(block)) out.push_back(node - 1);
  for (const Dependency& dependency : index.Dependencies(node))
    out.push_back(index.NodeOf(index.BlockRank(block), dependency));
  if (edges == ProgramEdges::kLocal) return;
  if (const int32_t k = index.RecvOrdinal(node); k >= 0)
    for (int32_t connection : index.RecvConnections(block))
      out.push_back(index.SendsOf(connection)[static_cast<size_t>(k)]);
  if (const int32_t k = index.SendOrdinal(node); slots > 0 && k >= slots)
    for (int32_t connection : index.SendConnections(block))
      out.push_back(index.ReceivesOf(connection)[static_cast<size_t>(k - slots)]);
}

std::vector<int32_t> TopologicalOrder(const Program& program, const ProgramIndex& index, ProgramEdges edges) {
  const size_t size = static_cast<size_t>(index.size());
  std::vector<int32_t> waiting(size, 0), predecessors;
  const auto successors = GroupItems<int32_t>(size, [&](auto add) {
    for (int32_t node = 0; node < index.size(); ++node) {
      Predecessors(index, node, edges, program.slots, predecessors);
      waiting[static_cast<size_t>(node)] = static_cast<int32_t>(predecessors.size());
      for (int32_t p : predecessors) add(p, node);
    }
  });
  std::vector<int32_t> order;
  order.reserve(size);
  for (int32_t node = 0; node < index.size(); ++node)
    if (waiting[static_cast<size_t>(node)] == 0) order.push_back(node);
  for (size_t i = 0; i < order.size(); ++i)
    for (int32_t next : successors[order[i]])
      if (--waiting[static_cast<size_t>(next)] == 0) order.push_back(next);
  return order;
}

}  // namespace xccl
