#include "interchange/mscclpp/cut.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

namespace xccl::mscclpp {
namespace {

// A chunk has 16 bytes at least, and 32 bits hold all offsets.
constexpr int64_t kMostUnits = int64_t{1} << 28;

int64_t WidthOf(const Collective& collective, ChunkId c, int64_t unit) {
  const int64_t all = collective.PartWeight(collective.PartOf(c));
  return all == 0 ? 0 : collective.Weight(c) * unit / all;
}

}  // namespace

Status Cut::FindUnit(const Collective& collective, const std::string& name) {
  const int64_t most = kMostUnits / collective.num_parts();
  for (int32_t p = 0; p < collective.num_parts(); ++p) {
    int64_t divisor = 0;
    const ChunkId first = collective.FirstChunk(PartId(p));
    for (int32_t c = 0; c < collective.ChunksOf(PartId(p)); ++c)
      divisor = std::gcd(divisor, collective.Weight(ChunkId(first.value + c)));
    if (divisor == 0) continue;
    const int64_t chunks = collective.PartWeight(PartId(p)) / divisor;
    const int64_t factor = chunks / std::gcd(unit_, chunks);
    if (factor > most / unit_ / copies_)
      return InvalidInput(fmt::format(
          "{}: part {} needs a multiple of {} equal chunks, and earlier parts of {}; expected {} at most: "
          "MSCCL++ has 32 bits for offsets; hint: fewer --chunks",
          name, p, chunks, unit_, most / copies_));
    unit_ *= factor;
  }
  unit_ *= copies_;
  return OkStatus();
}

StatusOr<Cut> Cut::Make(const Program& program, const Collective& collective, bool pipelined,
                        const std::string& name) {
  Cut cut;
  cut.pipelined_ = pipelined;
  cut.copies_ = pipelined ? program.instances : 1;
  XCCL_RETURN_IF_ERROR(cut.FindUnit(collective, name));
  cut.offsets_ = IdVector<Rank, std::array<std::vector<int64_t>, 3>>(program.ranks.size());
  cut.span_ = 0;
  int64_t widest = 0;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    for (const BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch}) {
      std::vector<int64_t>& offsets = cut.offsets_[r][static_cast<size_t>(kind)];
      offsets.assign(1, 0);
      for (const ChunkId c : SlotChunks(program, collective, r, kind)) {
        const int64_t width = WidthOf(collective, c, cut.unit_);
        cut.span_ = std::gcd(cut.span_, width / cut.copies_);
        widest = std::max(widest, width / cut.copies_);
        offsets.push_back(offsets.back() + width);
      }
      if (kind == BufferKind::kScratch) continue;
      int64_t& nominal = cut.nominal_[static_cast<size_t>(kind)];
      nominal = std::max(nominal, offsets.back() / cut.unit_);
    }
  }
  cut.span_ = std::max<int64_t>(cut.span_, 1);
  cut.most_spans_ = std::max<int64_t>(widest / cut.span_, 1);
  return cut;
}

std::vector<Span> Cut::Spans(Rank r, const Operand& operand, int32_t count, int32_t copy) const {
  const std::vector<int64_t>& offsets = offsets_[r][static_cast<size_t>(operand.buffer)];
  const auto at = [&](int32_t slot) { return offsets[static_cast<size_t>(slot)]; };
  const int64_t begin = at(operand.slot), end = at(operand.slot + count);
  if (!pipelined_ || copy == kAllCopies)
    return end > begin ? std::vector<Span>{{begin, end - begin}} : std::vector<Span>{};
  std::vector<Span> spans;
  for (int32_t slot = operand.slot; slot < operand.slot + count; ++slot) {
    const int64_t share = (at(slot + 1) - at(slot)) / copies_;
    for (int64_t s = 0; s < share; s += span_) spans.push_back({at(slot) + copy * share + s, span_});
  }
  return spans;
}

int64_t Cut::SizeOf(Rank r, const Operand& operand, int32_t count) const {
  const std::vector<int64_t>& offsets = offsets_[r][static_cast<size_t>(operand.buffer)];
  return (offsets[static_cast<size_t>(operand.slot + count)] - offsets[static_cast<size_t>(operand.slot)]) /
         copies_;
}

}  // namespace xccl::mscclpp
