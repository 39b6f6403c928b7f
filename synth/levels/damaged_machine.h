// A machine that lacks links or hosts, together with the whole machine, for tests.
#pragma once

#include <utility>

#include "synth/levels/around.h"
#include "topologies/symmetry.h"
#include "topologies/topology.h"
#include "topologies/whole.h"

namespace xccl {

// Requires: FindMissingLinks finds what the machine lacks.
struct DamagedMachine {
  Topology machine, whole;
  MissingLinks missing;
  SymmetryGroup group;  // of the whole machine

  explicit DamagedMachine(Topology damaged)
      : machine(std::move(damaged)),
        whole(machine),
        missing(FindMissingLinks(machine).value()),
        group(machine) {
    whole = MakeWhole(machine, missing).value();
    group = TranslationsOfWhole(whole, missing);
  }
};

}  // namespace xccl
