#include "runtime/kernel_table.h"

#include <fmt/core.h>

#include <limits>
#include <map>
#include <optional>

#include "device/interpret.h"

namespace xccl {
namespace {

class TableWriter {
 public:
  TableWriter(const Program& program, const KernelForm& form) : program_(program), form_(form) {}

  StatusOr<std::vector<int32_t>> Write() {
    for (int64_t v : {int64_t{form_.blocks_per_rank}, int64_t{program_.slots}, int64_t{form_.tables},
                      int64_t{form_.members}})
      Add(v);
    const size_t sites = static_cast<size_t>(form_.ranks.size()) * static_cast<size_t>(form_.blocks_per_rank);
    words_.resize(words_.size() + sites, 0);
    for (Rank r(0); r.value < form_.ranks.size(); ++r.value) {
      for (size_t b = 0; b < form_.ranks[r].blocks.size(); ++b) {
        const size_t site = r.index() * static_cast<size_t>(form_.blocks_per_rank) + b;
        words_[device::kTableHeaderWords + site] = static_cast<int32_t>(words_.size());
        Block(r, form_.ranks[r].blocks[b]);
        if (words_.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
          return InvalidInput(fmt::format("kernel: a table of more than 2^31 words"));
      }
    }
    return std::move(words_);
  }

 private:
  void Add(int64_t value) { words_.push_back(static_cast<int32_t>(value)); }

  Rank Peer(Rank r, int32_t connection, bool sends) const {
    const Connection& c = ConnectionOf(program_, form_.ranks[r], connection);
    return sends ? c.dst : c.src;
  }

  // One end of a block, and the direct messages on it.
  struct EndUse {
    std::optional<int32_t> connection, group;
    int32_t puts = 0, gets = 0;  // 0, kDirectPeers or kDirectSwitch

    void Use(std::optional<int32_t> of_connection, std::optional<int32_t> of_group, DirectMode mode) {
      if (of_connection) connection = of_connection;
      if (of_group) group = of_group;
      const int32_t by = BySwitch(mode) ? device::kDirectSwitch : device::kDirectPeers;
      if (IsPut(mode)) puts = by;
      if (IsGet(mode)) gets = by;
    }
  };
  void AddEnd(Rank r, const EndUse& end, bool sends) {
    Add(end.connection ? *end.connection : end.group ? -2 - *end.group : -1);
    Add(end.connection ? Peer(r, *end.connection, sends).value : 0);
    Add(end.puts);
    Add(end.gets);
  }

  void Block(Rank r, const KernelBlock& block) {
    EndUse from, to;
    for (const KernelInstruction& i : block.instructions) {
      from.Use(i.from, i.from_group, i.receive);
      to.Use(i.to, i.to_group, i.send);
    }
    Add(static_cast<int64_t>(block.instructions.size()));
    Add(static_cast<int64_t>(words_.size()) + device::kTableBlockWords - 1);
    AddEnd(r, from, false);
    AddEnd(r, to, true);
    for (const KernelInstruction& i : block.instructions) {
      const size_t first = words_.size();
      AddInstruction(r, i);
      words_[first] = static_cast<int32_t>(words_.size() - first);
    }
  }

  void AddInstruction(Rank r, const KernelInstruction& i) {
    const BufferKind put = i.runs.empty() ? BufferKind::kInput : i.runs[0].peer.buffer;
    const int64_t marks = (i.what.first ? device::kFirst : 0) | (i.what.final ? device::kFinal : 0) |
                          (i.received_first ? device::kReceivedFirst : 0);
    Add(0);  // words, filled in at the end
    for (int64_t v : {static_cast<int64_t>(i.what.op), marks, int64_t{i.threadblock}, int64_t{i.index},
                      static_cast<int64_t>(i.receive), static_cast<int64_t>(i.send), int64_t{i.signals},
                      static_cast<int64_t>(SentFrom(i)), static_cast<int64_t>(i.what.dst.buffer),
                      static_cast<int64_t>(put), static_cast<int64_t>(i.after.size()),
                      static_cast<int64_t>(i.runs.size())})
      Add(v);
    for (const KernelDependency& d : i.after) {
      Add(d.block);
      Add(static_cast<int64_t>(form_.ranks[r].blocks[static_cast<size_t>(d.block)].instructions.size()));
      Add(d.index);
    }
    for (const KernelRun& run : i.runs) {
      for (int64_t v : {int64_t{run.part.value}, run.before, run.weight, int64_t{run.count}, run.total})
        Add(v);
      AddPlace(ReadsSource(i.what.op), run.src, r);
      AddPlace(WritesDestination(i.what.op), run.dst, r);
      AddPlace(IsPut(i.send), run.peer, i.to ? Peer(r, *i.to, true) : r);
      AddPlace(IsGet(i.receive), run.peer_src, i.from ? Peer(r, *i.from, false) : r);
    }
  }

  void AddPlace(bool there, const KernelPlace& place, Rank owner) {
    Add(there ? static_cast<int64_t>(place.buffer) : -1);
    Add(place.position);
    if (!there || place.buffer != BufferKind::kScratch) return;
    const std::vector<ScratchRun>& runs = form_.ranks[owner].scratch;
    const ScratchRun& own = runs[static_cast<size_t>(place.position)];
    std::map<int64_t, int64_t> weight_before;  // by total
    for (int32_t r = 0; r < place.position && !form_.tables; ++r)
      weight_before[runs[static_cast<size_t>(r)].total] += runs[static_cast<size_t>(r)].weight;
    Add(own.before);
    Add(own.total);
    Add(static_cast<int64_t>(weight_before.size()));
    for (const auto& [total, weight] : weight_before) {
      Add(total);
      Add(weight);
    }
  }

  const Program& program_;
  const KernelForm& form_;
  std::vector<int32_t> words_;
};

}  // namespace

StatusOr<std::vector<int32_t>> KernelTable(const Program& program, const KernelForm& form) {
  return TableWriter(program, form).Write();
}

}  // namespace xccl
