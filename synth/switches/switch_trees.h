// Plans over switches that work: data goes down trees that switches multicast, sums come up trees that
// switches add up, and every link of a tree carries a byte once. Shared by `multicast`, whose trees pass one
// switch, and `in-network`, whose trees pass any number and are joined by GPUs where no switch joins them.
//
// In: a request; out: trees, one for every share of a part or, for an allreduce, of the buffer, and their
// schedule. An allreduce sums its shares up at their roots, which send them down again; all ranks get copies
// of one sum. Cost: trees × links × log, and simulations of an allreduce in a few numbers of waves.
#pragma once

#include <string_view>

#include "synth/common/synthesizer.h"

namespace xccl {

struct SwitchTreesForm {
  std::string_view engine, summary;
  int32_t near_bound = 0;   // as in Engine
  bool one_switch = false;  // trees pass one switch, which joins all members
};

// Errors of its plans: kInvalidInput for a kind that has nothing to multicast or to add up, for a machine
// whose switches cannot, saying which, and where members are joined by other ranks alone.
Engine SwitchTreesEngine(const SwitchTreesForm& form);

}  // namespace xccl
