// An item is one row on one hop. Items feed others: a row's arrival at a rank feeds its next branches, and in
// combine the rows below a rank feed the one that it sends. An item that nothing is left to feed joins the
// last message of its hop that has not begun. The heap holds what happens next: a message is ready for the
// next link of its path, a link is free again, or a message has arrived.
#include "dispatch/simulate.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "base/units.h"

namespace xccl::dispatch {
namespace {

class Simulator {
 public:
  Simulator(const ExpertPlan& plan, const Needs& needs, Call call)
      : plan_(plan),
        call_(call),
        bytes_(plan.sizes.row_bytes + HeaderBytes(plan.sizes, call)),
        open_(plan.hops.size(), -1),
        links_(plan.topology.num_links()) {
    AddItems(needs);
  }

  int64_t Run() {
    for (int32_t item = 0; item < static_cast<int32_t>(hop_.size()); ++item)
      if (missing_[item] == 0) Offer(item, 0);
    while (!events_.empty()) {
      const auto [now, number, kind, id] = events_.top();
      events_.pop();
      switch (kind) {
        case Kind::kReady:
          Queue(id, now);
          break;
        case Kind::kFree:
          links_[id].busy = false;
          Start(id, now);
          break;
        case Kind::kArrived:
          Arrive(id, now);
          break;
      }
    }
    return end_;
  }

 private:
  enum class Kind : uint8_t { kReady, kFree, kArrived };
  // Time, number of the event, kind, message or link.
  using Event = std::tuple<int64_t, int64_t, Kind, int32_t>;

  struct Message {
    int32_t hop;
    std::vector<int32_t> items;
    size_t at = 0;              // place in the path
    int64_t end_before_ps = 0;  // when its last byte leaves the link before, with that link's latency
  };
  struct OfLink {
    bool busy = false;
    // Messages that are ready, by the time since when and their number.
    std::priority_queue<std::pair<int64_t, int32_t>, std::vector<std::pair<int64_t, int32_t>>, std::greater<>>
        ready;
  };

  int32_t NewItem(int32_t hop) {
    hop_.push_back(hop);
    missing_.push_back(0);
    first_fed_.push_back(-1);
    return static_cast<int32_t>(hop_.size()) - 1;
  }

  void Feed(int32_t item, int32_t fed) {
    fed_.push_back({fed, first_fed_[item]});
    first_fed_[item] = static_cast<int32_t>(fed_.size()) - 1;
    ++missing_[fed];
  }

  void AddItems(const Needs& needs) {
    const HopIndex index(plan_);
    BranchFinder finder(plan_);
    std::vector<int32_t> item_into(plan_.sizes.ranks);
    int64_t most = 0;
    const auto tokens = [&](int32_t home) { return needs.first_token[home + 1] - needs.first_token[home]; };
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home) most = std::max(most, tokens(home));
    for (int64_t number = 0; number < most; ++number)
      for (int32_t home = 0; home < plan_.sizes.ranks; ++home) {
        if (number >= tokens(home)) continue;
        const std::span<const int32_t> ranks = needs.Of(needs.first_token[home] + number);
        const auto lane = static_cast<int32_t>(number % plan_.lanes);
        const std::span<const Branch> branches = finder.Find(lane, home, ranks);
        const auto hop_of = [&](const Branch& branch) {
          return index.Find(lane, branch.depth, branch.from, branch.to);
        };
        if (call_ == Call::kCombine && plan_.sums == Sums::kHome) {
          AddChains(home, ranks, branches, hop_of);
          continue;
        }
        for (const Branch& branch : branches) {
          const int32_t item = item_into[branch.to] = NewItem(hop_of(branch));
          if (branch.from == home) continue;
          if (call_ == Call::kDispatch)
            Feed(item_into[branch.from], item);
          else
            Feed(item, item_into[branch.from]);
        }
      }
  }

  // Each rank's row goes home by itself.
  template <typename HopOf>
  void AddChains(int32_t home, std::span<const int32_t> needs, std::span<const Branch> branches,
                 HopOf hop_of) {
    for (const int32_t rank : needs) {
      int32_t before = -1;
      for (int32_t at = rank; at != home;) {
        const auto branch = std::ranges::find(branches, at, &Branch::to);
        const int32_t item = NewItem(hop_of(*branch));
        if (before >= 0) Feed(before, item);
        before = item;
        at = branch->from;
      }
    }
  }

  const std::vector<LinkId>& PathOf(const Message& message) const {
    const Hop& hop = plan_.hops[message.hop];
    return call_ == Call::kDispatch ? hop.links : hop.back;
  }

  void Happen(int64_t when, Kind kind, int32_t id) { events_.emplace(when, number_++, kind, id); }

  void Offer(int32_t item, int64_t now) {
    int32_t& open = open_[hop_[item]];
    if (open < 0 || static_cast<int32_t>(messages_[open].items.size()) == plan_.rows_per_message) {
      open = static_cast<int32_t>(messages_.size());
      messages_.push_back({.hop = hop_[item], .items = {}});
      Happen(now, Kind::kReady, open);
    }
    messages_[open].items.push_back(item);
  }

  void Queue(int32_t m, int64_t now) {
    const int32_t link = PathOf(messages_[m])[messages_[m].at].value;
    links_[link].ready.emplace(now, m);
    if (!links_[link].busy) Start(link, now);
  }

  void Start(int32_t l, int64_t now) {
    OfLink& of = links_[l];
    if (of.busy || of.ready.empty()) return;
    const int32_t m = of.ready.top().second;
    of.ready.pop();
    Message& message = messages_[m];
    if (message.at == 0 && open_[message.hop] == m) open_[message.hop] = -1;
    const Link& link = plan_.topology.link(LinkId(l));
    const auto bytes = static_cast<int64_t>(message.items.size()) * bytes_;
    const int64_t end = std::max(now + link.overhead_ps + TransferPs(bytes, link.bandwidth_bytes_per_s),
                                 message.end_before_ps);
    of.busy = true;
    Happen(end, Kind::kFree, l);
    message.end_before_ps = end + link.latency_ps;
    if (++message.at < PathOf(message).size())
      Happen(now + link.latency_ps, Kind::kReady, m);
    else
      Happen(message.end_before_ps, Kind::kArrived, m);
  }

  void Arrive(int32_t m, int64_t now) {
    end_ = std::max(end_, now);
    const std::vector<int32_t> items = std::move(messages_[m].items);
    for (const int32_t item : items)
      for (int32_t f = first_fed_[item]; f >= 0; f = fed_[f].next)
        if (--missing_[fed_[f].item] == 0) Offer(fed_[f].item, now);
  }

  struct Fed {
    int32_t item, next;
  };

  const ExpertPlan& plan_;
  const Call call_;
  const int64_t bytes_;
  std::vector<int32_t> hop_, missing_, first_fed_;  // by item
  std::vector<Fed> fed_;
  std::vector<int32_t> open_;  // by hop: the message that takes rows, or -1
  std::vector<OfLink> links_;
  std::deque<Message> messages_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  int64_t number_ = 0, end_ = 0;
};

}  // namespace

int64_t SimulateCall(const ExpertPlan& plan, const Needs& needs, Call call) {
  return Simulator(plan, needs, call).Run();
}

}  // namespace xccl::dispatch
