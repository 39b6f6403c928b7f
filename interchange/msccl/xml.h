// Programs as MSCCL XML, the format that msccl-tools writes and that microsoft/msccl, msccl-executor-nccl and
// RCCL run. docs/msccl.md has the format, the limits and how a file is put to use.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl {

// Whose parser, limits and selection rules a file is made for.
enum class MscclTarget : uint8_t {
  kMsccl,     // microsoft/msccl
  kExecutor,  // Azure/msccl-executor-nccl
  kRccl,      // ROCm/rccl
};
std::string_view ToString(MscclTarget target);  // "msccl", "executor", "rccl"
StatusOr<MscclTarget> ParseMscclTarget(std::string_view name);

struct MscclXmlOptions {
  MscclTarget target = MscclTarget::kExecutor;
  std::string name = "xccl";  // name of the algorithm; opens messages
  int64_t min_bytes = 0;      // sizes that the target selects the file for
  int64_t max_bytes = 0;      // 0: as large as the target can
  // Only for microsoft/msccl, which runs a file either in place or out of place. For the other targets the
  // file says what the program can do.
  bool in_place = false;
};

struct MscclXml {
  std::string text;
  int32_t chunks_per_loop = 0;        // a size is cut into this many equal chunks
  std::string selection;              // one line: the sizes that the target selects the file for
  std::vector<std::string> warnings;  // what is lost, and what makes the target pass the file over
};

// Messages under way on a connection in protocol Simple, of every target: of NCCL's 8 slots each takes 4.
inline constexpr int32_t kMscclSimpleSlots = 2;

// Errors: kInvalidInput that names the limit of the target, or what the format cannot say: groups, chunks of
// unequal sizes, other collectives. Requires: a program that verifies. Cost: linear in the chunks that
// instructions touch.
StatusOr<MscclXml> WriteMscclXml(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options);

// The program as the target runs the file that WriteMscclXml writes: in the plain form that the format has,
// with the target's slots and pieces. Its simulation is that of the file. Errors, requirements and cost:
// those of WriteMscclXml.
StatusOr<LoweredProgram> AsRunByMsccl(const Program& program, const Collective& collective,
                                      const MscclXmlOptions& options);

}  // namespace xccl
