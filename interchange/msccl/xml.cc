// A program is made to fit: fan-ins and instances become plain threadblocks, weights few equal chunks.
#include "interchange/msccl/xml.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/strings.h"
#include "interchange/common/instances_apart.h"
#include "interchange/common/member_by_member.h"
#include "interchange/common/rounded_weights.h"
#include "interchange/common/spread_channels.h"
#include "interchange/msccl/depth.h"
#include "interchange/msccl/write.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 3> kTargetNames = {"msccl", "executor", "rccl"};

static_assert(kMscclSimpleSlots == msccl::kSimpleDepth);

// A file, and the program that it says.
struct Fitted {
  MscclXml xml;
  LoweredProgram as_run;
};

// The program with the target's slots and in its pieces. A piece is of a chunk of the file; the program's
// largest chunk is several of these.
LoweredProgram WithTargetsRoom(LoweredProgram lowered, int64_t most_of_a_chunk) {
  lowered.program.slots = msccl::Depth(lowered.program.protocol);
  lowered.program.segment_bytes = msccl::PieceBytes(lowered.program.protocol) * most_of_a_chunk;
  return lowered;
}

// As many instances as fit; chunks of exact sizes, or else of nearly these.
StatusOr<Fitted> Fit(const Program& program, const Collective& collective, const MscclXmlOptions& options) {
  const Program plain = WithoutFanIns(program, collective);
  StatusOr<Fitted> refused = InvalidInput("");
  for (int32_t copies = plain.groups.empty() ? plain.instances : 1; copies > 0; copies /= 2) {
    LoweredProgram apart = WithInstancesApart(plain, collective, copies);
    if (plain.groups.empty()) apart.program = WithFewPeersOnAChannel(apart.program, kMostPeersOfChannel);
    StatusOr<WrittenXml> written = WriteAsItIs(apart.program, apart.collective, options);
    const Status exact = written.status();
    std::optional<RoundedParts> rounded;
    if (!exact.ok()) {
      rounded =
          RoundedWeights(collective, kMostOffset / std::max<int64_t>(1, collective.num_parts()) / copies);
      if (rounded) {
        apart.collective = WithInstancesApart(plain, rounded->collective, copies).collective;
        written = WriteAsItIs(apart.program, apart.collective, options);
      }
    }
    if (!written.ok()) {
      refused = exact;
      continue;
    }
    MscclXml& xml = written->xml;
    if (rounded) xml.warnings.push_back(rounded->text);
    if (copies < program.instances)
      xml.warnings.push_back(fmt::format("{} of {} instances of every threadblock are left out: {}",
                                         program.instances - copies, program.instances,
                                         refused.status().message()));
    return Fitted{std::move(xml), WithTargetsRoom(std::move(apart), written->most_of_a_chunk)};
  }
  return refused;
}

}  // namespace

std::string_view ToString(MscclTarget target) { return kTargetNames[static_cast<size_t>(target)]; }
StatusOr<MscclTarget> ParseMscclTarget(std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfName("MSCCL target", name, kTargetNames));
  return static_cast<MscclTarget>(index);
}

StatusOr<MscclXml> WriteMscclXml(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options) {
  XCCL_ASSIGN_OR_RETURN(Fitted fitted, Fit(program, collective, options));
  return std::move(fitted.xml);
}

StatusOr<LoweredProgram> AsRunByMsccl(const Program& program, const Collective& collective,
                                      const MscclXmlOptions& options) {
  XCCL_ASSIGN_OR_RETURN(Fitted fitted, Fit(program, collective, options));
  return std::move(fitted.as_run);
}

}  // namespace xccl
