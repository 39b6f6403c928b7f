// A slow, obvious simulator for tests. It implements the rules (docs/ir.md, Simulation) and nothing for
// speed: at each instant it looks at every job again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/schedule.h"
#include "ir/simulate/simulate.h"
#include "ir/sizes.h"

namespace xccl::testing {

class ReferenceSimulator {
 public:
  ReferenceSimulator(const Schedule& schedule, const Collective& collective, const Topology& topology,
                     int64_t size_bytes, TimeModel model, int64_t segments)
      : topology_(topology), blocking_(model == TimeModel::kBlocking) {
    const CollectiveSizes sizes(collective, size_bytes);
    // (step, path) -> message, in order of first appearance within a step.
    std::map<std::pair<int32_t, int32_t>, int32_t> messages;
    std::map<int32_t, int32_t> places;  // units so far by message
    for (int64_t t = 0; t < schedule.size(); ++t) {
      const auto [it, added] = messages.try_emplace({schedule.step[t], schedule.path[t].value},
                                                    static_cast<int32_t>(messages.size()));
      const int32_t message = it->second;
      if (blocking_ && !added) {
        for (Unit& unit : units_)
          if (unit.message == message) Extend(unit, schedule, t, sizes);
        continue;
      }
      if (blocking_) {
        for (int64_t s = 0; s < segments; ++s) AddUnit(schedule, t, message, 0, s, segments);
        for (Unit& unit : units_)
          if (unit.message == message) Extend(unit, schedule, t, sizes);
        continue;
      }
      for (int32_t i = 0; i < schedule.count[t]; ++i) {
        const int32_t place = places[message]++;
        const int32_t chunk = schedule.first[t].value + i;
        for (int64_t s = 0; s < segments; ++s) {
          AddUnit(schedule, t, message, place, s, segments);
          units_.back().chunks = {chunk};
          units_.back().bytes = sizes.ChunkBytes(ChunkId(chunk));
        }
      }
    }
  }

  int64_t Run() {
    int64_t now = 0, last = 0;
    while (true) {
      while (StartAll(now)) {
      }
      int64_t next = std::numeric_limits<int64_t>::max();
      const auto later = [&](int64_t time) {
        if (time > now) next = std::min(next, time);
      };
      for (const Unit& unit : units_) {
        for (const Job& job : unit.jobs) {
          if (job.start < 0) continue;
          later(job.end);
          later(job.start + topology_.link(job.link).latency_ps);
          later(Arrival(job));
          last = std::max(last, Arrival(job));
        }
      }
      if (next == std::numeric_limits<int64_t>::max()) return last;
      now = next;
    }
  }

 private:
  struct Job {
    LinkId link;
    int64_t start = -1, end = -1;
  };
  struct Unit {
    int32_t step, message, place;
    int64_t segment, segments;
    std::vector<int32_t> chunks;
    int64_t bytes = 0;
    std::vector<Job> jobs;  // one per link of the path
  };

  void AddUnit(const Schedule& schedule, int64_t t, int32_t message, int32_t place, int64_t segment,
               int64_t segments) {
    Unit unit{schedule.step[t], message, place, segment, segments, {}, 0, {}};
    for (LinkId l : schedule.paths[schedule.path[t]]) unit.jobs.push_back({l, -1, -1});
    units_.push_back(unit);
  }
  void Extend(Unit& unit, const Schedule& schedule, int64_t t, const CollectiveSizes& sizes) {
    for (int32_t i = 0; i < schedule.count[t]; ++i) {
      unit.chunks.push_back(schedule.first[t].value + i);
      unit.bytes += sizes.ChunkBytes(ChunkId(schedule.first[t].value + i));
    }
  }

  int64_t Arrival(const Job& job) const {
    return blocking_ ? job.end : job.end + topology_.link(job.link).latency_ps;
  }
  bool Ready(const Unit& unit, const Job& job, int64_t now) const {
    const NodeId tail = topology_.link(job.link).from;
    if (!topology_.IsGpu(tail)) {
      for (const Job& before : unit.jobs) {
        const Link& link = topology_.link(before.link);
        if (link.to != tail) continue;
        if (before.start < 0 || (blocking_ ? before.end : before.start + link.latency_ps) > now) return false;
      }
      return true;
    }
    for (const Unit& other : units_) {
      if (other.step >= unit.step || other.segment != unit.segment) continue;
      const bool same = std::any_of(other.chunks.begin(), other.chunks.end(), [&](int32_t c) {
        return std::find(unit.chunks.begin(), unit.chunks.end(), c) != unit.chunks.end();
      });
      for (const Job& write : other.jobs)
        if (same && topology_.link(write.link).to == tail && (write.start < 0 || Arrival(write) > now))
          return false;
    }
    return true;
  }

  // Lets every idle link take the job it prefers. Returns false if no link takes one.
  bool StartAll(int64_t now) {
    using Key = std::tuple<int32_t, int32_t, int64_t>;
    std::map<LinkId, std::pair<Key, std::pair<Unit*, Job*>>> chosen;
    std::map<LinkId, bool> busy;
    for (const Unit& unit : units_)
      for (const Job& job : unit.jobs)
        if (job.start >= 0 && job.end > now) busy[job.link] = true;
    for (Unit& unit : units_) {
      for (Job& job : unit.jobs) {
        if (job.start >= 0 || busy.contains(job.link) || !Ready(unit, job, now)) continue;
        const Key key{unit.message, unit.place, unit.segment};
        const auto [it, added] = chosen.try_emplace(job.link, key, std::pair(&unit, &job));
        if (!added && key < it->second.first) it->second = {key, {&unit, &job}};
      }
    }
    for (auto& [id, choice] : chosen) Start(*choice.second.first, *choice.second.second, now);
    return !chosen.empty();
  }

  void Start(Unit& unit, Job& job, int64_t now) {
    const Link& link = topology_.link(job.link);
    const __int128 per = static_cast<__int128>(link.bandwidth_bytes_per_s) * unit.segments;
    const int64_t carry =
        static_cast<int64_t>((static_cast<__int128>(unit.bytes) * 1'000'000'000'000 + per - 1) / per);
    if (blocking_) {
      job.end = now + link.overhead_ps + link.latency_ps + carry;
    } else {
      bool first = true;
      for (const Unit& other : units_)
        for (const Job& before : other.jobs)
          first &= !(other.message == unit.message && before.link == job.link && before.start >= 0);
      job.end = now + carry + (first ? link.overhead_ps : 0);
      if (!topology_.IsGpu(link.from))
        for (const Job& before : unit.jobs)
          if (topology_.link(before.link).to == link.from) job.end = std::max(job.end, Arrival(before));
    }
    job.start = now;
  }

  const Topology& topology_;
  const bool blocking_;
  std::vector<Unit> units_;
};

}  // namespace xccl::testing
