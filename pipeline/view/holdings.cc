// For each chunk by itself:
// 1. Find the contributions that every rank holds before the collective and needs after it.
// 2. Go through the chunk's transfers by step. A transfer carries as many contributions as its sources hold
//    before the step, because no contribution is added twice (rule S4).
// 3. Sort the arrivals by time and replay them. Add the gain of every arrival to its frame, row and column.
// 4. If the chunk is followed, also keep its links and arrivals.
#include "pipeline/view/holdings.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "ir/analysis/chunk_index.h"
#include "pipeline/view/writer.h"

namespace xccl::view {
namespace {

// The most groups of ranks, groups of chunks, and frames that the page shows. A screen has space for them.
constexpr int32_t kMostGroups = 48;

}  // namespace

Ends EndsOf(const Schedule& schedule, const Topology& topology) {
  Ends ends;
  ends.sources.resize(static_cast<size_t>(schedule.paths.size()));
  ends.destinations.resize(ends.sources.size());
  for (int32_t p = 0; p < schedule.paths.size(); ++p)
    PathEnds(topology, schedule.paths[PathId(p)], ends.sources[static_cast<size_t>(p)],
             ends.destinations[static_cast<size_t>(p)]);
  return ends;
}

std::vector<HoldingRun> HoldingRuns(const Collective& collective, int32_t num_ranks, bool before) {
  std::vector<std::vector<HoldingRun>> by_rank(static_cast<size_t>(num_ranks));
  std::vector<Holding> conditions;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    if (before)
      collective.Before(ChunkId(c), conditions);
    else
      collective.After(ChunkId(c), conditions);
    for (const Holding& holding : conditions) {
      std::vector<HoldingRun>& runs = by_rank[holding.rank.index()];
      const int32_t contributions = static_cast<int32_t>(holding.contributions.size());
      if (!runs.empty() && runs.back().chunk + runs.back().count == c &&
          runs.back().contributions == contributions) {
        ++runs.back().count;
      } else {
        runs.push_back({holding.rank, c, 1, contributions});
      }
    }
  }
  std::vector<HoldingRun> all;
  for (const std::vector<HoldingRun>& runs : by_rank) all.insert(all.end(), runs.begin(), runs.end());
  return all;
}

BinnedHoldings::BinnedHoldings(const Collective& collective, const Topology& topology, int64_t time_ps)
    : num_ranks_(topology.num_ranks()),
      num_chunks_(collective.num_chunks()),
      rows_(std::min(kMostGroups, num_ranks_)),
      columns_(std::min(kMostGroups, num_chunks_)),
      time_ps_(std::max<int64_t>(1, time_ps)),
      initial_(static_cast<size_t>(num_ranks_)),
      needed_(static_cast<size_t>(num_ranks_)),
      held_(static_cast<size_t>(num_ranks_)),
      gains_(static_cast<size_t>(kMostGroups) * static_cast<size_t>(rows_) * static_cast<size_t>(columns_)),
      rank_gains_(static_cast<size_t>(kMostGroups) * static_cast<size_t>(num_ranks_)),
      needed_cells_(static_cast<size_t>(rows_) * static_cast<size_t>(columns_)),
      needed_of_rank_(static_cast<size_t>(num_ranks_)) {}

BinnedHoldings::BinnedHoldings(const Collective& collective, const Topology& topology,
                               const ScheduleTrace& trace, int64_t most_arrivals)
    : BinnedHoldings(collective, topology, trace.simulation.time_ps) {
  ends_ = EndsOf(trace.schedule, topology);
  int64_t moves = 0;
  for (const int32_t count : trace.schedule.count) {
    first_arrival_.push_back(moves);
    moves += count;
  }
  ChooseFollowed(moves, most_arrivals);
  ForEachMovedChunk(trace.schedule, [&](ChunkId chunk, std::span<const int32_t> transfers) {
    Add(collective, trace, chunk, transfers);
  });
}

BinnedHoldings::BinnedHoldings(const Collective& collective, const Topology& topology,
                               std::span<const HoldingWrite> writes, int32_t parts,
                               const std::vector<std::vector<LinkId>>& links, int64_t time_ps,
                               int64_t most_arrivals)
    : BinnedHoldings(collective, topology, time_ps) {
  ChooseFollowed(std::ssize(writes) * parts, most_arrivals);
  std::vector<std::vector<Arrival>> by_chunk(static_cast<size_t>(num_chunks_));
  for (const HoldingWrite& write : writes)
    for (int32_t part = 1; part <= parts; ++part)
      by_chunk[write.chunk.index()].push_back(
          {write.start_ps + (write.end_ps - write.start_ps) * part / parts, write.rank, write.gain, true});
  for (int32_t c = 0; c < num_chunks_; ++c) {
    SetConditions(collective, ChunkId(c));
    // A contribution counts as `parts` contributions, because a write adds it in so many parts.
    for (size_t r = 0; r < initial_.size(); ++r) {
      initial_[r] *= parts;
      needed_[r] *= parts;
    }
    std::vector<Arrival>& arrivals = by_chunk[static_cast<size_t>(c)];
    std::ranges::stable_sort(arrivals, {}, &Arrival::time_ps);
    if (std::ranges::binary_search(followed_, c)) Follow(links[static_cast<size_t>(c)], ChunkId(c), arrivals);
    Replay(ChunkId(c), arrivals);
  }
}

// Chooses the followed chunks, evenly spaced. If each chunk has an equal share of all `moves`, they have
// at most `most_arrivals` arrivals.
void BinnedHoldings::ChooseFollowed(int64_t moves, int64_t most_arrivals) {
  const int64_t of_one = std::max<int64_t>(1, moves / std::max(1, num_chunks_));
  const int32_t followed = static_cast<int32_t>(
      std::clamp<int64_t>(most_arrivals / of_one, 0, std::min(num_chunks_, kMostGroups)));
  for (int32_t i = 0; i < followed; ++i)
    followed_.push_back(static_cast<int32_t>(int64_t{i} * num_chunks_ / followed));
}

void BinnedHoldings::SetConditions(const Collective& collective, ChunkId chunk) {
  std::ranges::fill(initial_, 0);
  std::ranges::fill(needed_, 0);
  collective.Before(chunk, conditions_);
  for (const Holding& h : conditions_)
    initial_[h.rank.index()] = static_cast<int32_t>(h.contributions.size());
  collective.After(chunk, conditions_);
  for (const Holding& h : conditions_) needed_[h.rank.index()] = static_cast<int32_t>(h.contributions.size());
}

void BinnedHoldings::Add(const Collective& collective, const ScheduleTrace& trace, ChunkId chunk,
                         std::span<const int32_t> transfers) {
  SetConditions(collective, chunk);
  const Schedule& schedule = trace.schedule;
  std::vector<Arrival> arrivals;
  held_ = initial_;
  ForEachStep(schedule, transfers, [&](std::span<const int32_t> step) {
    const size_t before = arrivals.size();
    for (const int32_t t : step) {
      const size_t path = schedule.path[static_cast<size_t>(t)].index();
      int32_t carried = 0;
      for (const Rank source : ends_.sources[path]) carried += held_[source.index()];
      const size_t arrival = static_cast<size_t>(first_arrival_[static_cast<size_t>(t)] + chunk.value -
                                                 schedule.first[static_cast<size_t>(t)].value);
      const bool adds = schedule.op[static_cast<size_t>(t)] == TransferOp::kReduce;
      for (const Rank destination : ends_.destinations[path])
        arrivals.push_back({trace.chunk_arrival_ps[arrival], destination, carried, adds});
    }
    for (size_t i = before; i < arrivals.size(); ++i) {
      int32_t& held = held_[arrivals[i].rank.index()];
      held = (arrivals[i].adds ? held : 0) + arrivals[i].contributions;
    }
  });
  std::ranges::stable_sort(arrivals, {}, &Arrival::time_ps);
  if (std::ranges::binary_search(followed_, chunk.value)) {
    std::vector<LinkId> links;
    for (const int32_t t : transfers)
      for (const LinkId link : schedule.paths[schedule.path[static_cast<size_t>(t)]]) links.push_back(link);
    Follow(std::move(links), chunk, arrivals);
  }
  Replay(chunk, arrivals);
}

void BinnedHoldings::Replay(ChunkId chunk, const std::vector<Arrival>& arrivals) {
  const auto share = [&](size_t rank) {
    return std::min(1.0, static_cast<double>(held_[rank]) / needed_[rank]);
  };
  const auto gain = [&](int64_t frame, size_t rank, double gained) {
    const int64_t row = RowOf(static_cast<int32_t>(rank));
    gains_[static_cast<size_t>((frame * rows_ + row) * columns_ + ColumnOf(chunk.value))] += gained;
    rank_gains_[static_cast<size_t>(frame * num_ranks_) + rank] += gained;
  };
  held_ = initial_;
  for (size_t r = 0; r < needed_.size(); ++r) {
    if (needed_[r] == 0) continue;
    ++needed_cells_[static_cast<size_t>(RowOf(static_cast<int32_t>(r)) * columns_ + ColumnOf(chunk.value))];
    ++needed_of_rank_[r];
    gain(0, r, share(r));
  }
  for (const Arrival& arrival : arrivals) {
    const size_t r = arrival.rank.index();
    const double before = needed_[r] == 0 ? 0 : share(r);
    held_[r] = (arrival.adds ? held_[r] : 0) + arrival.contributions;
    if (needed_[r] == 0) continue;
    // Frame f shows the state at the end of part f of the time. Find the part that contains the arrival.
    const double part = static_cast<double>(arrival.time_ps) / static_cast<double>(time_ps_) * kMostGroups;
    const int64_t frame = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(part)) - 1, 0, kMostGroups - 1);
    gain(frame, r, share(r) - before);
  }
}

void BinnedHoldings::Follow(std::vector<LinkId> links, ChunkId chunk, const std::vector<Arrival>& arrivals) {
  std::ranges::sort(links);
  links.erase(std::unique(links.begin(), links.end()), links.end());
  links_.insert(links_.end(), links.begin(), links.end());
  link_first_.push_back(std::ssize(links_));
  for (size_t r = 0; r < initial_.size(); ++r) {
    if (initial_[r] == 0) continue;
    arrival_ranks_.push_back(static_cast<int32_t>(r));
    arrivals_ps_.push_back(0);
  }
  for (const Arrival& arrival : arrivals) {
    arrival_ranks_.push_back(arrival.rank.value);
    arrivals_ps_.push_back(arrival.time_ps);
  }
  arrival_first_.push_back(std::ssize(arrival_ranks_));
  XCCL_CHECK(followed_[arrival_first_.size() - 2] == chunk.value);
}

void BinnedHoldings::Write(JsonWriter& json) const {
  const size_t cells = needed_cells_.size();
  const auto frames = [&](const char* key, const std::vector<double>& gains,
                          const std::vector<int64_t>& needed) {
    std::vector<double> held(needed.size());
    json.Key(key);
    json.BeginArray();
    for (size_t f = 0; f < kMostGroups; ++f) {
      std::string digits;
      for (size_t i = 0; i < needed.size(); ++i) {
        held[i] += gains[f * needed.size() + i];
        digits += Digit(needed[i] == 0 ? 0 : held[i] / static_cast<double>(needed[i]));
      }
      json.String(digits);
    }
    json.EndArray();
  };
  const auto names = [&](const char* key, const char* of, int32_t groups, int32_t all) {
    json.Key(key);
    json.BeginArray();
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t first = (g * all + groups - 1) / groups, last = ((g + 1) * all + groups - 1) / groups - 1;
      json.String(first == last ? fmt::format("{} {}", of, first)
                                : fmt::format("{}s {} to {}", of, first, last));
    }
    json.EndArray();
  };
  XCCL_CHECK(gains_.size() == kMostGroups * cells);
  frames("frames", gains_, needed_cells_);
  names("rows", "rank", rows_, num_ranks_);
  names("columns", "chunk", columns_, num_chunks_);
  std::vector<int32_t> row_of_rank;
  for (int32_t r = 0; r < num_ranks_; ++r) row_of_rank.push_back(RowOf(r));
  json.Member("row_of_rank", row_of_rank);
  frames("ranks", rank_gains_, needed_of_rank_);
  Letters(json, "needs", needed_of_rank_, [](int64_t needed) { return needed > 0 ? 'n' : '-'; });
  json.Member("chunk", followed_);
  json.Member("link_first", link_first_);
  json.Member("link", links_);
  json.Member("arrival_first", arrival_first_);
  json.Member("arrival_rank", arrival_ranks_);
  json.Member("arrival_ps", arrivals_ps_);
}

}  // namespace xccl::view
