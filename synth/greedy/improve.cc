// Transfers and their orders on links are a graph; a transfer starts when its chunk is there and the one
// before it on its link has ended. One change at a time: a transfer that causes lateness moves to another
// link into its rank or forwards on its own. Lateness is what arrivals exceed an aim a little below the best
// time by, so that many small gains lead to a shorter plan; worse orders are accepted now and then
// (annealing).
#include "synth/greedy/improve.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "base/units.h"
#include "synth/common/bit_table.h"
#include "synth/greedy/greedy_move.h"

namespace xccl::greedy {
namespace {

class Improver {
 public:
  Improver(const CopyProblem& problem, const std::vector<GreedyMove>& moves, const ImproveOptions& options)
      : topology_(*problem.topology),
        options_(options),
        random_(options.seed),
        costs_(LinkCosts(topology_, problem.model)),
        bytes_(problem.bytes),
        order_(costs_.size()),
        into_(static_cast<size_t>(topology_.num_nodes())),
        bringer_(static_cast<size_t>(topology_.num_nodes()), std::vector<int32_t>(problem.bytes.size(), -1)) {
    for (int32_t l = 0; l < topology_.num_links(); ++l)
      if (topology_.IsGpu(topology_.link(LinkId(l)).from))
        into_[topology_.link(LinkId(l)).to.index()].push_back(l);
    for (const GreedyMove& move : moves) {
      const int32_t t = static_cast<int32_t>(chunk_.size());
      chunk_.push_back(move.chunk);
      link_.push_back(move.path);
      order_[static_cast<size_t>(move.path)].push_back(t);
      bringer_[topology_.link(LinkId(move.path)).to.index()][static_cast<size_t>(move.chunk)] = t;
    }
    for (int32_t c = 0; c < problem.chunks; ++c)
      for (int32_t r : problem.holders[static_cast<size_t>(c)])
        bringer_[topology_.NodeOf(Rank(r)).index()][static_cast<size_t>(c)] = kHeld;
    const size_t n = chunk_.size();
    start_ps_.resize(n), end_ps_.resize(n), cause_.resize(n), next_.resize(n), waits_.resize(n);
    first_child_.resize(n), sibling_.resize(n), step_.resize(n);
  }

  std::vector<GreedyMove> Run() {
    XCCL_CHECK(Time());
    Keep();
    int64_t late = Aim();
    while (work_ < options_.work && best_ps_ > options_.goal_ps && late > 0) {
      const Change change = Draw();
      if (change.transfer < 0) {
        ++work_;  // on a chain there may be nothing to change
        continue;
      }
      const Change back = Apply(change);
      const bool possible = Time();
      const int64_t now = possible ? Lateness() : INT64_MAX;
      const double warmth = 0.05 * (1 - static_cast<double>(work_) / static_cast<double>(options_.work));
      const double rise = possible ? static_cast<double>(now - late) / static_cast<double>(average_ps_) : 1e9;
      if (rise > 0 && (warmth <= 0 || random_.Unit() >= std::exp(-rise / (10 * warmth)))) {
        Apply(back);
        stale_ = true;
        continue;
      }
      late = now;
      if (time_ps_ < best_ps_) {
        Keep();
        late = Aim();
      }
    }
    return std::move(best_);
  }

 private:
  static constexpr int32_t kHeld = -2;
  struct Change {
    int32_t transfer = -1, link = 0;
    size_t place = 0;
  };

  int64_t Duration(int32_t t) const {
    return BusyPs(costs_[static_cast<size_t>(link_[t])], bytes_[static_cast<size_t>(chunk_[t])]);
  }
  // The transfer that brings t's chunk to the tail of `link`; kHeld: it is there from the start; -1: never.
  int32_t Source(int32_t t, int32_t link) const {
    return bringer_[topology_.link(LinkId(link)).from.index()][static_cast<size_t>(chunk_[t])];
  }

  // Start and end of all transfers. False when the orders contradict each other.
  bool Time() {
    const size_t n = chunk_.size();
    work_ += static_cast<int64_t>(n);
    stale_ = false;
    std::fill(first_child_.begin(), first_child_.end(), -1);
    ready_.clear();
    for (const std::vector<int32_t>& order : order_)
      for (size_t i = 0; i < order.size(); ++i) {
        const int32_t t = order[i], source = Source(t, link_[t]);
        next_[t] = i + 1 < order.size() ? order[i + 1] : -1;
        waits_[t] = (i > 0) + (source >= 0);
        start_ps_[t] = 0, cause_[t] = -1, step_[t] = 0;
        if (source >= 0) sibling_[t] = first_child_[source], first_child_[source] = t;
        if (waits_[t] == 0) ready_.push_back(t);
      }
    time_ps_ = 0;
    for (size_t i = 0; i < ready_.size(); ++i) {
      const int32_t t = ready_[i];
      const int64_t free = start_ps_[t] + Duration(t);
      end_ps_[t] = free + costs_[static_cast<size_t>(link_[t])].delay_ps;
      time_ps_ = std::max(time_ps_, end_ps_[t]);
      if (next_[t] >= 0) After(next_[t], t, free);
      for (int32_t c = first_child_[t]; c >= 0; c = sibling_[c]) After(c, t, end_ps_[t]);
    }
    return ready_.size() == n;
  }

  void After(int32_t t, int32_t cause, int64_t at_ps) {
    if (at_ps > start_ps_[t]) start_ps_[t] = at_ps, cause_[t] = cause;
    step_[t] = std::max(step_[t], step_[cause] + 1);
    if (--waits_[t] == 0) ready_.push_back(t);
  }

  int64_t Lateness() const {
    int64_t late = 0;
    for (int64_t end : end_ps_) late += std::max<int64_t>(0, end - aim_ps_);
    return late;
  }

  int64_t Aim() {
    aim_ps_ = std::max(options_.goal_ps, best_ps_ - best_ps_ / 12);
    int64_t sum = 0;
    for (size_t t = 0; t < chunk_.size(); ++t) sum += Duration(static_cast<int32_t>(t));
    average_ps_ = std::max<int64_t>(1, sum / static_cast<int64_t>(chunk_.size()));
    return Lateness();
  }

  void Keep() {
    best_ps_ = time_ps_;
    best_.clear();
    for (int32_t t : ready_) best_.push_back({chunk_[t], link_[t], step_[t]});
  }

  size_t Place(int32_t t) const {
    const std::vector<int32_t>& order = order_[static_cast<size_t>(link_[t])];
    return static_cast<size_t>(std::find(order.begin(), order.end(), t) - order.begin());
  }

  // A late transfer or one that it waits for; another link into its rank, or an earlier place on its own.
  Change Draw() {
    if (stale_) Time();
    late_.clear();
    for (size_t t = 0; t < chunk_.size(); ++t)
      if (end_ps_[t] > aim_ps_) late_.push_back(static_cast<int32_t>(t));
    int32_t t = late_[random_.Below(late_.size())];
    while (cause_[t] >= 0 && random_.Below(2) == 0) t = cause_[t];
    const std::vector<int32_t>& into = into_[topology_.link(LinkId(link_[t])).to.index()];
    const int32_t link = random_.Below(3) == 0 ? link_[t] : into[random_.Below(into.size())];
    if (link == link_[t]) {
      const size_t place = Place(t);
      if (place == 0) return {};
      return {t, link, random_.Below(2) == 0 ? place - 1 : random_.Below(place)};
    }
    const int32_t source = Source(t, link);
    if (source == -1) return {};
    const int64_t there = source >= 0 ? end_ps_[source] : 0;
    const std::vector<int32_t>& order = order_[static_cast<size_t>(link)];
    size_t place = 0;
    while (place < order.size() && start_ps_[order[place]] < there) ++place;
    place += random_.Below(2) == 0 ? 0 : random_.Below(order.size() - place + 1);
    return {t, link, place};
  }

  // Returns the change that undoes it.
  Change Apply(const Change& change) {
    const Change back{change.transfer, link_[change.transfer], Place(change.transfer)};
    std::vector<int32_t>& from = order_[static_cast<size_t>(back.link)];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(back.place));
    std::vector<int32_t>& to = order_[static_cast<size_t>(change.link)];
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(change.place), change.transfer);
    link_[change.transfer] = change.link;
    return back;
  }

  const Topology& topology_;
  const ImproveOptions options_;
  Random random_;
  const std::vector<LinkCost> costs_;
  const std::vector<int64_t>& bytes_;
  std::vector<std::vector<int32_t>> order_;    // of a link: transfers
  std::vector<std::vector<int32_t>> into_;     // of a node: links from ranks
  std::vector<std::vector<int32_t>> bringer_;  // nodes × chunks: transfer, kHeld or -1
  std::vector<int32_t> chunk_, link_;          // of a transfer
  std::vector<int64_t> start_ps_, end_ps_;
  std::vector<int32_t> cause_;  // what a transfer waited for last; -1: nothing
  std::vector<int32_t> next_, waits_, first_child_, sibling_, step_, ready_, late_;
  int64_t best_ps_ = 0;
  std::vector<GreedyMove> best_;
  int64_t time_ps_ = 0, aim_ps_ = 0, average_ps_ = 1, work_ = 0;
  bool stale_ = false;  // times are those of a change taken back
};

// The moves that local search takes.
std::optional<std::vector<GreedyMove>> MovesOf(const CopyProblem& problem, const Schedule& copies) {
  std::vector<GreedyMove> moves;
  BitTable sent(problem.topology->num_ranks(), problem.chunks);
  for (int32_t c = 0; c < problem.chunks; ++c)
    for (int32_t r : problem.holders[static_cast<size_t>(c)]) sent.Set(r, c);
  for (int64_t t = 0; t < copies.size(); ++t) {
    const std::span<const LinkId> links = copies.paths[copies.path[t]];
    if (links.size() != 1) return std::nullopt;
    for (int32_t i = 0; i < copies.count[t]; ++i) {
      const int32_t chunk = copies.first[t].value + i;
      if (sent.Get(copies.dst[t].value, chunk)) return std::nullopt;
      sent.Set(copies.dst[t].value, chunk);
      moves.push_back({.chunk = chunk, .path = links[0].value, .step = copies.step[t]});
    }
  }
  if (moves.empty()) return std::nullopt;
  return moves;
}

}  // namespace

std::optional<Schedule> ImproveSchedule(const CopyProblem& problem, const Schedule& copies,
                                        const ImproveOptions& options) {
  const std::optional<std::vector<GreedyMove>> moves = MovesOf(problem, copies);
  if (!moves || options.work <= 0) return std::nullopt;
  const std::vector<GreedyMove> improved = Improver(problem, *moves, options).Run();
  Schedule schedule = ScheduleOf(problem, LinkPaths(*problem.topology), improved);
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl::greedy
