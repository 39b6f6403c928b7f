// Improves a schedule by simulated annealing.
// 1. A transfer starts once its chunk is at the link's tail and the link's previous transfer has ended.
// 2. Lateness is the sum, over all arrivals, of the time after an aim. The aim is a little below the best
//    time, so that many small gains together lead to a shorter plan.
// 3. Each change takes a late transfer, or one that it waited for (Draw), and moves it to another link into
//    its rank, or to an earlier place on its own link (Apply).
// 4. A change that raises the lateness stays with a probability that falls with the rise and with the work
//    done. Any other possible change stays.
// 5. A plan that is faster than the best plan is kept and sets a new aim (Keep, Aim).
// Cost: each change times all transfers.
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
      const int32_t t = static_cast<int32_t>(transfers_.size());
      transfers_.push_back({.chunk = move.chunk, .link = move.path});
      order_[static_cast<size_t>(move.path)].push_back(t);
      bringer_[topology_.link(LinkId(move.path)).to.index()][static_cast<size_t>(move.chunk)] = t;
    }
    for (int32_t c = 0; c < problem.chunks; ++c)
      for (int32_t r : problem.holders[static_cast<size_t>(c)])
        bringer_[topology_.NodeOf(Rank(r)).index()][static_cast<size_t>(c)] = kHeld;
    for (size_t t = 0; t < moves.size(); ++t) Put(static_cast<int32_t>(t), moves[t].path);
    now_.at.resize(moves.size()), trial_.at.resize(moves.size()), follows_.resize(moves.size());
  }

  std::vector<GreedyMove> Run() {
    XCCL_CHECK(Time(now_));
    Keep();
    int64_t late = Aim();
    while (work_ < options_.work && best_ps_ > options_.goal_ps && late > 0) {
      const Change change = Draw();
      if (change.transfer < 0) {
        ++work_;  // so that the loop ends on a chain, which allows no change
        continue;
      }
      const Change back = Apply(change);
      const bool possible = Time(trial_);
      const int64_t then = possible ? Lateness(trial_) : INT64_MAX;
      const double warmth = 0.05 * (1 - static_cast<double>(work_) / static_cast<double>(options_.work));
      const double rise =
          possible ? static_cast<double>(then - late) / static_cast<double>(average_ps_) : 1e9;
      if (rise > 0 && (warmth <= 0 || random_.Unit() >= std::exp(-rise / (10 * warmth)))) {
        Apply(back);
        taken_back_ = true;
        continue;
      }
      late = then;
      std::swap(now_, trial_);
      if (now_.time_ps < best_ps_) {
        Keep();
        late = Aim();
      }
    }
    return std::move(best_);
  }

 private:
  static constexpr int32_t kHeld = -2;  // stands for a transfer: the chunk is held from the start
  struct Change {
    int32_t transfer = -1, link = 0;
    size_t place = 0;
  };
  struct Sent {
    int32_t chunk = 0, link = 0;
    int32_t source = -1;  // the transfer that brings the chunk to the link's tail, or kHeld
    int64_t busy_ps = 0, delay_ps = 0;
  };
  struct Times {
    struct Of {
      int64_t start_ps, end_ps;
      int32_t cause;  // the last transfer that this transfer waited for; -1: no transfer
      int32_t step;
    };
    std::vector<Of> at;          // by transfer
    std::vector<int32_t> ready;  // transfers, each after the transfers that it waits for
    int64_t time_ps = 0;
  };
  // The transfers that wait for one transfer: the next on its link, and a list of the transfers that send its
  // chunk on. `waits` is the number of transfers for which the one transfer itself still waits.
  struct Following {
    int32_t next, waits, first_child, sibling;
  };

  // Returns the transfer that brings t's chunk to the tail of `link`; kHeld if the chunk is there from the
  // start; -1 if no transfer brings it.
  int32_t Source(int32_t t, int32_t link) const {
    return bringer_[topology_.link(LinkId(link)).from.index()][static_cast<size_t>(transfers_[t].chunk)];
  }

  void Put(int32_t t, int32_t link) {
    Sent& sent = transfers_[t];
    const LinkCost& cost = costs_[static_cast<size_t>(link)];
    sent.link = link;
    sent.source = Source(t, link);
    sent.busy_ps = BusyPs(cost, bytes_[static_cast<size_t>(sent.chunk)]);
    sent.delay_ps = cost.delay_ps;
  }

  // Computes the start and end of all transfers. Returns false if the orders of links contradict each other.
  bool Time(Times& times) {
    const size_t n = transfers_.size();
    work_ += static_cast<int64_t>(n);
    for (Following& following : follows_) following.first_child = -1;
    times.ready.clear();
    for (const std::vector<int32_t>& order : order_)
      for (size_t i = 0; i < order.size(); ++i) {
        const int32_t t = order[i], source = transfers_[t].source;
        Following& own = follows_[t];
        own.next = i + 1 < order.size() ? order[i + 1] : -1;
        own.waits = (i > 0) + (source >= 0);
        times.at[t] = {.start_ps = 0, .end_ps = 0, .cause = -1, .step = 0};
        if (source >= 0) own.sibling = follows_[source].first_child, follows_[source].first_child = t;
        if (own.waits == 0) times.ready.push_back(t);
      }
    times.time_ps = 0;
    for (size_t i = 0; i < times.ready.size(); ++i) {
      const int32_t t = times.ready[i];
      const int64_t free = times.at[t].start_ps + transfers_[t].busy_ps;
      const int64_t end = free + transfers_[t].delay_ps;
      times.at[t].end_ps = end;
      times.time_ps = std::max(times.time_ps, end);
      const auto after = [&](int32_t later, int64_t at_ps) {
        Times::Of& of = times.at[later];
        if (at_ps > of.start_ps) of.start_ps = at_ps, of.cause = t;
        of.step = std::max(of.step, times.at[t].step + 1);
        if (--follows_[later].waits == 0) times.ready.push_back(later);
      };
      if (follows_[t].next >= 0) after(follows_[t].next, free);
      for (int32_t c = follows_[t].first_child; c >= 0; c = follows_[c].sibling) after(c, end);
    }
    return times.ready.size() == n;
  }

  int64_t Lateness(const Times& times) const {
    int64_t late = 0;
    for (const Times::Of& of : times.at) late += std::max<int64_t>(0, of.end_ps - aim_ps_);
    return late;
  }

  int64_t Aim() {
    aim_ps_ = std::max(options_.goal_ps, best_ps_ - best_ps_ / 12);
    int64_t sum = 0;
    for (const Sent& sent : transfers_) sum += sent.busy_ps;
    average_ps_ = std::max<int64_t>(1, sum / static_cast<int64_t>(transfers_.size()));
    return Lateness(now_);
  }

  void Keep() {
    best_ps_ = now_.time_ps;
    best_.clear();
    for (int32_t t : now_.ready) best_.push_back({transfers_[t].chunk, transfers_[t].link, now_.at[t].step});
  }

  size_t Place(int32_t t) const {
    const std::vector<int32_t>& order = order_[static_cast<size_t>(transfers_[t].link)];
    return static_cast<size_t>(std::find(order.begin(), order.end(), t) - order.begin());
  }

  // Draws a change of a late transfer, or of a transfer that the late one waits for. The change is a move to
  // another link into its rank, or to an earlier place on its own link. Transfer -1: there is no such move.
  Change Draw() {
    // A change that is undone counts twice as work.
    if (taken_back_) work_ += static_cast<int64_t>(transfers_.size());
    taken_back_ = false;
    late_.clear();
    for (size_t t = 0; t < transfers_.size(); ++t)
      if (now_.at[t].end_ps > aim_ps_) late_.push_back(static_cast<int32_t>(t));
    int32_t t = late_[random_.Below(late_.size())];
    while (now_.at[t].cause >= 0 && random_.Below(2) == 0) t = now_.at[t].cause;
    const int32_t own = transfers_[t].link;
    const std::vector<int32_t>& into = into_[topology_.link(LinkId(own)).to.index()];
    const int32_t link = random_.Below(3) == 0 ? own : into[random_.Below(into.size())];
    if (link == own) {
      const size_t place = Place(t);
      if (place == 0) return {};
      return {t, link, random_.Below(2) == 0 ? place - 1 : random_.Below(place)};
    }
    const int32_t source = Source(t, link);
    if (source == -1) return {};
    const int64_t there = source >= 0 ? now_.at[source].end_ps : 0;
    const std::vector<int32_t>& order = order_[static_cast<size_t>(link)];
    size_t place = 0;
    while (place < order.size() && now_.at[order[place]].start_ps < there) ++place;
    place += random_.Below(2) == 0 ? 0 : random_.Below(order.size() - place + 1);
    return {t, link, place};
  }

  // Makes a change and returns the change that undoes it.
  Change Apply(const Change& change) {
    const Change back{change.transfer, transfers_[change.transfer].link, Place(change.transfer)};
    std::vector<int32_t>& from = order_[static_cast<size_t>(back.link)];
    from.erase(from.begin() + static_cast<std::ptrdiff_t>(back.place));
    std::vector<int32_t>& to = order_[static_cast<size_t>(change.link)];
    to.insert(to.begin() + static_cast<std::ptrdiff_t>(change.place), change.transfer);
    Put(change.transfer, change.link);
    return back;
  }

  const Topology& topology_;
  const ImproveOptions options_;
  Random random_;
  const std::vector<LinkCost> costs_;
  const std::vector<int64_t>& bytes_;
  std::vector<std::vector<int32_t>> order_;    // by link: the link's transfers in order
  std::vector<std::vector<int32_t>> into_;     // by node: links from ranks
  std::vector<std::vector<int32_t>> bringer_;  // by node and chunk: as Source() returns
  std::vector<Sent> transfers_;
  Times now_, trial_;
  std::vector<Following> follows_;  // by transfer, set by Time
  std::vector<int32_t> late_;
  int64_t best_ps_ = 0;
  std::vector<GreedyMove> best_;
  int64_t aim_ps_ = 0, average_ps_ = 1, work_ = 0;
  bool taken_back_ = false;  // the last change was undone
};

// Returns the moves of a schedule, or nullopt if local search cannot improve schedules of this form.
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
