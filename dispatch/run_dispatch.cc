// A rank's thread goes around its hops: it takes the oldest message of each hop that comes in, and for each
// of its rows looks up the branches that leave this rank (every row's header has its token's experts). A row
// joins the message that is being filled for each branch's hop; a full message goes into a free slot of the
// ring. Where none is free, that incoming hop waits and the others go on. The incoming message keeps its slot
// until all its rows have been passed on, as the proof of dispatch/verify.h assumes. The last message of a
// hop says so; a hop ends once the hops that feed it have.
#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "dispatch/team.h"

namespace xccl::dispatch {
namespace {

// One rank's dispatch.
class Dispatcher {
 public:
  Dispatcher(Shared& shared, int32_t rank, const Routing& routing, std::span<const std::byte> rows)
      : shared_(shared),
        plan_(shared.plan),
        rank_(rank),
        routing_(routing),
        rows_(rows),
        finder_(plan_),
        in_(shared.hops[rank].in.size()) {
    for (const int32_t h : shared.hops[rank].out) {
      place_of_[h] = out_.size();
      out_.emplace_back(*shared.rings[h], plan_.rows_per_message);
    }
  }

  Received Run() {
    Idler idler(shared_.watch, shared_.bells[rank_]);
    while (true) {
      bool moved = SendOwn();
      for (size_t i = 0; i < in_.size(); ++i) moved |= Take(i);
      const bool done = Finish(moved);
      if (done || !idler.GoOn(moved)) break;
    }
    return Sorted();
  }

 private:
  // Where the work on one source of rows stands: the next row, and the next of its branches.
  struct Cursor {
    size_t row = 0, branch = 0;
    bool started = false, ended = false;
    std::vector<std::pair<size_t, int32_t>> branches;  // hops that the row takes from here
  };

  size_t row_bytes() const { return static_cast<size_t>(plan_.sizes.row_bytes); }

  // Finds the row's branches here, and keeps its token and, if it is needed here, its bytes.
  void Start(Cursor& at, const Head& head, std::span<const int32_t> experts, std::span<const float> weights,
             const std::byte* bytes) {
    at.started = true;
    at.branch = 0;
    at.branches.clear();
    const int32_t lane = head.token % plan_.lanes;
    RanksOf(experts, plan_.sizes, needs_);
    for (const Branch& branch : finder_.Find(lane, head.home, needs_))
      if (branch.from == rank_)
        at.branches.emplace_back(place_of_.at(shared_.index.Find(lane, branch.depth, branch.from, branch.to)),
                                 branch.to);
    Seen& seen = received_.seen;
    const bool needed = std::ranges::binary_search(needs_, rank_);
    seen.homes.push_back(head.home);
    seen.tokens.push_back(head.token);
    seen.experts.insert(seen.experts.end(), experts.begin(), experts.end());
    seen.weights.insert(seen.weights.end(), weights.begin(), weights.end());
    seen.rows.push_back(needed ? static_cast<int32_t>(received_.rows.size() / row_bytes()) : -1);
    if (needed) received_.rows.insert(received_.rows.end(), bytes, bytes + row_bytes());
  }

  // Passes one row to its branches. False: a hop has no room, and the rest waits.
  bool Pass(Cursor& at, const Head& head, std::span<const int32_t> experts, std::span<const float> weights,
            const std::byte* bytes) {
    if (!at.started) Start(at, head, experts, weights, bytes);
    for (; at.branch < at.branches.size(); ++at.branch) {
      Filling& filling = out_[at.branches[at.branch].first];
      if (!filling.HasRoom()) return false;
      Message& message = filling.message();
      message.heads.push_back(head);
      message.experts.insert(message.experts.end(), experts.begin(), experts.end());
      message.weights.insert(message.weights.end(), weights.begin(), weights.end());
      message.bytes.insert(message.bytes.end(), bytes, bytes + row_bytes());
    }
    at.started = false;
    ++at.row;
    return true;
  }

  bool SendOwn() {
    if (own_.ended) return false;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    std::vector<float> weights(top_k);
    bool moved = false;
    while (own_.row < static_cast<size_t>(routing_.TokensOf(rank_))) {
      const int64_t token = routing_.first_token[rank_] + static_cast<int64_t>(own_.row);
      for (size_t k = 0; k < top_k; ++k) weights[k] = routing_.WeightOf(token, static_cast<int32_t>(k));
      const Head head{rank_, static_cast<int32_t>(own_.row), rank_};
      if (!Pass(own_, head, routing_.ExpertsOf(token), weights, rows_.data() + own_.row * row_bytes()))
        return moved;
      moved = true;
    }
    own_.ended = true;
    return true;
  }

  bool Take(size_t i) {
    Cursor& at = in_[i];
    if (at.ended) return false;
    Ring& ring = *shared_.rings[shared_.hops[rank_].in[i]];
    const Message* message = ring.Front();
    if (message == nullptr) return false;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    while (at.row < message->heads.size()) {
      const size_t row = at.row;
      if (!Pass(at, message->heads[row], std::span(message->experts).subspan(row * top_k, top_k),
                std::span(message->weights).subspan(row * top_k, top_k),
                message->bytes.data() + row * row_bytes()))
        return at.row > 0;
    }
    at.ended = message->last;
    at.row = 0;
    ring.Pop();
    return true;
  }

  // Sends what is being filled when nothing else moves, and ends hops whose feeders have ended. True: all is
  // done.
  bool Finish(bool& moved) {
    const RankHops& hops = shared_.hops[rank_];
    bool done = own_.ended;
    for (const Cursor& at : in_) done &= at.ended;
    for (size_t o = 0; o < out_.size(); ++o) {
      const Hop& hop = plan_.hops[hops.out[o]];
      bool fed = hop.stage != plan_.stage_of_depth[0] || own_.ended;
      for (size_t i = 0; i < in_.size(); ++i) {
        const Hop& feeder = plan_.hops[hops.in[i]];
        fed &= in_[i].ended || feeder.lane != hop.lane || feeder.stage >= hop.stage;
      }
      if (fed && !out_[o].ended())
        moved |= out_[o].End();
      else if (!moved && !out_[o].message().empty())
        moved |= out_[o].Flush();
      done &= out_[o].ended();
    }
    return done;
  }

  // What was kept, in the order of (home, token).
  Received Sorted() const {
    const Seen& seen = received_.seen;
    std::vector<size_t> order(seen.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(seen.homes[i], seen.tokens[i]); });
    Received sorted;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    sorted.rows_of_home.resize(plan_.sizes.ranks);
    for (const size_t i : order) {
      sorted.seen.homes.push_back(seen.homes[i]);
      sorted.seen.tokens.push_back(seen.tokens[i]);
      for (size_t k = i * top_k; k < (i + 1) * top_k; ++k) {
        sorted.seen.experts.push_back(seen.experts[k]);
        sorted.seen.weights.push_back(seen.weights[k]);
      }
      if (seen.rows[i] < 0) {
        sorted.seen.rows.push_back(-1);
        continue;
      }
      sorted.seen.rows.push_back(static_cast<int32_t>(sorted.rows.size() / row_bytes()));
      const std::byte* row = received_.rows.data() + static_cast<size_t>(seen.rows[i]) * row_bytes();
      sorted.rows.insert(sorted.rows.end(), row, row + row_bytes());
      ++sorted.rows_of_home[seen.homes[i]];
    }
    CountExperts(sorted);
    return sorted;
  }

  void CountExperts(Received& received) const {
    const int32_t local = plan_.sizes.local_experts(), first = rank_ * local;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    const auto for_each = [&](auto visit) {
      for (size_t i = 0; i < received.seen.size(); ++i)
        for (size_t k = i * top_k; k < (i + 1) * top_k; ++k)
          if (const int32_t expert = received.seen.experts[k] - first;
              received.seen.experts[k] >= 0 && expert >= 0 && expert < local)
            visit(expert, received.seen.rows[i], received.seen.weights[k]);
    };
    received.rows_of_expert.assign(local, 0);
    for_each([&](int32_t expert, int32_t, float) { ++received.rows_of_expert[expert]; });
    received.first_of_expert.assign(1, 0);
    for (const int32_t count : received.rows_of_expert)
      received.first_of_expert.push_back(received.first_of_expert.back() + count);
    received.row_of_entry.resize(received.first_of_expert.back());
    received.weight_of_entry.resize(received.row_of_entry.size());
    std::vector<int32_t> next(received.first_of_expert.begin(), received.first_of_expert.end() - 1);
    for_each([&](int32_t expert, int32_t row, float weight) {
      received.row_of_entry[next[expert]] = row;
      received.weight_of_entry[next[expert]++] = weight;
    });
  }

  Shared& shared_;
  const ExpertPlan& plan_;
  const int32_t rank_;
  const Routing& routing_;
  const std::span<const std::byte> rows_;
  BranchFinder finder_;
  Cursor own_;
  std::vector<Cursor> in_;                        // by hop into the rank
  std::vector<Filling> out_;                      // by hop out of it
  std::unordered_map<int32_t, size_t> place_of_;  // of a hop among those
  std::vector<int32_t> needs_;
  Received received_;  // in the order of arrival
};

}  // namespace

Received DispatchOfRank(Shared& shared, int32_t rank, const Routing& routing,
                        std::span<const std::byte> rows) {
  return Dispatcher(shared, rank, routing, rows).Run();
}

}  // namespace xccl::dispatch
