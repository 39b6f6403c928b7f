// Goes back from the last arrival to its cause, again and again. A segment ends on a link because the link
// has carried it since it started, or because its last byte came late from the link before. A segment starts
// because the link has just become free, because its first byte has just come from the link before, or
// because the last chunk that it needs has just arrived. The log has the times of all these events, and the
// event whose time matches is the cause. If several events match, a busy link is preferred. Every cause
// started before its effect, so the walk ends.
#include "ir/simulate/schedule_path.h"

#include <algorithm>
#include <optional>

#include "base/check.h"
#include "base/graph/grouped.h"
#include "base/units.h"

namespace xccl {
namespace {

class Walk {
 public:
  Walk(const SimulationModel& model, const Topology& topology, TimeModel time_model, int64_t parts,
       int64_t segments, const EventLog& log)
      : model_(model),
        topology_(topology),
        blocking_(time_model == TimeModel::kBlocking),
        parts_(parts),
        n_(segments),
        log_(log),
        before_(log.start_ps.size(), -1) {
    std::vector<int64_t> last(static_cast<size_t>(topology.num_links()), -1);
    for (const int64_t entry : log.order) {
      int64_t& on_link = last[static_cast<size_t>(model.HopOf(JobOf(entry)).link)];
      before_[static_cast<size_t>(entry)] = on_link;
      on_link = entry;
    }
    reads_ = GroupItems<Read, int64_t>(static_cast<size_t>(model.num_jobs()), [&](auto add) {
      for (size_t c = 0; c < model.cells.size(); ++c)
        for (int32_t r = model.cells[c].first_reader; r >= 0; r = model.readers[r].next)
          add(model.readers[r].job, Read{static_cast<int32_t>(c), model.readers[r].need});
    });
    writer_.resize(model.writes.size());
    for (int32_t j = 0; j < model.num_jobs(); ++j)
      for (int32_t w = model.job_first_write[j]; w < model.job_first_write[j + 1]; ++w)
        writer_[model.cells[model.writes[w].cell].first_write + model.writes[w].place] = j;
  }

  std::vector<PathPiece> Run() {
    int64_t entry = Last();
    if (entry < 0) return std::move(pieces_);
    if (!blocking_) AddLatency(entry, End(entry));
    bool at_end = true;
    while (entry >= 0) {
      if (at_end) {
        const std::optional<int64_t> late = LateInput(entry);
        if (late) {
          AddLatency(*late, End(*late));
          entry = *late;
          continue;
        }
        AddCarry(entry);
      }
      entry = CauseOfStart(entry, at_end);
    }
    return std::move(pieces_);
  }

 private:
  struct Read {
    int32_t cell = 0, need = 0;
  };
  int32_t JobOf(int64_t entry) const { return static_cast<int32_t>(entry / n_); }
  int64_t EntryOf(int32_t job, int64_t like) const { return static_cast<int64_t>(job) * n_ + like % n_; }
  int64_t Start(int64_t entry) const { return log_.start_ps[static_cast<size_t>(entry)]; }
  int64_t End(int64_t entry) const { return log_.end_ps[static_cast<size_t>(entry)]; }
  LinkId LinkOf(int64_t entry) const { return LinkId(model_.HopOf(JobOf(entry)).link); }
  int64_t Latency(int64_t entry) const {
    return std::min(topology_.link(LinkOf(entry)).latency_ps, kForeverPs);
  }
  int64_t Arrival(int64_t entry) const { return blocking_ ? End(entry) : End(entry) + Latency(entry); }
  int64_t Carry(int64_t entry) const {
    const int32_t unit = model_.job_unit[JobOf(entry)];
    return TransferPs(model_.unit_bytes[unit], topology_.link(LinkOf(entry)).bandwidth_bytes_per_s, parts_);
  }

  // Returns the entry that arrives last, or -1 if nothing moves; of several, the entry that started first.
  int64_t Last() const {
    int64_t last = -1;
    for (const int64_t entry : log_.order)
      if (last < 0 || Arrival(entry) > Arrival(last)) last = entry;
    return last;
  }

  void Add(PathKind kind, int64_t start_ps, int64_t end_ps, int64_t entry) {
    if (start_ps < end_ps)
      pieces_.push_back(
          {kind, start_ps, end_ps, LinkOf(entry), model_.unit_message[model_.job_unit[JobOf(entry)]], {}});
  }
  void AddLatency(int64_t entry, int64_t from_ps) {
    Add(PathKind::kLatency, from_ps, from_ps + Latency(entry), entry);
  }
  // Adds the pieces of the time for which the segment occupied the link.
  void AddCarry(int64_t entry) {
    const int64_t latency_ps = blocking_ ? Latency(entry) : 0;
    const int64_t carried_ps = End(entry) - latency_ps, begun_ps = carried_ps - Carry(entry);
    Add(PathKind::kLatency, carried_ps, End(entry), entry);
    Add(PathKind::kTransfer, begun_ps, carried_ps, entry);
    Add(PathKind::kOverhead, Start(entry), begun_ps, entry);
  }

  // Calls visit(entry) for the same segment on the links of its path that end where this one begins.
  template <typename Visit>
  void ForEachInput(int64_t entry, Visit visit) const {
    const int32_t job = JobOf(entry), unit = model_.job_unit[job];
    const int32_t first_job = model_.unit_first_job[unit],
                  first_hop = model_.path_first[model_.unit_path[unit]];
    if (model_.HopOf(job).inputs == 0) return;
    for (int32_t j = first_job; j < model_.unit_first_job[unit + 1]; ++j) {
      const SimulationModel::Hop& hop = model_.hops[first_hop + j - first_job];
      for (int32_t i = hop.next_first; i < hop.next_first + hop.next_count; ++i)
        if (first_job + model_.next_hops[i] == job) visit(EntryOf(j, entry));
    }
  }

  // Returns the input whose last byte came so late that the segment's end on the link had to wait for it.
  std::optional<int64_t> LateInput(int64_t entry) const {
    if (blocking_ || End(entry) == Start(entry) + Carry(entry)) return std::nullopt;
    std::optional<int64_t> late;
    ForEachInput(entry, [&](int64_t input) {
      if (Arrival(input) == End(entry) && !late) late = input;
    });
    return late;
  }

  // Returns the entry whose start or end let this entry start, or -1 if it started at 0. Sets `at_end` to
  // whether the end was the cause.
  int64_t CauseOfStart(int64_t entry, bool& at_end) {
    const int64_t now = Start(entry), busy = before_[static_cast<size_t>(entry)];
    at_end = true;
    if (busy >= 0 && End(busy) == now) return busy;
    int64_t cause = -1;
    ForEachInput(entry, [&](int64_t input) {
      const int64_t head_ps = blocking_ ? End(input) : Start(input) + Latency(input);
      if (cause < 0 && head_ps == now) cause = input;
    });
    if (cause >= 0) {
      if (!blocking_) AddLatency(cause, Start(cause));
      at_end = blocking_;
      return cause;
    }
    for (const Read& read : reads_[JobOf(entry)]) {
      const int64_t first = model_.cells[read.cell].first_write;
      for (int32_t place = 0; place < read.need; ++place) {
        const int64_t write = EntryOf(writer_[first + place], entry);
        if (Arrival(write) != now) continue;
        if (!blocking_) AddLatency(write, End(write));
        return write;
      }
    }
    XCCL_CHECK(now == 0);  // otherwise it would have started earlier
    return -1;
  }

  const SimulationModel& model_;
  const Topology& topology_;
  const bool blocking_;
  const int64_t parts_, n_;
  const EventLog& log_;
  std::vector<int64_t> before_;   // by entry: the entry before it on its link, or -1
  Grouped<Read, int64_t> reads_;  // by job
  std::vector<int32_t> writer_;   // by cell and place: the job
  std::vector<PathPiece> pieces_;
};

}  // namespace

std::vector<PathPiece> ChainOf(const SimulationModel& model, const Topology& topology, TimeModel time_model,
                               int64_t parts, int64_t segments, const EventLog& log) {
  return Walk(model, topology, time_model, parts, segments, log).Run();
}

}  // namespace xccl
