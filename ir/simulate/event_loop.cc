// Handles each instant in two halves. First all events of the instant take effect: links become idle, heads
// (first bytes) and whole segments arrive, and jobs that waited for them become ready. Then every idle link
// starts the lowest of its ready jobs. Neither half depends on the order of events, so the result is unique.
#include "ir/simulate/event_loop.h"

#include <algorithm>

#include "base/status.h"
#include "base/units.h"
#include "ir/simulate/event_queue.h"
#include "ir/simulate/link_queues.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

// One run with `segments` segments of every unit.
class EventLoop {
 public:
  // `record`, unless null, gets one entry per unit.
  EventLoop(const SimulationModel& model, const Topology& topology, TimeModel time_model, int64_t parts,
            int64_t segments, MoveTimes* record, EventLog* log)
      : model_(model),
        topology_(topology),
        blocking_(time_model == TimeModel::kBlocking),
        parts_(parts),
        n_(segments),
        record_(record),
        log_(log),
        links_(topology.num_links()) {
    for (const Link& link : topology.spec().links)
      link_times_.push_back({std::min(link.latency_ps, kForeverPs), std::min(link.overhead_ps, kForeverPs)});
    ListJobs();
    const size_t jobs = static_cast<size_t>(model.num_jobs()), n = static_cast<size_t>(segments);
    missing_.resize(jobs * n);
    for (size_t j = 0; j < jobs; ++j)
      std::fill_n(missing_.begin() + static_cast<int64_t>(j * n), n, model.job_missing[j]);
    if (!model.single_hop && !blocking_) tail_arrives_.assign(jobs * n, 0);
    landed_.assign(model.writes.size() * n, 0);
    cells_.resize(model.cells.size() * n);
    for (size_t c = 0; c < model.cells.size(); ++c)
      std::fill_n(cells_.begin() + static_cast<int64_t>(c * n), n, CellState{0, model.cells[c].first_reader});
    const auto has_overhead = [](const LinkTimes& link) { return link.overhead_ps > 0; };
    if (!blocking_ && std::ranges::any_of(link_times_, has_overhead)) MarkMessages();
    if (log != nullptr) {
      log->start_ps.assign(jobs * n, 0);
      log->end_ps.assign(jobs * n, 0);
      log->order.clear();
      log->order.reserve(jobs * n);
    }
  }

  int64_t Run(const Deadline& deadline) {
    SeldomAsked is_over(deadline);
    for (int32_t j = 0; j < model_.num_jobs(); ++j)
      if (model_.job_missing[j] == 0)
        for (int64_t s = 0; s < n_; ++s) MakeReady(j, s);
    Choose(0);
    while (!queue_.empty()) {
      if (is_over()) return kForeverPs;
      const int64_t now = queue_.PopBatch(batch_);
      for (const Event& event : batch_) Handle(event);
      Choose(now);
    }
    XCCL_CHECK(started_ == static_cast<int64_t>(model_.num_jobs()) * n_);  // the model is sound
    return last_arrival_;
  }

 private:
  enum What : uint64_t { kIdle = 0, kHead = 1ULL << 62, kArrival = 2ULL << 62, kMask = 3ULL << 62 };
  struct LinkTimes {
    int64_t latency_ps = 0, overhead_ps = 0;
  };
  // The data that Start() reads about a job, side by side in memory, because jobs do not start in the order
  // of their numbers.
  struct Job {
    int64_t transfer_ps = 0;  // of a segment
    int32_t link = 0;
    int32_t next = kNone;  // the job that goes on from the head of the link
    bool from_gpu = false, to_gpu = false;
  };
  static constexpr int32_t kNone = -1, kSeveral = -2;
  struct CellState {
    int32_t landed = 0;  // how many of its writes, in order of step, have landed without a gap
    int32_t reader = -1;
  };

  static uint64_t Key(int32_t job, int64_t segment) {
    return static_cast<uint64_t>(job) << 32 | static_cast<uint64_t>(segment);
  }
  size_t At(int32_t job, int64_t segment) const {
    return static_cast<size_t>(job) * static_cast<size_t>(n_) + static_cast<size_t>(segment);
  }

  void ListJobs() {
    jobs_.resize(static_cast<size_t>(model_.num_jobs()));
    for (int32_t u = 0; u < model_.num_units(); ++u) {
      const int32_t first_hop = model_.path_first[model_.unit_path[u]], first = model_.unit_first_job[u];
      for (int32_t j = first; j < model_.unit_first_job[u + 1]; ++j) {
        const SimulationModel::Hop& hop = model_.hops[first_hop + j - first];
        Job& job = jobs_[j];
        job.transfer_ps =
            TransferPs(model_.unit_bytes[u], topology_.link(LinkId(hop.link)).bandwidth_bytes_per_s, parts_);
        job.link = hop.link;
        if (hop.next_count > 0)
          job.next = hop.next_count > 1 ? kSeveral : first + model_.next_hops[hop.next_first];
        job.from_gpu = hop.from_gpu;
        job.to_gpu = hop.to_gpu;
      }
    }
  }

  // Makes a flag for each message and hop that says whether the message has paid the link's overhead. The
  // flag of message m on hop h of its path has the index first_hop_of_message_[m] + h.
  void MarkMessages() {
    first_hop_of_message_.assign(static_cast<size_t>(model_.num_messages), 0);
    std::vector<int32_t> length(static_cast<size_t>(model_.num_messages), 0);
    for (int32_t u = 0; u < model_.num_units(); ++u)
      length[model_.unit_message[u]] = model_.unit_first_job[u + 1] - model_.unit_first_job[u];
    int64_t flags = 0;
    for (size_t m = 0; m < length.size(); ++m) {
      first_hop_of_message_[m] = flags;
      flags += length[m];
    }
    message_started_.assign(static_cast<size_t>(flags), false);
  }

  void MakeReady(int32_t job, int64_t segment) { links_.Add(jobs_[job].link, Key(job, segment)); }

  void Choose(int64_t now) {
    links_.StartIdle([&](int32_t link, uint64_t key) {
      Start(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU), link, now);
    });
  }

  void Start(int32_t job, int64_t segment, int32_t link_id, int64_t now) {
    ++started_;
    const auto [latency_ps, overhead_ps] = link_times_[link_id];
    const Job& at = jobs_[job];
    int64_t end = std::min(kForeverPs, now + at.transfer_ps);
    int64_t arrival = end, head = end;
    if (blocking_) {
      arrival = head = end = std::min(kForeverPs, end + overhead_ps + latency_ps);
    } else {
      if (!message_started_.empty()) {
        const int32_t unit = model_.job_unit[job], place = job - model_.unit_first_job[unit];
        auto flag = message_started_[first_hop_of_message_[model_.unit_message[unit]] + place];
        if (!flag) end = std::min(kForeverPs, end + overhead_ps);
        flag = true;
      }
      if (!tail_arrives_.empty()) end = std::max(end, tail_arrives_[At(job, segment)]);
      head = std::min(kForeverPs, now + latency_ps);
      arrival = std::min(kForeverPs, end + latency_ps);
    }
    queue_.Push(end, kIdle | static_cast<uint64_t>(link_id));
    const auto go_on = [&](int32_t next) {
      if (!tail_arrives_.empty()) {
        int64_t& tail = tail_arrives_[At(next, segment)];
        tail = std::max(tail, arrival);
      }
      queue_.Push(head, kHead | Key(next, segment));
    };
    if (at.next >= 0) go_on(at.next);
    if (at.next == kSeveral) {
      const SimulationModel::Hop& hop = model_.HopOf(job);
      const int32_t first = model_.unit_first_job[model_.job_unit[job]];
      for (int32_t i = hop.next_first; i < hop.next_first + hop.next_count; ++i)
        go_on(first + model_.next_hops[i]);
    }
    if (at.to_gpu) queue_.Push(arrival, kArrival | Key(job, segment));
    last_arrival_ = std::max(last_arrival_, arrival);
    if (log_ != nullptr) {
      const size_t entry = At(job, segment);
      log_->start_ps[entry] = now;
      log_->end_ps[entry] = end;
      log_->order.push_back(static_cast<int64_t>(entry));
    }
    if (record_ == nullptr) return;
    const int32_t unit = model_.job_unit[job];
    if (at.from_gpu) record_->start_ps[static_cast<size_t>(unit)] = now;
    if (at.to_gpu) {
      int64_t& last = record_->arrival_ps[static_cast<size_t>(unit)];
      last = std::max(last, arrival);
    }
  }

  void Handle(const Event& event) {
    const uint64_t key = event.what & ~static_cast<uint64_t>(kMask);
    switch (event.what & kMask) {
      case kIdle:
        links_.Release(static_cast<int32_t>(key));
        return;
      case kHead:
        Satisfy(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU));
        return;
      case kArrival:
        Land(static_cast<int32_t>(key >> 32), static_cast<int64_t>(key & 0xffffffffU));
        return;
    }
  }

  void Satisfy(int32_t job, int64_t segment) {
    if (--missing_[At(job, segment)] == 0) MakeReady(job, segment);
  }

  void Land(int32_t job, int64_t segment) {
    for (int32_t w = model_.job_first_write[job]; w < model_.job_first_write[job + 1]; ++w) {
      const SimulationModel::Write& write = model_.writes[w];
      const SimulationModel::Cell& cell = model_.cells[write.cell];
      CellState& state = cells_[At(write.cell, segment)];
      const auto flag = [&](int32_t place) -> uint8_t& {
        return landed_[static_cast<size_t>(cell.first_write + place) * static_cast<size_t>(n_) +
                       static_cast<size_t>(segment)];
      };
      if (write.place != state.landed) {
        flag(write.place) = 1;
        continue;
      }
      ++state.landed;
      while (state.landed < cell.num_writes && flag(state.landed) != 0) ++state.landed;
      while (state.reader >= 0 && model_.readers[state.reader].need <= state.landed) {
        const SimulationModel::WaitingRead& reader = model_.readers[state.reader];
        state.reader = reader.next;
        Satisfy(reader.job, segment);
      }
    }
  }

  const SimulationModel& model_;
  const Topology& topology_;
  const bool blocking_;
  const int64_t parts_, n_;
  MoveTimes* const record_;
  EventLog* const log_;
  std::vector<LinkTimes> link_times_;  // by link
  std::vector<Job> jobs_;
  std::vector<int32_t> missing_;       // by job and segment
  std::vector<int64_t> tail_arrives_;  // by job and segment: when its last byte arrives at the link's tail
  std::vector<uint8_t> landed_;        // by write and segment; set only for writes that land out of order
  std::vector<CellState> cells_;       // by cell and segment
  LinkQueues<uint64_t> links_;         // keys of jobs and segments
  std::vector<int64_t> first_hop_of_message_;
  std::vector<bool> message_started_;
  EventQueue queue_;
  std::vector<Event> batch_;
  int64_t started_ = 0;
  int64_t last_arrival_ = 0;
};

}  // namespace

int64_t RunEvents(const SimulationModel& model, const Topology& topology, TimeModel time_model, int64_t parts,
                  int64_t segments, MoveTimes* record, const Deadline& deadline, EventLog* log) {
  return EventLoop(model, topology, time_model, parts, segments, record, log).Run(deadline);
}

}  // namespace xccl
