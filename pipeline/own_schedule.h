// Schedules that a person wrote, transfer by transfer: finds the links of each transfer, and completes the
// schedule to a plan as MakePlan completes an engine's.
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

// Parallel hops between two ranks take turns: a transfer takes the one that would have carried it first.
class HopLoads {
 public:
  explicit HopLoads(const RankGraph& graph) : load_(static_cast<size_t>(graph.num_hops()), 0) {}
  // `best`: as RankGraph::Find has it. `parts`: how many of the collective's parts are moved.
  HopId Take(const RankGraph& graph, HopId best, double parts);

 private:
  std::vector<double> load_;  // by hop: parts ÷ bandwidth
};

// Writes the columns of one schedule. Ranks and chunks are checked as they come; whether the whole is right
// is VerifySchedule's to say. Topology and collective outlive it.
class ScheduleWriter {
 public:
  ScheduleWriter(const Topology& topology, const Collective& collective);

  // Sends chunks first..first+count-1 from one rank to another in a step, over the links of the hop between
  // them; of parallel hops it takes the least loaded. Errors: kInvalidInput for ranks and chunks that do not
  // exist, and for ranks that only other GPUs join.
  Status Add(ChunkId first, int32_t count, Rank src, Rank dst, TransferOp op, int32_t step);
  // Sends chunks from one rank to several, through switches that multicast. Errors: as Add.
  Status Multicast(ChunkId first, int32_t count, Rank src, std::span<const Rank> dsts, int32_t step);
  // Adds up in switches what several ranks hold, and adds the sum to the chunks of `dst`. Errors: as Add.
  Status ReduceInSwitch(ChunkId first, int32_t count, std::span<const Rank> srcs, Rank dst, int32_t step);
  // Sends chunks over the links, which need not be a hop. Errors: kInvalidInput for links that do not join
  // GPUs.
  Status AddOver(std::span<const LinkId> links, ChunkId first, int32_t count, TransferOp op, int32_t step);

  int64_t size() const { return schedule_.size(); }
  // Normalized. Ends the writing.
  Schedule Finish();

 private:
  Status CheckChunks(ChunkId first, int32_t count) const;
  StatusOr<HopId> Between(Rank src, Rank dst) const;
  // The links of the hops between one rank and several, each once.
  StatusOr<std::vector<LinkId>> Tree(Rank root, std::span<const Rank> leaves, bool to_root) const;

  const Topology& topology_;
  const Collective& collective_;
  RankGraph graph_;
  HopLoads loads_;
  Schedule schedule_;
};

// Proves, bounds, times and completes a schedule; `name` stands for the engine's. Errors: kInvalidInput with
// the first violation; those of LowerBound and CompletePlan. Requires: normalized.
StatusOr<PlanResult> PlanOfSchedule(const Topology& topology, Collective collective, Schedule schedule,
                                    const std::string& name, const PlanOptions& options);

// Describes a plan that was read as MakePlan describes a plan that it makes: the times at the size and on the
// machine that the plan was made for, the bound and the counts. Errors: those of LowerBound; kInvalidInput
// for a machine that is not known. Requires: a plan that verifies.
StatusOr<PlanResult> DescribePlan(Plan plan);

}  // namespace xccl
