// Rows as numbers: a row is (home, token, and in combine without sums on the way the rank that it is from).
// At any time some hops may send a message, since its sender holds rows for it and a slot is free, and some
// receivers may look at the oldest message that they have not looked at. One of these acts is drawn. A
// message keeps its slot until every row that it feeds has left its receiver in other messages.
#include <fmt/core.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>

#include "base/random.h"
#include "dispatch/verify.h"

namespace xccl::dispatch {
namespace {

using Token = std::pair<int32_t, int32_t>;            // home, number
using RowId = std::tuple<int32_t, int32_t, int32_t>;  // home, number, rank that it is from or -1

struct Slot {
  int64_t rows_left = 0;  // rows still to be sent on
};

struct Waiting {
  RowId row;
  std::shared_ptr<Slot> slot;  // of the message that brought it; none at its first sender
};

struct Message {
  std::vector<RowId> rows;
  std::shared_ptr<Slot> slot;
};

struct Connection {
  std::deque<Waiting> waiting;              // at the sender
  std::deque<Message> unseen;               // at the receiver
  std::vector<std::shared_ptr<Slot>> held;  // slots whose rows are still to be sent on
};

// Ways of one token: a rank's sender and its depth below the home.
struct Ways {
  std::map<int32_t, int32_t> parent, depth;
};

class Player {
 public:
  Player(const ExpertPlan& plan, const Routing& routing, uint64_t seed)
      : plan_(plan), routing_(routing), random_(seed), connections_(plan.hops.size()) {
    for (size_t h = 0; h < plan.hops.size(); ++h) {
      const Hop& hop = plan.hops[h];
      hops_[{hop.lane, hop.stage, hop.from.value, hop.to.value}] = h;
    }
  }

  Status Play(Call call) {
    call_ = call;
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home)
      for (int32_t number = 0; number < routing_.TokensOf(home); ++number) {
        FindWays({home, number});
        Begin({home, number});
      }
    XCCL_RETURN_IF_ERROR(Drain());
    return CheckEnd();
  }

 private:
  std::set<int32_t> Needs(Token token) const {
    std::set<int32_t> needs;
    for (const int32_t expert : routing_.ExpertsOf(routing_.first_token[token.first] + token.second))
      if (expert >= 0) needs.insert(expert / (plan_.sizes.experts / plan_.sizes.ranks));
    return needs;
  }

  int32_t LaneOf(Token token) const { return token.second % plan_.lanes; }

  void Join(Ways& ways, Token token, int32_t rank) {
    if (rank == token.first || ways.parent.contains(rank)) return;
    const int32_t parent = plan_.TreeOf(LaneOf(token), token.first)[rank];
    Join(ways, token, parent);
    Hang(ways, token, parent, rank);
  }
  void Hang(Ways& ways, Token token, int32_t parent, int32_t rank) {
    ways.parent[rank] = parent;
    ways.depth[rank] = (parent == token.first ? 0 : ways.depth[parent]) + 1;
  }

  // Entry::kNested: of a block's two halves the one that is nearer to the entry has the row first; its first
  // rank sends it to that of the other half.
  void Halve(Ways& ways, Token token, int32_t entry, const std::set<int32_t>& block, int32_t half) {
    if (half == 0 || block.size() < 2) return;
    std::set<int32_t> near, far;
    for (const int32_t rank : block) ((rank ^ entry) & half ? far : near).insert(rank);
    const auto first = [&](const std::set<int32_t>& ranks) {
      return *std::ranges::min_element(ranks, {}, [&](int32_t rank) { return rank ^ entry; });
    };
    if (!near.empty() && !far.empty()) Hang(ways, token, first(near), first(far));
    Halve(ways, token, entry, near, half / 2);
    Halve(ways, token, entry, far, half / 2);
  }

  void FindWays(Token token) {
    Ways& ways = ways_[token];
    ways = {};
    const std::span<const int32_t> tree = plan_.TreeOf(LaneOf(token), token.first);
    std::map<int32_t, std::set<int32_t>> by_domain;
    for (const int32_t rank : Needs(token)) {
      const int32_t domain = plan_.domains[rank];
      const bool by_need = plan_.entry == Entry::kNested ||
                           (plan_.entry == Entry::kNeeded && domain != plan_.domains[token.first]);
      if (by_need)
        by_domain[domain].insert(rank);
      else
        Join(ways, token, rank);
    }
    for (auto& [domain, ranks] : by_domain) {
      if (plan_.entry == Entry::kNested && domain == plan_.domains[token.first]) {
        ranks.insert(token.first);
        Halve(ways, token, token.first, ranks, 1 << 30);
        continue;
      }
      int32_t entry = 0;
      while (plan_.domains[entry] != domain || plan_.domains[tree[entry]] == domain) ++entry;
      const int32_t first = *std::ranges::min_element(ranks, {}, [&](int32_t rank) { return rank ^ entry; });
      Join(ways, token, tree[entry]);
      Hang(ways, token, tree[entry], first);
      if (plan_.entry == Entry::kNested) {
        Halve(ways, token, entry, ranks, 1 << 30);
        continue;
      }
      for (const int32_t rank : ranks)
        if (rank != first) Hang(ways, token, first, rank);
    }
  }

  size_t HopInto(Token token, int32_t rank) {
    const Ways& ways = ways_[token];
    const int32_t stage = plan_.stage_of_depth[ways.depth.at(rank) - 1];
    return hops_.at({LaneOf(token), stage, ways.parent.at(rank), rank});
  }

  // Rows that the rank sends first: of its own tokens in dispatch; in combine those for which it waits for
  // nobody.
  void Begin(Token token) {
    const Ways& ways = ways_[token];
    if (call_ == Call::kDispatch) {
      SendOn(token, token.first, nullptr);
      return;
    }
    const std::set<int32_t> needs = Needs(token);
    for (const auto& [rank, parent] : ways.parent) {
      if (plan_.sums == Sums::kOnWay) {
        missing_[{token.first, token.second, rank}] = ChildrenOf(ways, rank).size();
        if (ChildrenOf(ways, rank).empty()) Wait(token, rank, {token.first, token.second, -1}, nullptr);
      } else if (needs.contains(rank)) {
        Wait(token, rank, {token.first, token.second, rank}, nullptr);
      }
    }
  }

  static std::vector<int32_t> ChildrenOf(const Ways& ways, int32_t rank) {
    std::vector<int32_t> children;
    for (const auto& [child, parent] : ways.parent)
      if (parent == rank) children.push_back(child);
    return children;
  }

  // The row waits for the hop that joins the rank and its parent.
  void Wait(Token token, int32_t rank, const RowId& row, const std::shared_ptr<Slot>& slot) {
    if (slot) ++slot->rows_left;
    connections_[HopInto(token, rank)].waiting.push_back({row, slot});
  }

  void SendOn(Token token, int32_t rank, const std::shared_ptr<Slot>& slot) {
    for (const int32_t child : ChildrenOf(ways_[token], rank))
      Wait(token, child, {token.first, token.second, -1}, slot);
  }

  Status Drain() {
    while (true) {
      std::vector<std::pair<size_t, bool>> acts;  // hop, sends
      bool rest = false;
      for (size_t h = 0; h < connections_.size(); ++h) {
        Connection& of = connections_[h];
        std::erase_if(of.held, [](const auto& slot) { return slot->rows_left == 0; });
        rest |= !of.waiting.empty() || !of.unseen.empty();
        const size_t used = of.unseen.size() + of.held.size();
        if (!of.waiting.empty() && used < static_cast<size_t>(plan_.hops[h].slots))
          acts.emplace_back(h, true);
        if (!of.waiting.empty() && used >= static_cast<size_t>(plan_.hops[h].slots) &&
            plan_.aim == Aim::kLatency)
          return InvalidInput(fmt::format("[D5] hop {}: all {} slots are full; expected one for every row", h,
                                          plan_.hops[h].slots));
        if (!of.unseen.empty()) acts.emplace_back(h, false);
      }
      if (acts.empty())
        return rest ? InvalidInput("[D6] all wait for slots; expected one that is free") : OkStatus();
      const auto [h, sends] = acts[random_.Below(acts.size())];
      if (sends)
        Send(h);
      else
        XCCL_RETURN_IF_ERROR(See(h));
    }
  }

  void Send(size_t h) {
    Connection& of = connections_[h];
    Message message{.rows = {}, .slot = std::make_shared<Slot>()};
    // A message need not be full.
    const auto most = 1 + random_.Below(plan_.rows_per_message);
    while (!of.waiting.empty() && message.rows.size() < most) {
      message.rows.push_back(of.waiting.front().row);
      if (of.waiting.front().slot) --of.waiting.front().slot->rows_left;
      of.waiting.pop_front();
    }
    of.unseen.push_back(std::move(message));
  }

  Status See(size_t h) {
    Connection& of = connections_[h];
    const Message message = of.unseen.front();
    of.unseen.pop_front();
    const Hop& hop = plan_.hops[h];
    const int32_t at = call_ == Call::kDispatch ? hop.to.value : hop.from.value;
    for (const RowId& row : message.rows) {
      const Token token(std::get<0>(row), std::get<1>(row));
      if (call_ == Call::kDispatch) {
        if (!arrived_.insert({token, at}).second)
          return InvalidInput(fmt::format("[D2] token {} of rank {}: twice at rank {}; expected once",
                                          token.second, token.first, at));
        SendOn(token, at, message.slot);
      } else if (plan_.sums == Sums::kHome) {
        if (at != token.first)
          Wait(token, at, row, message.slot);
        else if (!summed_.insert(row).second)
          return InvalidInput(
              fmt::format("[D2] token {} of rank {}: the row of rank {} comes back twice; expected "
                          "once",
                          token.second, token.first, std::get<2>(row)));
      } else {
        ++added_[{token.first, token.second, at}];
        if (at != token.first && --missing_[{token.first, token.second, at}] == 0)
          Wait(token, at, {token.first, token.second, -1}, nullptr);
      }
    }
    of.held.push_back(message.slot);
    return OkStatus();
  }

  Status CheckEnd() {
    for (auto& [token, ways] : ways_)
      for (const int32_t rank : Needs(token)) {
        if (rank == token.first) continue;
        const bool there = call_ == Call::kDispatch ? arrived_.contains({token, rank})
                           : plan_.sums == Sums::kHome
                               ? summed_.contains({token.first, token.second, rank})
                               : added_[{token.first, token.second, token.first}] ==
                                     static_cast<int64_t>(ChildrenOf(ways, token.first).size());
        if (!there)
          return InvalidInput(fmt::format("[D2] token {} of rank {}: not at rank {}; expected once",
                                          token.second, token.first, rank));
      }
    return OkStatus();
  }

  const ExpertPlan& plan_;
  const Routing& routing_;
  Random random_;
  Call call_ = Call::kDispatch;
  std::map<std::tuple<int32_t, int32_t, int32_t, int32_t>, size_t> hops_;  // by lane, stage, from, to
  std::vector<Connection> connections_;
  std::map<Token, Ways> ways_;
  std::set<std::pair<Token, int32_t>> arrived_;  // dispatch: token and rank
  std::set<RowId> summed_;                       // combine at home: rows that came back
  std::map<RowId, int64_t> missing_, added_;     // combine on the way, by token and rank
};

}  // namespace

Status Replay(const ExpertPlan& plan, const Routing& routing, uint64_t seed) {
  XCCL_RETURN_IF_ERROR(CheckRouting(routing, plan.sizes));
  for (const Call call : {Call::kDispatch, Call::kCombine})
    XCCL_RETURN_IF_ERROR(Annotate(Player(plan, routing, seed).Play(call), ToString(call)));
  return OkStatus();
}

}  // namespace xccl::dispatch
