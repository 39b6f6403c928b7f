// Numbers messages with the help of a stamp per path, which holds the step in which the path was last seen.
// Numbers units by a counting sort over messages. Builds cells chunk by chunk: visits a chunk's moves in
// order of step, reads before writes. A read's `need` is the number of writes visited before.
//
// A read before the first write needs data that its rank had from the start, and every link of a path leaves
// a GPU or follows another link. So, by induction over the steps, every job starts.
#include "ir/simulate/simulation_model.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "base/graph/grouped.h"
#include "ir/time_model.h"

namespace xccl {
namespace {

class ModelBuilder {
 public:
  ModelBuilder(const Schedule& schedule, const Collective& collective, const CollectiveSizes& sizes,
               const Topology& topology, TimeModel model, const Quotient& quotient, FromTheStart from_start)
      : schedule_(schedule),
        collective_(collective),
        sizes_(sizes),
        topology_(topology),
        model_(model),
        quotient_(quotient),
        from_start_(from_start) {}

  SimulationModel Build() {
    CheckColumns();
    if (made_.unsound.empty()) AddPaths();
    if (!made_.unsound.empty()) return std::move(made_);
    NumberMessages();
    if (model_ == TimeModel::kPipelined) {
      AddUnitPerChunk();
    } else {
      AddUnitPerMessage();
    }
    AddJobs();
    if (made_.unsound.empty()) AddCells();
    for (Hop& hop : made_.hops) hop.link = quotient_.link_representative[static_cast<size_t>(hop.link)];
    return std::move(made_);
  }

 private:
  using Hop = SimulationModel::Hop;
  static constexpr int64_t kMostJobs = 1LL << 30;  // two bits of a key are used otherwise (event_loop.cc)

  // Notes why the schedule cannot be simulated; keeps the first reason.
  void Refuse(std::string why) {
    if (made_.unsound.empty()) made_.unsound = std::move(why);
  }

  // Checks the properties of the columns that the rest of the model relies on.
  void CheckColumns() {
    const size_t transfers = schedule_.first.size();
    if (schedule_.count.size() != transfers || schedule_.path.size() != transfers ||
        schedule_.step.size() != transfers)
      return Refuse("its columns differ in length");
    for (size_t t = 0; t < transfers; ++t) {
      const int64_t first = schedule_.first[t].value, count = schedule_.count[t];
      if (first < 0 || count < 1 || first + count > collective_.num_chunks())
        return Refuse(fmt::format("transfer {}: chunks {} to {}; expected some of 0 to {}", t, first,
                                  first + count - 1, collective_.num_chunks() - 1));
      if (schedule_.path[t].value < 0 || schedule_.path[t].value >= schedule_.paths.size())
        return Refuse(fmt::format("transfer {}: no path {}", t, schedule_.path[t].value));
      if (schedule_.step[t] < (t == 0 ? 0 : schedule_.step[t - 1]))
        return Refuse(fmt::format("transfer {}: its step {} comes after a later one", t, schedule_.step[t]));
    }
  }

  // Refuses a path if one of its links carries nothing, or if what it carries does not end at a GPU.
  void CheckPath(int32_t path) {
    const std::span<const Hop> hops =
        std::span(made_.hops).subspan(static_cast<size_t>(made_.path_first[path]));
    std::vector<int32_t>& missing = path_missing_;
    std::vector<int32_t>& carry = path_carry_;
    missing.clear();
    carry.clear();
    for (size_t h = 0; h < hops.size(); ++h) {
      missing.push_back(hops[h].inputs);
      if (hops[h].inputs == 0 && hops[h].from_gpu) carry.push_back(static_cast<int32_t>(h));
    }
    for (size_t i = 0; i < carry.size(); ++i) {
      const Hop& hop = hops[static_cast<size_t>(carry[i])];
      if (hop.next_count == 0 && !hop.to_gpu) return Refuse(fmt::format("path {} ends at no GPU", path));
      for (int32_t n = hop.next_first; n < hop.next_first + hop.next_count; ++n)
        if (--missing[made_.next_hops[n]] == 0) carry.push_back(made_.next_hops[n]);
    }
    if (hops.empty() || carry.size() < hops.size())
      Refuse(fmt::format("path {} is no chain or tree of links", path));
  }

  void AddPaths() {
    const int32_t paths = schedule_.paths.size();
    made_.path_first.assign(static_cast<size_t>(paths) + 1, 0);
    std::vector<std::pair<NodeId, int32_t>> by_tail;
    for (int32_t p = 0; p < paths; ++p) {
      const std::span<const LinkId> links = schedule_.paths[PathId(p)];
      made_.path_first[p + 1] = made_.path_first[p] + static_cast<int32_t>(links.size());
      made_.single_hop &= links.size() <= 1;
      by_tail.clear();
      for (const LinkId l : links)
        if (l.value < 0 || l.value >= topology_.num_links())
          return Refuse(fmt::format("path {}: no link {}", p, l.value));
      for (size_t i = 0; i < links.size(); ++i)
        by_tail.emplace_back(topology_.link(links[i]).from, static_cast<int32_t>(i));
      std::sort(by_tail.begin(), by_tail.end());
      const size_t base = made_.hops.size();
      made_.hops.resize(base + links.size());
      for (size_t i = 0; i < links.size(); ++i) {
        const Link& link = topology_.link(links[i]);
        Hop& hop = made_.hops[base + i];
        hop.link = links[i].value;
        hop.from_gpu = topology_.IsGpu(link.from);
        hop.to_gpu = topology_.IsGpu(link.to);
        hop.next_first = static_cast<int32_t>(made_.next_hops.size());
        if (hop.to_gpu) continue;
        auto it = std::lower_bound(by_tail.begin(), by_tail.end(), std::pair(link.to, 0));
        for (; it != by_tail.end() && it->first == link.to; ++it) {
          made_.next_hops.push_back(it->second);
          ++hop.next_count;
          ++made_.hops[base + static_cast<size_t>(it->second)].inputs;
        }
      }
      CheckPath(p);
    }
  }

  void NumberMessages() {
    const int64_t transfers = schedule_.size();
    message_of_transfer_.resize(static_cast<size_t>(transfers));
    std::vector<int32_t> step_seen(static_cast<size_t>(schedule_.paths.size()), -1);
    std::vector<int32_t> message(static_cast<size_t>(schedule_.paths.size()), 0);
    for (int64_t t = 0; t < transfers; ++t) {
      const auto path = static_cast<size_t>(quotient_.path_class[schedule_.path[t].index()]);
      if (step_seen[path] != schedule_.step[t]) {
        step_seen[path] = schedule_.step[t];
        message[path] = made_.num_messages++;
      }
      message_of_transfer_[t] = message[path];
    }
  }

  // Makes a unit of each chunk of each transfer, in the order of messages. Notes each transfer's first unit.
  void AddUnitPerChunk() {
    const int64_t transfers = schedule_.size();
    std::vector<int64_t> next(static_cast<size_t>(made_.num_messages) + 1, 0);
    for (int64_t t = 0; t < transfers; ++t) next[message_of_transfer_[t] + 1] += schedule_.count[t];
    std::partial_sum(next.begin(), next.end(), next.begin());
    const size_t units = static_cast<size_t>(next.back());
    made_.unit_path.resize(units);
    made_.unit_bytes.resize(units);
    made_.unit_message.resize(units);
    made_.transfer_first_unit.resize(static_cast<size_t>(transfers));
    for (int64_t t = 0; t < transfers; ++t) {
      int64_t& unit = next[message_of_transfer_[t]];
      made_.transfer_first_unit[t] = static_cast<int32_t>(unit);
      for (int32_t i = 0; i < schedule_.count[t]; ++i, ++unit) {
        made_.unit_path[unit] = schedule_.path[t].value;
        made_.unit_bytes[unit] = sizes_.ChunkBytes(ChunkId(schedule_.first[t].value + i));
        made_.unit_message[unit] = message_of_transfer_[t];
      }
    }
  }

  void AddUnitPerMessage() {
    const size_t messages = static_cast<size_t>(made_.num_messages);
    made_.unit_per_chunk = false;
    made_.transfer_first_unit = message_of_transfer_;
    made_.unit_path.resize(messages);
    made_.unit_bytes.assign(messages, 0);
    made_.unit_message.resize(messages);
    std::iota(made_.unit_message.begin(), made_.unit_message.end(), 0);
    for (int64_t t = 0; t < schedule_.size(); ++t) {
      const int32_t message = message_of_transfer_[t];
      made_.unit_path[message] = schedule_.path[t].value;
      for (int32_t i = 0; i < schedule_.count[t]; ++i)
        made_.unit_bytes[message] += sizes_.ChunkBytes(ChunkId(schedule_.first[t].value + i));
    }
  }

  void AddJobs() {
    const int32_t units = made_.num_units();
    made_.unit_first_job.resize(static_cast<size_t>(units) + 1);
    int64_t jobs = 0;
    for (int32_t u = 0; u < units; ++u) {
      made_.unit_first_job[u] = static_cast<int32_t>(jobs);
      jobs += made_.path_first[made_.unit_path[u] + 1] - made_.path_first[made_.unit_path[u]];
      if (jobs >= kMostJobs)
        return Refuse(
            fmt::format("it moves chunks over more than {} links, too many to be simulated", kMostJobs));
    }
    made_.unit_first_job[units] = static_cast<int32_t>(jobs);
    made_.job_unit.resize(static_cast<size_t>(jobs));
    made_.job_missing.resize(static_cast<size_t>(jobs));
    made_.job_first_write.assign(static_cast<size_t>(jobs) + 1, 0);
    for (int32_t u = 0; u < units; ++u) {
      const int32_t path = made_.path_first[made_.unit_path[u]];
      for (int32_t j = made_.unit_first_job[u]; j < made_.unit_first_job[u + 1]; ++j) {
        made_.job_unit[j] = u;
        made_.job_missing[j] = made_.hops[path + j - made_.unit_first_job[u]].inputs;
      }
    }
  }

  // Calls visit(job, hop) for every link on the path of a move.
  template <typename Visit>
  void ForEachHop(int64_t transfer, int32_t place, Visit visit) const {
    const int32_t path = schedule_.path[transfer].value;
    const int32_t first_job = made_.unit_first_job[made_.UnitOf(transfer, place)];
    const int32_t first_hop = made_.path_first[path];
    for (int32_t h = first_hop; h < made_.path_first[path + 1]; ++h)
      visit(first_job + h - first_hop, made_.hops[h]);
  }

  // The move of chunk first[transfer] + place.
  struct Move {
    int32_t transfer;
    int32_t place;
  };

  void AddCells() {
    for (int64_t t = 0; t < schedule_.size(); ++t)
      for (int32_t i = 0; i < schedule_.count[t]; ++i)
        ForEachHop(t, i, [&](int32_t job, const Hop& hop) {
          if (hop.to_gpu) ++made_.job_first_write[static_cast<size_t>(job) + 1];
        });
    std::partial_sum(made_.job_first_write.begin(), made_.job_first_write.end(),
                     made_.job_first_write.begin());
    made_.writes.resize(static_cast<size_t>(made_.job_first_write.back()));
    next_write_.assign(made_.job_first_write.begin(), made_.job_first_write.end() - 1);
    // By chunk: its moves in order of step.
    const int64_t chunks = schedule_.moved_chunks();
    const auto moves = GroupItems<Move, int64_t>(static_cast<size_t>(chunks), [&](auto add) {
      for (int64_t t = 0; t < schedule_.size(); ++t)
        for (int32_t i = 0; i < schedule_.count[t]; ++i)
          add(schedule_.first[t].value + i, Move{static_cast<int32_t>(t), i});
    });

    cell_of_rank_.assign(static_cast<size_t>(topology_.num_ranks()), -1);
    for (int64_t c = 0; c < chunks; ++c) {
      const std::span<const Move> all = moves[c];
      for (size_t i = 0; i < all.size();) {
        size_t end = i;
        while (end < all.size() && schedule_.step[all[end].transfer] == schedule_.step[all[i].transfer])
          ++end;
        AddStep(ChunkId(c), all.subspan(i, end - i));
        i = end;
      }
      FinishChunk();
    }
  }

  int32_t CellOf(Rank rank) {
    int32_t& cell = cell_of_rank_[rank.index()];
    if (cell < 0) {
      cell = static_cast<int32_t>(made_.cells.size());
      made_.cells.emplace_back();
      last_reader_.push_back(-1);
      touched_.push_back(rank);
    }
    return cell;
  }

  bool HasFromTheStart(ChunkId chunk, Rank rank) {
    if (had_chunk_ != chunk.value) {
      had_chunk_ = chunk.value;
      had_.resize(static_cast<size_t>(topology_.num_ranks()), -1);
      collective_.Before(chunk, holdings_);
      for (const Holding& holding : holdings_) had_[holding.rank.index()] = chunk.value;
    }
    return had_[rank.index()] == chunk.value;
  }

  void AddStep(ChunkId chunk, std::span<const Move> moves) {
    for (const Move& move : moves) {
      ForEachHop(move.transfer, move.place, [&](int32_t job, const Hop& hop) {
        if (!hop.from_gpu) return;
        const Rank rank = *topology_.RankOf(topology_.link(LinkId(hop.link)).from);
        const int32_t cell = CellOf(rank);
        const int32_t need = made_.cells[cell].num_writes;
        if (need == 0 && from_start_ == FromTheStart::kWhatIsHeld && !HasFromTheStart(chunk, rank))
          Refuse(fmt::format("step {}: rank {} sends chunk {}, which it does not hold",
                             schedule_.step[move.transfer], rank.value, chunk.value));
        if (need == 0) return;
        ++made_.job_missing[job];
        const int32_t reader = static_cast<int32_t>(made_.readers.size());
        made_.readers.push_back({job, need, -1});
        int32_t& last = last_reader_[static_cast<size_t>(cell) - first_cell_];
        (last < 0 ? made_.cells[cell].first_reader : made_.readers[last].next) = reader;
        last = reader;
      });
    }
    for (const Move& move : moves) {
      ForEachHop(move.transfer, move.place, [&](int32_t job, const Hop& hop) {
        if (!hop.to_gpu) return;
        const int32_t cell = CellOf(*topology_.RankOf(topology_.link(LinkId(hop.link)).to));
        made_.writes[next_write_[job]++] = {cell, made_.cells[cell].num_writes++};
      });
    }
  }

  void FinishChunk() {
    for (size_t c = first_cell_; c < made_.cells.size(); ++c) {
      made_.cells[c].first_write = num_writes_;
      num_writes_ += made_.cells[c].num_writes;
    }
    for (Rank rank : touched_) cell_of_rank_[rank.index()] = -1;
    touched_.clear();
    last_reader_.clear();
    first_cell_ = made_.cells.size();
  }

  const Schedule& schedule_;
  const Collective& collective_;
  const CollectiveSizes& sizes_;
  const Topology& topology_;
  const TimeModel model_;
  const Quotient& quotient_;
  const FromTheStart from_start_;
  SimulationModel made_;
  std::vector<int32_t> message_of_transfer_, next_write_;
  std::vector<int32_t> path_missing_, path_carry_;
  // State of the current chunk.
  std::vector<Holding> holdings_;
  std::vector<int32_t> had_;  // by rank: the last chunk asked about that the rank held from the start
  int32_t had_chunk_ = -1;
  std::vector<int32_t> cell_of_rank_, last_reader_;
  std::vector<Rank> touched_;
  size_t first_cell_ = 0;
  int64_t num_writes_ = 0;
};

}  // namespace

Quotient NoTranslates(const Schedule& schedule, int32_t num_links) {
  Quotient quotient;
  for (int32_t p = 0; p < schedule.paths.size(); ++p) quotient.path_class.push_back(p);
  for (int32_t l = 0; l < num_links; ++l) quotient.link_representative.push_back(l);
  return quotient;
}

SimulationModel BuildSimulationModel(const Schedule& schedule, const Collective& collective,
                                     const CollectiveSizes& sizes, const Topology& topology, TimeModel model,
                                     const Quotient& quotient, FromTheStart from_start) {
  return ModelBuilder(schedule, collective, sizes, topology, model, quotient, from_start).Build();
}

}  // namespace xccl
