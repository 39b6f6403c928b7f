// Scratch runs. If all parts have the same number of elements e, run r begins at the next whole 16 bytes
// after
//   Σ over totals T of floor(e × W(T, r) ÷ T) + r × (unit + 2)
// elements. W(T, r) is the sum of weights of the runs before r in parts of weight T; unit is the number of
// elements in 16 bytes. A run of weight w has at most e·w/T + 1 elements, so runs do not overlap, and a
// kernel can compute the sum from constants and e alone. If parts differ, runs are laid one after another
// and kernels read a table.
#include "ir/kernel/kernel_sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "ir/protocol_lines.h"

namespace xccl {
namespace {

constexpr int64_t kSliceBytes = 16;
// The most bytes that a run of chunks needs in a slot beyond its data: its own skew, and that of the run
// before.
constexpr int64_t kSkewBytes = 32;

int64_t UnitOf(const CollectiveSizes& sizes) {
  return std::max<int64_t>(1, kSliceBytes / sizes.element_bytes());
}

int64_t AlignUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

int64_t Share(int64_t elements, int64_t weight, int64_t total) {
  return static_cast<int64_t>(static_cast<__int128>(elements) * weight / total);
}

}  // namespace

int64_t RunBytes(const KernelRun& run, const CollectiveSizes& sizes) {
  const int64_t elements = sizes.PartElements(run.part), total = std::max<int64_t>(run.total, 1);
  return (Share(elements, run.before + run.count * run.weight, total) - Share(elements, run.before, total)) *
         sizes.element_bytes();
}

int64_t SlotBytes(Protocol protocol, int64_t bytes) {
  switch (protocol) {
    case Protocol::kSimple:
      return bytes + kSkewBytes;
    case Protocol::kLl:
    case Protocol::kLl128: {
      const ProtocolLine line = LineOf(protocol);
      return AlignUp(bytes, line.data_bytes) / line.data_bytes * line.wire_bytes;
    }
  }
  return bytes;
}

std::vector<int64_t> ScratchRunBegins(const KernelForm& form, const CollectiveSizes& sizes, Rank rank) {
  const std::vector<ScratchRun>& runs = form.ranks[rank].scratch;
  const int64_t unit = UnitOf(sizes);
  std::vector<int64_t> begins;
  std::map<int64_t, int64_t> weight_before;  // by total
  int64_t end = 0;
  for (size_t r = 0; r <= runs.size(); ++r) {
    int64_t begin = end;
    if (!form.tables && !runs.empty()) {
      const int64_t elements = sizes.PartElements(runs[0].part);
      begin = static_cast<int64_t>(r) * (unit + 2);
      for (const auto& [total, weight] : weight_before) begin += Share(elements, weight, total);
    }
    begins.push_back(AlignUp(begin, unit));
    if (r == runs.size()) break;
    const ScratchRun& run = runs[r];
    const int64_t elements = sizes.PartElements(run.part);
    if (run.total > 0) {
      weight_before[run.total] += run.weight;
      end = begins.back() + Share(elements, run.before + run.weight, run.total) -
            Share(elements, run.before, run.total);
    }
  }
  return begins;
}

std::vector<int64_t> PartBegins(const Collective& collective, const CollectiveSizes& sizes, Rank rank,
                                BufferKind buffer) {
  std::vector<int64_t> begins = {0};
  for (PartId part :
       buffer == BufferKind::kInput ? collective.InputParts(rank) : collective.OutputParts(rank))
    begins.push_back(begins.back() + sizes.PartElements(part));
  return begins;
}

int64_t ScratchBytes(const KernelForm& form, const CollectiveSizes& sizes, Rank rank) {
  return ScratchRunBegins(form, sizes, rank).back() * sizes.element_bytes();
}

namespace {

// The bytes of a slot that an instruction's message takes if the kernel makes `passes` passes. The bytes of
// data shrink in proportion; the overhead of chunks does not.
int64_t MessageBytes(const KernelInstruction& i, const CollectiveSizes& sizes, int64_t passes,
                     Protocol protocol) {
  int64_t bytes = 0;
  for (const KernelRun& run : i.runs) {
    if (passes == 1) {
      bytes += SlotBytes(protocol, RunBytes(run, sizes));
      continue;
    }
    const int64_t chunk =
        Share(sizes.PartElements(run.part), run.weight, std::max<int64_t>(run.total, 1)) + 1;
    const int64_t slice = std::min(chunk, AlignUp((chunk + passes - 1) / passes, UnitOf(sizes)));
    bytes += run.count * SlotBytes(protocol, slice * sizes.element_bytes());
  }
  return bytes;
}

}  // namespace

int64_t LargestMessageBytes(const Program& program, const KernelForm& form, const CollectiveSizes& sizes,
                            Protocol protocol) {
  const int64_t passes = NumPasses(program, sizes);
  int64_t largest = 0;
  for (Rank r(0); r.value < form.ranks.size(); ++r.value)
    for (const KernelBlock& block : form.ranks[r].blocks)
      for (const KernelInstruction& i : block.instructions)
        if (i.to || i.to_group) largest = std::max(largest, MessageBytes(i, sizes, passes, protocol));
  return largest;
}

StatusOr<int32_t> KernelPasses(const Program& program, const KernelForm& form, const CollectiveSizes& sizes,
                               int64_t slot_bytes, Protocol protocol) {
  int64_t passes = NumPasses(program, sizes);
  for (Rank r(0); r.value < form.ranks.size(); ++r.value) {
    for (const KernelBlock& block : form.ranks[r].blocks) {
      for (const KernelInstruction& i : block.instructions) {
        if (!i.to && !i.to_group) continue;
        const auto wire = [&](int64_t k) { return MessageBytes(i, sizes, k, protocol); };
        while (wire(passes) > slot_bytes && passes < kMaxPasses)
          passes = std::min<int64_t>(kMaxPasses, std::max(passes + 1, passes * wire(passes) / slot_bytes));
        if (wire(passes) > slot_bytes)
          return InvalidInput(fmt::format(
              "rank {}: threadblock {}, instruction {} ({}): {} chunks do not fit a slot of {} bytes",
              r.value, i.threadblock, i.index, ToString(i.what.op), i.what.count, slot_bytes));
      }
    }
  }
  return static_cast<int32_t>(passes);
}

}  // namespace xccl
