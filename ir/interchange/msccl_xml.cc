// A program is made to fit: fan-ins and instances become plain threadblocks, weights few equal chunks.
#include "ir/interchange/msccl_xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "ir/interchange/instances_apart.h"
#include "ir/interchange/member_by_member.h"
#include "ir/interchange/msccl_write.h"
#include "ir/interchange/spread_channels.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 3> kTargetNames = {"msccl", "executor", "rccl"};

struct Rounded {
  Collective collective;
  std::string text;  // a warning
};

// The collective with chunks that are whole numbers of so few units of a part that, cut into `copies`, an
// offset can say it; absent: none is within kMostOff of its size.
std::optional<Rounded> RoundedWeights(const Collective& collective, int32_t copies) {
  constexpr double kMostOff = 0.005;
  const auto size_of = [&](ChunkId c, int32_t units) {
    const auto all = static_cast<double>(collective.PartWeight(collective.PartOf(c)));
    return all == 0 ? 0.0 : static_cast<double>(collective.Weight(c)) * units / all;
  };
  const int32_t most = kMostOffset / std::max(1, collective.num_parts()) / copies;
  for (int32_t units = 1; units <= most; ++units) {
    double off = 0;
    for (int32_t c = 0; c < collective.num_chunks() && off <= kMostOff; ++c) {
      const double size = size_of(ChunkId(c), units);
      if (size > 0) off = std::max(off, std::abs(std::round(size) / size - 1));
    }
    if (off > kMostOff) continue;
    std::vector<int32_t> chunks;
    std::vector<int64_t> weights;
    bool whole = true;  // all parts have so many units
    for (int32_t p = 0; p < collective.num_parts() && whole; ++p) {
      chunks.push_back(collective.ChunksOf(PartId(p)));
      int64_t sum = 0;
      for (int32_t c = 0; c < chunks.back(); ++c) {
        weights.push_back(static_cast<int64_t>(
            std::round(size_of(ChunkId(collective.FirstChunk(PartId(p)).value + c), units))));
        sum += weights.back();
      }
      whole = sum == units || sum == 0;
    }
    if (!whole) continue;
    return Rounded{
        collective.WithWeights(chunks, weights),
        fmt::format("chunks are rounded to whole parts of {}, by up to {:.2f} %", units, 100 * off)};
  }
  return std::nullopt;
}

}  // namespace

std::string_view ToString(MscclTarget target) { return kTargetNames[static_cast<size_t>(target)]; }
StatusOr<MscclTarget> ParseMscclTarget(std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfName("MSCCL target", name, kTargetNames));
  return static_cast<MscclTarget>(index);
}

StatusOr<MscclXml> WriteMscclXml(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options) {
  const Program plain = WithoutFanIns(program, collective);
  // As many instances as fit; chunks of exact sizes, or else of nearly these.
  StatusOr<MscclXml> refused = InvalidInput("");
  for (int32_t copies = plain.groups.empty() ? plain.instances : 1; copies > 0; copies /= 2) {
    LoweredProgram apart = WithInstancesApart(plain, collective, copies);
    if (plain.groups.empty()) apart.program = WithFewPeersOnAChannel(apart.program, kMostPeersOfChannel);
    StatusOr<MscclXml> exact = WriteAsItIs(apart.program, apart.collective, options);
    std::optional<Rounded> rounded;
    StatusOr<MscclXml> xml = exact;
    if (!exact.ok()) {
      rounded = RoundedWeights(collective, copies);
      if (rounded)
        xml = WriteAsItIs(apart.program, WithInstancesApart(plain, rounded->collective, copies).collective,
                          options);
    }
    if (!xml.ok()) {
      refused = std::move(exact);
      continue;
    }
    if (rounded) xml->warnings.push_back(rounded->text);
    if (copies < program.instances)
      xml->warnings.push_back(fmt::format("{} of {} instances of every threadblock are left out: {}",
                                          program.instances - copies, program.instances,
                                          refused.status().message()));
    return xml;
  }
  return refused;
}

}  // namespace xccl
