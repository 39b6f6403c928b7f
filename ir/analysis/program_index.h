// Numbers every instruction of a program (its "node") and gives the edges between them, for the verifier
// and the program simulator. Numbers run by rank, threadblock and index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "ir/program.h"

namespace xccl {

inline constexpr int32_t kNoNode = -1;  // no instruction, in columns of instruction numbers

struct ProgramSite {
  Rank rank;
  int32_t threadblock = 0;
  int32_t index = 0;
};

// "rank 2 threadblock 0 instruction 5"
std::string ToString(const ProgramSite& site);

// Requires: rules P1 to P3 hold, except that dependencies may be circular. Cost: linear in the program.
class ProgramIndex {
 public:
  explicit ProgramIndex(const Program& program);

  int32_t size() const { return static_cast<int32_t>(instruction_.size()); }
  const Instruction& instruction(int32_t node) const { return *instruction_[static_cast<size_t>(node)]; }
  ProgramSite Site(int32_t node) const;
  int32_t num_ranks() const { return static_cast<int32_t>(rank_first_block_.size()) - 1; }
  // Threadblocks, or blocks for short, are numbered through the whole program, rank by rank. BlockFirst() is
  // the node of a block's first instruction.
  int32_t num_blocks() const { return static_cast<int32_t>(block_first_.size()) - 1; }
  int32_t BlockOf(int32_t node) const { return block_[static_cast<size_t>(node)]; }
  int32_t BlockFirst(int32_t block) const { return block_first_[static_cast<size_t>(block)]; }
  int32_t RankFirstBlock(Rank rank) const { return rank_first_block_[rank.index()]; }
  Rank BlockRank(int32_t block) const { return block_rank_[static_cast<size_t>(block)]; }
  const Threadblock& threadblock(int32_t block) const {
    const Rank r = BlockRank(block);
    return program_.ranks[r].threadblocks[static_cast<size_t>(block - RankFirstBlock(r))];
  }
  int32_t NodeOf(Rank rank, const Dependency& dependency) const {
    return BlockFirst(RankFirstBlock(rank) + dependency.threadblock) + dependency.index;
  }
  std::span<const Dependency> Dependencies(int32_t node) const {
    const Instruction& i = instruction(node);
    return std::span(program_.dependencies)
        .subspan(static_cast<size_t>(i.dep_first), static_cast<size_t>(i.dep_count));
  }

  // Return the instructions that send on a connection of the program, and that receive from it, in order.
  std::span<const int32_t> SendsOf(int32_t connection) const {
    return sends_[static_cast<size_t>(connection)];
  }
  std::span<const int32_t> ReceivesOf(int32_t connection) const {
    return receives_[static_cast<size_t>(connection)];
  }
  // Return the connections that a block sends on, and that it receives from: none, one, or the connections of
  // a group in order of its members.
  std::span<const int32_t> SendConnections(int32_t block) const { return Connections(block, true); }
  std::span<const int32_t> RecvConnections(int32_t block) const { return Connections(block, false); }
  // Return the first connection that a block sends on, and the first that it receives from; -1 without any.
  int32_t SendConnection(int32_t block) const { return FirstOf(SendConnections(block)); }
  int32_t RecvConnection(int32_t block) const { return FirstOf(RecvConnections(block)); }
  // SendOrdinal() returns the index of an instruction among the sends of its connection, or -1 if the
  // instruction does not send. RecvOrdinal() does so for receives. In a group, all connections agree.
  int32_t SendOrdinal(int32_t node) const { return send_ordinal_[static_cast<size_t>(node)]; }
  int32_t RecvOrdinal(int32_t node) const { return recv_ordinal_[static_cast<size_t>(node)]; }

 private:
  std::span<const int32_t> Connections(int32_t block, bool sends) const {
    const size_t i = 2 * static_cast<size_t>(block) + (sends ? 0 : 1);
    return std::span(connections_)
        .subspan(static_cast<size_t>(connections_first_[i]),
                 static_cast<size_t>(connections_first_[i + 1] - connections_first_[i]));
  }
  static int32_t FirstOf(std::span<const int32_t> connections) {
    return connections.empty() ? -1 : connections.front();
  }

  const Program& program_;
  std::vector<const Instruction*> instruction_;
  std::vector<int32_t> block_, block_first_, rank_first_block_;
  std::vector<Rank> block_rank_;
  // By block: the connections on which it sends, then the connections from which it receives.
  std::vector<int32_t> connections_, connections_first_ = {0};
  std::vector<int32_t> send_ordinal_, recv_ordinal_;
  std::vector<std::vector<int32_t>> sends_, receives_;
};

// The waits of a pass that count as edges.
enum class ProgramEdges : uint8_t {
  kLocal,  // the order in each threadblock, and dependencies
  kAll,    // also: a receive waits for its send, and a send for a free slot
};

// Returns the instructions in an order in which every edge points forward. Leaves out instructions that wait
// for each other in a cycle, and those that wait for such a cycle. Requires for kAll: rule P4. Cost: linear.
std::vector<int32_t> TopologicalOrder(const Program& program, const ProgramIndex& index, ProgramEdges edges);

// Sets `out` to the instructions that instruction `node` waits for along `edges`. If `slots` is 0, waits for
// free slots are left out.
void Predecessors(const ProgramIndex& index, int32_t node, ProgramEdges edges, int32_t slots,
                  std::vector<int32_t>& out);

}  // namespace xccl
