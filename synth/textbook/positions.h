// Members in an order that suits algorithms over positions 0..n-1, and sends of many blocks at once.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/textbook/textbook.h"

namespace xccl {

// Who stands at each position.
struct Positions {
  std::vector<Rank> rank;       // by position
  std::vector<int32_t> member;  // by position: index into the collective's ranks
  int32_t size() const { return static_cast<int32_t>(rank.size()); }
  // Position of a member's rank. Linear.
  int32_t Of(Rank r) const;
};

// Domains one after another, in order of their first member; members of one as given.
Positions DomainPositions(const RankGraph& graph, std::span<const Rank> members);
// The members of each domain, domains in order of their first member. Errors: kInvalidInput "ENGINE: ..." on
// one domain, or where domains have unequal numbers, with a hint of another engine.
StatusOr<std::vector<std::vector<Rank>>> EqualDomains(const RankGraph& graph, std::span<const Rank> members,
                                                      std::string_view engine,
                                                      std::string_view hint = "ring");
// For partners at position XOR 2^s: on a grid of all ranks a closed dimension of 4 is walked as a square, so
// that both of its bits lead to neighbours; else DomainPositions.
Positions CubePositions(const RankGraph& graph, std::span<const Rank> members);
// The same people, turned so that `root` stands at 0: by XOR where xor_turn, else by rotation.
Positions StartingAt(const Positions& positions, Rank root, bool xor_turn);

// Sends the blocks of these members from src to dst, neighbouring ranges joined. Sorts `members`.
void SendBlocks(const Blocks& blocks, std::vector<int32_t>& members, Rank src, Rank dst, int32_t step,
                Moves& moves);

// Largest power of 2 that is not above n, and the least s with 2^s >= n. Requires: n >= 1.
int32_t PowerBelow(int32_t n);
int32_t CeilLog2(int32_t n);

}  // namespace xccl
