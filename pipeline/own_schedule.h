// Makes plans from schedules that a person or another tool wrote, transfer by transfer. Finds the links of
// each transfer, and then completes the plan as MakePlan completes the plan of an engine.
// Here a hop is a path between two ranks without another GPU (RankGraph). Ranks may have parallel hops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "ir/collective.h"
#include "ir/schedule.h"
#include "pipeline/plan_result.h"
#include "synth/common/rank_graph.h"
#include "topologies/topology.h"

namespace xccl {

// Spreads transfers over the parallel hops of two ranks. Each transfer takes the hop that would finish first
// if every hop carried all its transfers without a pause.
class HopLoads {
 public:
  explicit HopLoads(const RankGraph& graph) : load_(static_cast<size_t>(graph.num_hops()), 0) {}
  // Chooses a hop and adds the transfer to its load. `best`: the first of the parallel hops, which
  // RankGraph::Find returns. `parts`: the transferred data, in parts of the collective.
  HopId Take(const RankGraph& graph, HopId best, double parts);

 private:
  std::vector<double> load_;  // by hop: parts ÷ bandwidth
};

// Builds one schedule, transfer by transfer. Every call checks its ranks and chunks. VerifySchedule must
// check the finished schedule. Topology and collective must outlive the writer.
class ScheduleWriter {
 public:
  ScheduleWriter(const Topology& topology, const Collective& collective);

  // Adds a transfer of the chunks first..first+count-1 from `src` to `dst`, over the least loaded hop between
  // them. Errors: kInvalidInput if a rank or a chunk does not exist, or if no hop joins the two ranks.
  Status Add(ChunkId first, int32_t count, Rank src, Rank dst, TransferOp op, int32_t step);
  // Adds a multicast through switches from one rank to several ranks. Errors: those of Add and AddOver.
  Status Multicast(ChunkId first, int32_t count, Rank src, std::span<const Rank> dsts, int32_t step);
  // Adds a transfer in which switches add up the chunks of several ranks, and the sum is added to the chunks
  // of `dst`. Errors: those of Add and AddOver.
  Status ReduceInSwitch(ChunkId first, int32_t count, std::span<const Rank> srcs, Rank dst, int32_t step);
  // Adds a transfer over the given links, which need not be a hop. Errors: kInvalidInput if a link or a chunk
  // does not exist, or if the links do not lead from a GPU to a GPU.
  Status AddOver(std::span<const LinkId> links, ChunkId first, int32_t count, TransferOp op, int32_t step);

  int64_t size() const { return schedule_.size(); }
  // Returns the normalized schedule. No transfer may be added afterwards.
  Schedule Finish();

 private:
  Status CheckChunks(ChunkId first, int32_t count) const;
  StatusOr<HopId> Between(Rank src, Rank dst) const;
  // Returns the links of the hops between the root and the leaves, without duplicates. The hops lead to the
  // root if `to_root` is set, otherwise from the root.
  StatusOr<std::vector<LinkId>> Tree(Rank root, std::span<const Rank> leaves, bool to_root) const;

  const Topology& topology_;
  const Collective& collective_;
  RankGraph graph_;
  HopLoads loads_;
  Schedule schedule_;
};

// Verifies and simulates a schedule, computes its bound, and completes it to a plan. `name` takes the place
// of the engine's name. Errors: kInvalidInput with the first violation; kLimit if the deadline passes during
// the simulation; those of LowerBound and CompletePlan. Requires: a normalized schedule.
StatusOr<PlanResult> PlanOfSchedule(const Topology& topology, Collective collective, Schedule schedule,
                                    const std::string& name, const PlanOptions& options);

// Describes a plan that was read from a file, as MakePlan describes a new plan: its times, its bound and its
// statistics. The times are for the size and the machine model that the plan was made for. Errors: those of
// LowerBound, FindMachine and SimulateProgram. Requires: a plan that verifies.
StatusOr<PlanResult> DescribePlan(Plan plan);

}  // namespace xccl
