// Gives members positions 0..n-1 in an order that suits algorithms, and sends many blocks in one call.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "synth/common/rank_graph.h"
#include "synth/textbook/textbook.h"

namespace xccl {

// The rank and the member index at each position.
struct Positions {
  std::vector<Rank> rank;       // by position
  std::vector<int32_t> member;  // by position: index into the collective's ranks
  int32_t size() const { return static_cast<int32_t>(rank.size()); }
  // Returns the position of rank r, or size() if r is no member. Linear.
  int32_t Of(Rank r) const;
};

// Returns the members in the order of their domains; domains are in the order of their first members. The
// members of one domain keep their order.
Positions DomainPositions(const RankGraph& graph, std::span<const Rank> members);
// Returns positions in which rank r is at position r. Requires that all ranks are members.
Positions RankPositions(std::span<const Rank> members);
// Returns positions for algorithms in which partners are at position XOR 2^s. If all ranks are members and
// form a grid of 2^k ranks, both bits of a closed dimension of 4 lead to neighbours on its ring. Otherwise
// returns DomainPositions.
Positions CubePositions(const RankGraph& graph, std::span<const Rank> members);
// Returns the positions, permuted so that `root` is at position 0: by XOR with the root's position if
// `xor_turn`, otherwise by rotation. XOR requires that the number of positions is a power of 2.
Positions StartingAt(const Positions& positions, Rank root, bool xor_turn = false);

// Hosts, or domains, with equal numbers of members. The k-th GPU of host h is at position h × gpus + k.
struct Hosts {
  Positions positions;  // DomainPositions
  int32_t hosts = 0, gpus = 0;
  Rank At(int32_t host, int32_t gpu) const { return positions.rank[Index(host, gpu)]; }
  int32_t Member(int32_t host, int32_t gpu) const { return positions.member[Index(host, gpu)]; }
  std::span<const Rank> Host(int32_t host) const {
    return std::span(positions.rank).subspan(Index(host, 0), static_cast<size_t>(gpus));
  }

 private:
  size_t Index(int32_t host, int32_t gpu) const { return static_cast<size_t>(host * gpus + gpu); }
};
// Groups the members by domain; each domain counts as a host. Errors: kInvalidInput "ENGINE: ..." if all
// members are on one host, or if two hosts have different numbers of members. The message suggests engine
// `hint`.
StatusOr<Hosts> EqualHosts(const RankGraph& graph, std::span<const Rank> members, std::string_view engine,
                           std::string_view hint = "ring");

// Adds moves of the blocks of `members` from src to dst; adjacent ranges are one move. Sorts `members`.
void SendBlocks(const Blocks& blocks, std::vector<int32_t>& members, Rank src, Rank dst, int32_t step,
                Moves& moves);

// Requires: n >= 1.
inline bool IsPowerOf2(int32_t n) { return std::has_single_bit(static_cast<uint32_t>(n)); }
// Returns the least s with 2^s >= n. Requires: n >= 1.
inline int32_t CeilLog2(int32_t n) {
  return static_cast<int32_t>(std::bit_width(static_cast<uint32_t>(n) - 1));
}

}  // namespace xccl
