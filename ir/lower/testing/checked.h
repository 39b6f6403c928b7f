// Lowering as tests call it: every pass is verified.
#pragma once

#include "ir/lower/lower.h"

namespace xccl {

inline StatusOr<Program> LowerChecked(const Schedule& schedule, const Collective& collective,
                                      const Topology& topology, LowerOptions options = {}) {
  options.verify_passes = true;
  return Lower(schedule, collective, topology, options);
}

inline StatusOr<LoweredProgram> LowerFoldedChecked(const Schedule& schedule, const Collective& collective,
                                                   const Topology& topology, LowerOptions options = {}) {
  options.verify_passes = true;
  return LowerFolded(schedule, collective, topology, options);
}

}  // namespace xccl
