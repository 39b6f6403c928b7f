// The cost model that all engines share: the cost of a message beside its bytes, the cost of a search, and
// when one time is as good as another. In: a link or a machine. Out: bytes, or moves of a chunk.
#pragma once

#include <cstdint>

#include "topologies/topology.h"

namespace xccl {

// The cost of a message to the threadblocks that send and receive it, beside its bytes: the least latency of
// a hop in NCCL's tuning tables (LL over NVLink, pipeline/nccl/figures.h).
inline constexpr int64_t kMessagePs = 600'000;

// The bytes that a link carries in the time that a message costs, at least 1: shorter messages cost more than
// their bytes. A machine has the least of its links'.
int64_t LeastUsefulBytes(int64_t bandwidth_bytes_per_s);
int64_t LeastUsefulBytes(const Topology& topology);

// Two times whose ratio is no larger are equally good: machines' own times scatter by more.
inline constexpr double kNear = 1.002;

// Work is counted in moves: one chunk over one path, written down and simulated. A search's smaller
// operations (a link looked at, a turn of a heap) take about 10 ns.
inline constexpr double kSecondsPerMove = 1.5e-6;
inline constexpr int64_t kOperationsPerMove = 150;

// Cells of one table of ranks × ranks, or of ranks × chunks: 256 MiB.
inline constexpr int64_t kMostCells = int64_t{1} << 26;

// A relative difference this small is one of rounding.
inline constexpr double kRounding = 1e-9;

// Shorter pieces cost more to handle than they gain.
inline constexpr int64_t kLeastPieceBytes = 1 << 10;

// Moves of a plain plan up to which parts are cut finer than ranks need: an allgather of 256 ranks in 16
// pieces each.
inline constexpr int64_t kMovesWorthCutting = 1 << 20;

// Transfers of one plan. An engine cuts no finer beyond the former: about a second to simulate and to lower.
// Plans beyond the latter are refused: minutes.
inline constexpr int64_t kManyTransfers = 300'000;
inline constexpr int64_t kMostTransfers = int64_t{1} << 22;

}  // namespace xccl
