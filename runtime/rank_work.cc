// Flattening is one walk over the instructions. Direct sends need one more question: may another instruction
// of the rank overwrite the data while the receiver still reads it? A send is direct when every write to its
// range is known to be over before the send starts: earlier in its threadblock, or behind its dependencies.
// Vector clocks (how far each threadblock has come when an instruction starts) answer that in one topological
// walk: O(instructions × threadblocks).
#include "runtime/rank_work.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>

namespace xccl {
namespace {

constexpr int64_t kSliceSlack = 32;             // bytes that a slice may exceed an even share by
constexpr int64_t kMostClockEntries = 1 << 24;  // above this, nothing is direct

struct Layouts {
  std::array<BufferLayout, 3> of;
  const BufferLayout& operator[](BufferKind kind) const { return of[static_cast<size_t>(kind)]; }
};

Layouts LayoutsOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                  Rank rank) {
  Layouts layouts;
  for (BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
    layouts.of[static_cast<size_t>(kind)] = LayoutOf(program, collective, sizes, rank, kind);
  return layouts;
}

std::string Place(Rank rank, size_t lane, size_t index, Opcode op) {
  return fmt::format("rank {}: threadblock {}, instruction {} ({})", rank.value, lane, index, ToString(op));
}

Status CheckOperand(const BufferLayout& layout, const Operand& operand, int32_t count,
                    const std::string& place) {
  if (operand.slot >= 0 && count >= 0 &&
      static_cast<int64_t>(operand.slot) + count <= static_cast<int64_t>(layout.chunk.size()))
    return OkStatus();
  return InvalidInput(fmt::format("{}: slots {}..{}; the buffer has {}", place, operand.slot,
                                  static_cast<int64_t>(operand.slot) + count - 1, layout.chunk.size()));
}

// A byte range that an instruction writes or sends, in coordinates where input and output overlap as in
// place.
struct Access {
  int64_t begin = 0, end = 0;
  int32_t lane = 0, index = 0;
};

class DirectSends {
 public:
  DirectSends(RankWork& work, int64_t input_at, int64_t output_at) : work_(work) {
    // Scratch lies behind both, so that it overlaps neither.
    base_[static_cast<size_t>(BufferKind::kInput)] = input_at;
    base_[static_cast<size_t>(BufferKind::kOutput)] = output_at;
    base_[static_cast<size_t>(BufferKind::kScratch)] =
        std::max(input_at + work.input_bytes, output_at + work.output_bytes);
  }

  void Mark() {
    if (!ComputeClocks()) return;
    CollectWrites();
    for (size_t l = 0; l < work_.lanes.size(); ++l) {
      for (size_t i = 0; i < work_.lanes[l].steps.size(); ++i) {
        Step& step = work_.lanes[l].steps[i];
        const bool from_source = step.op == Opcode::kSend;
        if (!from_source && !(Sends(step.op) && WritesDestination(step.op))) continue;
        step.direct = true;
        for (int32_t c = 0; c < step.range_count && step.direct; ++c)
          step.direct = IsStable(At(step, c, from_source), static_cast<int32_t>(l), static_cast<int32_t>(i));
      }
    }
  }

 private:
  Access At(const Step& step, int32_t c, bool source) const {
    const ByteRange& range = work_.ranges[step.range_first + c];
    const int64_t begin = base_[static_cast<size_t>(source ? step.src : step.dst)] +
                          (source ? range.src_begin : range.dst_begin);
    return {begin, begin + range.elements * work_.element_bytes, 0, 0};
  }

  // False when there are too many, or when dependencies are circular.
  bool ComputeClocks() {
    const size_t lanes = work_.lanes.size();
    int64_t steps = 0;
    for (const Lane& lane : work_.lanes) {
      first_step_.push_back(steps);
      steps += static_cast<int64_t>(lane.steps.size());
    }
    if (steps * static_cast<int64_t>(lanes) > kMostClockEntries) return false;
    clocks_.assign(static_cast<size_t>(steps) * lanes, 0);
    std::vector<int32_t> done(lanes, 0);
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t l = 0; l < lanes; ++l) {
        while (done[l] < static_cast<int32_t>(work_.lanes[l].steps.size()) && TryClock(l, done)) {
          ++done[l];
          --steps;
          moved = true;
        }
      }
    }
    return steps == 0;
  }

  bool TryClock(size_t lane, const std::vector<int32_t>& done) {
    const Step& step = work_.lanes[lane].steps[done[lane]];
    const auto dependencies = std::span(work_.dependencies).subspan(step.dep_first, step.dep_count);
    for (const Dependency& d : dependencies)
      if (done[d.threadblock] <= d.index) return false;
    const std::span<int32_t> clock = ClockOf(lane, done[lane]);
    const auto join = [&](size_t l, int32_t index) {
      const std::span<int32_t> before = ClockOf(l, index);
      for (size_t k = 0; k < clock.size(); ++k) clock[k] = std::max(clock[k], before[k]);
      clock[l] = std::max(clock[l], index + 1);
    };
    if (done[lane] > 0) join(lane, done[lane] - 1);
    for (const Dependency& d : dependencies) join(d.threadblock, d.index);
    return true;
  }

  std::span<int32_t> ClockOf(size_t lane, int32_t index) {
    return std::span(clocks_).subspan(static_cast<size_t>(first_step_[lane] + index) * work_.lanes.size(),
                                      work_.lanes.size());
  }

  void CollectWrites() {
    for (size_t l = 0; l < work_.lanes.size(); ++l) {
      for (size_t i = 0; i < work_.lanes[l].steps.size(); ++i) {
        const Step& step = work_.lanes[l].steps[i];
        if (!WritesDestination(step.op)) continue;
        for (int32_t c = 0; c < step.range_count; ++c) {
          Access access = At(step, c, false);
          access.lane = static_cast<int32_t>(l);
          access.index = static_cast<int32_t>(i);
          if (access.begin < access.end) writes_.push_back(access);
        }
      }
    }
    std::stable_sort(writes_.begin(), writes_.end(),
                     [](const Access& a, const Access& b) { return a.begin < b.begin; });
    int64_t reach = 0;
    for (const Access& write : writes_) reach_.push_back(reach = std::max(reach, write.end));
  }

  bool IsStable(const Access& sent, int32_t lane, int32_t index) {
    auto at = std::lower_bound(writes_.begin(), writes_.end(), sent.end,
                               [](const Access& a, int64_t end) { return a.begin < end; }) -
              writes_.begin();
    while (at > 0 && reach_[at - 1] > sent.begin) {
      const Access& write = writes_[--at];
      if (write.end <= sent.begin || (write.lane == lane && write.index == index)) continue;
      if (ClockOf(lane, index)[write.lane] <= write.index) return false;
    }
    return true;
  }

  RankWork& work_;
  std::array<int64_t, 3> base_;
  std::vector<int64_t> first_step_;  // by lane, counted over all
  std::vector<int32_t> clocks_;      // [step][lane]: instructions of lane done before step starts
  std::vector<Access> writes_;       // by begin
  std::vector<int64_t> reach_;       // the farthest end of writes_[0..i]
};

int64_t PartBegin(const CollectiveSizes& sizes, const std::vector<PartId>& parts, int32_t position) {
  int64_t bytes = 0;
  for (int32_t p = 0; p < position; ++p) bytes += sizes.PartBytes(parts[p]);
  return bytes;
}

Status AddStep(const Instruction& instruction, const std::vector<Dependency>& all_dependencies,
               const Layouts& layouts, const CollectiveSizes& sizes, const std::string& place, RankWork& work,
               Lane& lane) {
  const bool reads = ReadsSource(instruction.op), writes = WritesDestination(instruction.op);
  const BufferLayout& src = layouts[instruction.src.buffer];
  const BufferLayout& dst = layouts[instruction.dst.buffer];
  if (reads) XCCL_RETURN_IF_ERROR(CheckOperand(src, instruction.src, instruction.count, place));
  if (writes) XCCL_RETURN_IF_ERROR(CheckOperand(dst, instruction.dst, instruction.count, place));
  Step step{.op = instruction.op, .src = instruction.src.buffer, .dst = instruction.dst.buffer};
  step.first = instruction.first;
  step.final = instruction.final;
  step.dep_first = static_cast<int32_t>(work.dependencies.size());
  step.dep_count = instruction.dep_count;
  const auto dependencies = std::span(all_dependencies).subspan(instruction.dep_first, instruction.dep_count);
  work.dependencies.insert(work.dependencies.end(), dependencies.begin(), dependencies.end());
  step.range_first = static_cast<int32_t>(work.ranges.size());
  for (int32_t c = 0; (reads || writes) && c < instruction.count; ++c) {
    ByteRange range;
    const size_t s = static_cast<size_t>(instruction.src.slot) + c,
                 d = static_cast<size_t>(instruction.dst.slot) + c;
    range.elements = sizes.ChunkElements(reads ? src.chunk[s] : dst.chunk[d]);
    if (reads && writes && sizes.ChunkElements(dst.chunk[d]) != range.elements)
      return InvalidInput(fmt::format("{}: reads a chunk of {} elements and writes one of {}", place,
                                      range.elements, sizes.ChunkElements(dst.chunk[d])));
    if (reads) range.src_begin = src.begin[s] * work.element_bytes;
    if (writes) range.dst_begin = dst.begin[d] * work.element_bytes;
    work.ranges.push_back(range);
  }
  step.range_count = static_cast<int32_t>(work.ranges.size()) - step.range_first;
  lane.steps.push_back(step);
  return OkStatus();
}

}  // namespace

StatusOr<int32_t> PassesFor(const Program& program, const Collective& collective,
                            const CollectiveSizes& sizes, int64_t slot_bytes) {
  int64_t passes = 1;
  for (int32_t r = 0; r < program.ranks.size(); ++r) {
    const RankProgram& rank = program.ranks[Rank(r)];
    if (rank.threadblocks.empty()) continue;
    const Layouts layouts = LayoutsOf(program, collective, sizes, Rank(r));
    for (size_t l = 0; l < rank.threadblocks.size(); ++l) {
      for (size_t i = 0; i < rank.threadblocks[l].instructions.size(); ++i) {
        const Instruction& instruction = rank.threadblocks[l].instructions[i];
        if (!Sends(instruction.op)) continue;
        const Operand& operand = ReadsSource(instruction.op) ? instruction.src : instruction.dst;
        const BufferLayout& layout = layouts[operand.buffer];
        XCCL_RETURN_IF_ERROR(
            CheckOperand(layout, operand, instruction.count, Place(Rank(r), l, i, instruction.op)));
        int64_t padded = 0, bytes = 0;
        for (int32_t c = 0; c < instruction.count; ++c) {
          const int64_t elements = sizes.ChunkElements(layout.chunk[operand.slot + c]);
          padded += PaddedBytes(elements, sizes.element_bytes());
          bytes += elements * sizes.element_bytes();
        }
        if (padded <= slot_bytes) continue;
        const int64_t room = slot_bytes - kSliceSlack * instruction.count;
        if (room <= 0)
          return InvalidInput(fmt::format("{}: {} chunks do not fit a slot of {} bytes",
                                          Place(Rank(r), l, i, instruction.op), instruction.count,
                                          slot_bytes));
        passes = std::max(passes, (bytes + room - 1) / room);
      }
    }
  }
  if (passes > std::numeric_limits<int32_t>::max())
    return InvalidInput(
        fmt::format("{} passes of {} bytes; at most 2^31-1 are supported", passes, slot_bytes));
  return static_cast<int32_t>(passes);
}

StatusOr<RankWork> PrepareRank(const Program& program, const Collective& collective,
                               const CollectiveSizes& sizes, const Wiring& wiring, Rank rank, int32_t passes,
                               bool in_place, bool allow_direct) {
  const Layouts layouts = LayoutsOf(program, collective, sizes, rank);
  RankWork work;
  work.rank = rank;
  work.passes = passes;
  work.members = collective.num_members();
  work.element_bytes = sizes.element_bytes();
  work.input_bytes = layouts[BufferKind::kInput].elements * work.element_bytes;
  work.output_bytes = layouts[BufferKind::kOutput].elements * work.element_bytes;
  work.scratch_bytes = layouts[BufferKind::kScratch].elements * work.element_bytes;
  const RankProgram& rank_program = program.ranks[rank];
  for (size_t l = 0; l < rank_program.threadblocks.size(); ++l) {
    const Threadblock& block = rank_program.threadblocks[l];
    Lane lane;
    lane.channel = block.channel;
    const auto connect = [&](std::span<const Rank> peers, bool sends, std::vector<int32_t>& connections,
                             std::vector<Rank>& of) {
      of.assign(peers.begin(), peers.end());
      for (Rank peer : peers)
        if (const auto found = wiring.Find({sends ? rank : peer, sends ? peer : rank, block.channel}))
          connections.push_back(*found);
      return connections.size() == peers.size();
    };
    const bool sends = connect(SendPeers(program, block), true, lane.send, lane.send_peers);
    const bool receives = connect(RecvPeers(program, block), false, lane.recv, lane.recv_peers);
    if (!sends || !receives)
      return InvalidInput(
          fmt::format("rank {}: threadblock {}: nobody sends what it receives, or receives what it sends",
                      rank.value, l));
    for (size_t i = 0; i < block.instructions.size(); ++i)
      XCCL_RETURN_IF_ERROR(AddStep(block.instructions[i], program.dependencies, layouts, sizes,
                                   Place(rank, l, i, block.instructions[i].op), work, lane));
    work.lanes.push_back(std::move(lane));
  }
  if (allow_direct) {
    int64_t input_at = 0, output_at = work.input_bytes;
    if (const auto overlap = collective.InPlaceOf(rank); in_place && overlap) {
      input_at = PartBegin(sizes, collective.OutputParts(rank), overlap->input_at_output_part);
      output_at = PartBegin(sizes, collective.InputParts(rank), overlap->output_at_input_part);
    }
    DirectSends(work, input_at, output_at).Mark();
  }
  return work;
}

}  // namespace xccl
