// A token's branches are found from its destinations towards the root: each climbs its tree until it meets a
// rank that the token's row passes already. Stamps make that linear in the branches, with nothing to clear.
#include "dispatch/plan.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/strings.h"

namespace xccl::dispatch {

std::string_view ToString(Call call) {
  switch (call) {
    case Call::kDispatch:
      return "dispatch";
    case Call::kCombine:
      return "combine";
  }
  return "";
}

std::string_view ToString(Aim aim) {
  switch (aim) {
    case Aim::kLatency:
      return "latency";
    case Aim::kThroughput:
      return "throughput";
  }
  return "";
}

std::string_view ToString(Entry entry) {
  switch (entry) {
    case Entry::kFixed:
      return "fixed";
    case Entry::kNeeded:
      return "needed";
    case Entry::kNested:
      return "nested";
  }
  return "";
}

std::string_view ToString(Sums sums) {
  switch (sums) {
    case Sums::kHome:
      return "home";
    case Sums::kOnWay:
      return "on-way";
  }
  return "";
}

StatusOr<Aim> ParseAim(std::string_view name) {
  for (const Aim aim : {Aim::kLatency, Aim::kThroughput})
    if (ToString(aim) == name) return aim;
  constexpr std::array<std::string_view, 2> kNames = {"latency", "throughput"};
  return InvalidInput(
      fmt::format("no aim '{}'; expected latency or throughput{}", name, DidYouMean(name, kNames)));
}

int64_t HeaderBytes(const Sizes& sizes, Call call) {
  // Home and token, 4 bytes each; a position has an expert, 2 bytes, and a weight, 4 bytes.
  const int64_t bytes = 8 + (call == Call::kDispatch ? 6 * sizes.top_k : 0);
  return (bytes + 15) / 16 * 16;
}

BranchFinder::BranchFinder(const ExpertPlan& plan)
    : plan_(plan), depth_(plan.sizes.ranks), stamp_(plan.sizes.ranks) {
  if (plan.entry == Entry::kFixed) return;
  const int32_t ranks = plan.sizes.ranks;
  num_domains_ = *std::ranges::max_element(plan.domains) + 1;
  entry_.assign(static_cast<size_t>(plan.lanes) * ranks * num_domains_, -1);
  for (int32_t lane = 0; lane < plan.lanes; ++lane)
    for (int32_t home = 0; home < ranks; ++home) {
      const std::span<const int32_t> tree = plan.TreeOf(lane, home);
      for (int32_t rank = 0; rank < ranks; ++rank) {
        const int32_t domain = plan.domains[rank];
        if (plan.domains[tree[rank]] != domain)
          entry_[(static_cast<size_t>(lane) * ranks + home) * num_domains_ + domain] = rank;
      }
    }
}

void BranchFinder::Grow(int32_t from, int32_t to) {
  branches_.push_back({from, to, depth_[from]});
  stamp_[to] = now_;
  depth_[to] = depth_[from] + 1;
}

void BranchFinder::Climb(std::span<const int32_t> tree, int32_t rank) {
  way_.clear();
  int32_t at = rank;
  for (; stamp_[at] != now_; at = tree[at]) way_.push_back(at);
  for (; !way_.empty(); way_.pop_back()) {
    Grow(at, way_.back());
    at = way_.back();
  }
}

void BranchFinder::Nest(int32_t home, int32_t domain, int32_t entry, std::span<const int32_t> needs) {
  near_.clear();
  for (const int32_t rank : needs)
    if (plan_.domains[rank] == domain && rank != home) near_.push_back(rank);
  std::ranges::sort(near_, {}, [&](int32_t rank) { return rank ^ entry; });
  // The home is in no block of another domain.
  constexpr int kNoBlock = 33;
  for (size_t i = 0; i < near_.size(); ++i) {
    int32_t from = home;
    int block = domain == plan_.domains[home] ? BlockOf(home, near_[i]) : kNoBlock;
    for (size_t j = 0; j < i; ++j) {
      if (BlockOf(near_[j], near_[i]) >= block) continue;
      from = near_[j];
      block = BlockOf(near_[j], near_[i]);
    }
    Grow(from, near_[i]);
  }
}

std::span<const Branch> BranchFinder::Find(int32_t lane, int32_t home, std::span<const int32_t> needs) {
  branches_.clear();
  ++now_;
  stamp_[home] = now_;
  depth_[home] = 0;
  const std::span<const int32_t> tree = plan_.TreeOf(lane, home);
  if (plan_.entry == Entry::kFixed) {
    for (const int32_t rank : needs) Climb(tree, rank);
    return branches_;
  }
  const int32_t ranks = plan_.sizes.ranks;
  for (size_t i = 0; i < needs.size(); ++i) {
    const int32_t domain = plan_.domains[needs[i]];
    if (plan_.entry == Entry::kNested) {
      const bool done = std::ranges::any_of(needs.first(i),
                                            [&](int32_t before) { return plan_.domains[before] == domain; });
      const int32_t by = entry_[(static_cast<size_t>(lane) * ranks + home) * num_domains_ + domain];
      if (!done) Nest(home, domain, domain == plan_.domains[home] ? home : by, needs);
      continue;
    }
    const int32_t entry = entry_[(static_cast<size_t>(lane) * ranks + home) * num_domains_ + domain];
    if (domain == plan_.domains[home] || entry < 0) {
      Climb(tree, needs[i]);
      continue;
    }
    // The one of the domain's ranks in `needs` that is nearest to its entry passes the row on to all.
    int32_t first = -1;
    bool done = false;
    for (size_t j = 0; j < needs.size(); ++j) {
      if (plan_.domains[needs[j]] != domain) continue;
      done |= j < i;
      if (first < 0 || (needs[j] ^ entry) < (first ^ entry)) first = needs[j];
    }
    if (done) continue;
    Climb(tree, tree[entry]);
    Grow(tree[entry], first);
    for (size_t j = i; j < needs.size(); ++j)
      if (plan_.domains[needs[j]] == domain && needs[j] != first) Grow(first, needs[j]);
  }
  return branches_;
}

HopIndex::HopIndex(const ExpertPlan& plan)
    : ranks_(plan.sizes.ranks),
      stages_(plan.stage_of_depth.empty() ? 0 : *std::ranges::max_element(plan.stage_of_depth) + 1),
      stage_of_depth_(&plan.stage_of_depth),
      at_(static_cast<size_t>(plan.lanes) * stages_ * ranks_ * ranks_, -1) {
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    const Hop& hop = plan.hops[h];
    at_[((static_cast<size_t>(hop.lane) * stages_ + hop.stage) * ranks_ + hop.from.index()) * ranks_ +
        hop.to.index()] = static_cast<int32_t>(h);
  }
}

std::vector<int64_t> RowsOfHops(const ExpertPlan& plan, const HopIndex& index, const Needs& needs,
                                Call call) {
  std::vector<int64_t> rows(plan.hops.size());
  BranchFinder finder(plan);
  std::vector<int64_t> below(plan.sizes.ranks);
  const bool each = call == Call::kCombine && plan.sums == Sums::kHome;
  for (int32_t home = 0; home < plan.sizes.ranks; ++home)
    for (int64_t t = needs.first_token[home]; t < needs.first_token[home + 1]; ++t) {
      const auto lane = static_cast<int32_t>((t - needs.first_token[home]) % plan.lanes);
      const std::span<const Branch> branches = finder.Find(lane, home, needs.Of(t));
      if (!each) {
        for (const Branch& branch : branches) ++rows[index.Find(lane, branch.depth, branch.from, branch.to)];
        continue;
      }
      // Every rank's row passes all branches above it.
      for (const Branch& branch : branches) below[branch.to] = 0;
      for (const int32_t rank : needs.Of(t)) below[rank] = 1;
      for (size_t b = branches.size(); b-- > 0;) {
        const Branch& branch = branches[b];
        rows[index.Find(lane, branch.depth, branch.from, branch.to)] += below[branch.to];
        below[branch.from] += below[branch.to];
      }
    }
  for (int64_t& of_hop : rows) of_hop *= needs.copies;
  return rows;
}

}  // namespace xccl::dispatch
