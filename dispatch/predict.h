// How long realised counts take on the links of a machine: by a plan's routes, and by the routes that
// libraries take without one. Model: links have bandwidth, latency and overhead (docs/dispatch.md, Times).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/ids.h"
#include "dispatch/plan.h"
#include "dispatch/routing.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

// Times one plan on many draws. A relay passes a message on when all of it is there; inside a path messages
// flow through. A link is busy from the first message that reaches it until all its messages are through.
// The time is the largest over links of: when its first message comes, its load, and the way of its last
// message to its end.
class Predictor {
 public:
  Predictor(const ExpertPlan& plan, Call call);
  // `rows`: by hop (RowsOfHops). Cost: the links of all hops.
  int64_t TimePs(std::span<const int64_t> rows);
  // The link that was fullest in the last call; absent if nothing moved.
  std::optional<LinkId> busiest() const { return busiest_; }

 private:
  struct Way {      // one hop as the call uses it
    int32_t stage;  // combine runs the stages backwards
    int32_t from, to;
    const std::vector<LinkId>* links;
    int64_t latency_ps;
    int64_t slowest_bytes_per_s;
    int64_t overhead_ps;  // the largest of a link
  };
  int64_t MessagePs(const Way& way, int64_t rows) const;

  const ExpertPlan& plan_;
  const int64_t bytes_;  // of a row with its header
  int32_t stages_ = 0;
  std::vector<Way> ways_;       // by hop
  std::vector<int32_t> order_;  // hops by stage
  std::optional<LinkId> busiest_;
};

// Rows from rank to rank, each (token, rank) once: counts[source × ranks + destination]. A rank's rows for
// itself are left out.
std::vector<int64_t> RowsOfPairs(const Needs& needs, int32_t ranks);

// Times of an alltoall of rows from rank to rank over the direct routes of a plan of Way::kDirect.
class PairExchange {
 public:
  PairExchange(const ExpertPlan& direct, Call call);
  // In step i rank r sends to rank r + i; the next step begins when all ranks are done.
  int64_t PairwisePs(std::span<const int64_t> rows_of_pairs) const;
  // All pairs at once, each padded to the largest count, as an alltoall with one count for all must be.
  int64_t PaddedPs(std::span<const int64_t> rows_of_pairs) const;

 private:
  const ExpertPlan& plan_;
  const int64_t bytes_;
  std::vector<std::vector<LinkId>> links_;  // by pair: those of all hops on its way
  std::vector<int64_t> latency_ps_;         // by pair
  std::vector<int64_t> pairs_of_link_;
};

}  // namespace xccl::dispatch
