// A plan for expert dispatch and combine that holds for all counts: it says which way rows go, not how many.
// Design and worked example: docs/dispatch.md.
//
// Every rank has one or more trees over all ranks, its lanes; token t takes lane t mod lanes. A token's row
// goes from its home, the root, along the branches that lead to the ranks which hold an expert of the token.
// A rank on the way keeps one copy and sends one to each branch, so that no link carries a row twice and a
// host that several experts share gets it once. combine takes the same branches back to the root.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "dispatch/routing.h"
#include "topologies/topology.h"

namespace xccl::dispatch {

enum class Call : uint8_t { kDispatch, kCombine };
enum class Aim : uint8_t {
  kLatency,     // a connection has a slot for every row: no sender ever waits
  kThroughput,  // a connection has the few slots that keep its links busy; senders wait for free ones
};
// The rank by which a row enters another domain, and its way from there.
enum class Entry : uint8_t {
  kFixed,   // the rank that the tree says
  kNeeded,  // of the ranks that need the row the one whose number XOR the number of the tree's rank is least:
            // the tree's own first, then its neighbours in blocks of 2, 4, 8, ... It passes the row on to all
  kNested,  // as kNeeded, and the home in its own domain; but the row enters every block of 2, 4, 8, ...
            // ranks once: each rank has it from the one that is nearest to the tree's in the smallest block
            // that holds both and in which another one is nearer
};
// Who adds the partial sums of combine.
enum class Sums : uint8_t {
  kHome,   // a token's home alone; ranks on the way pass each row on
  kOnWay,  // every rank on the way adds what comes from its branches and its own, and sends one row
};
std::string_view ToString(Call call);    // "dispatch"
std::string_view ToString(Aim aim);      // "latency"
std::string_view ToString(Entry entry);  // "fixed"
std::string_view ToString(Sums sums);    // "home", "on-way"
StatusOr<Aim> ParseAim(std::string_view name);

// A connection: rows of one lane and stage go from one rank to another, in messages through slots.
struct Hop {
  int32_t lane = 0, stage = 0;
  Rank from = {}, to = {};
  std::vector<LinkId> links = {};  // from `from` to `to`, through no other GPU
  std::vector<LinkId> back = {};   // from `to` to `from`: for combine, and for slots that are free again
  int32_t slots = 1;               // messages that the buffer at the receiver holds
  bool operator==(const Hop&) const = default;
};

struct ExpertPlan {
  Topology topology;
  Call call = Call::kDispatch;  // the call that the plan was chosen for; it runs both
  Sizes sizes = {};
  Aim aim = Aim::kThroughput;
  std::string route = {};  // name of the way of making its trees: "rail"; for people
  Entry entry = Entry::kFixed;
  Sums sums = Sums::kOnWay;
  int32_t lanes = 1;
  int32_t rows_per_message = 1;
  std::vector<int32_t> domains = {};         // by rank: the number of its domain
  std::vector<int32_t> stage_of_depth = {};  // by the depth of the sender in its tree
  std::vector<int32_t> parents = {};  // (lane × ranks + source) × ranks + rank; the source's own is itself
  std::vector<Hop> hops = {};         // ascending by (lane, stage, from, to)

  std::span<const int32_t> TreeOf(int32_t lane, int32_t source) const {
    const auto ranks = static_cast<size_t>(sizes.ranks);
    return std::span(parents).subspan((static_cast<size_t>(lane) * ranks + source) * ranks, ranks);
  }
};

// Bytes that travel beside a row: its token and its home, and in dispatch every position's expert and weight.
// A multiple of 16.
int64_t HeaderBytes(const Sizes& sizes, Call call);
// The most tokens of one rank that take the lane.
inline int32_t MostTokensOfLane(const ExpertPlan& plan, int32_t lane) {
  return (plan.sizes.max_tokens - lane + plan.lanes - 1) / plan.lanes;
}

// One row's way from rank to rank.
struct Branch {
  int32_t from, to;
  int32_t depth;  // of `from`; the home has 0
};

// The branches that one token's row takes, for the planner and the runtime.
class BranchFinder {
 public:
  explicit BranchFinder(const ExpertPlan& plan);

  // `needs`: the ranks that need the row, ascending; the home's own is ignored. A branch comes behind the one
  // that feeds it. The span lives until the next call. Cost: the length of the ways.
  std::span<const Branch> Find(int32_t lane, int32_t home, std::span<const int32_t> needs);

 private:
  void Climb(std::span<const int32_t> tree, int32_t rank);  // joins the rank to the branches
  void Grow(int32_t from, int32_t to);
  // Entry::kNested: joins the ranks of the domain that are in `needs`.
  void Nest(int32_t home, int32_t domain, int32_t entry, std::span<const int32_t> needs);

  const ExpertPlan& plan_;
  std::vector<int32_t> entry_;  // but for kFixed: (lane × ranks + home) × domains + domain: its entry, or -1
  int32_t num_domains_ = 0;
  std::vector<int32_t> depth_, stamp_, way_;  // by rank, by rank, ranks below one that is joined already
  int32_t now_ = 0;
  std::vector<int32_t> near_;  // ranks of one domain, by their distance from its entry
  std::vector<Branch> branches_;
};

// The size of the smallest block of 2, 4, 8, ... ranks that holds both, as a power of two: 1 for ranks 2 and
// 3, 2 for ranks 1 and 3; 0 for a rank and itself.
inline int BlockOf(int32_t a, int32_t b) { return std::bit_width(static_cast<uint32_t>(a ^ b)); }

// Finds hops by what they join. Memory: lanes × stages × ranks².
class HopIndex {
 public:
  explicit HopIndex(const ExpertPlan& plan);
  // The index in plan.hops, or -1.
  int32_t Find(int32_t lane, int32_t depth, int32_t from, int32_t to) const {
    return at_[((static_cast<size_t>(lane) * stages_ + (*stage_of_depth_)[depth]) * ranks_ + from) * ranks_ +
               to];
  }

 private:
  size_t ranks_, stages_;
  const std::vector<int32_t>* stage_of_depth_;
  std::vector<int32_t> at_;
};

// By hop, the rows that a routing with these needs sends over it; in combine the rows that come back.
// Requires: the routing fits the plan.
std::vector<int64_t> RowsOfHops(const ExpertPlan& plan, const HopIndex& index, const Needs& needs, Call call);

// The file of a plan: docs/dispatch.md. Written atomically.
Status WriteExpertPlan(const ExpertPlan& plan, const std::string& path);
// Reads the format and proves nothing (dispatch/verify.h). Errors: kInvalidInput with the place.
StatusOr<ExpertPlan> ReadExpertPlanUnverified(const std::string& path);
// The text of the file, and what it says; `place` opens errors.
std::string ExpertPlanText(const ExpertPlan& plan);
StatusOr<ExpertPlan> ParseExpertPlanUnverified(const std::string& text, const std::string& place);

}  // namespace xccl::dispatch
