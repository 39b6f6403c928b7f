// An event loop over the times at which links fall idle. Every link has a queue.
// 1. A transfer is ready once its chunk is at the source. It then joins the queue of its path's first link.
// 2. The first link of a path serves the transfer with the longest remaining path first. That length is the
//    time to the farthest rank that the chunk still has to reach.
// 3. A message takes further ready transfers of its path up to batch_bytes (SetOut).
// 4. At later links the message that set out first goes first.
// 5. A message that arrives makes the transfers that wait for its chunks ready (Deliver).
#include "synth/greedy/list.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <queue>

#include "base/graph/grouped.h"
#include "base/units.h"
#include "ir/simulate/event_queue.h"
#include "ir/time_model.h"

namespace xccl::greedy {
namespace {

class ListScheduler {
 public:
  ListScheduler(const CopyProblem& problem, const Routes& routes, int64_t batch_bytes)
      : problem_(problem),
        routes_(routes),
        batch_bytes_(batch_bytes),
        costs_(LinkCosts(*problem.topology, problem.model)),
        queues_(costs_.size()),
        free_ps_(costs_.size(), 0),
        last_step_(costs_.size(), -1),
        waiting_(static_cast<size_t>(routes.paths.size())) {}

  std::vector<GreedyMove> Run() {
    Index();
    for (size_t t = 0; t < routes_.transfers.size(); ++t)
      if (routes_.transfers[t].parent < 0) Ready(static_cast<int32_t>(t));
    ServeTouched(0);
    std::vector<Event> batch;
    while (!events_.empty()) {
      const int64_t now = events_.PopBatch(batch);
      std::ranges::sort(batch, {}, &Event::what);
      for (const Event& event : batch) Handle(event.what);
      ServeTouched(now);
    }
    return std::move(moves_);
  }

 private:
  // Codes of events: LinkIsIdle if a link falls idle; GetsTo if a message reaches the link at `position` of
  // its path, or the path's end.
  static uint64_t LinkIsIdle(LinkId link) { return static_cast<uint64_t>(link.value); }
  static uint64_t GetsTo(int32_t message, int32_t position) {
    return (static_cast<uint64_t>(message) + 1) << 32 | static_cast<uint64_t>(position);
  }
  void Handle(uint64_t event) {
    const int32_t position = static_cast<int32_t>(event & 0xffffffffU);
    if (event >> 32 == 0) {
      touched_.push_back(position);
      return;
    }
    const int32_t message = static_cast<int32_t>((event >> 32) - 1);
    if (position == static_cast<int32_t>(Path(message).size())) return Deliver(message);
    const LinkId link = Path(message)[static_cast<size_t>(position)];
    queues_[link.index()].push({message, 0, message, position});
    touched_.push_back(link.value);
  }
  // An entry of a link's queue: a transfer that is ready to set out (position 0), or a message on its way.
  struct Entry {
    int64_t key;   // the entry with the least key goes first
    int32_t turn;  // among equal keys: Turn() of the path
    int32_t id;    // the transfer (position 0) or the message
    int32_t position;
    auto operator<=>(const Entry&) const = default;
  };
  struct Message {
    int32_t path = 0, step = 0;
    int64_t bytes = 0;
    int64_t end_ps = 0;  // when the last byte has passed the links so far
    std::vector<int32_t> transfers;
  };

  std::span<const LinkId> Path(int32_t message) const {
    return routes_.paths[PathId(messages_[message].path)];
  }

  int64_t Duration(LinkId link, int64_t bytes) const { return BusyPs(costs_[link.index()], bytes); }

  // Finds each transfer's children, which stand after it in the list, and the time of its remaining path.
  void Index() {
    const size_t n = routes_.transfers.size();
    children_ = GroupItems<int32_t>(n, [&](auto add) {
      for (size_t i = 0; i < n; ++i)
        if (const int32_t parent = routes_.transfers[i].parent; parent >= 0)
          add(parent, static_cast<int32_t>(i));
    });
    remaining_ps_.assign(n, 0);
    for (size_t i = n; i-- > 0;) {
      const RoutedTransfer& t = routes_.transfers[i];
      for (LinkId l : routes_.paths[PathId(t.path)])
        remaining_ps_[i] += Duration(l, problem_.bytes[t.chunk]) + costs_[l.index()].delay_ps;
      if (t.parent >= 0)
        remaining_ps_[static_cast<size_t>(t.parent)] =
            std::max(remaining_ps_[static_cast<size_t>(t.parent)], remaining_ps_[i]);
    }
    started_.assign(n, 0);
    step_.assign(n, -1);
  }

  // Returns the turn in which a source serves the path's destination, among paths of equal length. Each
  // source begins with the node after itself, so that sources begin with different ranks.
  int32_t Turn(int32_t path) const {
    const std::span<const LinkId> links = routes_.paths[PathId(path)];
    const Topology& topology = *problem_.topology;
    const int32_t from = topology.link(links.front()).from.value, to = topology.link(links.back()).to.value;
    return to > from ? to - from : to - from + topology.num_nodes();
  }

  void Ready(int32_t transfer) {
    const int32_t path = routes_.transfers[static_cast<size_t>(transfer)].path;
    const LinkId link = routes_.paths[PathId(path)].front();
    queues_[link.index()].push({-remaining_ps_[static_cast<size_t>(transfer)], Turn(path), transfer, 0});
    if (batch_bytes_ > 0) waiting_[static_cast<size_t>(path)].push_back(transfer);
    touched_.push_back(link.value);
  }

  void Deliver(int32_t message) {
    for (int32_t t : messages_[message].transfers)
      for (int32_t child : children_[t]) Ready(child);
  }

  void ServeTouched(int64_t now) {
    std::sort(touched_.begin(), touched_.end());
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    for (int32_t link : touched_) Serve(link, now);
    touched_.clear();
  }

  void Serve(int32_t link, int64_t now) {
    while (free_ps_[link] <= now && !queues_[link].empty()) {
      const Entry entry = queues_[link].top();
      queues_[link].pop();
      if (entry.position > 0) {
        Occupy(entry.id, entry.position, now);
      } else if (!started_[static_cast<size_t>(entry.id)]) {
        Occupy(SetOut(entry.id), 0, now);
      }
    }
  }

  // Makes a message of one ready transfer and, up to batch_bytes, of further ready transfers on its path.
  int32_t SetOut(int32_t transfer) {
    const int32_t path = routes_.transfers[static_cast<size_t>(transfer)].path;
    const LinkId first = routes_.paths[PathId(path)].front();
    Message message{
        .path = path, .step = last_step_[first.index()] + 1, .bytes = 0, .end_ps = 0, .transfers = {}};
    const auto add = [&](int32_t t) {
      const RoutedTransfer& routed = routes_.transfers[static_cast<size_t>(t)];
      started_[static_cast<size_t>(t)] = 1;
      message.transfers.push_back(t);
      message.bytes += problem_.bytes[routed.chunk];
      if (routed.parent >= 0)
        message.step = std::max(message.step, step_[static_cast<size_t>(routed.parent)] + 1);
    };
    add(transfer);
    std::vector<int32_t>& others = waiting_[static_cast<size_t>(path)];
    size_t kept = 0;
    for (int32_t t : others) {
      if (started_[static_cast<size_t>(t)]) continue;
      if (message.bytes + problem_.bytes[routes_.transfers[static_cast<size_t>(t)].chunk] <= batch_bytes_) {
        add(t);
      } else {
        others[kept++] = t;
      }
    }
    others.resize(kept);
    last_step_[first.index()] = message.step;
    for (int32_t t : message.transfers) {
      step_[static_cast<size_t>(t)] = message.step;
      moves_.push_back({routes_.transfers[static_cast<size_t>(t)].chunk, path, message.step});
    }
    messages_.push_back(std::move(message));
    return static_cast<int32_t>(messages_.size()) - 1;
  }

  void Occupy(int32_t id, int32_t position, int64_t now) {
    Message& message = messages_[static_cast<size_t>(id)];
    const LinkId link = Path(id)[static_cast<size_t>(position)];
    const int64_t end = now + Duration(link, message.bytes), delay = costs_[link.index()].delay_ps;
    free_ps_[link.index()] = end;
    message.end_ps = std::max(end, message.end_ps) + delay;
    events_.Push(end, LinkIsIdle(link));
    const bool last = position + 1 == static_cast<int32_t>(Path(id).size());
    const bool whole = last || problem_.model == TimeModel::kBlocking;
    events_.Push(whole ? message.end_ps : now + delay, GetsTo(id, position + 1));
  }

  const CopyProblem& problem_;
  const Routes& routes_;
  const int64_t batch_bytes_;
  std::vector<LinkCost> costs_;
  std::vector<std::priority_queue<Entry, std::vector<Entry>, std::greater<>>> queues_;
  std::vector<int64_t> free_ps_;
  std::vector<int32_t> last_step_;
  std::vector<std::vector<int32_t>> waiting_;  // by path: transfers ready to set out
  Grouped<int32_t> children_;                  // by transfer
  std::vector<int32_t> step_, touched_;
  std::vector<int64_t> remaining_ps_;
  std::vector<char> started_;
  std::vector<Message> messages_;
  EventQueue events_;
  std::vector<GreedyMove> moves_;
};

}  // namespace

std::vector<GreedyMove> ListSchedule(const CopyProblem& problem, const Routes& routes, int64_t batch_bytes) {
  return ListScheduler(problem, routes, batch_bytes).Run();
}

}  // namespace xccl::greedy
