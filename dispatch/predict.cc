// Stages are taken in order, since a hop's first message waits for the first that a hop of the stage before
// brings to its sender. A link that several stages use is busy at least from the first message of each stage
// on with the load of that stage and of all later ones.
#include "dispatch/predict.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "base/units.h"

namespace xccl::dispatch {
namespace {

int64_t RowBytes(const ExpertPlan& plan, Call call) {
  return plan.sizes.row_bytes + HeaderBytes(plan.sizes, call);
}

int64_t MessagesOf(int64_t rows, int64_t rows_per_message) {
  return (rows + rows_per_message - 1) / rows_per_message;
}

}  // namespace

Predictor::Predictor(const ExpertPlan& plan, Call call) : plan_(plan), bytes_(RowBytes(plan, call)) {
  for (const int32_t stage : plan.stage_of_depth) stages_ = std::max(stages_, stage + 1);
  const bool back = call == Call::kCombine;
  for (const Hop& hop : plan.hops) {
    Way way{.stage = back ? stages_ - 1 - hop.stage : hop.stage,
            .from = back ? hop.to.value : hop.from.value,
            .to = back ? hop.from.value : hop.to.value,
            .links = back ? &hop.back : &hop.links,
            .latency_ps = 0,
            .slowest_bytes_per_s = kMaxBandwidthBytesPerS,
            .overhead_ps = 0};
    for (const LinkId l : *way.links) {
      const Link& link = plan.topology.link(l);
      way.latency_ps += link.latency_ps;
      way.slowest_bytes_per_s = std::min(way.slowest_bytes_per_s, link.bandwidth_bytes_per_s);
      way.overhead_ps = std::max(way.overhead_ps, link.overhead_ps);
    }
    ways_.push_back(way);
  }
  order_.resize(ways_.size());
  std::iota(order_.begin(), order_.end(), 0);
  std::ranges::stable_sort(order_, {}, [&](int32_t h) { return ways_[h].stage; });
}

int64_t Predictor::MessagePs(const Way& way, int64_t rows) const {
  return way.overhead_ps +
         TransferPs(std::min<int64_t>(rows, plan_.rows_per_message) * bytes_, way.slowest_bytes_per_s);
}

int64_t Predictor::TimePs(std::span<const int64_t> rows) {
  XCCL_CHECK(rows.size() == ways_.size());
  const int32_t ranks = plan_.sizes.ranks;
  const auto at = [&](int32_t stage, int32_t rank) { return static_cast<size_t>(stage) * ranks + rank; };
  // By stage and rank: when the first message is there whole, and the longest way that the last one has left.
  std::vector<int64_t> ready((stages_ + 1) * static_cast<size_t>(ranks)), left(ready.size());
  std::vector<int64_t> head(ways_.size()), tail(ways_.size());
  for (const int32_t h : order_) {
    if (rows[h] == 0) continue;
    const Way& way = ways_[h];
    head[h] = ready[at(way.stage, way.from)];
    int64_t& next = ready[at(way.stage + 1, way.to)];
    next = std::max(next, head[h] + way.latency_ps + MessagePs(way, rows[h]));
  }
  for (size_t i = order_.size(); i-- > 0;) {
    const int32_t h = order_[i];
    if (rows[h] == 0) continue;
    const Way& way = ways_[h];
    tail[h] = left[at(way.stage + 1, way.to)];
    int64_t& before = left[at(way.stage, way.from)];
    before = std::max(before, tail[h] + way.latency_ps + MessagePs(way, rows[h]));
  }

  struct OfLink {
    int64_t first_ps = kForeverPs, load_ps = 0, tail_ps = 0;
  };
  const int32_t links = plan_.topology.num_links();
  std::vector<OfLink> uses(static_cast<size_t>(links) * stages_);
  int64_t time = 0;
  for (const int32_t h : order_) {
    if (rows[h] == 0) continue;
    const Way& way = ways_[h];
    const int64_t messages = MessagesOf(rows[h], plan_.rows_per_message);
    int64_t before = head[h], behind = way.latency_ps + tail[h], longest = 0;
    for (const LinkId l : *way.links) {
      const Link& link = plan_.topology.link(l);
      OfLink& use = uses[l.index() * stages_ + way.stage];
      const int64_t load =
          TransferPs(rows[h] * bytes_, link.bandwidth_bytes_per_s) + messages * link.overhead_ps;
      use.first_ps = std::min(use.first_ps, before);
      use.load_ps += load;
      use.tail_ps = std::max(use.tail_ps, behind);
      longest = std::max(longest, load);
      before += link.latency_ps;
      behind -= link.latency_ps;
    }
    time = std::max(time, head[h] + way.latency_ps + longest + tail[h]);
  }
  busiest_.reset();
  int64_t fullest = -1;
  for (int32_t l = 0; l < links; ++l) {
    int64_t load = 0, behind = 0;
    for (int32_t stage = stages_; stage-- > 0;) {
      const OfLink& use = uses[static_cast<size_t>(l) * stages_ + stage];
      if (use.load_ps == 0) continue;
      load += use.load_ps;
      behind = std::max(behind, use.tail_ps);
      time = std::max(time, use.first_ps + load + behind);
    }
    if (load > fullest && load > 0) {
      fullest = load;
      busiest_ = LinkId(l);
    }
  }
  return time;
}

std::vector<int64_t> RowsOfPairs(const Needs& needs, int32_t ranks) {
  std::vector<int64_t> rows(static_cast<size_t>(ranks) * ranks);
  for (int32_t home = 0; home < ranks; ++home)
    for (int64_t t = needs.first_token[home]; t < needs.first_token[home + 1]; ++t)
      for (const int32_t rank : needs.Of(t))
        if (rank != home) rows[static_cast<size_t>(home) * ranks + rank] += needs.copies;
  return rows;
}

PairExchange::PairExchange(const ExpertPlan& direct, Call call)
    : plan_(direct),
      bytes_(RowBytes(direct, call)),
      links_(static_cast<size_t>(direct.sizes.ranks) * direct.sizes.ranks),
      latency_ps_(links_.size()),
      pairs_of_link_(direct.topology.num_links()) {
  const HopIndex index(direct);
  BranchFinder finder(direct);
  const int32_t ranks = direct.sizes.ranks;
  for (int32_t home = 0; home < ranks; ++home)
    for (int32_t to = 0; to < ranks; ++to) {
      if (home == to) continue;
      const size_t pair = static_cast<size_t>(home) * ranks + to;
      const int32_t needs[] = {to};
      for (const Branch& branch : finder.Find(0, home, needs)) {
        const Hop& hop = direct.hops[index.Find(0, branch.depth, branch.from, branch.to)];
        const std::vector<LinkId>& links = call == Call::kDispatch ? hop.links : hop.back;
        links_[pair].insert(links_[pair].end(), links.begin(), links.end());
      }
      for (const LinkId l : links_[pair]) {
        latency_ps_[pair] += direct.topology.link(l).latency_ps + direct.topology.link(l).overhead_ps;
        ++pairs_of_link_[l.index()];
      }
    }
}

int64_t PairExchange::PairwisePs(std::span<const int64_t> rows_of_pairs) const {
  const int32_t ranks = plan_.sizes.ranks;
  std::vector<int64_t> load(plan_.topology.num_links());
  int64_t time = 0;
  for (int32_t step = 1; step < ranks; ++step) {
    const auto for_each = [&](auto visit) {
      for (int32_t home = 0; home < ranks; ++home) {
        const size_t pair = static_cast<size_t>(home) * ranks + (home + step) % ranks;
        if (rows_of_pairs[pair] > 0) visit(pair);
      }
    };
    int64_t longest = 0;
    for_each([&](size_t pair) {
      for (const LinkId l : links_[pair])
        load[l.index()] +=
            TransferPs(rows_of_pairs[pair] * bytes_, plan_.topology.link(l).bandwidth_bytes_per_s);
    });
    for_each([&](size_t pair) {
      for (const LinkId l : links_[pair]) longest = std::max(longest, latency_ps_[pair] + load[l.index()]);
    });
    for_each([&](size_t pair) {
      for (const LinkId l : links_[pair]) load[l.index()] = 0;
    });
    time += longest;
  }
  return time;
}

int64_t PairExchange::PaddedPs(std::span<const int64_t> rows_of_pairs) const {
  const int64_t most = rows_of_pairs.empty() ? 0 : *std::ranges::max_element(rows_of_pairs);
  if (most == 0) return 0;
  int64_t time = 0;
  for (int32_t l = 0; l < plan_.topology.num_links(); ++l)
    time = std::max(time, TransferPs(pairs_of_link_[l] * most * bytes_,
                                     plan_.topology.link(LinkId(l)).bandwidth_bytes_per_s));
  return time + *std::ranges::max_element(latency_ps_);
}

}  // namespace xccl::dispatch
