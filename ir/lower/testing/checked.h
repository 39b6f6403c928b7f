// Lowering as tests call it: every pass is verified. LowerChecked keeps the schedule's chunks.
#pragma once

#include "ir/lower/lower.h"

namespace xccl {

inline StatusOr<LoweredProgram> LowerFoldedChecked(const Schedule& schedule, const Collective& collective,
                                                   const Topology& topology, LowerOptions options = {}) {
  options.verify_passes = true;
  return LowerFolded(schedule, collective, topology, options);
}

inline StatusOr<Program> LowerChecked(const Schedule& schedule, const Collective& collective,
                                      const Topology& topology, LowerOptions options = {}) {
  options.fold = false;
  XCCL_ASSIGN_OR_RETURN(LoweredProgram lowered, LowerFoldedChecked(schedule, collective, topology, options));
  return std::move(lowered.program);
}

}  // namespace xccl
