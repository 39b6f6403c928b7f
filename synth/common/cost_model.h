// Cost constants that all engines share: the fixed cost of a message, the cost of a search, the ratio up to
// which two times are equally good, and limits on the size of plans.
#pragma once

#include <cstdint>

#include "topologies/topology.h"

namespace xccl {

// The fixed time that a message costs the threadblocks that send and receive it, in addition to the time for
// its bytes. The value is the least latency of a hop in NCCL's tuning tables (LL over NVLink,
// pipeline/nccl/figures.h).
inline constexpr int64_t kMessagePs = 600'000;

// Returns the bytes that a link of this bandwidth carries in kMessagePs, at least 1. For a shorter message,
// the fixed cost exceeds the cost of its bytes. The value of a topology is the least value of its links.
int64_t LeastUsefulBytes(int64_t bandwidth_bytes_per_s);
int64_t LeastUsefulBytes(const Topology& topology);

// Two times are equally good if their ratio is at most kNear, because measured times vary by more.
inline constexpr double kNear = 1.002;

// The unit of work is a move: to add one chunk over one path to a schedule, and to simulate it. A smaller
// operation of a search, such as one look at a link, takes about 10 ns.
inline constexpr double kSecondsPerMove = 1.5e-6;
inline constexpr int64_t kOperationsPerMove = 150;
// The bytes of memory that a move takes in a search, its simulation and its proof. Measured: 116 for each of
// the 4.2 million moves of an alltoall of 512 ranks on a mesh.
inline constexpr double kBytesPerMove = 120;
// The number of hops that can be simulated in the time of one move, at 0.3 us each. Making a hop of a
// RankGraph takes about as long as simulating a hop.
inline constexpr int64_t kHopsPerMove = 5;

// The most cells of a table of ranks × ranks or of ranks × chunks: 256 MiB at 4 bytes a cell.
inline constexpr int64_t kMostCells = int64_t{1} << 26;

// Relative differences up to kRounding are treated as rounding errors.
inline constexpr double kRounding = 1e-9;

// The fewest bytes of a piece. A shorter piece costs more to handle than it gains.
inline constexpr int64_t kLeastPieceBytes = 1 << 10;

// If a plain plan has more moves than this, engines do not cut its parts finer than the ranks need. An
// allgather of 256 ranks with 16 pieces per rank has about this many.
inline constexpr int64_t kMovesWorthCutting = 1 << 20;

// An engine does not cut finer once a plan has so many transfers, which take about a second to simulate and
// lower.
inline constexpr int64_t kManyTransfers = 300'000;

}  // namespace xccl
