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
#include "interchange/msccl/write.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 3> kTargetNames = {"msccl", "executor", "rccl"};

}  // namespace

std::string_view ToString(MscclTarget target) { return kTargetNames[static_cast<size_t>(target)]; }
StatusOr<MscclTarget> ParseMscclTarget(std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfName("MSCCL target", name, kTargetNames));
  return static_cast<MscclTarget>(index);
}

StatusOr<MscclXml> WriteMscclXml(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options) {
  const Program plain = WithoutFanIns(program, collective);
  // Tries as many instances as fit, first with chunks of exact sizes and then with chunks of rounded sizes.
  StatusOr<MscclXml> refused = InvalidInput("");
  for (int32_t copies = plain.groups.empty() ? plain.instances : 1; copies > 0; copies /= 2) {
    LoweredProgram apart = WithInstancesApart(plain, collective, copies);
    if (plain.groups.empty()) apart.program = WithFewPeersOnAChannel(apart.program, kMostPeersOfChannel);
    StatusOr<MscclXml> exact = WriteAsItIs(apart.program, apart.collective, options);
    std::optional<RoundedParts> rounded;
    StatusOr<MscclXml> xml = exact;
    if (!exact.ok()) {
      rounded = RoundedWeights(collective, kMostOffset / std::max(1, collective.num_parts()) / copies);
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
