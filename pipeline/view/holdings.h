// Computes which ranks hold which chunks: before the collective, after it, and over time. The page describes
// the data as HoldingColumns and BinnedSchedule (view/src/view/data.ts).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/json/json_writer.h"
#include "ir/collective.h"
#include "ir/simulate/trace.h"
#include "topologies/topology.h"

namespace xccl::view {

// The ranks at the ends of every path of a schedule.
struct Ends {
  std::vector<std::vector<Rank>> sources, destinations;  // by PathId
};
Ends EndsOf(const Schedule& schedule, const Topology& topology);

// Rank `rank` holds `contributions` contributions of each of the `count` chunks from `chunk` on.
struct HoldingRun {
  Rank rank;
  int32_t chunk = 0, count = 0, contributions = 0;
};
// Returns what ranks hold before the collective (`before`), or must hold after it, as runs of chunks.
std::vector<HoldingRun> HoldingRuns(const Collective& collective, int32_t num_ranks, bool before);

// A value that a program writes, pass by pass from start_ps to end_ps: the rank then holds `gain` more
// contributions of the chunk than it did.
struct HoldingWrite {
  Rank rank;
  ChunkId chunk;
  int64_t start_ps = 0, end_ps = 0;
  int32_t gain = 0;
};

// Computes the share of the needed data that is there over time, added up over groups of ranks (rows) and
// groups of chunks (columns). Equal parts of the time are frames. For a few chunks, the followed chunks, it
// also keeps every arrival and all links.
class BinnedHoldings {
 public:
  // Follows as many chunks as have about `most_arrivals` arrivals. Requires a plain schedule. Cost: a few
  // sorts of all (transfer, chunk) pairs.
  BinnedHoldings(const Collective& collective, const Topology& topology, const ScheduleTrace& trace,
                 int64_t most_arrivals);
  // Computes the share from a program's writes. A write arrives in `parts` equal parts. `links`: by chunk,
  // the links that carry it.
  BinnedHoldings(const Collective& collective, const Topology& topology, std::span<const HoldingWrite> writes,
                 int32_t parts, const std::vector<std::vector<LinkId>>& links, int64_t time_ps,
                 int64_t most_arrivals);
  // Writes the members of BinnedSchedule from "frames" on.
  void Write(JsonWriter& json) const;

 private:
  struct Arrival {
    int64_t time_ps = 0;
    Rank rank;
    int32_t contributions = 0;
    bool adds = false;
  };
  BinnedHoldings(const Collective& collective, const Topology& topology, int64_t time_ps);
  void ChooseFollowed(int64_t moves, int64_t most_arrivals);
  void SetConditions(const Collective& collective, ChunkId chunk);
  void Add(const Collective& collective, const ScheduleTrace& trace, ChunkId chunk,
           std::span<const int32_t> transfers);
  void Replay(ChunkId chunk, const std::vector<Arrival>& arrivals);
  void Follow(std::vector<LinkId> links, ChunkId chunk, const std::vector<Arrival>& arrivals);
  int32_t RowOf(int32_t rank) const { return static_cast<int32_t>(int64_t{rank} * rows_ / num_ranks_); }
  int32_t ColumnOf(int32_t chunk) const {
    return static_cast<int32_t>(int64_t{chunk} * columns_ / num_chunks_);
  }

  int32_t num_ranks_ = 0, num_chunks_ = 0, rows_ = 0, columns_ = 0;
  int64_t time_ps_ = 0;
  Ends ends_;
  std::vector<int64_t> first_arrival_;            // by transfer: index in trace.chunk_arrival_ps
  std::vector<Holding> conditions_;               // temporary
  std::vector<int32_t> initial_, needed_, held_;  // contributions of the current chunk, by rank
  std::vector<double> gains_;                     // by frame, row, column: sum of gains in held ÷ needed
  std::vector<double> rank_gains_;                // by frame, rank
  std::vector<int64_t> needed_cells_;             // by row, column
  std::vector<int64_t> needed_of_rank_;
  std::vector<int32_t> followed_;  // chunks
  std::vector<int64_t> link_first_ = {0}, arrival_first_ = {0};
  std::vector<LinkId> links_;
  std::vector<int32_t> arrival_ranks_;
  std::vector<int64_t> arrivals_ps_;
};

}  // namespace xccl::view
