// Plans alltoall on rings, tori and hypercubes of up to a million ranks: along one dimension after another.
// The plan moves rank 0's data; its translates move the data of all other ranks. Not exact.
#pragma once

#include "synth/common/synthesizer.h"

namespace xccl {

Engine TorusAlltoallEngine();

}  // namespace xccl
